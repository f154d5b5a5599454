"""Statistics of times: quantised, skewed, full of ties. numpy does the arithmetic.

Sources: Mann and Whitney 1947 (rank test, with the usual correction for ties); Holm 1979 (many tests at once);
order-statistic intervals of a median from the binomial distribution; Donner and Zou 2012 (the interval of a difference
from the intervals of its parts, "MOVER"); Welch 1947 and Satterthwaite 1946 (means of unequal spread); Fieller 1954
(the interval of a ratio of means); Wallace 1959 (Student's t to normal deviates: within 0.3 % of the 99 % quantile from
8 degrees of freedom on, and too wide below: by 12 % at two).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: Up to this many values a side, and without ties, the rank test counts arrangements instead of approximating.
_EXACT_VALUES: Final = 20
_NORMAL: Final = NormalDist()


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float


def mann_whitney(first: Values, second: Values) -> float:
    """Two-sided p-value that both samples come from one distribution.

    Exact for few values without ties; else the normal approximation with corrections for ties and continuity.
    1.0 when a side is empty or all values are the same.
    """
    m, n = len(first), len(second)
    if not m or not n:
        return 1.0
    pooled = np.concatenate([first, second])
    _, place, counts = np.unique(pooled, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2)[place]
    statistic = float(ranks[:m].sum()) - m * (m + 1) / 2
    larger = max(statistic, m * n - statistic)
    if m <= _EXACT_VALUES and n <= _EXACT_VALUES and len(counts) == m + n:
        return _exact(m, n, round(larger))
    total = m + n
    ties = float((counts.astype(np.float64) ** 3 - counts).sum()) / (total * (total - 1))
    variance = m * n / 12 * (total + 1 - ties)
    if variance <= 0:
        return 1.0
    deviate = (larger - m * n / 2 - 0.5) / math.sqrt(variance)
    return min(1.0, math.erfc(deviate / math.sqrt(2)))


@lru_cache(maxsize=64)
def _arrangements(m: int, n: int) -> tuple[int, ...]:
    """How many orders of m and n values give each statistic from 0 to m·n: a Gaussian binomial's coefficients."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for at in range(m * n, n + i - 1, -1):
            counts[at] -= counts[at - n - i]
        for at in range(i, m * n + 1):
            counts[at] += counts[at - i]
    return tuple(counts)


