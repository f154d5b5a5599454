"""How much, and whether it is more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare.measures import Side
from cpulens.analyze.compare.result import BELOW_CLOCK, TOO_FEW, Effect
from cpulens.analyze.compare.statistics import (
    Values,
    grain,
    holm,
    mann_whitney,
    median_interval,
    ratio_interval,
    spread,
    welch,
)


def of_samples(base: Values, new: Values, alpha: float) -> Effect:
    """The ratio of the medians, its interval, and the p-value of the rank test (not adjusted yet)."""
    step = grain(base, new)
    before, after = spread(base, step), spread(new, step)
    middle, later = float(np.median(before)), float(np.median(after))
    if middle <= 0 or later <= 0:
        return Effect(None, reason=BELOW_CLOCK)
    around, around_later = median_interval(before, alpha), median_interval(after, alpha)
    if around is None or around_later is None:
        return Effect(later / middle, reason=TOO_FEW)
    low, high = ratio_interval(middle, around, later, around_later)
    return Effect(later / middle, low, high, mann_whitney(base, new))


def of_kernel(base: Side, new: Side, match: int, warm: tuple[Values, Values], alpha: float) -> tuple[Effect, bool]:
    """The effect on one match, whose calls that are not cold took `warm`, and whether the runs agree on it."""
    effect = of_samples(base.samples(match, warm[0]), new.samples(match, warm[1]), alpha)
    return effect, not _few_runs(base, new) or _apart(base.run_medians(match), new.run_medians(match))


def of_total(
    base: Side, new: Side, counted: NDArray[np.bool_], units: tuple[float, float], alpha: float
) -> tuple[Effect, bool]:
    """The effect on the total (the ratio of the mean times per unit), and whether the runs agree on it."""
    before = base.total(counted, units[0])
    after = new.total(counted, units[1])
    if before.value <= 0 or after.value <= 0:
        return Effect(None, reason=BELOW_CLOCK), True
    ratio = after.value / before.value
    found = welch(before, after, alpha)
    if found is None:
        return Effect(ratio, reason=TOO_FEW), True
    p_value, (low, high) = found
    agree = not _few_runs(base, new) or _apart(base.run_totals(counted, units[0]), new.run_totals(counted, units[1]))
    return Effect(ratio, low, high, p_value), agree


def _few_runs(base: Side, new: Side) -> bool:
    """Several runs, but too few to be the samples: then each one must agree."""
    return base.sampling != "runs" and base.calls.runs + new.calls.runs > 2


def _apart(before: Values, after: Values) -> bool:
    """Whether every run of one side lies beyond every run of the other."""
    return bool(before.max() < after.min() or after.max() < before.min()) if len(before) and len(after) else False


def judged(effects: Sequence[tuple[Effect, bool]], alpha: float, min_effect: float) -> list[Effect]:
    """Adjust the p-values for all tests at once, and say which effects are significant."""
    tested = [at for at, (effect, _) in enumerate(effects) if effect.p_value is not None]
    adjusted = dict(zip(tested, holm([effects[at][0].p_value or 0.0 for at in tested]), strict=True))
    judged = []
    for at, (effect, agree) in enumerate(effects):
        p_value = adjusted.get(at)
        if p_value is None or effect.ratio is None or effect.low is None or effect.high is None:
            judged.append(effect)
            continue
        large = max(effect.ratio, 1 / effect.ratio) >= 1 + min_effect
        apart = effect.low > 1 or effect.high < 1
        significant = p_value < alpha and large and apart and agree
        judged.append(dataclasses.replace(effect, p_value=p_value, significant=significant))
    return judged
