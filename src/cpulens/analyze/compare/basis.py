"""What the two sides are divided by, when they ran for unequal numbers of iterations."""

from __future__ import annotations

from typing import Final

import numpy as np

from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.identity import OTHER_WORK
from cpulens.analyze.compare.matching import Match
from cpulens.analyze.compare.result import Basis
from cpulens.errors import UsageError

PER: Final = ("iteration", "calls", "run")
#: A common ratio of calls must hold for so much of base's time in kernels that both sides have.
_COMMON: Final = 0.5


def basis_of(sides: tuple[Calls, Calls], matches: list[Match], per: str | None) -> Basis:
    """Choose the basis, or take the one asked for. Raises UsageError for one that there is not."""
    base, new = sides
    marked = base.marked and new.marked
    if per not in (*PER, None):
        raise UsageError(f"per {per!r} is none of {', '.join(PER)}")
    if per == "iteration" or (per is None and marked):
        return _per_iteration(base, new)
    if per == "run":
        return Basis("run", base.runs, new.runs, f"per run, as they are ({_of(base.runs, new.runs)})")
    return _per_calls(base, new, matches)


def _per_iteration(base: Calls, new: Calls) -> Basis:
    outside = sum(int((side.unit < 0).sum()) for side in (base, new))
    text = f"per iteration ({_of(base.units, new.units)})"
    if outside:
        text += f"; {outside:,} calls outside of any iteration are left out"
    return Basis("iteration", base.units, new.units, text)


def _of(base: int, new: int) -> str:
    return f"{base:,} in base, {new:,} in new"


def _per_calls(base: Calls, new: Calls, matches: list[Match]) -> Basis:
    ratio = _common_ratio(base, new, matches)
    if ratio is None:
        text = "per run; the numbers of calls differ from kernel to kernel, so they are taken as they are"
        return Basis("calls", base.runs, new.runs, text)
    if ratio == 1:
        return Basis("calls", base.runs, new.runs, "per run; both made as many calls of the kernels they share")
    times = f"{ratio:.4g} times" if ratio > 1 else f"1/{1 / ratio:.4g} of"
    text = f"per run of base's length: new made {times} base's calls of the kernels they share, and is divided by that"
    return Basis("calls", base.runs, new.runs * ratio, text)


def _common_ratio(base: Calls, new: Calls, matches: list[Match]) -> float | None:
    """How many calls a run of new makes for one of base, where most of the shared time agrees on it."""
    before = np.bincount(base.kernel, minlength=len(base.variants)) / base.runs
    after = np.bincount(new.kernel, minlength=len(new.variants)) / new.runs
    time = np.bincount(base.kernel, base.duration_ms, minlength=len(base.variants))
    agreeing: dict[float, float] = {}
    for one in matches:
        if one.base and one.new and one.stage != OTHER_WORK:
            ratio = round(float(after[list(one.new)].sum() / before[list(one.base)].sum()), 9)
            agreeing[ratio] = agreeing.get(ratio, 0.0) + float(time[list(one.base)].sum())
    if not agreeing:
        return None
    ratio = max(agreeing, key=agreeing.__getitem__)
    return ratio if agreeing[ratio] >= _COMMON * sum(agreeing.values()) else None
