"""The figures of both sides, match by match, and what they come to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.effects import judged, of_kernel, of_total
from cpulens.analyze.compare.identity import OTHER_WORK
from cpulens.analyze.compare.kernels import kernel, mattering, times
from cpulens.analyze.compare.matching import Match
from cpulens.analyze.compare.measures import Side, sampling
from cpulens.analyze.compare.result import Basis, Effect, Kernel, Pair, Times


class Test(NamedTuple):
    """What is called significant, and the seed of the choice of samples."""

    alpha: float
    min_effect: float
    seed: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Kernels in the order of their matches, the total and the first calls."""

    kernels: list[Kernel]
    total: Effect
    total_ms: Pair
    first_ms: Pair

    @classmethod
    def of(
        cls, calls: tuple[Calls, Calls], matches: list[Match], basis: Basis, by: tuple[str, ...], test: Test
    ) -> Figures:
        """Measure and test every match and the total."""
        samples = sampling(calls, basis.per)
        base, new = (
            Side(side, _places(matches, at, side), len(matches), samples, basis.per == "iteration", test.seed)
            for at, side in enumerate(calls)
        )
        units = (basis.base, basis.new)
        variants = (calls[0].variants, calls[1].variants)
        both: list[tuple[Times | None, Times | None]] = []
        effects = []
        for at, one in enumerate(matches):
            warm = base.warm(at), new.warm(at)
            pair = (
                times(base, at, units[0], warm[0], variants[0], one.base),
                times(new, at, units[1], warm[1], variants[1], one.new),
            )
            both.append(pair)
            untested = _untested(one, pair)
            effects.append((untested, True) if untested else of_kernel(base, new, at, warm, test.alpha))
        counted = np.array([not _inner(one, calls) for one in matches])
        effects.append(of_total(base, new, counted, units, test.alpha))
        *of_kernels, total = judged(effects, test.alpha, test.min_effect)
        totals = [_totals(both, side, counted) for side in (0, 1)]
        matters = mattering(totals)
        kernels = [
            kernel(one, variants, both[at], of_kernels[at], at in matters, by)
            for at, one in enumerate(matches)
            if both[at] != (None, None)  # it ran outside of the iterations only
        ]
        first_ms = Pair(base.first_excess(counted), new.first_excess(counted))
        return cls(kernels, total, Pair(math.fsum(totals[0]), math.fsum(totals[1])), first_ms)


def _places(matches: list[Match], side: int, calls: Calls) -> NDArray[np.int32]:
    """Match of each variant of a side."""
    places = np.zeros(len(calls.variants), np.int32)
    for number, one in enumerate(matches):
        places[list(one.new if side else one.base)] = number
    return places


def _untested(one: Match, pair: tuple[Times | None, Times | None]) -> Effect | None:
    """The effect on what can't be tested: a side is missing, or the work is another."""
    base, new = pair
    if base is None or new is None:
        return Effect(None)
    if one.stage == OTHER_WORK:
        return Effect(new.total_ms / base.total_ms if base.total_ms else None)
    return None


def _inner(one: Match, calls: tuple[Calls, Calls]) -> bool:
    return (calls[0].variants[one.base[0]] if one.base else calls[1].variants[one.new[0]]).inner


def _totals(both: list[tuple[Times | None, Times | None]], side: int, counted: NDArray[np.bool_]) -> list[float]:
    """Time of each match on a side; 0 where it is missing, or contained in another's."""
    sides = [pair[side] for pair in both]
    return [one.total_ms if one and counts else 0.0 for one, counts in zip(sides, counted, strict=True)]
