"""Times of replayed calls as the libraries themselves print them, so that they compare with those of a trace.

*In turn*: calls run in rounds, one after the other as in the run, each with a result in new memory. Between them a pass
over an array as large as a core's own cache stands for what a program does there; then the source is read, which in a
program the kernel before has just written. What disturbs the host for a while disturbs all calls alike. With
`untouched`, results lie in pages that were never touched, too. *Again*: one call many times on the same memory. The
first runs, which pay for threads and generated code, are left out.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from cpulens.backends import verbosity
from cpulens.capture.tap import Session, tap
from cpulens.errors import LogError
from cpulens.machine.sysfs import Sysfs
from cpulens.verbose import load

_WARM_UP_ROUNDS: Final = 3
_LEAST_ROUNDS: Final = 5
_MOST_ROUNDS: Final = 500
#: A call that takes longer than this many budgets each time is run no more than it must.
_PATIENCE: Final = 10
_USUAL_CACHE_BYTES: Final = 2 << 20


class Call(Protocol):
    """What can be run: `execute` once; `renew` gives its result new memory."""

    execute: Callable[[], None]

    def renew(self, *, untouched: bool) -> None:
        """Before an execution; `untouched`: in pages that were never touched."""

    def touch_source(self) -> None:
        """Bring what the kernel before would have written into the caches."""


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


def in_turn(
    calls: Sequence[Call], budget_s: float, *, untouched: bool = False
) -> tuple[list[Times], list[dict[str, Any]]]:
    """Times of each call, over as many rounds as fit into `budget_s` (5 to 500), and the libraries' headers."""
    cache = np.zeros(own_cache_bytes() // 8)

    def between(call: Call) -> None:
        call.renew(untouched=untouched)
        np.add(cache, 1.0, out=cache)
        call.touch_source()

    pieces, own, headers = _run(calls, budget_s, between)
    lines, libraries = _understand(pieces, headers)
    count = len(calls)
    warm = min(_WARM_UP_ROUNDS, len(pieces) // count - 1) * count if count else 0
    return [_times(lines[warm + at :: count], own[warm + at :: count]) for at in range(count)], libraries


def again(call: Call, budget_s: float) -> Times:
    """Times of one call that finds all its data in the caches, as far as they hold it."""
    pieces, own, headers = _run([call], budget_s, lambda _: None)
    lines, _ = _understand(pieces, headers)
    warm = min(_WARM_UP_ROUNDS, len(pieces) - 1)
    return _times(lines[warm:], own[warm:])


def own_cache_bytes(root: str = "/") -> int:
    """Size of a core's own second cache; 2 MiB where the host does not say."""
    sysfs = Sysfs(root)
    for index in sysfs.names("devices/system/cpu/cpu0/cache"):
        base = f"devices/system/cpu/cpu0/cache/{index}"
        size = sysfs.text(f"{base}/size")
        if sysfs.number(f"{base}/level") == 2 and size.endswith("K") and size[:-1].isdecimal():
            return int(size[:-1]) << 10
    return _USUAL_CACHE_BYTES


@contextmanager
def _listening() -> Iterator[tuple[Session, Callable[[], int]]]:
    """Both libraries print a line for each execution into a spill; gives it, and a function for where it ends now."""
    where, request = tap(), verbosity.acquire(onednn=1, mkl=1)
    try:
        session, _ = where.open("auto")

        def end() -> int:
            where.flush()
            return session.spill.size()

        try:
            yield session, end
        finally:
            where.close(session)
    finally:
        verbosity.release(request)


def _run(
    calls: Sequence[Call], budget_s: float, between: Callable[[Call], None]
) -> tuple[list[bytes], list[float], list[bytes]]:
    """What was printed in each execution, how long it took by our own clock in milliseconds, and known headers."""
    own, began = list[float](), time.perf_counter()
    with _listening() as (session, end):
        ends = [end()]
        for number in range(_WARM_UP_ROUNDS + _MOST_ROUNDS if calls else 0):
            for call in calls:
                between(call)
                started = time.perf_counter_ns()
                call.execute()
                own.append((time.perf_counter_ns() - started) * 1e-6)
                ends.append(end())
            spent = time.perf_counter() - began
            enough = number + 1 >= _WARM_UP_ROUNDS + _LEAST_ROUNDS or spent >= _PATIENCE * budget_s
            if spent >= budget_s and enough:
                break
        text = session.spill.read(ends[0], ends[-1])
    pieces = [text[start - ends[0] : end - ends[0]] for start, end in itertools.pairwise(ends)]
    return pieces, own, list(tap().headers)


_Line = tuple[float | None, dict[str, Any]]


def _understand(pieces: list[bytes], headers: list[bytes]) -> tuple[list[_Line | None], list[dict[str, Any]]]:
    """The last line of each piece, which is the call's own (what it calls itself prints before): time and columns."""
    last = [piece.rstrip(b"\n").rpartition(b"\n")[2] for piece in pieces]
    try:
        trace = load(b"\n".join([*headers, *last]) + b"\n")
    except LogError:
        return [None] * len(pieces), []
    texts = {row["text"]: row for row in trace.texts.iter_rows(named=True)}
    events = trace.events.select("line", "text", "duration_ms").collect()
    found = {line: (duration, texts[text]) for line, text, duration in events.iter_rows()}
    lines = [found.get(len(headers) + 1 + at) for at in range(len(last))]
    known = [line if line and line[1]["event"] == "exec" else None for line in lines]
    return known, trace.facts["libraries"]


def _times(lines: Sequence[_Line | None], own: list[float]) -> Times:
    said = [line[0] for line in lines if line is not None and line[0] is not None]
    columns = next((line[1] for line in lines if line is not None), None)
    values = said if len(said) == len(lines) else own
    return Times(min(values), statistics.median(values), len(values), values is said, columns)
