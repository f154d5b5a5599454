"""Kernels far below what the machine can do at their intensity; the facts must hold its peaks (`cpulens peak`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named
from cpulens.machine.peaks import Peaks, from_record

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
#: Shorter kernels are the start of threads and the clock's grain, whatever they compute.
_LEAST_MS: Final = 0.02
_PEAK_OF: Final = {"s8": "int8", "u8": "int8"}


def low(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Kernels that take several times what their operations and bytes would take at the host's peaks."""
    import polars as pl

    peaks = from_record(ledger.facts.get("peaks"))
    if peaks is None:
        return
    long = ledger.kernels.filter(
        (pl.col("median_ms") >= _LEAST_MS) & (pl.col("flops").is_not_null() | pl.col("bytes").is_not_null())
    )
    slow = []
    for row in long.iter_rows(named=True):
        perfect_ms, limit = perfect(row, peaks)
        if perfect_ms is not None and perfect_ms < thresholds.efficiency * row["median_ms"]:
            slow.append((row, perfect_ms, limit))
    lost = sum((row["median_ms"] - perfect_ms) * row["calls"] for row, perfect_ms, _ in slow)
    share = share_of(lost, ledger.execution_ms)
    if share < thresholds.efficiency_share:
        return
    slow.sort(key=lambda one: -(one[0]["median_ms"] - one[1]) * one[0]["calls"])
    yield Finding(
        code="low-efficiency",
        severity=WARNING,
        title=f"Kernels reach less than {percent(thresholds.efficiency)} of the machine's peaks: {len(slow)} of them",
        evidence=tuple(
            Evidence(
                f"{named(row)}: median {ms(row['median_ms'])}, at the machine's {limit} {ms(perfect_ms)} "
                f"({percent(perfect_ms / row['median_ms'])}), {times(row['calls'], 'call')}",
                (row["line"],),
            )
            for row, perfect_ms, limit in slow[:_SHOWN]
        ),
        cost_ms=lost,
        next_step=(
            "Look at each: small or odd sizes (pad to multiples of 16 or 64), a layout that makes rows far apart, data "
            "that comes from another memory node, or threads that share a core. Compare with cpulens peak."
        ),
        numbers={"kernels": len(slow), "share": share},
    )


def perfect(row: dict[str, Any], peaks: Peaks) -> tuple[float | None, str]:
    """How long one call would take at the peaks, and which of them limits it; None where its peak isn't known."""
    dt = _PEAK_OF.get(row["src_dt"] or "", row["src_dt"] or "")
    flops, moved = row["flops"] or 0.0, row["bytes"] or 0.0
    if flops and dt not in peaks.products:
        return None, ""
    arithmetic = flops / (peaks.products[dt].gflops_per_s * 1e6) if flops else 0.0
    bandwidth = peaks.bandwidth(moved) if moved else None
    memory = moved / (bandwidth * 1e6) if bandwidth else 0.0
    if not arithmetic and not memory:
        return None, ""
    return max(arithmetic, memory), "peak of arithmetic" if arithmetic >= memory else "bandwidth"
