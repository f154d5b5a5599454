"""compare(): two sides in, one Comparison out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare import calls as reading
from cpulens.analyze.compare.basis import basis_of
from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.causes import causes
from cpulens.analyze.compare.effects import judged, of_kernel, of_total
from cpulens.analyze.compare.identity import OTHER_WORK
from cpulens.analyze.compare.kernels import kernel, mattering, times
from cpulens.analyze.compare.matching import Match, match
from cpulens.analyze.compare.measures import Side, sampling
from cpulens.analyze.compare.result import Basis, Comparison, Effect, Kernel, Pair, Times
from cpulens.analyze.compare.settings import differences
from cpulens.analyze.selection import Selection, with_iterations
from cpulens.analyze.summary import columns
from cpulens.errors import UsageError

if TYPE_CHECKING:
    from cpulens.trace import Trace

ALPHA: Final = 0.01
MIN_EFFECT: Final = 0.01


def compare(
    base: Trace | Sequence[Trace],
    new: Trace | Sequence[Trace],
    *,
    by: str | Sequence[str] | None = None,
    where: str | None = None,
    iterations: str | None = None,
    per: str | None = None,
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    seed: int = 0,
) -> Comparison:
    """Compare the executions of two runs, or of several runs a side.

    `by`: match kernels by these columns of the trace instead of by problem. `where`, `iterations`: compare only these
    records (see `Selection`). `per`: "iteration", "calls" or "run", what totals are divided by; default: iteration
    where every run has marks of them, else calls; for iterations that are asked for and not marked, the period of the
    kernels is taken. `alpha`: the chance of calling any difference significant where there
    is none, for all kernels and the total together; it needs at least 8 calls a side at 0.01. `min_effect`: differences
    below this part are never called significant. `seed`: for the choice of samples where a kernel has over 2,000 calls.

    Raises UsageError for columns, conditions or slices that are none, LogError for a side without timed executions.
    """
    by_iteration = iterations is not None or per == "iteration"
    runs = _runs(base, by_iteration), _runs(new, by_iteration)
    keys = columns(by if isinstance(by, str) else list(by)) if by else ()
    reading.check_columns(keys)
    selection = Selection(where, iterations)
    if not 0 < alpha < 1 or not min_effect >= 0:
        raise UsageError(f"alpha must lie between 0 and 1 and min_effect not below 0, not {alpha} and {min_effect}")
    sides = (
        reading.read(runs[0], selection, keys, "base"),
        reading.read(runs[1], selection, keys, "new"),
    )
    matches = match(sides[0].variants, sides[1].variants)
    basis = basis_of(sides, matches, per)
    if basis.per == "iteration":
        sides = sides[0].inside(), sides[1].inside()
    found = _Compared(sides, matches, basis, keys, alpha, min_effect, seed)
    facts = [[trace.facts for trace in side] for side in runs]
    unlike, silent = differences(facts[0], facts[1], (sides[0].threads, sides[1].threads))
    return Comparison(
        basis=basis,
        differences=unlike,
        notes=(*silent, *_notes(sides, found.kernels)),
        total_ms=found.total_ms,
        total=found.total,
        first_ms=found.first_ms,
        creation_ms=_prepared(sides, "creation_ms"),
        creations=_prepared(sides, "creations"),
        cache_misses=_prepared(sides, "cache_misses"),
        compilation_ms=_prepared(sides, "compilation_ms"),
        causes=causes(found.kernels),
        kernels=tuple(sorted(found.kernels, key=lambda one: -abs(one.delta_ms))),
        alpha=alpha,
        min_effect=min_effect,
        runs=Pair(len(runs[0]), len(runs[1])),
    )


def _runs(side: Trace | Sequence[Trace], by_iteration: bool) -> list[Trace]:
    from cpulens.trace import Trace

    runs = [side] if isinstance(side, Trace) else list(side)
    if not runs:
        raise UsageError("a side of the comparison has no run; give at least one")
    return [with_iterations(run) for run in runs] if by_iteration else runs


def _prepared(sides: tuple[Calls, Calls], name: str) -> Pair:
    return Pair(*(float(getattr(side.preparation, name)) for side in sides))


class _Compared:
    """The figures of both sides, match by match."""

    def __init__(
        self,
        calls: tuple[Calls, Calls],
        matches: list[Match],
        basis: Basis,
        by: tuple[str, ...],
        alpha: float,
        min_effect: float,
        seed: int,
    ) -> None:
        samples = sampling(calls, basis.per)
        self._matches, self._alpha = matches, alpha
        self._base, self._new = (
            Side(side, _places(matches, at, len(side.variants)), len(matches), samples, basis.per == "iteration", seed)
            for at, side in enumerate(calls)
        )
        self._units = (basis.base, basis.new)
        self._variants = (calls[0].variants, calls[1].variants)
        both, effects = [], []
        for at, one in enumerate(matches):
            pair, effect = self._match(at, one)
            both.append(pair)
            effects.append(effect)
        inner = [
            (self._variants[0][one.base[0]] if one.base else self._variants[1][one.new[0]]).inner for one in matches
        ]
        counted = ~np.array(inner)
        effects.append(of_total(self._base, self._new, counted, self._units, alpha))
        *of_kernels, self.total = judged(effects, alpha, min_effect)
        totals = [[pair[side].total_ms if pair[side] else 0.0 for pair in both] for side in (0, 1)]  # type: ignore[union-attr]
        matters = mattering(totals)
        self.kernels = [
            kernel(one, self._variants, both[at], of_kernels[at], at in matters, by)
            for at, one in enumerate(matches)
            if both[at] != (None, None)
        ]
        self.total_ms = Pair(
            *(math.fsum(time for time, counts in zip(side, counted, strict=True) if counts) for side in totals)
        )
        self.first_ms = Pair(*(side.first_excess(counted) for side in (self._base, self._new)))

    def _match(self, at: int, one: Match) -> tuple[tuple[Times | None, Times | None], tuple[Effect, bool]]:
        """Times of both sides and the effect, with whether runs agree on it."""
        warm = self._base.warm(at), self._new.warm(at)
        base = times(self._base, at, self._units[0], warm[0], self._variants[0], one.base)
        new = times(self._new, at, self._units[1], warm[1], self._variants[1], one.new)
        if base is None or new is None:
            return (base, new), (Effect(None), True)
        if one.stage == OTHER_WORK:
            return (base, new), (Effect(new.total_ms / base.total_ms if base.total_ms else None), True)
        return (base, new), of_kernel(self._base, self._new, at, warm, self._alpha)


def _places(matches: list[Match], side: int, variants: int) -> NDArray[np.int32]:
    """Match of each variant of a side."""
    places = np.zeros(variants, np.int32)
    for number, one in enumerate(matches):
        places[list(one.new if side else one.base)] = number
    return places


def _notes(sides: tuple[Calls, Calls], kernels: Sequence[Kernel]) -> list[str]:
    notes = [
        f"{side.untimed:,} executions of {name} have no time and are left out"
        for name, side in zip(("base", "new"), sides, strict=True)
        if side.untimed
    ]
    once = [one for one in kernels if any(side is not None and side.records == 1 for side in (one.base, one.new))]
    if once:
        notes.append(
            f"{len(once):,} of the kernels ran once on a side: that is a first call, and stands in the total as it is"
        )
    if any(one.inner for one in kernels):
        notes.append("kernels inside of graph partitions are compared, but count in their partition's time only")
    if max(side.runs for side in sides) == 1:
        notes.append(
            "one run a side: how much two runs of the same program differ (clock, memory, neighbours) is not in the "
            "intervals; give several runs a side to know"
        )
    return notes
