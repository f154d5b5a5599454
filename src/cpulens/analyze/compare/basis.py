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
#: A common ratio of calls must hold for so many of the kernels that both sides have, and so much of their time.
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
        text += f"; {outside:,} call{'s' if outside > 1 else ''} outside of any iteration left out"
    return Basis("iteration", base.units, new.units, text)


def _of(base: int, new: int) -> str:
    return f"{base:,} in base, {new:,} in new"


def _per_calls(base: Calls, new: Calls, matches: list[Match]) -> Basis:
    ratio, common = _ratio(base, new, matches)
    if ratio == 1 and common:
        return Basis("calls", base.runs, new.runs, "per run; both made as many calls of most of the kernels they share")
    times = f"{ratio:.4g} times" if ratio > 1 else f"1/{1 / ratio:.4g} of"
    text = f"per run of base's length: new made {times} base's calls of the kernels they share, and is divided by that"
    if not common:
        text += (
            "; that is an average by time, for the numbers differ from kernel to kernel "
            "(--per run takes them as they are)"
        )
    return Basis("calls", base.runs, new.runs * ratio, text)


def _ratio(base: Calls, new: Calls, matches: list[Match]) -> tuple[float, bool]:
    """How many calls a run of new makes for one of base, and whether most kernels and most time agree on that.

    Where they don't, it is the ratio at which the shared kernels, at base's times, take as long as in base.
    """
    before = np.bincount(base.kernel, minlength=len(base.variants)) / base.runs
    after = np.bincount(new.kernel, minlength=len(new.variants)) / new.runs
    time = np.bincount(base.kernel, base.duration_ms, minlength=len(base.variants))
    shared = [one for one in matches if one.base and one.new and one.stage != OTHER_WORK]
    if not shared:
        return 1.0, True
    ratios = [round(float(after[list(one.new)].sum() / before[list(one.base)].sum()), 9) for one in shared]
    times = [float(time[list(one.base)].sum()) for one in shared]
    whole = sum(times)
    agreeing: dict[float, list[float]] = {}
    for ratio, spent in zip(ratios, times, strict=True):
        agreeing.setdefault(ratio, []).append(spent)
    ratio, spent_by = max(agreeing.items(), key=lambda item: sum(item[1]))
    few = min(len(shared), 2)
    if sum(spent_by) >= _COMMON * whole and len(spent_by) >= max(_COMMON * len(shared), few):
        return ratio, True
    return sum(one * spent for one, spent in zip(ratios, times, strict=True)) / whole if whole else 1.0, False
