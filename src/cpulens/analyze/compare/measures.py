"""The calls of one side gathered by match: sums, and at most 2,000 samples a kernel for the statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.statistics import Mean, Values, mean_of

MAX_SAMPLES: Final = 2000
#: From so many on both sides, runs or iterations are the samples instead of the calls in them, which are alike.
_RUNS: Final = 8
_ITERATIONS: Final = 30
#: Blocks that the calls of a side are parted into, for the spread of the total.
_BLOCKS: Final = 32
#: The total's interval needs so much of its time in kernels whose spread is known.
_KNOWN_SPREAD: Final = 0.9


def sampling(sides: Sequence[Calls], per: str) -> str:
    """What the samples are: "runs" where there are enough, else "iterations", else "calls"."""
    if min(side.runs for side in sides) >= _RUNS:
        return "runs"
    return "iterations" if per == "iteration" and min(side.units for side in sides) >= _ITERATIONS else "calls"


class Sums(NamedTuple):
    """Per match: records, cold ones, mean of the others in ms, squares around it, time of the cold ones in ms."""

    records: Values
    cold: Values
    mean: Values
    squares: Values
    cold_ms: Values


def _summed(places: NDArray[np.signedinteger], values: Values, size: int) -> Values:
    sums: Values = np.bincount(places, values, minlength=size).astype(np.float64, copy=False)
    return sums


class Side:
    """One side, by match.

    `place` maps the side's variants to matches. `sampling`: what is independent of each other, "runs", "iterations" or
    "calls". `per_iteration`: totals are.
    """

    def __init__(
        self, calls: Calls, place: NDArray[np.int32], matches: int, sampling: str, per_iteration: bool, seed: int
    ) -> None:
        self.calls, self.matches, self.sampling, self.per_iteration = calls, matches, sampling, per_iteration
        self.match = place[calls.kernel]
        self.sums = self._sums()
        narrow = self.match.astype(np.uint16) if matches < 1 << 16 else self.match  # numpy sorts these by radix
        self._order = np.argsort(narrow, kind="stable").astype(np.int32)
        self._ends = np.cumsum(self.sums.records).astype(np.int64)
        self._random = np.random.default_rng(seed)

    def _sums(self) -> Sums:
        match, cold, time, size = self.match, self.calls.cold, self.calls.duration_ms, self.matches
        records = np.bincount(match, minlength=size).astype(np.float64)
        colds = np.bincount(match[cold], minlength=size).astype(np.float64)
        cold_ms = _summed(match[cold], time[cold], size)
        warm = np.where(cold, 0.0, time)
        mean = _summed(match, warm, size) / np.maximum(records - colds, 1)
        deviation = np.where(cold, 0.0, time - mean[match])
        return Sums(records, colds, mean, _summed(match, deviation**2, size), cold_ms)

    def warm(self, match: int) -> Values:
        """Times of all calls of a match that are not cold."""
        return self.calls.duration_ms[self._rows(match)]

    def samples(self, match: int, warm: Values) -> Values:
        """What the statistics of a match rest on: its times `warm`, or one median a run, or one mean an iteration.

        Of more than 2,000 a seeded choice.
        """
        if self.sampling == "runs":
            return self.run_medians(match)
        samples = self._iteration_means(match, warm) if self.sampling == "iterations" else warm
        if len(samples) > MAX_SAMPLES:
            return samples[self._random.choice(len(samples), MAX_SAMPLES, replace=False, shuffle=False)]
        return samples

    def _iteration_means(self, match: int, warm: Values) -> Values:
        units, place, calls = np.unique(self.calls.unit[self._rows(match)], return_inverse=True, return_counts=True)
        return warm if len(units) == len(warm) else _summed(place, warm, len(units)) / calls

    def run_medians(self, match: int) -> Values:
        """One median a run, of the runs that have the kernel."""
        rows = self._rows(match)
        runs, times = self.calls.run[rows], self.calls.duration_ms[rows]
        return np.array([np.median(times[runs == run]) for run in np.unique(runs)])

    def _rows(self, match: int) -> NDArray[np.int32]:
        end = int(self._ends[match])
        rows = self._order[end - int(self.sums.records[match]) : end]
        chosen: NDArray[np.int32] = rows[~self.calls.cold[rows]]
        return chosen

    def steady(self, counted: NDArray[np.bool_]) -> Values:
        """Times of all calls for the total: a cold one at its kernel's mean, those of matches that don't count at 0."""
        times = np.where(self.calls.cold, self.sums.mean[self.match], self.calls.duration_ms)
        return np.where(counted[self.match], times, 0.0)

    def run_totals(self, counted: NDArray[np.bool_], units: float) -> Values:
        """The steady time of each run per unit: of its own iterations, or else of its share of the calls."""
        calls = self.calls
        totals = _summed(calls.run, self.steady(counted), calls.runs)
        if self.per_iteration:
            run_of_unit = np.zeros(calls.units, np.int32)
            run_of_unit[calls.unit] = calls.run
            return totals / np.maximum(np.bincount(run_of_unit, minlength=calls.runs), 1)
        made = _summed(calls.run, counted[self.match].astype(np.float64), calls.runs)
        return totals / np.maximum(made / max(float(made.sum()), 1.0) * units, 1e-300)

    def first_excess(self, counted: NDArray[np.bool_]) -> float:
        """What the cold calls of one run took beyond their kernels' means, in milliseconds."""
        beyond = self.sums.cold_ms - self.sums.cold * self.sums.mean
        return float(beyond[counted].sum()) / self.calls.runs

    def total(self, counted: NDArray[np.bool_], units: float) -> Mean:
        """Steady milliseconds per unit, and how sure they are.

        Calls that follow each other share their conditions, so the spread is that of blocks: each one's deviation from
        the means of its kernels (batch means). Blocks are made of whole iterations where the samples are.
        """
        sums, warm = self.sums, self.sums.records - self.sums.cold
        part = np.where(counted, sums.records * sums.mean, 0.0)
        known = (warm >= 2) & counted
        whole = float(part.sum())
        if self.sampling == "runs":
            return mean_of(self.run_totals(counted, units))._replace(value=whole / units)
        if whole <= 0 or part[known].sum() < _KNOWN_SPREAD * whole:
            return Mean(whole / units, 0.0, 0.0)
        free = np.maximum(warm - 1, 1)
        variances = np.where(known, sums.records**2 * sums.squares / free / np.maximum(warm, 1), 0.0)
        below = float((variances**2 / free).sum())
        freedom = float(variances.sum()) ** 2 / below if below > 0 else float(warm[known].sum())
        blocks, count = self._blocks()
        widened = np.where(known, np.sqrt(warm / free) * sums.records / np.maximum(warm, 1), 0.0)
        deviation = np.where(self.calls.cold, 0.0, self.calls.duration_ms - sums.mean[self.match]) * widened[self.match]
        squares = float((_summed(blocks, deviation, count) ** 2).sum()) * count / max(count - 1, 1)
        variance = max(squares, float(variances.sum())) / units**2
        return Mean(whole / units, variance, min(freedom, max(count - 1, 1)))

    def _blocks(self) -> tuple[NDArray[np.int32], int]:
        """Which block each call is in, and how many there are."""
        place = self.calls.unit if self.sampling == "iterations" else np.arange(len(self.match))
        there = self.calls.units if self.sampling == "iterations" else len(self.match)
        count = min(_BLOCKS, there)
        return (place.astype(np.int64) * count // there).astype(np.int32), count
