"""Iterations without markers: the period of the kernel sequence.

An inference repeats the same executions in the same order. The period is the distance at which the sequence of texts
agrees with itself over the longest stretch; what stands before that stretch is set-up. Iterations at its beginning that
take clearly longer than the later ones are warm-up: they pay for threads, code generation and cold caches.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.errors import UsageError
from cpulens.trace.needs import polars

if TYPE_CHECKING:
    from cpulens.trace.run import Trace

MODES: Final = ("marked", "auto")
#: The stretch must hold this many whole periods, and this share of all executions.
_LEAST_PERIODS: Final = 2
_LEAST_SHARE: Final = 0.5
#: An iteration that takes this many times the median of the later half is warm-up.
_COLD: Final = 1.3
#: Executions looked at to find the period, and distances tried.
_LOOKED_AT: Final = 200_000
_TRIED: Final = 200
_RARE: Final = 30


@dataclass(frozen=True, slots=True)
class Period:
    """A repeating stretch of a sequence: `count` whole periods of `length` from place `start` on."""

    start: int
    length: int
    count: int


def find_period(sequence: list[int]) -> Period | None:
    """Find the period of a sequence of texts; None where there is none.

    The distance that explains most of the sequence wins, the shorter one of two that explain about the same.
    """
    import numpy as np

    numbers = np.asarray(sequence, np.int64)
    best: tuple[int, int, int] | None = None
    for distance in _distances(numbers):
        start, length = _longest_agreement(numbers, distance)
        covered = length + distance
        if covered // distance < _LEAST_PERIODS or covered < _LEAST_SHARE * len(sequence):
            continue
        if best is None or covered > best[1] * 1.02:
            best = (distance, covered, start)
    if best is None:
        return None
    distance, covered, start = best
    return Period(start, distance, covered // distance)


def _distances(numbers: Any) -> list[int]:
    """Give the distances worth trying, shortest first: those between places that hold the same text.

    A text that stands once in an iteration tells its length; one that is everywhere tells little. So the neighbours of
    every text count once each, and those of the rarest texts that repeat are taken in any case.
    """
    import numpy as np

    order = np.argsort(numbers, kind="stable")
    same = numbers[order][1:] == numbers[order][:-1]
    apart = (order[1:] - order[:-1])[same]
    distances, times = np.unique(apart, return_counts=True)
    common = distances[np.argsort(-times, kind="stable")[:_TRIED]]
    texts, counts = np.unique(numbers, return_counts=True)
    rare = texts[counts > 1][np.argsort(counts[counts > 1], kind="stable")[:_RARE]]
    far = [np.unique(np.diff(np.flatnonzero(numbers == text)))[-_RARE:] for text in rare]
    return sorted({int(distance) for distance in np.concatenate([common, *far])})


def _longest_agreement(numbers: Any, distance: int) -> tuple[int, int]:
    """Find the longest run of places that hold the same as `distance` further on: its start and length."""
    import numpy as np

    differ = np.flatnonzero(numbers[:-distance] != numbers[distance:])
    bounds = np.concatenate([[-1], differ, [len(numbers) - distance]])
    lengths = np.diff(bounds) - 1
    longest = int(lengths.argmax())
    return int(bounds[longest]) + 1, int(lengths[longest])


def warm_up(times_ms: list[float]) -> int:
    """Count the iterations at the beginning that take clearly longer than the later half does."""
    later = sorted(times_ms[len(times_ms) // 2 :])
    if len(times_ms) < 3 or not later:
        return 0
    median = later[len(later) // 2]
    count = next((at for at, time in enumerate(times_ms) if time <= _COLD * median), 0)
    return min(count, len(times_ms) - 1)


def mark(trace: Trace, mode: str) -> Trace:
    """Number the iterations of a trace.

    `mode`: "marked" leaves it as its markers say; "auto" finds the period of each instance where nothing is marked.
    What was found is told in ``facts["iterations"]``. Raises UsageError for another mode.
    """
    if mode not in MODES:
        raise UsageError(f"{mode} is no way to find iterations; it is {' or '.join(MODES)}")
    module = polars()
    if mode == "marked" or trace.events.select(module.col("iteration").is_not_null().any()).collect().item():
        return trace
    from cpulens.trace.run import Trace

    runs = trace.texts.lazy().filter(module.col("event") == "exec").select("text", "component")
    execs = (
        trace.events.select("seq", "instance", "text", "duration_ms", "inner")
        .join(runs, on="text", how="inner", maintain_order="left")
        .filter(~module.col("inner"))
        .drop("component")
        .collect(engine="streaming")
    )
    found: dict[str, Any] = {}
    spans: list[tuple[str | None, int, int, int]] = []
    for (instance,), rows in execs.group_by("instance", maintain_order=True):
        told, marked = _instance(rows["seq"].to_list(), rows["text"].to_list(), rows["duration_ms"].to_list())
        found[str(instance) if instance is not None else ""] = told
        spans += [(instance, first, last, number) for first, last, number in marked]
    facts = {**trace.facts, "iterations": found.get("", found) if len(found) == 1 else found}
    facts["notes"] = [*trace.facts.get("notes", []), *_notes(found)]
    return Trace(trace.texts, _numbered(trace, spans), facts, parts=[trace.backing, *trace.parts])


def _instance(seqs: list[int], texts: list[int], times: list[float | None]) -> tuple[dict[str, Any], list[Any]]:
    period = find_period(texts[-_LOOKED_AT:])
    if period is None:
        return {"found": None, "executions": len(texts)}, []
    start, count = period.start + max(len(texts) - _LOOKED_AT, 0), period.count
    while start >= period.length and texts[start - period.length : start] == texts[start : start + period.length]:
        start, count = start - period.length, count + 1
    bounds = [start + period.length * at for at in range(count + 1)]
    sums = [sum(time or 0.0 for time in times[first:last]) for first, last in itertools.pairwise(bounds)]
    told = {
        "found": "period",
        "executions": len(texts),
        "before": start,
        "length": period.length,
        "count": count,
        "warm_up": warm_up(sums),
        "after": len(texts) - bounds[-1],
    }
    ends = [*(seqs[at] for at in bounds[:-1]), seqs[bounds[-1] - 1] + 1]
    return told, [(ends[at], ends[at + 1], at) for at in range(count)]


def _numbered(trace: Trace, spans: list[tuple[str | None, int, int, int]]) -> Any:
    module = polars()
    if not spans:
        return trace.events
    # A null is equal to nothing in a join, so the only instance of a log gets an empty name there.
    schema = {"of": module.String, "first": module.Int64, "last": module.Int64, "number": module.Int32}
    named = [(instance or "", first, last, number) for instance, first, last, number in spans]
    table = module.DataFrame(named, schema=schema, orient="row").sort("first").lazy()
    events = trace.events.sort("seq").with_columns(module.col("instance").fill_null("").alias("of"))
    joined = events.join_asof(
        table, left_on="seq", right_on="first", by="of", strategy="backward", check_sortedness=False
    )
    number = module.when(module.col("seq") < module.col("last")).then(module.col("number"))
    return joined.with_columns(number.alias("iteration")).drop("of", "first", "last", "number")


def _notes(found: dict[str, Any]) -> list[str]:
    notes = []
    for instance, told in found.items():
        where = f" of {instance}" if instance else ""
        if told["found"] is None:
            notes.append(f"Iterations{where}: the {told['executions']:,} executions have no repeating period.")
        else:
            notes.append(
                f"Iterations{where}: {told['count']:,} of {told['length']:,} executions each, found by their period; "
                f"{told['warm_up']:,} of them warm-up; {told['before']:,} executions before, {told['after']:,} after."
            )
    return notes
