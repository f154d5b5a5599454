"""First calls that pay for threads, code and cold caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
#: Calls that a kernel needs for its first one to be told from the others.
_CALLS: Final = 3


def cold_start(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """What the first calls of kernels took beyond the median of all their calls."""
    import polars as pl

    excess = pl.col("first_ms") - pl.col("median_ms")
    often = ledger.kernels.filter((pl.col("calls") >= _CALLS) & (pl.col("library") == "onednn")).with_columns(
        excess_ms=excess
    )
    slow = often.filter(pl.col("first_ms") > thresholds.cold_ratio * pl.col("median_ms")).sort(
        "excess_ms", descending=True
    )
    spent = float(slow["excess_ms"].sum())
    share = share_of(spent, ledger.execution_ms)
    if share < thresholds.cold_share:
        return
    yield Finding(
        code="cold-start",
        severity=ADVICE,
        title=f"First calls take {percent(share)} of the execution time beyond what later calls of the same take",
        evidence=tuple(
            Evidence(
                f"{named(row)}: first {ms(row['first_ms'])}, median {ms(row['median_ms'])} of "
                f"{times(row['calls'], 'call')}",
                (row["line"],),
            )
            for row in slow.head(_SHOWN).iter_rows(named=True)
        ),
        cost_ms=spent,
        next_step=(
            "Run some inferences before those that count: in a server before it takes requests, in a measurement "
            "before the clock starts (record with a schedule: wait=1,active=…, or top --iterations 1:)."
        ),
        numbers={"share": share, "kernels": len(slow)},
    )


def first_mkl_call(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """OneMKL's first call in a process: it loads its kernels and makes its threads."""
    import polars as pl

    calls = ledger.kernels.filter(pl.col("library") == "mkl").select("text", "median_ms", "calls")
    if not len(calls):
        return
    rows = ledger.executions.join(calls, on="text", how="inner", maintain_order="left")
    for row in rows.unique("instance", keep="first", maintain_order=True).iter_rows(named=True):
        usual = row["median_ms"] if row["calls"] >= _CALLS else 0.0
        excess = (row["duration_ms"] or 0.0) - usual
        if excess < thresholds.first_call_ms or row["duration_ms"] < 10 * usual:
            continue
        kernel = ledger.records.filter(pl.col("text") == row["text"]).row(0, named=True)
        often = f", {ms(usual)} at the median of its {row['calls']:,} calls" if usual else ""
        yield Finding(
            code="mkl-first-call",
            severity=WARNING if share_of(excess, ledger.spent_ms) >= thresholds.cold_share else ADVICE,
            title=f"oneMKL's first call took {ms(row['duration_ms'])}: it loads its kernels and makes its threads",
            evidence=(Evidence(f"{named(kernel)}: {ms(row['duration_ms'])}{often}", (row["line"],)),),
            cost_ms=excess,
            next_step=(
                "Make one small call of oneMKL before the work that counts (in PyTorch: one inference, or torch.mm of "
                "two small matrices)."
            ),
            numbers={"first_ms": row["duration_ms"]},
        )
