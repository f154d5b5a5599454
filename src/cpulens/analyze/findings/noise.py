"""Lines that tell of no kernel, and what printing them all costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from cpulens.analyze.coverage import printing_ms
from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of
from cpulens.analyze.findings.ledger import Ledger

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds


def noise(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Most lines are refusals and remarks."""
    import polars as pl

    lines = ledger.records.group_by("event").agg(calls=pl.col("calls").sum()).sort("calls", descending=True)
    total = int(lines["calls"].sum())
    idle = lines.filter(pl.col("event").is_in(["dispatch", "check", "info", "warn"]))
    count = int(idle["calls"].sum())
    if count < thresholds.noise_lines or share_of(count, total) < thresholds.noise_share:
        return
    kinds = ", ".join(f"{calls:,} {event}" for event, calls in idle.iter_rows())
    yield Finding(
        code="verbose-noise",
        severity=ADVICE,
        title=f"{percent(share_of(count, total))} of the lines tell of no kernel",
        evidence=(Evidence(f"{kinds}, of {total:,} lines"),),
        cost_ms=None,
        next_step=(
            "Ask for executions and creations only (--onednn ON_CREATION, or ONEDNN_VERBOSE=profile); ask for dispatch "
            "in one short run of its own."
        ),
        numbers={"lines": count, "share": share_of(count, total)},
    )


def cost(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Printing takes a large part of the wall time: the gaps between kernels are the log's own."""
    wall_ms = ledger.facts.get("wall_ms")
    if not isinstance(wall_ms, int | float) or wall_ms <= 0:
        return
    spent, calls = printing_ms(ledger.records, ledger.facts)
    share = share_of(spent, wall_ms)
    if share < thresholds.verbose_share:
        return
    yield Finding(
        code="verbose-cost",
        severity=WARNING if share >= 2 * thresholds.verbose_share else ADVICE,
        title=f"Printing the lines takes about {percent(share)} of the wall time",
        evidence=(Evidence(f"{calls:,} lines, about {ms(spent)} of {ms(wall_ms)}"),),
        cost_ms=spent,
        next_step=(
            "Kernels' own times are right all the same; wall time and gaps are not. Record fewer lines (--onednn ON "
            "instead of ON_CREATION or dispatch), or fewer iterations (a schedule)."
        ),
        numbers={"share": share, "lines": calls},
    )
