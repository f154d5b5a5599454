"""The command lines for a whole trace: one for each distinct problem, by the time it took."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.summary import Row, summarize
from cpulens.report.benchdnn import Command, command

if TYPE_CHECKING:
    from cpulens.trace import Trace

#: What tells problems apart; the implementation is told beside them.
BY: Final = (
    *("library", "component", "engine", "primitive", "prop_kind", "tensors", "attributes", "auxiliary", "problem"),
    "implementation",
)
#: Measure instead of checking the results; take every valid layout, not only the library's named ones.
RUN_OPTIONS: Final = ("--mode=P", "--allow-enum-tags-only=0")


@dataclass(frozen=True)
class Reproducer:
    """One problem. `median_ms` is that of the implementation with the most time; `share` of all executions' time."""

    driver: str
    arguments: tuple[str, ...]
    calls: int
    total_ms: float
    share: float
    median_ms: float | None
    implementations: tuple[str, ...]
    unsaid: str

    @property
    def line(self) -> str:
        """The whole command, fit for a shell."""
        return shlex.join(["benchdnn", *RUN_OPTIONS, *self.arguments])


@dataclass(frozen=True)
class Refusal:
    """What can't be expressed: `name` of the primitive and its problem, and the `reason`."""

    name: str
    problem: str
    calls: int
    total_ms: float
    reason: str


@dataclass(frozen=True)
class Reproducers:
    """`found` and `refused` by descending time."""

    found: tuple[Reproducer, ...]
    refused: tuple[Refusal, ...]
    total_ms: float
    facts: dict[str, Any]


def reproducers(trace: Trace, *, exact: bool = False) -> Reproducers:
    """Command lines for every execution of a trace; `exact` as in `cpulens.report.benchdnn.command`."""
    summary = summarize(trace, by=BY)
    found: dict[tuple[str, ...], Reproducer] = {}
    refused: dict[tuple[str, str, str], Refusal] = {}
    for row in summary.rows:
        columns = dict(zip(summary.by, row.key, strict=True))
        made = command(columns, exact=exact)
        if isinstance(made, str):
            _refuse(refused, columns, row, made)
        else:
            found[made.arguments] = _joined(found.get(made.arguments), row, columns, made)
    return Reproducers(
        tuple(sorted(found.values(), key=lambda one: -one.total_ms)),
        tuple(sorted(refused.values(), key=lambda one: -one.total_ms)),
        summary.counted_ms,
        summary.facts,
    )


def _joined(known: Reproducer | None, row: Row, columns: dict[str, Any], made: Command) -> Reproducer:
    """Rows come by descending time, so the first one of a command line has its median."""
    name, time_ms = columns["implementation"] or "-", row.total_ms or 0.0
    if known is None:
        return Reproducer(
            made.driver, made.arguments, row.calls, time_ms, row.share, row.median_ms, (name,), made.unsaid
        )
    return replace(
        known,
        calls=known.calls + row.calls,
        total_ms=known.total_ms + time_ms,
        share=known.share + row.share,
        implementations=tuple(dict.fromkeys((*known.implementations, name))),
    )


def _refuse(refused: dict[tuple[str, str, str], Refusal], columns: dict[str, Any], row: Row, reason: str) -> None:
    name, problem = columns["primitive"] or "-", columns["problem"] or ""
    key = (name, problem, reason)
    known = refused.get(key, Refusal(name, problem, 0, 0.0, reason))
    refused[key] = Refusal(name, problem, known.calls + row.calls, known.total_ms + (row.total_ms or 0.0), reason)
