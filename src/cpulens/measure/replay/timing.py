"""Times of replayed calls as the libraries themselves print them, so that they compare with those of a trace.

Calls run in rounds, one after the other as in the run, and each writes into new memory: they find the caches as their
neighbours leave them, and pay for pages as in a program. What disturbs the host for a while disturbs all of them alike.
The first runs, which pay for threads and code, are left out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from cpulens.backends import verbosity
from cpulens.capture.tap import Tap, tap
from cpulens.errors import LogError
from cpulens.verbose import load

_WARM_UP_ROUNDS: Final = 3
_LEAST_ROUNDS: Final = 5
_MOST_ROUNDS: Final = 500


class Call(Protocol):
    """What can be run: `execute` once; `renew` gives its result new memory first."""

    execute: Callable[[], None]

    def renew(self) -> None:
        """Before each execution."""


@dataclass(frozen=True)
class Times:
    """Of one call, in milliseconds. `columns`: what the library's line says; None where it printed none.

    `by_library`: whether it is the library's own time; else it is ours around the call, a few microseconds longer.
    """

    best_ms: float
    median_ms: float
    runs: int
    by_library: bool
    columns: dict[str, Any] | None


def measure(calls: Sequence[Call], budget_s: float) -> tuple[list[Times], list[dict[str, Any]]]:
    """Times of each call, over as many rounds as fit into `budget_s` (5 to 500), and the libraries' headers."""
    where = tap()
    request = verbosity.acquire(onednn=1, mkl=1)
    try:
        session, begin = where.open("auto")
        try:
            ends, own = _rounds(calls, budget_s, where, session)
        finally:
            where.close(session)
        text = session.spill.read(begin, ends[-1] if ends else begin)
    finally:
        verbosity.release(request)
    pieces = [text[start - begin : end - begin] for start, end in zip([begin, *ends], ends, strict=False)]
    lines, headers = _understand(pieces, where)
    count = len(calls)
    warm = min(_WARM_UP_ROUNDS, len(pieces) // count - 1) * count if count else 0
    return [_times(lines[warm + at :: count], own[warm + at :: count]) for at in range(count)], headers


def _rounds(calls: Sequence[Call], budget_s: float, where: Tap, session: Any) -> tuple[list[int], list[float]]:
    """Run; after each call, where its lines end, and how long it took by our own clock, in milliseconds."""
    ends, own = list[int](), list[float]()
    began = time.perf_counter()
    for number in range(_MOST_ROUNDS + _WARM_UP_ROUNDS):
        for call in calls:
            call.renew()
            started = time.perf_counter_ns()
            call.execute()
            own.append((time.perf_counter_ns() - started) * 1e-6)
            where.flush()
            ends.append(session.spill.size())
        spent = time.perf_counter() - began
        if spent >= budget_s and (number + 1 >= _WARM_UP_ROUNDS + _LEAST_ROUNDS or spent >= 10 * budget_s):
            break
    return ends, own


def _understand(pieces: list[bytes], where: Tap) -> tuple[list[tuple[float | None, dict[str, Any]] | None], list[Any]]:
    """The last line of each piece, which is the call's own (what it calls itself prints before): time and columns."""
    last = [piece.rstrip(b"\n").rpartition(b"\n")[2] for piece in pieces]
    head = [*where.headers, *(line for line in b"".join(pieces[:1]).splitlines() if b"_verbose,info" in line)]
    try:
        trace = load(b"\n".join([*dict.fromkeys(head), *last]) + b"\n")
    except LogError:
        return [None] * len(pieces), []
    texts = {row["text"]: row for row in trace.texts.iter_rows(named=True)}
    first = trace.facts["lines"]["read"] - len(last) + 1
    events = trace.events.select("line", "text", "duration_ms").collect()
    found = {line: (duration, texts[text]) for line, text, duration in events.iter_rows()}
    lines = [found.get(first + at) for at in range(len(last))]
    known = [line if line and line[1]["event"] == "exec" else None for line in lines]
    return known, trace.facts["libraries"]


def _times(lines: list[tuple[float | None, dict[str, Any]] | None], own: list[float]) -> Times:
    said = [line[0] for line in lines if line is not None and line[0] is not None]
    columns = next((line[1] for line in lines if line is not None), None)
    values = said if len(said) == len(lines) else own
    return Times(min(values), statistics.median(values), len(values), values is said, columns)
