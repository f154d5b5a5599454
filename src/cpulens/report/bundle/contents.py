"""The list of what is inside of a bundle, for whoever is to send or read it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cpulens._version import __version__
from cpulens.report.text import count

if TYPE_CHECKING:
    from cpulens.trace import Trace

_WIDTH: Final = 100
_PLURALS: Final = {
    "user": ("user name", ""),
    "host": ("host name", ""),
    "word": ("word that was given", "words that were given"),
    "instance": ("name of an instance", "names of instances"),
    "path": ("path", ""),
    "address": ("network address", "network addresses"),
    "email": ("e-mail address", "e-mail addresses"),
    "url": ("URL", ""),
    "id": ("identifier of a machine or container", "identifiers of machines or containers"),
    "secret": ("secret", ""),
    "code": ("program given on the command line", "programs given on the command line"),
}


def contents_text(trace: Trace, files: Sequence[tuple[str, str]], replaced: Counter[str], names_left: int) -> str:
    """Tell the files, what was replaced, and what stays."""
    lines = trace.facts.get("lines", {})
    records = f" of {count(lines['records'], 'record')}" if "records" in lines else ""
    paragraphs = [
        f"A run{records}, written by cpulens {__version__} to be attached to a bug report.",
        "Inside:\n" + "\n".join(_listed(files)),
        replaced_words(replaced),
        "What stays: kernels, their problems and times; names of layers and regions; versions and settings of "
        "libraries; variables that act on them; the model of the processor, its topology, the kernel of the system; "
        "the options and plain words of the command; the time of recording.",
    ]
    if names_left:
        names = count(names_left, "of the names is", "of the names are")
        paragraphs.append(f"{names} also a word of the libraries or of cpulens, and left where it stands for that.")
    return "\n\n".join(map(_wrapped, paragraphs)) + "\n"


def replaced_words(replaced: Counter[str]) -> str:
    """How many different originals of each kind were replaced, in a sentence."""
    if not replaced:
        return "Nothing had to be replaced."
    told = ", ".join(count(number, *_PLURALS[kind]) for kind, number in replaced.items())
    return f"Replaced by placeholders, equal ones by the same: {told}."


def _listed(files: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max(len(name) for name, _ in files)
    for name, about in files:
        yield f"  {name:<{width}}  {about}"


def _wrapped(paragraph: str) -> str:
    return paragraph if "\n" in paragraph else textwrap.fill(paragraph, _WIDTH, break_on_hyphens=False)
