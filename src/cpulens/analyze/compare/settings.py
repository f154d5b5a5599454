"""What was not the same around two sides: libraries, machine, variables, settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from cpulens.analyze.compare.result import Difference

_LIBRARY: Final = ("version", "commit", "threads", "isa", "runtime", "threading", "interface")
_TITLES: Final = {"onednn": "oneDNN", "mkl": "oneMKL"}
#: Facts that say how it was run, not what came of it. A snapshot of the host says all of the machine, and more.
_SECTIONS: Final = (
    "host", "machine", "environment", "settings", "backends", "placement", "levels", "openmp", "command", "python",
)  # fmt: skip
#: Parts of the host's snapshot that follow from others, or are words about them.
_DERIVED: Final = ("unusable", "notes", "groups", "runtimes", "runtime_conflict", "amx_reason")


def differences(
    base: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]], threads: tuple[Sequence[int], Sequence[int]]
) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """Facts that differ, and notes on what only one side tells. `threads`: those that oneMKL's lines name."""
    found = list(_libraries(base, new))
    found += _differing("oneMKL threads", {str(n): n for n in threads[0]}, {str(n): n for n in threads[1]})
    notes = []
    hosts = all(_section(side, "host") is not None for side in (base, new))
    for section in _SECTIONS:
        if section == "machine" and hosts:
            continue
        before, after = _section(base, section), _section(new, section)
        if before is not None and after is not None:
            for name in dict.fromkeys([*before, *after]):
                found += _differing(name, before.get(name, {}), after.get(name, {}), known=True)
        elif before != after and section in ("machine", "environment"):
            silent = "base" if before is None else "new"
            notes.append(f"{silent} says nothing of its {section}: it can't be compared")
    return tuple(found), tuple(notes)


def _libraries(base: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]]) -> Iterator[Difference]:
    for library in _TITLES:
        before, after = _copies(base, library), _copies(new, library)
        if before and after:
            for name in _LIBRARY:
                yield from _differing(f"{_TITLES[library]} {name}", _values(before, name), _values(after, name))
        elif before or after:
            versions = _shown(_values(before or after, "version"), "version not printed")
            yield Difference(_TITLES[library], *((versions, None) if before else (None, versions)))


def _copies(facts: Sequence[dict[str, Any]], library: str) -> list[dict[str, Any]]:
    return [one for run in facts for one in run.get("libraries", []) if one.get("library") == library]


def _values(described: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    return {str(one[name]): one[name] for one in described if one.get(name) is not None}


def _section(facts: Sequence[dict[str, Any]], section: str) -> dict[str, dict[str, Any]] | None:
    """Name → the distinct values of all runs of a side, by their text; None where no run has the section."""
    found: dict[str, dict[str, Any]] | None = None
    for run in (one for whole in facts for one in (whole, *whole.get("instances", {}).values())):
        content = run.get(section)
        if content is None:
            continue
        found = found or {}
        for name, value in _flat(content, section):
            found.setdefault(name, {}).setdefault(str(value), value)
    return found


def _flat(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _DERIVED:
                yield from _flat(inner, key if name in ("environment", "host") else f"{name} {key}")
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        yield name, " ".join(value)
    else:
        yield name, value


def _differing(
    name: str, before: dict[str, Any], after: dict[str, Any], *, known: bool = False
) -> Iterator[Difference]:
    """A difference, where both sides tell the fact; `known`: not telling it means that it isn't set."""
    if set(before) != set(after) and (known or (before and after)):
        yield Difference(name, _shown(before, None), _shown(after, None))


def _shown(values: dict[str, Any], nothing: str | None) -> Any:
    if len(values) == 1:
        return next(iter(values.values()))
    return " and ".join(sorted(values)) or nothing
