"""The replay of a trace: choose its problems, prepare them, measure them and their variants."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.replay import Refused, Replay, Replayed
from cpulens.analyze.summary import Row, summarize
from cpulens.errors import BackendUnavailable, UsageError
from cpulens.measure.replay import mkl_call, problem, settings
from cpulens.measure.replay.memory import MAPPED_FROM_BYTES
from cpulens.measure.replay.preparing import Item, prepare
from cpulens.measure.replay.problem import Unreplayable
from cpulens.measure.replay.timing import again, in_turn
from cpulens.measure.replay.trying import tried
from cpulens.measure.threads import default_threads, threads_set_to

if TYPE_CHECKING:
    from cpulens.trace import Trace

VARIANTS: Final = ("layout", "type", "threads")
#: Time for each problem, and for each of its variants.
BUDGET_S: Final = 0.3
Say = Callable[[str], None]


def replay(
    trace: Trace,
    *,
    top: int | None = 20,
    threads: int | None = None,
    kinds: tuple[str, ...] = VARIANTS,
    budget_s: float = BUDGET_S,
    say: Say = lambda _: None,
) -> Replay:
    """Run the problems with the most time again: `top` of those that can be (None: all).

    `threads` defaults to those of the run, where this process may use as many processors, else one for each physical
    core. `kinds`: which variants to try, of "layout", "type" and "threads". `budget_s`: time for each problem and
    each variant. `say` is told what is under way.

    Raises UsageError for an unknown kind or less than one thread, `BackendUnavailable` when a library is needed for
    all of the problems and is not here.
    """
    unknown = [kind for kind in kinds if kind not in VARIANTS]
    if unknown or (threads is not None and threads < 1):
        wrong = f"{unknown[0]!r} is no kind of variant; there are {', '.join(VARIANTS)}" if unknown else ""
        raise UsageError(wrong or f"a replay with {threads} threads can't be; it takes at least 1")
    found, refused, left_out, total_ms = _choose(trace, top, threads, say)
    headers: list[dict[str, Any]] = []
    for count in sorted({item.threads for item in found}):
        group = [item for item in found if item.threads == count]
        say(f"{len(group)} problems with {count} threads")
        headers += _measure(group, count, budget_s)
    replayed = [_replayed(item) for item in found]
    if kinds:
        for at, item in enumerate(found):
            say(f"variants of {item.columns['primitive']} {item.columns['problem']} ({at + 1} of {len(found)})")
            replayed[at] = replace(replayed[at], variants=tuple(tried(item, kinds, budget_s)))
    for item in found:
        item.call.close()
    libraries = tuple(trace.facts.get("libraries", ()))
    return Replay(
        tuple(sorted(replayed, key=lambda one: -one.total_ms)),
        tuple(refused),
        left_out,
        total_ms,
        libraries,
        tuple({one["library"]: one for one in headers}.values()),
        tuple(_notes(found, threads)),
    )


def _choose(
    trace: Trace, top: int | None, threads: int | None, say: Say
) -> tuple[list[Item], list[Refused], int, float]:
    """Problems in the order in which they first ran, those that can't run again, how many were left out, all time."""
    summary = summarize(trace, by=("text",))
    texts = {row["text"]: row for row in trace.texts.iter_rows(named=True)}
    found: list[Item] = []
    refused: list[Refused] = []
    left_out = 0
    for row in summary.rows:
        columns = texts[row.key[0]]
        if top is not None and len(found) >= top:
            left_out += 1
            continue
        say(f"preparing {columns['primitive']} {columns['problem']}")
        count = _threads(columns, trace.facts, threads)
        try:
            with threads_set_to(count):
                told, call = prepare(columns)
        except (Unreplayable, BackendUnavailable) as reason:
            refused.append(_refused(columns, row, str(reason)))
            continue
        found.append(Item(row, columns, told, call, count))
    found.sort(key=lambda item: item.columns["text"])
    return found, refused, left_out, summary.counted_ms


