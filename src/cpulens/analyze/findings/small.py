"""Kernels too small for the threads that they start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3


def tiny(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Many executions of a few µs, on more than one thread: starting and joining the threads takes as long."""
    import polars as pl

    threads = max((one["threads"] for one in ledger.libraries("onednn") if one.get("threads")), default=None)
    if threads is None or threads < 2:
        return
    kernels = ledger.primitives.filter(pl.col("median_ms") > 0)
    calls, spent = int(kernels["calls"].sum()), float(kernels["total_ms"].sum())
    few = kernels.filter(pl.col("median_ms") < thresholds.tiny_ms)
    number = int(few["calls"].sum())
    time = float((few["median_ms"] * few["calls"]).sum())
    usual = float((kernels["median_ms"] * kernels["calls"]).sum())
    if number < thresholds.tiny_calls or share_of(time, usual) < thresholds.tiny_share:
        return
    ordered = few.sort("calls", descending=True)
    yield Finding(
        code="tiny-kernels",
        severity=WARNING,
        title=f"{percent(share_of(number, calls))} of oneDNN's executions take less than {ms(thresholds.tiny_ms)}, on "
        f"{threads} threads",
        evidence=(
            Evidence(f"{number:,} of {calls:,} executions, {ms(float(few['total_ms'].sum()))} of {ms(spent)}"),
            *(
                Evidence(
                    f"{named(row)}: median {row['median_ms'] * 1e3:.1f} µs, {times(row['calls'], 'call')}",
                    (row["line"],),
                )
                for row in ordered.head(_SHOWN).iter_rows(named=True)
            ),
        ),
        cost_ms=float(few["total_ms"].sum()),
        next_step=(
            "Starting and joining a team of threads takes some µs by itself. Give each kernel more work (larger "
            "batches, fused layers: torch.compile), or fewer threads (OMP_NUM_THREADS=1, several "
            "instances with run_cpu)."
        ),
        numbers={"calls": number, "share": share_of(time, usual), "threads": threads},
    )
