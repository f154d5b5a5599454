"""One problem, very different times: contention, denormal numbers, or a core that slows down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
#: Kernels shorter than this are mostly the clock's grain and the start of threads.
_LEAST_MS: Final = 0.005


def heavy_tail(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Calls that take several times the median of the same kernel, where they take a large part of its time."""
    slow = _slow(ledger, thresholds)
    if not len(slow):
        return
    excess = float(slow["excess_ms"].sum())
    top = slow.row(0, named=True)
    yield Finding(
        code="heavy-tail",
        severity=WARNING,
        title=f"{times(int(slow['slow'].sum()), 'call')} took more than {thresholds.tail_ratio:g} times the median of "
        f"the same kernel: {ms(excess)} beyond it",
        evidence=tuple(_evidence(ledger, thresholds, row) for row in slow.head(_SHOWN).iter_rows(named=True)),
        cost_ms=excess,
        next_step=(
            "Slow calls here and there: other work on the same CPUs, more threads than CPUs, or memory on another "
            "node; bind the process (run_cpu) and look at the machine. Slow calls that come in one stretch, or with "
            "certain inputs: denormal numbers; try torch.set_flush_denormal(True)."
        ),
        numbers={
            "excess_ms": excess,
            "slow_calls": int(slow["slow"].sum()),
            "kernels": len(slow),
            "worst_ratio": float(top["max_ms"] / top["median_ms"]),
        },
    )


def _slow(ledger: Ledger, thresholds: Thresholds) -> pl.DataFrame:
    """Kernels with a heavy tail: how many slow calls, and their time beyond the median; the first call left out."""
    import polars as pl

    often = ledger.kernels.filter(
        (pl.col("calls") >= thresholds.tail_calls) & (pl.col("median_ms") >= _LEAST_MS),
        pl.col("max_ms") > thresholds.tail_ratio * pl.col("median_ms"),
    )
    if not len(often):
        return often
    runs = ledger.executions.join(often.select("text", "median_ms", "first_seq"), on="text", how="inner")
    tail = (
        runs.filter(
            pl.col("duration_ms") > thresholds.tail_ratio * pl.col("median_ms"), pl.col("seq") != pl.col("first_seq")
        )
        .group_by("text")
        .agg(slow=pl.len(), excess_ms=(pl.col("duration_ms") - pl.col("median_ms")).sum())
    )
    return (
        often.join(tail, on="text", how="inner")
        .filter(pl.col("excess_ms") >= thresholds.tail_share * pl.col("counted_ms"), pl.col("slow") >= 2)
        .sort("excess_ms", descending=True)
    )


def _evidence(ledger: Ledger, thresholds: Thresholds, row: dict[str, Any]) -> Evidence:
    import polars as pl

    runs = ledger.executions.filter(pl.col("text") == row["text"]).with_row_index("call")
    slow = runs.filter(pl.col("duration_ms") > thresholds.tail_ratio * row["median_ms"])
    quantile = runs["duration_ms"].quantile(0.99, "linear")
    together = int((slow["call"].diff() == 1).sum())
    worst = slow.sort("duration_ms", descending=True)["line"].head(_SHOWN).sort().to_list()
    return Evidence(
        f"{named(row)}: {row['slow']:,} of {row['calls']:,} calls slow, "
        f"{percent(row['excess_ms'] / row['counted_ms'])} of its time; median {ms(row['median_ms'])}, "
        f"99th percentile {ms(quantile or 0.0)}, longest "
        f"{ms(row['max_ms'])}; {together:,} slow calls follow a slow one",
        tuple(worst),
    )
