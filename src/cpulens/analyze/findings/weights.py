"""Weights that are brought into the kernel's layout again in every inference."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.layouts import move, weights
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3


def of_weights(ledger: Ledger) -> list[int]:
    """The texts of reorders whose result is the weights of a kernel in the same trace."""
    import polars as pl

    runs = ledger.primitives
    taken = weights(runs)
    found = []
    for row in runs.filter(pl.col("primitive") == "reorder").iter_rows(named=True):
        if "rnn_weights" in (row["implementation"] or ""):
            found.append(row["text"])
            continue
        moved = move(row)
        if moved is not None and moved.source != moved.destination and (moved.problem, moved.destination) in taken:
            found.append(row["text"])
    return found


def reordered(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """The same weights reordered in several passes of the same inference."""
    import polars as pl

    texts = of_weights(ledger)
    passes = ledger.passes
    if not texts or passes is None or passes < 2:
        return
    moved = ledger.primitives.filter(pl.col("text").is_in(texts))
    again = _repeated(ledger, moved, passes)
    # The first pass has to bring them into the layout once, and pays for a cold start too.
    later = pl.min_horizontal(pl.col("total_ms") - pl.col("first_ms"), pl.col("total_ms") * (passes - 1) / passes)
    wasted = float(again.select(later.sum()).item())
    share = share_of(wasted, ledger.execution_ms)
    if not len(again) or share < thresholds.weights_share:
        return
    taken = weights(ledger.primitives)
    evidence = []
    for row in again.head(_SHOWN).iter_rows(named=True):
        step = move(row)
        kernel = taken.get((step.problem, step.destination)) if step else None
        words = f"{row['problem']} {step.source} → {step.destination}" if step else named(row)
        forced = f", as {kernel['primitive']} {kernel['implementation']} takes them" if kernel else ""
        evidence.append(
            Evidence(
                f"{words}: {ms(row['total_ms'])} in {times(row['calls'], 'call')}{forced}",
                ledger.lines_of(again.filter(pl.col("text") == row["text"])["text"]),
            )
        )
    yield Finding(
        code="weights-reordered",
        severity=WARNING,
        title=f"Weights are reordered again in each of {passes:,} passes: {percent(share)} of the execution time",
        evidence=tuple(evidence),
        cost_ms=wasted,
        next_step=(
            "Bring the weights into the kernel's layout once, before the inference. In PyTorch: torch.compile with "
            "torch._inductor.config.freezing = True packs them (scripting, freezing and to_mkldnn don't); with oneDNN "
            "itself: create the primitive with format any and keep the reordered weights."
        ),
        numbers={
            "share": share,
            "calls": int(again["calls"].sum()),
            "distinct": len(again),
            "passes": passes,
        },
    )


def _repeated(ledger: Ledger, moved: pl.DataFrame, passes: int) -> pl.DataFrame:
    """Those that run in at least two passes: in two iterations where they are marked, else once a period or more."""
    import polars as pl

    runs = ledger.executions
    if runs["iteration"].null_count() < len(runs):
        seen = (
            runs.filter(pl.col("text").is_in(moved["text"].implode()), pl.col("iteration").is_not_null())
            .group_by("text")
            .agg(passes=pl.col("iteration").n_unique())
            .filter(pl.col("passes") >= 2)["text"]
        )
        return moved.filter(pl.col("text").is_in(seen.implode()))
    return moved.filter(pl.col("calls") >= passes)
