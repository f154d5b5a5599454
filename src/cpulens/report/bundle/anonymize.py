"""Names, paths and addresses out of texts, each replaced by the same placeholder wherever it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from cpulens.report.bundle.identity import Identity
from cpulens.report.bundle.patterns import FORMS, OTHER_FORMS, PLACEHOLDER, SECRET_NAME, is_address, public_part

_PLACEHOLDER: Final = r"<(?:user|host|word|instance|path|address|email|url|id|secret|code)-\d+>"
_PLACED: Final = re.compile(_PLACEHOLDER)
_OPTION: Final = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)
_WHO: Final = re.compile(r"^-H$|host|user|addr|nodelist|endpoint", re.IGNORECASE)
#: 8, 0-3,8: counts and lists of CPUs, which are nobody's name and no program.
_NUMBERS: Final = re.compile(r"[\d,:-]+")
_ASSIGNED: Final = re.compile(r"([\w-]+)(\s*[=:]\s*)([^\s,;]+)")


class Anonymizer:
    """Replaces what could tell who or where. Equal originals get equal placeholders, such as `<path-3>`.

    `instances`: names of instances (logs, hosts, ranks) in the run, which are replaced like those of hosts.
    """

    def __init__(self, identity: Identity, instances: Iterable[str] = ()) -> None:
        self._names: dict[str, str] = {}
        for kind, names in (("user", identity.users), ("host", identity.hosts), ("word", identity.words)):
            for name in names:
                self._names.setdefault(name.lower(), kind)
        for name in instances:
            for part in name.split("/"):
                if not part.isdecimal() and len(part) > 1:
                    self._names.setdefault(part.lower(), "instance")
        self._placeholders: dict[tuple[str, str], str] = {}
        self._numbers: Counter[str] = Counter()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._word = _names_form(self._names)
        folders = {"folder": _folders_form(identity.folders)} if identity.folders else {}
        words = {"name": self._word.pattern} if self._names else {}
        placed = {"placed": _PLACEHOLDER}
        self._kernel = _joined(placed, folders, FORMS)
        self._free = _joined(placed, folders, FORMS, OTHER_FORMS, words)

    @property
    def replaced(self) -> list[tuple[str, str, str, int]]:
        """Kind, original, placeholder and number of places, in the order in which they were met."""
        return [(kind, text, self._placeholders[kind, text], times) for (kind, text), times in self._counts.items()]

    def text(self, text: str) -> str:
        """A free text without names, paths, addresses and secrets."""
        told = _ASSIGNED.sub(self._assignment, text) if SECRET_NAME.search(text) else text
        return self._free.sub(self._found, told)

    def kernel(self, text: str) -> str:
        """A text in which a library describes a kernel: a name in it is the library's word, and stays."""
        return self._kernel.sub(self._found, text)

    def instance(self, name: str) -> str:
        """The name of an instance; numbers stay."""
        parts = [self.text(part) if not part.isdecimal() else part for part in name.split("/")]
        return "/".join(parts)

    def command(self, words: Iterable[str]) -> list[str]:
        """A command line: options, numbers and plain words stay; every word with a slash or an extension is a path."""
        changed: list[str] = []
        hidden = ""  # what the next word is, as the option before it tells
        for word in words:
            option = _OPTION.fullmatch(word)
            if option is None:
                changed.append(self._value(hidden, word))
                hidden = ""
                continue
            kind, value = _told_by(option[1]), option[2]
            changed.append(self.text(option[1]) + ("" if value is None else f"={self._value(kind, value)}"))
            hidden = kind if value is None else ""
        return changed

    def names_left(self, text: str) -> Counter[str]:
        """Names that still stand as words in a text, placeholders apart."""
        if not self._names:
            return Counter()
        return Counter(found.group().lower() for found in self._word.finditer(_PLACED.sub(" ", text)))

    def _value(self, hidden: str, word: str) -> str:
        """A word after an option that tells what it is, `hidden`; "": any word. A number is nobody's name."""
        hides = hidden == "secret" or (hidden and not _NUMBERS.fullmatch(word))
        return self._place(hidden, word) if hides else self._argument(word)

    def _argument(self, word: str) -> str:
        plain = "\n" not in word and "://" not in word and "@" not in word
        if plain and ("/" in word or re.fullmatch(r"[^\s=:]+\.[A-Za-z][A-Za-z0-9]{0,8}", word)):
            start = max(word.find("=") + 1, 0)
            if word.startswith("-"):  # -I/path
                start = max(start, word.find("/"))
            return self.text(word[:start]) + self._path(word[start:])
        return self.text(word)

    def _assignment(self, found: re.Match[str]) -> str:
        if SECRET_NAME.search(found[1]) is None or _PLACED.fullmatch(found[3]):
            return found.group()
        return found[1] + found[2] + self._place("secret", found[3])

    def _found(self, found: re.Match[str]) -> str:
        kind, text = str(found.lastgroup), found.group()
        if kind == "placed":
            return text
        if kind == "name":
            return self._place(self._names[text.lower()], text.lower())
        if kind in ("path", "windows", "folder"):
            return self._path(text)
        return self._place(PLACEHOLDER.get(kind, kind), text) if is_address(kind, text) else text

    def _path(self, text: str) -> str:
        split = public_part(text)
        if split is None:
            return self._named(text)
        hidden, rest = split
        return (self._place("path", hidden) if hidden else "") + self._named(rest)

    def _named(self, text: str) -> str:
        if not self._names:
            return text
        return self._word.sub(
            lambda found: self._place(self._names[found.group().lower()], found.group().lower()), text
        )

    def _place(self, kind: str, text: str) -> str:
        key = (kind, text)
        if key not in self._placeholders:
            self._numbers[kind] += 1
            self._placeholders[key] = f"<{kind}-{self._numbers[kind]}>"
        self._counts[key] += 1
        return self._placeholders[key]


def _told_by(option: str) -> str:
    """What stands after an option: a secret, a program, names of hosts or users; "": anything."""
    if SECRET_NAME.search(option):
        return "secret"
    if option == "-c":
        return "code"
    return "host" if _WHO.search(option) else ""


def _names_form(names: Iterable[str]) -> re.Pattern[str]:
    """Any of the names as a whole word, longest first, upper and lower case alike."""
    words = "|".join(map(re.escape, sorted(names, key=lambda name: (-len(name), name)))) or r"(?!)"
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)


def _folders_form(folders: Iterable[str]) -> str:
    """A known folder and all that follows it as a path; its own name may hold blanks."""
    names = "|".join(re.escape(folder.rstrip("/\\")) for folder in sorted(folders, key=len, reverse=True))
    return rf"(?<![\w.])(?:{names})(?:[/\\][^\s/\\:;,'\"()<>|\[\]{{}}=*?]*)*(?![^\W_])"


def _joined(*forms: dict[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{kind}>{form})" for some in forms for kind, form in some.items()), re.IGNORECASE)
