"""Time in neither library, and models of which one library sees nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN = 3


def outside_both(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """A large share of the wall time in kernels that neither library ran."""
    covered = ledger.coverage
    # The whole of a command holds its start, its imports and its end: that share says nothing of the inference.
    stretches = [one for one in covered.stretches if one.kind != "command"]
    wall_ms = sum(one.wall_ms for one in stretches)
    neither_ms = sum(one.neither_ms for one in stretches)
    share = share_of(neither_ms, wall_ms)
    if share < thresholds.outside_share:
        return
    worst = sorted(stretches, key=lambda one: -one.neither_ms)[:_SHOWN]
    evidence = [
        Evidence(
            f"{one.name}: {ms(one.wall_ms)}, of which {ms(one.onednn_ms)} in oneDNN, {ms(one.mkl_ms)} in oneMKL, "
            f"about {ms(one.printing_ms)} printing, {ms(one.neither_ms)} in neither"
        )
        for one in worst
    ]
    evidence += [
        Evidence(f"{gap.count:,} gaps after {gap.after}: {ms(gap.total_ms)}, longest {ms(gap.longest_ms)}", (gap.line,))
        for gap in covered.gaps[:_SHOWN]
    ]
    yield Finding(
        code="outside-both",
        severity=WARNING,
        title=f"{percent(share)} of the wall time is in neither oneDNN nor oneMKL",
        evidence=tuple(evidence),
        cost_ms=neither_ms,
        next_step=(
            "The framework's own operations, Python, or waiting: neither log shows it. Look with a profiler of the "
            "framework (torch.profiler), and mark parts of the model with cpulens.region to see which holds it."
        ),
        numbers={"share": share, "wall_ms": wall_ms, "neither_ms": neither_ms},
    )


def mkl_only(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Products ran in oneMKL, and oneDNN was asked and ran nothing."""
    import polars as pl

    kernels = ledger.kernels
    products = kernels.filter((pl.col("library") == "mkl") & (pl.col("component") == "blas"))
    asked = any((facts.get("levels") or {}).get("onednn") for facts in ledger.instances.values())
    loaded = bool(ledger.libraries("onednn"))
    if not asked or not len(products) or (kernels["library"] == "onednn").any():
        return
    spent = float(products["counted_ms"].sum())
    yield Finding(
        code="mkl-only",
        severity=ADVICE,
        title="Every kernel ran in oneMKL; oneDNN was asked and ran none",
        evidence=(
            Evidence(f"{times(int(products['calls'].sum()), 'product')} in oneMKL, {ms(spent)}"),
            Evidence("oneDNN is loaded" if loaded else "no line of oneDNN came, not even its header"),
            *(
                Evidence(f"{named(row)}: {ms(row['counted_ms'])} in {times(row['calls'], 'call')}", (row["line"],))
                for row in products.head(_SHOWN).iter_rows(named=True)
            ),
        ),
        cost_ms=None,
        next_step=(
            "oneDNN's switches and environment change nothing here. In PyTorch, float32 products go to oneMKL; "
            "bfloat16 (autocast), int8, or weights packed by torch.compile with freezing go to oneDNN. "
            "On processors of other makers compare both."
        ),
        numbers={"total_ms": spent, "share": share_of(spent, ledger.execution_ms)},
    )
