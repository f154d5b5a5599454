"""The share of time that goes into reorders, and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.layouts import move
from cpulens.analyze.findings.ledger import Ledger, named
from cpulens.analyze.findings.weights import of_weights

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3


def share(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Reorders together, by what they are for: weights, other types, other layouts."""
    import polars as pl

    moved = ledger.primitives.filter(pl.col("primitive") == "reorder")
    spent = float(moved["total_ms"].sum())
    part = share_of(spent, ledger.execution_ms)
    if part < thresholds.reorder_share:
        return
    for_weights = set(of_weights(ledger))
    purposes = {"weights": 0.0, "data types": 0.0, "layouts": 0.0}
    for row in moved.iter_rows(named=True):
        step = move(row)
        if row["text"] in for_weights:
            purpose = "weights"
        elif step is not None and step.source.dt != step.destination.dt:
            purpose = "data types"
        else:
            purpose = "layouts"
        purposes[purpose] += row["total_ms"] or 0.0
    calls = int(moved["calls"].sum())
    evidence = [Evidence(", ".join(f"{name} {ms(time)}" for name, time in purposes.items() if time > 0))]
    evidence += [
        Evidence(f"{named(row)}: {_words(row)}{ms(row['total_ms'])} in {times(row['calls'], 'call')}", (row["line"],))
        for row in moved.head(_SHOWN).iter_rows(named=True)
    ]
    yield Finding(
        code="reorder-share",
        severity=WARNING,
        title=f"Reorders take {percent(part)} of the execution time: {times(calls, 'call')}",
        evidence=tuple(evidence),
        cost_ms=spent,
        next_step=(
            "Keep the tensors in one layout from layer to layer. In PyTorch: model.to(memory_format="
            "torch.channels_last) and the input too; torch.compile with freezing, so that weights are packed once; "
            "one autocast region around the model instead of many small ones."
        ),
        numbers={"share": part, "calls": calls, **{f"{name.replace(' ', '_')}_ms": t for name, t in purposes.items()}},
    )


def _words(row: dict[str, object]) -> str:
    step = move(row)
    return f"{step.source} → {step.destination}, " if step else ""
