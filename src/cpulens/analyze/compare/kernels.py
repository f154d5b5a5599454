"""From matches and sums to the kernels of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from cpulens.analyze.compare.identity import OTHER_WORK, Variant
from cpulens.analyze.compare.matching import Match
from cpulens.analyze.compare.measures import Side
from cpulens.analyze.compare.result import Change, Effect, Kernel, Times
from cpulens.analyze.compare.statistics import Values
from cpulens.analyze.selection import covering

#: The kernels that make up so much of a side's time are those that matter.
MATTERING: Final = 0.99
#: Field of a variant → what a change of it is called.
_CHANGES: Final = {
    "implementation": "implementation",
    "types": "types",
    "layout": "layout",
    "attributes": "attributes",
    "auxiliary": "algorithm",
    "prop_kind": "propagation",
}
#: What tells a kernel from others; `layout` only where it is the work itself. The last are all that other work shares.
_SHOWN: Final = (
    "library", "component", "engine", "primitive", "prop_kind", "problem", "types", "attributes", "auxiliary",
    "own_layout",
)  # fmt: skip
_SHARED: Final = ("library", "component", "primitive")


def times(
    side: Side, match: int, units: float, warm: Values, variants: Sequence[Variant], places: Sequence[int]
) -> Times | None:
    """One side of a match, whose calls that are not cold took `warm`; None when it has no call of it."""
    records = int(side.sums.records[match])
    if not records:
        return None
    cold, mean = int(side.sums.cold[match]), float(side.sums.mean[match])
    return Times(
        records=records,
        calls=records / units,
        total_ms=records * mean / units,
        mean_ms=mean,
        median_ms=float(np.median(warm)),
        first_ms=float(side.sums.cold_ms[match]) / cold if cold else None,
        samples=len(warm),
        implementations=tuple(dict.fromkeys(variants[place].implementation for place in places)),
    )


def kernel(
    match: Match,
    variants: tuple[Sequence[Variant], Sequence[Variant]],
    both: tuple[Times | None, Times | None],
    effect: Effect,
    matters: bool,
    by: tuple[str, ...],
) -> Kernel:
    """Describe one match."""
    base, new = both
    before = [variants[0][place] for place in match.base]
    after = [variants[1][place] for place in match.new]
    if base is None or new is None:
        kind = "added" if base is None else "removed"
    else:
        kind = "other work" if match.stage == OTHER_WORK else "matched"
    count_ms, time_ms = _parts(base, new)
    return Kernel(
        kind=kind,
        identity=_identity((after if base is None else before)[0], by, kind),
        label=_label(before, after, by, kind),
        inner=(before or after)[0].inner,
        base=base,
        new=new,
        changes=_other(before, after) if kind == "other work" else _changes(before, after) if kind == "matched" else (),
        effect=effect,
        delta_ms=count_ms + time_ms,
        count_ms=count_ms,
        time_ms=time_ms,
        matters=matters,
    )


def _parts(base: Times | None, new: Times | None) -> tuple[float, float]:
    """Difference by the number of calls, at base's time a call, and by the time a call takes."""
    if base is None or new is None:
        return (new.total_ms if new else 0.0) - (base.total_ms if base else 0.0), 0.0
    same = abs(new.calls - base.calls) < 1e-9 * base.calls
    count_ms = 0.0 if same else (new.calls - base.calls) * base.mean_ms
    return count_ms, new.total_ms - base.total_ms - count_ms


def _identity(variant: Variant, by: tuple[str, ...], kind: str) -> dict[str, Any]:
    if by:
        return dict(zip(by, variant.grouping, strict=True))
    names = _SHARED if kind == "other work" else _SHOWN
    return {name.removeprefix("own_"): (getattr(variant, name) or None) if name in names else None for name in _SHOWN}


def _label(before: Sequence[Variant], after: Sequence[Variant], by: tuple[str, ...], kind: str) -> str:
    variant = (before or after)[0]
    if by:
        return " ".join("–" if value is None else str(value) for value in variant.grouping)
    if kind == "other work":
        return f"{variant.primitive} ({len(_named(before))} → {len(_named(after))} kernels)"
    return _name(variant)


def _name(variant: Variant) -> str:
    first_type = variant.types.partition(" ")[0].partition(":")[2]
    layout = " → ".join(word.partition(":")[2] for word in variant.own_layout.split())
    parts = (variant.primitive, variant.problem or variant.auxiliary, first_type, layout)
    return " ".join(part for part in parts if part)


def _named(variants: Sequence[Variant]) -> list[str]:
    return list(dict.fromkeys(map(_name, variants)))


def _changes(before: Sequence[Variant], after: Sequence[Variant]) -> tuple[Change, ...]:
    changes = []
    for field, what in _CHANGES.items():
        one = {getattr(variant, field) for variant in before}
        other = {getattr(variant, field) for variant in after}
        if one == other:
            continue
        if len(one) == len(other) == 1:
            changes.append(Change(what, *_apart(one.pop(), other.pop())))
        else:
            changes.append(
                Change(what, *(" + ".join(sorted(value or "none" for value in side)) for side in (one, other)))
            )
    return tuple(changes)


def _other(before: Sequence[Variant], after: Sequence[Variant]) -> tuple[Change, ...]:
    """What stands for what, where only the primitive is the same."""
    return (Change("kernels", "; ".join(_named(before)), "; ".join(_named(after))),)


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two lists of words without those that both have."""
    before, after = one.split(), other.split()
    return (
        " ".join(word for word in before if word not in after),
        " ".join(word for word in after if word not in before),
    )


def mattering(totals: Sequence[Sequence[float]]) -> set[int]:
    """Places of the kernels that make up 99 % of the time of either side, whose times are `totals`."""
    found: set[int] = set()
    for side in totals:
        whole = sum(side)
        if whole > 0:
            order = sorted(range(len(side)), key=lambda at: -side[at])
            found.update(order[: covering((side[at] / whole for at in order), MATTERING)])
    return found
