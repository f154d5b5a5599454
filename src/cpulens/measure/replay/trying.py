"""Variants of a replayed problem, measured beside it."""

from __future__ import annotations

import os

from cpulens.analyze.replay import Variant
from cpulens.errors import BackendUnavailable
from cpulens.measure.replay import variants
from cpulens.measure.replay.onednn_call import OneDnnCall
from cpulens.measure.replay.preparing import Item, prepare
from cpulens.measure.replay.problem import Unreplayable
from cpulens.measure.replay.timing import Times, in_turn
from cpulens.measure.threads import threads_set_to


def tried(item: Item, kinds: tuple[str, ...], budget_s: float) -> list[Variant]:
    """Other layouts and types in common rounds with the problem itself, then other numbers of threads."""
    with threads_set_to(item.threads):
        make = variants.of_onednn if isinstance(item.call, OneDnnCall) else variants.of_mkl
        candidates = list(make(item.told, kinds))
    found = _side_by_side(item, candidates, budget_s)
    if "threads" in kinds:
        found += [_with_threads(item, count, budget_s) for count in _counts(item.threads)]
    return found


def _side_by_side(item: Item, candidates: list[variants.Candidate], budget_s: float) -> list[Variant]:
    calls = [one.call for one in candidates if not isinstance(one.call, str)]
    times: list[Times] = []
    if calls:
        with threads_set_to(item.threads):
            times, _ = in_turn([item.call, *calls], budget_s * (len(calls) + 1))
    measured, found = iter(times[1:]), []
    for kind, name, call in candidates:
        if isinstance(call, str):
            found.append(Variant(kind, name, trouble=call))
            continue
        found.append(_variant(kind, name, call.implementation, next(measured), times[0]))
        call.close()
    return found


def _counts(own: int) -> list[int]:
    """One thread, half of the processors, all of them."""
    usable = len(os.sched_getaffinity(0))
    return sorted({1, max(1, usable // 2), usable} - {own})


def _with_threads(item: Item, count: int, budget_s: float) -> Variant:
    """Primitives are made for a number of threads, so one is made anew; the problem itself is measured beside it."""
    name = f"{count} thread" + ("s" if count > 1 else "")
    with threads_set_to(item.threads):
        (base,), _ = in_turn([item.call], budget_s / 2)
    with threads_set_to(count):
        try:
            _, call = prepare(item.columns)
        except (Unreplayable, BackendUnavailable) as reason:
            return Variant("threads", name, trouble=str(reason))
        (times,), _ = in_turn([call], budget_s / 2)
        call.close()
    return _variant("threads", name, call.implementation, times, base)


def _variant(kind: str, name: str, implementation: str | None, times: Times, base: Times) -> Variant:
    gain = base.median_ms / times.median_ms if times.median_ms else None
    return Variant(kind, name, implementation, times.best_ms, times.median_ms, gain)
