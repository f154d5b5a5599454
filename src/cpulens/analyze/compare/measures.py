"""The calls of one side gathered by match: sums, and at most 2,000 samples a kernel for the statistics."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.statistics import Mean, Values, mean_of, summed

MAX_SAMPLES: Final = 2000
#: From so many runs on both sides the runs are the samples, instead of the calls in them.
RUNS_AS_SAMPLES: Final = 8
#: The same for iterations, for the total.
UNITS_AS_SAMPLES: Final = 8
#: The total's interval needs so much of its time in kernels whose spread is known.
_KNOWN_SPREAD: Final = 0.9


class Sums(NamedTuple):
    """Per match: records, cold ones, mean of the others in ms, squares around it, time of the cold ones in ms."""

    records: Values
    cold: Values
    mean: Values
    squares: Values
    cold_ms: Values


def _summed(places: NDArray[np.int32], values: Values, size: int) -> Values:
    sums: Values = np.bincount(places, values, minlength=size).astype(np.float64, copy=False)
    return sums


class Side:
    """One side, by match. `place` maps the side's variants to matches; `by_run`: the runs are the samples."""

    def __init__(self, calls: Calls, place: NDArray[np.int32], matches: int, by_run: bool, seed: int) -> None:
        self.calls, self.matches, self.by_run = calls, matches, by_run
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
        """Of the times `warm` of a match a seeded choice of 2,000; where the runs are the samples, one median a run."""
        if self.by_run:
            return self.run_medians(match)
        if len(warm) > MAX_SAMPLES:
            return warm[self._random.choice(len(warm), MAX_SAMPLES, replace=False, shuffle=False)]
        return warm

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

    def run_totals(self, counted: NDArray[np.bool_]) -> Values:
        """The steady time of each run."""
        return _summed(self.calls.run, self.steady(counted), self.calls.runs)

    def first_excess(self, counted: NDArray[np.bool_]) -> float:
        """What the cold calls of one run took beyond their kernels' means, in milliseconds."""
        beyond = self.sums.cold_ms - self.sums.cold * self.sums.mean
        return float(beyond[counted].sum()) / self.calls.runs

    def total(self, counted: NDArray[np.bool_], units: float, per_iteration: bool) -> Mean:
        """Steady milliseconds per unit, and how sure they are: by runs, iterations or calls, as there are enough."""
        if self.by_run:
            return summed([(self.calls.runs / units, mean_of(self.run_totals(counted)))])
        if per_iteration and self.calls.units >= UNITS_AS_SAMPLES:
            return mean_of(_summed(self.calls.unit, self.steady(counted), self.calls.units))
        return self._total_of_calls(counted, units)

    def _total_of_calls(self, counted: NDArray[np.bool_], units: float) -> Mean:
        sums = self.sums
        warm = sums.records - sums.cold
        part = np.where(counted, sums.records * sums.mean, 0.0)
        known = (warm >= 2) & counted
        whole = float(part.sum())
        if whole <= 0 or part[known].sum() < _KNOWN_SPREAD * whole:
            return Mean(whole / units, 0.0, 0.0)
        parts = [
            (records / units, Mean(mean, squares / (count - 1) / count, count - 1.0))
            for records, mean, squares, count in zip(
                sums.records[known], sums.mean[known], sums.squares[known], warm[known], strict=True
            )
        ]
        spread = summed(parts)
        return Mean(whole / units, spread.variance, spread.freedom)
