"""The statistics against scipy: the same numbers by other people's code."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cpulens.analyze.compare import statistics
from cpulens.analyze.compare.statistics import Interval, Mean

STEP = 2.0**-12
grained = st.lists(st.integers(0, 40), min_size=1, max_size=60).map(lambda steps: np.array(steps) * STEP)


@given(grained, grained)
def test_rank_test_with_ties_is_scipys(first: np.ndarray, second: np.ndarray) -> None:
    untied = len(np.unique(np.concatenate([first, second]))) == len(first) + len(second)
    if untied and len(first) <= 20 and len(second) <= 20:
        expected = stats.mannwhitneyu(first, second, method="exact").pvalue
    elif len(np.unique(np.concatenate([first, second]))) == 1:
        expected = 1.0  # scipy says nan: no order at all
    else:
        expected = stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert statistics.mann_whitney(first, second) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(st.integers(1, 20), st.integers(1, 20), st.randoms(use_true_random=False))
def test_rank_test_of_few_values_is_scipys_exact_one(m: int, n: int, random: object) -> None:
    values = np.array(random.sample(range(1000), m + n), float)  # type: ignore[attr-defined]
    expected = stats.mannwhitneyu(values[:m], values[m:], method="exact").pvalue
    assert statistics.mann_whitney(values[:m], values[m:]) == pytest.approx(expected, rel=1e-9)


def test_rank_test_of_nothing_finds_nothing() -> None:
    assert statistics.mann_whitney(np.array([]), np.array([1.0])) == 1.0


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_by_its_definition(p_values: list[float]) -> None:
    # Holm rejects the k smallest at alpha exactly when p(i) <= alpha / (m - i + 1) for every i up to k.
    adjusted = statistics.holm(p_values)
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    for rank, at in enumerate(order):
        least = max(min(1.0, (len(p_values) - i) * p_values[order[i]]) for i in range(rank + 1))
        assert adjusted[at] == pytest.approx(least)


@given(st.integers(1, 400), st.sampled_from([0.05, 0.01, 0.001]), st.integers(0, 1000))
@settings(deadline=None)
def test_interval_of_a_median_is_scipys(count: int, alpha: float, seed: int) -> None:
    ordered = np.sort(np.random.default_rng(seed).random(count))
    found = statistics.median_interval(ordered, alpha)
    lowest = 2 * 0.5**count  # the chance that all values lie on one side of the median
    assert (found is None) == (lowest > alpha)
    if found is not None:
        expected = stats.quantile_test(ordered, p=0.5).confidence_interval(1 - alpha)
        # scipy may take one of the two ranks closer; ours is symmetric and never narrower.
        assert found.low <= expected.low and found.high >= expected.high
        rank = int(np.searchsorted(ordered, found.low)) + 1
        assert stats.binom.cdf(rank - 1, count, 0.5) <= alpha / 2 < stats.binom.cdf(rank, count, 0.5)


@pytest.mark.parametrize("freedom", [8, 20, 100, 5000])
@pytest.mark.parametrize("level", [0.95, 0.99, 0.999])
def test_students_t_is_scipys(freedom: float, level: float) -> None:
    deviate = stats.norm.ppf((1 + level) / 2)
    exact = stats.t.ppf((1 + level) / 2, freedom)
    assert statistics._t_quantile(deviate, freedom) == pytest.approx(exact, rel=0.007)
    assert statistics._normal_deviate(exact, freedom) == pytest.approx(deviate, rel=0.007)


@pytest.mark.parametrize("freedom", [1, 2, 3, 5])
def test_few_degrees_of_freedom_are_never_judged_too_boldly(freedom: float) -> None:
    for level in (0.95, 0.99, 0.999):
        exact = stats.t.ppf((1 + level) / 2, freedom)
        assert statistics._t_quantile(stats.norm.ppf((1 + level) / 2), freedom) >= exact * 0.99


def test_welch_is_scipys() -> None:
    rng = np.random.default_rng(4)
    base, new = rng.normal(100, 0.5, 40), rng.normal(100.4, 1.0, 25)
    found = statistics.welch(statistics.mean_of(base), statistics.mean_of(new), 0.01)
    assert found is not None
    test = stats.ttest_ind(new, base, equal_var=False)
    interval = test.confidence_interval(0.99)
    assert found[0] == pytest.approx(test.pvalue, rel=0.01)
    # So sure of the base, the interval of the ratio is that of the difference, divided.
    assert found[1].low == pytest.approx(1 + interval.low / 100, abs=2e-4)
    assert found[1].high == pytest.approx(1 + interval.high / 100, abs=2e-4)


@given(st.floats(0.1, 10), st.floats(0.001, 0.2), st.floats(0.001, 0.2), st.integers(10, 200))
def test_fiellers_interval_ends_where_the_difference_is_t_away(ratio: float, one: float, other: float, n: int) -> None:
    base, new = Mean(2.0, (2.0 * one) ** 2, n), Mean(2.0 * ratio, (2.0 * ratio * other) ** 2, n)
    found = statistics.welch(base, new, 0.05)
    assert found is not None
    freedom = (base.variance + new.variance) ** 2 / (base.variance**2 / n + new.variance**2 / n)
    t = stats.t.ppf(0.975, freedom)
    for end in found[1]:
        if 0 < end < math.inf:
            distance = abs(new.value - end * base.value) / math.sqrt(new.variance + end**2 * base.variance)
            assert distance == pytest.approx(t, rel=0.01)
    assert found[1].low <= ratio <= found[1].high


def test_a_few_wild_calls_make_no_significant_mean() -> None:
    base, new = np.full(40, 0.01) + np.linspace(0, 1e-3, 40), np.full(40, 0.01) + np.linspace(0, 1e-3, 40)
    new[[3, 30]] = 60.0
    found = statistics.welch(statistics.mean_of(base), statistics.mean_of(new), 0.01)
    assert found is not None
    assert found[0] > 0.05 and found[1].low < 1


def test_welch_knows_when_it_can_not() -> None:
    known, single = statistics.mean_of(np.array([1.0, 2.0, 3.0])), statistics.mean_of(np.array([2.0]))
    assert statistics.welch(known, single, 0.01) is None
    assert statistics.welch(Mean(0.0, 1.0, 3.0), known, 0.01) is None


def test_sum_of_means_has_satterthwaites_freedom() -> None:
    # Two means with variances 1 and 4 of 4 and 9 degrees: (1 + 4)^2 / (1/4 + 16/9).
    found = statistics.summed([(1.0, Mean(3.0, 1.0, 4.0)), (2.0, Mean(5.0, 1.0, 9.0))])
    assert found.value == 13.0
    assert found.variance == 5.0
    assert found.freedom == pytest.approx(25 / (1 / 4 + 16 / 9))


@given(grained)
def test_spreading_keeps_order_mean_and_distance(values: np.ndarray) -> None:
    step = statistics.grain(values)
    spread = statistics.spread(values, step)
    assert (np.diff(spread) >= -1e-15).all()
    assert np.abs(spread - np.sort(values)).max() <= step / 2 + 1e-15
    if len(values) and values.min() >= step:
        assert spread.mean() == pytest.approx(values.mean())


@given(st.floats(5, 40), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_the_median_of_coarse_times_is_that_of_fine_ones(steps: float, seed: int) -> None:
    fine = np.random.default_rng(seed).normal(steps * STEP, 1.5 * STEP, 4000)
    coarse = np.round(fine / STEP) * STEP
    spread = statistics.spread(coarse, statistics.grain(coarse))
    # The grouped median finds the place inside of a step, within the error of a median of 4,000: 1.25 · 1.5 / √4000.
    assert abs(np.median(spread) - np.median(fine)) < 0.12 * STEP


def test_interval_of_a_ratio_covers_it() -> None:
    rng, alpha, tries, covered = np.random.default_rng(7), 0.05, 600, 0
    for _ in range(tries):
        base, new = np.sort(rng.lognormal(0, 0.1, 60)), np.sort(rng.lognormal(math.log(1.2), 0.2, 45))
        around = [statistics.median_interval(side, alpha) for side in (base, new)]
        assert around[0] is not None and around[1] is not None
        low, high = statistics.ratio_interval(float(np.median(base)), around[0], float(np.median(new)), around[1])
        covered += low <= 1.2 <= high
    # At least 95 %, less three standard errors of the count.
    assert covered / tries >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / tries)
    assert covered < tries


def test_ratio_interval_at_the_clocks_step() -> None:
    assert statistics.ratio_interval(0.0, Interval(0.0, 1.0), 1.0, Interval(1.0, 1.0)) == (0.0, math.inf)
    low, high = statistics.ratio_interval(1.0, Interval(0.0, 2.0), 1.0, Interval(0.5, 2.0))
    assert low > 0 and high == math.inf
