"""What a test expects of the kernels that it runs, and which of that does not hold."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import ms, times
from cpulens.errors import UsageError

if TYPE_CHECKING:
    from cpulens.analyze.summary import Row, Summary

_PATTERNS: Final = ("forbid", "require")
_LIMITS: Final = ("max_reorder_share", "max_ms")
#: Matches that are told of one forbidden pattern.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Expectation:
    """Patterns of kernels and limits; empty or None: not looked at.

    A pattern is alternatives joined by "|", each with `*`, `?` and `[…]` as in file names, upper and lower case alike.
    It is held against the name of the implementation, and against the primitive (of oneMKL the routine). `forbid`: no
    kernel may match any of these. `require`: for each of these, one kernel at least must match. `max_reorder_share`:
    of the execution time, from 0 to 1. `max_ms`: all executions together.
    """

    forbid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    max_reorder_share: float | None = None
    max_ms: float | None = None

    @classmethod
    def of(cls, words: Mapping[str, Any]) -> Expectation:
        """Take the words by name; a pattern may be one text or several. Raises UsageError for what is none of them."""
        unknown = [name for name in words if name not in (*_PATTERNS, *_LIMITS)]
        if unknown or not words:
            raise UsageError(
                f"kernels() takes {', '.join((*_PATTERNS, *_LIMITS))}, by name, and at least one of them; it was given "
                f"{', '.join(unknown) or 'nothing'}"
            )
        patterns = {name: _patterns(name, words[name]) for name in _PATTERNS if words.get(name) is not None}
        limits = {name: _limit(name, words[name]) for name in _LIMITS if words.get(name) is not None}
        return cls(**patterns, **limits)  # type: ignore[arg-type]

    def broken(self, summary: Summary) -> tuple[str, ...]:
        """What does not hold, a sentence each. `summary`: by library, primitive and implementation."""
        return (*self._forbidden(summary), *self._missing(summary), *self._over(summary))

    def _forbidden(self, summary: Summary) -> Iterator[str]:
        for pattern in self.forbid:
            found = [row for row in summary.rows if _matches(pattern, row)]
            if found:
                told = ", ".join(map(_told, found[:_SHOWN]))
                rest = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
                yield f"forbid={pattern!r}: it ran {told}{rest}"

    def _missing(self, summary: Summary) -> Iterator[str]:
        for pattern in self.require:
            if not any(_matches(pattern, row) for row in summary.rows):
                yield f"require={pattern!r}: nothing that ran matches it"

    def _over(self, summary: Summary) -> Iterator[str]:
        phases, total = summary.phases, summary.total_ms
        limits = {"max_reorder_share": self.max_reorder_share, "max_ms": self.max_ms}
        if total is None:
            asked = [name for name, limit in limits.items() if limit is not None]
            if asked:
                yield f"{' and '.join(asked)}: no kernel that ran carries a time"
            return
        share = phases.reorder_ms / total if total > 0 else 0.0
        if self.max_reorder_share is not None and share > self.max_reorder_share:
            yield (
                f"max_reorder_share={self.max_reorder_share:g}: reorders take {share:.3g} of the execution time, "
                f"{ms(phases.reorder_ms)} of {ms(total)} in {times(phases.reorders, 'call')}"
            )
        if self.max_ms is not None and total > self.max_ms:
            yield f"max_ms={self.max_ms:g}: the kernels take {ms(total)} in {times(phases.executions, 'call')}"


def _patterns(name: str, given: Any) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) else given
    if not isinstance(patterns, list | tuple) or not all(isinstance(one, str) and one.strip() for one in patterns):
        raise UsageError(f"{name}={given!r} is no pattern; write it like {name}='ref*' or {name}=['*amx*|*bf16*']")
    return tuple(patterns)


def _limit(name: str, given: Any) -> float:
    number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given) and given >= 0
    if not number or (name == "max_reorder_share" and given > 1):
        takes = "a share from 0 to 1" if name == "max_reorder_share" else "a time in milliseconds, 0 or more"
        raise UsageError(f"{name}={given!r} is not {takes}")
    return float(given)


def _matches(pattern: str, row: Row) -> bool:
    _, *names = row.key
    alternatives = [one.strip().lower() for one in pattern.split("|") if one.strip()]
    return any(fnmatchcase(name.lower(), one) for name in names if name for one in alternatives)


def _told(row: Row) -> str:
    _, primitive, implementation = row.key
    spent = f", {ms(row.total_ms)}" if row.total_ms is not None else ""
    return f"{' '.join(word for word in (primitive, implementation) if word)} ({times(row.calls, 'call')}{spent})"
