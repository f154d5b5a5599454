"""compare(): two sides in, one Comparison out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cpulens.analyze.compare import calls as reading
from cpulens.analyze.compare.basis import basis_of
from cpulens.analyze.compare.calls import Calls
from cpulens.analyze.compare.causes import causes
from cpulens.analyze.compare.figures import Figures, Test
from cpulens.analyze.compare.matching import match
from cpulens.analyze.compare.result import Comparison, Kernel, Pair
from cpulens.analyze.compare.settings import differences
from cpulens.analyze.selection import Selection, with_iterations
from cpulens.analyze.summary import columns
from cpulens.errors import UsageError

if TYPE_CHECKING:
    from cpulens.trace import Trace

ALPHA: Final = 0.01
MIN_EFFECT: Final = 0.01


def compare(
    base: Trace | Sequence[Trace],
    new: Trace | Sequence[Trace],
    *,
    by: str | Sequence[str] | None = None,
    where: str | None = None,
    iterations: str | None = None,
    per: str | None = None,
    alpha: float = ALPHA,
    min_effect: float = MIN_EFFECT,
    seed: int = 0,
) -> Comparison:
    """Compare the executions of two runs, or of several runs a side.

    `by`: match kernels by these columns of the trace instead of by problem. `where`, `iterations`: compare only these
    records (see `Selection`). `per`: "iteration", "calls" or "run", what totals are divided by; default: iteration
    where every run has marks of them, else calls; for iterations that are asked for and not marked, the period of the
    kernels is taken. `alpha`: the chance of calling any difference significant where there is none, for all kernels and
    the total together; at 0.01 it needs 8 calls a side. `min_effect`: differences below this part are never called
    significant. `seed`: for the choice of samples where a kernel has over 2,000 calls.

    Raises UsageError for columns, conditions or slices that are none, LogError for a side without timed executions.
    """
    by_iteration = iterations is not None or per == "iteration"
    runs = _runs(base, by_iteration), _runs(new, by_iteration)
    keys = columns(by if isinstance(by, str) else list(by)) if by else ()
    reading.check_columns(keys)
    selection = Selection(where, iterations)
    if not 0 < alpha < 1 or not min_effect >= 0:
        raise UsageError(f"alpha must lie between 0 and 1 and min_effect not below 0, not {alpha} and {min_effect}")
    sides = (
        reading.read(runs[0], selection, keys, "base"),
        reading.read(runs[1], selection, keys, "new"),
    )
    matches = match(sides[0].variants, sides[1].variants)
    basis = basis_of(sides, matches, per)
    if basis.per == "iteration":
        sides = sides[0].inside(), sides[1].inside()
    found = Figures.of(sides, matches, basis, keys, Test(alpha, min_effect, seed))
    facts = [[trace.facts for trace in side] for side in runs]
    unlike, silent = differences(facts[0], facts[1], (sides[0].threads, sides[1].threads))
    return Comparison(
        basis=basis,
        differences=unlike,
        notes=(*silent, *_notes(sides, found.kernels)),
        total_ms=found.total_ms,
        total=found.total,
        first_ms=found.first_ms,
        creation_ms=_prepared(sides, "creation_ms"),
        creations=_prepared(sides, "creations"),
        cache_misses=_prepared(sides, "cache_misses"),
        compilation_ms=_prepared(sides, "compilation_ms"),
        causes=causes(found.kernels),
        kernels=tuple(sorted(found.kernels, key=lambda one: -abs(one.delta_ms))),
        alpha=alpha,
        min_effect=min_effect,
        runs=Pair(len(runs[0]), len(runs[1])),
    )


def _runs(side: Trace | Sequence[Trace], by_iteration: bool) -> list[Trace]:
    from cpulens.trace import Trace

    runs = [side] if isinstance(side, Trace) else list(side)
    if not runs:
        raise UsageError("a side of the comparison has no run; give at least one")
    return [with_iterations(run) for run in runs] if by_iteration else runs


def _prepared(sides: tuple[Calls, Calls], name: str) -> Pair:
    return Pair(*(float(getattr(side.preparation, name)) for side in sides))


def _notes(sides: tuple[Calls, Calls], kernels: Sequence[Kernel]) -> list[str]:
    notes = [
        f"{side.untimed:,} executions of {name} have no time and are left out"
        for name, side in zip(("base", "new"), sides, strict=True)
        if side.untimed
    ]
    once = [one for one in kernels if any(side is not None and side.records == 1 for side in (one.base, one.new))]
    if once:
        notes.append(
            f"{len(once):,} of the kernels ran once on a side: that is a first call, and stands in the total as it is"
        )
    if any(one.inner for one in kernels):
        notes.append("kernels inside of graph partitions are compared, but count in their partition's time only")
    if max(side.runs for side in sides) == 1:
        notes.append(
            "one run a side: how much two runs of the same program differ (clock, memory, neighbours) is not in the "
            "intervals; give several runs a side to know"
        )
    return notes