def _threads(columns: Mapping[str, Any], facts: Mapping[str, Any], wanted: int | None) -> int:
    """What was asked for, else what the run had where that many processors may be used here."""
    if wanted is not None:
        return wanted
    headers = [one.get("threads") for one in facts.get("libraries", ()) if one.get("library") == columns["library"]]
    told: int | None = columns["threads"] or next((count for count in headers if count), None)
    usable = len(os.sched_getaffinity(0))
    return told if told is not None and told <= usable else default_threads()


def _refused(columns: Mapping[str, Any], row: Row, reason: str) -> Refused:
    return Refused(
        columns["library"],
        columns["primitive"] or "-",
        columns["problem"] or "",
        row.calls,
        row.total_ms or 0.0,
        reason,
    )


def _measure(group: Sequence[Item], threads: int, budget_s: float) -> list[dict[str, Any]]:
    """Times of a group in common rounds; returns the libraries' headers."""
    with threads_set_to(threads):
        times, headers = in_turn([item.call for item in group], budget_s * len(group))
        for item, one in zip(group, times, strict=True):
            item.times, item.hot = one, again(item.call, budget_s / 2)
        large = [item for item in group if item.call.result_bytes >= MAPPED_FROM_BYTES]
        untouched, _ = in_turn([item.call for item in large], budget_s / 2 * len(large), untouched=True)
    for item, one in zip(large, untouched, strict=True):
        item.untouched = one
    return headers


def _replayed(item: Item) -> Replayed:
    columns, times, hot, row = item.columns, item.times, item.hot, item.row
    assert times is not None and hot is not None
    return Replayed(
        library=columns["library"],
        primitive=columns["primitive"],
        problem=columns["problem"] or "",
        columns=columns,
        calls=row.calls,
        total_ms=row.total_ms or 0.0,
        share=row.share,
        run_median_ms=row.median_ms,
        run_implementation=columns["implementation"],
        threads=item.threads,
        best_ms=min(times.best_ms, hot.best_ms),
        hot_ms=hot.median_ms,
        median_ms=times.median_ms,
        new_pages_ms=item.untouched.median_ms if item.untouched else None,
        runs=times.runs,
        implementation=item.call.implementation,
        layouts=_other_layouts(item),
        same_problem=_same(item, times.columns),
        by_library=times.by_library,
    )


def _other_layouts(item: Item) -> dict[str, str]:
    if not isinstance(item.told, problem.Problem):
        return {}
    before = {name: one.tag for name, one in item.told.tensors.items()}
    return {name: tag for name, tag in item.call.layouts.items() if before.get(name) and tag != before[name]}


def _same(item: Item, now: Mapping[str, Any] | None) -> bool | None:
    """Whether the line of the replay, read as the run's was, says the same: spellings differ between versions."""
    if now is None:
        return None
    try:
        if isinstance(item.told, problem.Problem):
            return bool(_essence(problem.read(now)) == _essence(item.told))
        return bool(mkl_call.read(now) == item.told)
    except Unreplayable:
        return False


def _essence(told: problem.Problem) -> Any:
    """A problem without its layouts, which the replay may have to choose."""
    types = {name: one.dt for name, one in told.tensors.items()}
    return replace(told, tensors={}, settings={}), types, settings.read(told)


def _notes(found: Sequence[Item], threads: int | None) -> list[str]:
    notes = []
    if threads is not None:
        notes.append(f"times here are with {threads} thread{'s' * (threads > 1)}, as asked for, the run's with its own")
    if any(item.columns["library"] == "mkl" for item in found):
        notes.append(
            "oneMKL's lines print no values behind pointers: products ran with alpha 1 and beta 0, transforms on "
            "dense data"
        )
    if any(item.times is not None and not item.times.by_library for item in found):
        notes.append("where the library printed no line, times are ours around the call: a few microseconds longer")
    return notes
