"""What a comparison finds: small frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cpulens.shown import Shown

#: Words for why a difference can't be judged.
TOO_FEW: Final = "too few calls"
BELOW_CLOCK: Final = "below the clock's step"


@dataclass(frozen=True, slots=True)
class Effect:
    """A ratio new / base with its interval at level 1 - alpha.

    `p_value` is adjusted for all that were tested at once. `significant`: below alpha, at least the minimum effect, the
    interval on one side of 1, and, with several runs a side, every run of one side beyond every run of the other.
    `ratio` is null where nothing can be said, bounds and `p_value` where there are too few values; `reason` says why.
    """

    ratio: float | None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    significant: bool = False
    reason: str | None = None

    @property
    def slower(self) -> bool:
        """Significant, and new takes longer."""
        return self.significant and self.ratio is not None and self.ratio > 1

    @property
    def faster(self) -> bool:
        """Significant, and new takes less."""
        return self.significant and self.ratio is not None and self.ratio < 1


@dataclass(frozen=True, slots=True)
class Times:
    """One side of a kernel. `calls` and `total_ms` are per unit (iteration, or run of base's length).

    `mean_ms` and `median_ms` leave out the first call of a process (unless it is the only one), which is in `first_ms`
    (mean over processes; null: none apart). `total_ms` counts those first calls at `mean_ms`. `samples`: the calls that
    the statistics rest on.
    """

    records: int
    calls: float
    total_ms: float
    mean_ms: float
    median_ms: float
    first_ms: float | None
    samples: int
    implementations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """What is not the same on the two sides.

    `what`: "implementation", "types", "layout", "attributes", "algorithm" or "propagation"; of lists only what differs
    is told. "kernels": which ones a kernel of the kind "other work" stands for.
    """

    what: str
    base: str
    new: str


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of one or both sides.

    `kind`: "matched"; "other work" (same primitive, but other problems: the ratio is that of the totals, and is never
    significant); "added"; "removed". `inner`: its time lies inside another's (a graph partition) and doesn't count in
    the total. `matters`: it belongs to the kernels that make up 99 % of the time of a side. `count_ms` is the part of
    `delta_ms` that comes from more or fewer calls (at base's time a call), `time_ms` that from the time a call takes.
    """

    kind: str
    identity: dict[str, Any]
    label: str
    inner: bool
    base: Times | None
    new: Times | None
    changes: tuple[Change, ...]
    effect: Effect
    delta_ms: float
    count_ms: float
    time_ms: float
    matters: bool

    @property
    def primitive(self) -> str:
        """Kind of primitive, or MKL's routine; empty when matched by columns without it."""
        return str(self.identity.get("primitive") or "")


@dataclass(frozen=True, slots=True)
class Cause:
    """A part of the total's difference, from some kernels alike. All causes together are the difference."""

    kind: str
    text: str
    delta_ms: float
    kernels: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not the same on both sides; null: that side has no such fact."""

    name: str
    base: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Basis:
    """What the figures of both sides are divided by to be comparable.

    `per`: "iteration", "calls" (a run of base's length, told by the calls that most kernels have in common) or "run".
    `base` and `new`: how many units each side has. `text` says it in words.
    """

    per: str
    base: float
    new: float
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """One figure on both sides."""

    base: float
    new: float


@dataclass(frozen=True, slots=True)
class Regression:
    """A significant slowdown that may reach the limit asked for; `kernel` is null for the total."""

    kernel: Kernel | None
    effect: Effect


@dataclass(frozen=True, slots=True)
class Comparison(Shown):
    """Two sides compared. Totals in milliseconds per unit of the basis, executions only.

    `first_ms`: what first calls took beyond a later call, in one run. `kernels` by descending size of the difference.
    """

    basis: Basis
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    total_ms: Pair
    total: Effect
    first_ms: Pair
    creation_ms: Pair
    creations: Pair
    cache_misses: Pair
    compilation_ms: Pair
    causes: tuple[Cause, ...]
    kernels: tuple[Kernel, ...]
    alpha: float
    min_effect: float
    runs: Pair

    def regressions(self, limit: float) -> tuple[Regression, ...]:
        """Significant slowdowns for which a part of `limit` (0.05: 5 %) can't be ruled out, the total first.

        Of the kernels those that matter, and that do the same work on both sides.
        """
        found = [Regression(None, self.total)] if _over(self.total, limit) else []
        found += [
            Regression(kernel, kernel.effect)
            for kernel in self.kernels
            if kernel.matters and _over(kernel.effect, limit)
        ]
        return tuple(found)


def _over(effect: Effect, limit: float) -> bool:
    return effect.slower and effect.high is not None and effect.high >= 1 + limit
