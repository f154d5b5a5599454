"""Kernels far below what the machine can do at their intensity; the facts must hold its peaks (`cpulens peak`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.attainable import least_time, of_run, threads
from cpulens.analyze.findings.finding import WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named
from cpulens.machine.peaks import for_threads

if TYPE_CHECKING:
    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
#: Shorter kernels are the start of threads and the clock's grain, whatever they compute.
_LEAST_MS: Final = 0.02
_LIMITS: Final = {"compute": "peak of arithmetic", "memory": "bandwidth"}


def low(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Kernels that take several times what their operations and bytes would take at the host's peaks."""
    import polars as pl

    peaks = for_threads(of_run(ledger.facts), threads(ledger.facts, ledger.records) or 0)
    if peaks is None:
        return
    long = ledger.kernels.filter(
        (pl.col("median_ms") >= _LEAST_MS) & (pl.col("flops").is_not_null() | pl.col("bytes").is_not_null())
    )
    slow = []
    for row in long.iter_rows(named=True):
        least = least_time(row, peaks)
        if least is not None and least.milliseconds < thresholds.efficiency * row["median_ms"]:
            slow.append((row, least.milliseconds, _LIMITS[least.bound]))
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