def _exact(m: int, n: int, larger: int) -> float:
    counts = _arrangements(m, n)
    return min(1.0, 2 * sum(counts[larger:]) / math.comb(m + n, m))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for testing all of them at once: at most alpha that any of them falsely falls below alpha."""
    adjusted, running = [1.0] * len(p_values), 0.0
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, at in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = running
    return adjusted


def grain(*samples: Values) -> float:
    """The step of the clock as the values show it: the least distance of two that differ, if some are equal; else 0."""
    pooled = np.concatenate(samples)
    distinct = np.unique(pooled)
    if len(distinct) == len(pooled) or len(distinct) < 2:
        return 0.0
    return float(np.diff(distinct).min())


def spread(values: Values, step: float) -> Values:
    """Sort, and spread equal values evenly over one step of the clock around theirs, as for a grouped median.

    A time printed as 0.002 stands for any between half a step less and half a step more. Without this, the median of a
    kernel of a few steps could only jump from one to the next. Never below 0.
    """
    ordered = np.sort(values)
    if step <= 0 or not len(ordered):
        return ordered
    _, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    number = np.arange(len(ordered)) - np.repeat(first, counts)
    shift = ((number + 0.5) / np.repeat(counts, counts) - 0.5) * step
    spreaded: Values = np.maximum(ordered + shift, 0.0)
    return spreaded


@lru_cache(maxsize=4096)
def _median_rank(count: int, alpha: float) -> int:
    """The largest rank (from 1) whose value lies above the median with a chance of at most alpha/2; 0: none."""
    logs, chance, rank = count * math.log(0.5), 0.0, 0
    for below in range(count // 2 + 1):
        chance += math.exp(math.lgamma(count + 1) - math.lgamma(below + 1) - math.lgamma(count - below + 1) + logs)
        if chance > alpha / 2:
            break
        rank = below + 1
    return rank


def median_interval(ordered: Values, alpha: float) -> Interval | None:
    """Interval of the median at level 1 - alpha by order statistics; None for too few values (below 8 at 0.01)."""
    rank = _median_rank(len(ordered), alpha)
    if rank == 0:
        return None
    return Interval(float(ordered[rank - 1]), float(ordered[len(ordered) - rank]))


def ratio_interval(base: float, around_base: Interval, new: float, around_new: Interval) -> Interval:
    """Interval of new / base from the intervals of both (MOVER on logarithms); a bound of 0 gives 0 or infinity."""
    if base <= 0 or new <= 0:
        return Interval(0.0, math.inf)
    middle = math.log(new / base)
    down = math.hypot(_log(new, around_new.low), _log(around_base.high, base))
    up = math.hypot(_log(around_new.high, new), _log(base, around_base.low))
    return Interval(math.exp(middle - down), math.exp(middle + up) if up < 700 else math.inf)


def _log(larger: float, smaller: float) -> float:
    return math.log(larger / smaller) if smaller > 0 else math.inf


class Mean(NamedTuple):
    """A mean, the variance of that mean, and how many degrees of freedom the variance has (0: it isn't known)."""

    value: float
    variance: float
    freedom: float


def mean_of(values: Values) -> Mean:
    """The mean of independent values."""
    count = len(values)
    if count < 2:
        return Mean(float(values.sum()), 0.0, 0.0)
    return Mean(float(values.mean()), float(values.var(ddof=1)) / count, count - 1.0)


def summed(parts: Sequence[tuple[float, Mean]]) -> Mean:
    """The sum of independent means, each with a weight (Satterthwaite's degrees of freedom)."""
    value = math.fsum(weight * mean.value for weight, mean in parts)
    variances = [(weight**2 * mean.variance, mean.freedom) for weight, mean in parts if mean.freedom > 0]
    variance = math.fsum(part for part, _ in variances)
    below = math.fsum(part**2 / freedom for part, freedom in variances)
    return Mean(value, variance, variance**2 / below if below > 0 else sum(freedom for _, freedom in variances))


def welch(base: Mean, new: Mean, alpha: float) -> tuple[float, Interval] | None:
    """p-value that two means are one (Welch), and the interval of their ratio new / base (Fieller) at level 1 - alpha.

    None where a spread isn't known or a mean is 0. The interval is from 0 to infinity where base could be 0.
    """
    if base.value <= 0 or new.value <= 0 or base.freedom <= 0 or new.freedom <= 0:
        return None
    ratio = new.value / base.value
    error = summed([(1.0, base), (1.0, new)])
    if error.variance == 0:
        return (1.0 if ratio == 1 else 0.0), Interval(ratio, ratio)
    t = abs(new.value - base.value) / math.sqrt(error.variance)
    p_value = math.erfc(_normal_deviate(t, error.freedom) / math.sqrt(2))
    return p_value, _fieller(base, new, _t_quantile(_NORMAL.inv_cdf(1 - alpha / 2), error.freedom) ** 2)


def _fieller(base: Mean, new: Mean, t_squared: float) -> Interval:
    """All ratios r for which new - r · base is within t of 0: between the roots of a parabola."""
    square = base.value**2 - t_squared * base.variance
    if square <= 0:
        return Interval(0.0, math.inf)
    middle = base.value * new.value
    root = math.sqrt(max(middle**2 - square * (new.value**2 - t_squared * new.variance), 0.0))
    return Interval(max((middle - root) / square, 0.0), (middle + root) / square)


def _normal_deviate(t: float, freedom: float) -> float:
    """The normal deviate as rare as Student's t (Wallace)."""
    shrink = (8 * freedom + 1) / (8 * freedom + 3)
    return shrink * math.sqrt(freedom * math.log1p(t * t / freedom))


def _t_quantile(deviate: float, freedom: float) -> float:
    """The inverse of `_normal_deviate`."""
    stretched = deviate * (8 * freedom + 3) / (8 * freedom + 1)
    exponent = stretched * stretched / freedom
    return math.sqrt(freedom * math.expm1(exponent)) if exponent < 700 else math.inf
