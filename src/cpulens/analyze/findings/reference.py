"""Time in reference kernels, and in products where a faster convolution was refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings import refusals
from cpulens.analyze.findings.finding import ADVICE, WARNING, Evidence, Finding, ms, percent, share_of, times
from cpulens.analyze.findings.ledger import Ledger, named

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.findings.thresholds import Thresholds

_SHOWN: Final = 3
_REASONS: Final = 6
#: What only ever has a plain implementation, or is as fast as memory in one: no fallback.
_FAST: Final = ("brgemm", "jit", "acl")


def reference(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Reference kernels: plain loops that every platform has, with the reasons why faster ones were refused."""
    import polars as pl

    slow = ledger.primitives.filter(pl.col("family") == "ref")
    spent = float(slow["total_ms"].sum())
    share = share_of(spent, ledger.execution_ms)
    if share < thresholds.reference_share:
        return
    evidence = _evidence(ledger, slow)
    yield Finding(
        code="reference-kernel",
        severity=WARNING,
        title=f"Reference kernels take {percent(share)} of the execution time",
        evidence=evidence,
        cost_ms=spent,
        next_step=_step(ledger, slow),
        numbers={"share": share, "total_ms": spent, "calls": int(slow["calls"].sum())},
    )


def gemm(ledger: Ledger, thresholds: Thresholds) -> Iterator[Finding]:
    """Convolutions that run as a matrix product, where the log says that a direct kernel was refused."""
    import polars as pl

    kinds = ["convolution", "deconvolution", "inner_product", "matmul"]
    slow = ledger.primitives.filter((pl.col("family") == "gemm") & pl.col("primitive").is_in(kinds))
    spent = float(slow["total_ms"].sum())
    share = share_of(spent, ledger.execution_ms)
    if share < thresholds.gemm_share:
        return
    refused = [row for row in slow.head(_SHOWN).iter_rows(named=True) if refusals.before(ledger, row)]
    if not refused:
        return
    yield Finding(
        code="gemm-fallback",
        severity=ADVICE,
        title=f"Kernels built on a plain matrix product take {percent(share)} of the execution time",
        evidence=_evidence(ledger, slow),
        cost_ms=spent,
        next_step="Give the layouts, types and sizes that the refused kernels take: the reasons are beside them.",
        numbers={"share": share, "total_ms": spent, "calls": int(slow["calls"].sum())},
    )


def _evidence(ledger: Ledger, slow: pl.DataFrame) -> tuple[Evidence, ...]:
    evidence = []
    for row in slow.head(_SHOWN).iter_rows(named=True):
        evidence.append(
            Evidence(
                f"{named(row)}: {ms(row['total_ms'])} in {times(row['calls'], 'call')}, types "
                f"{row['src_dt']}/{row['wei_dt'] or '–'}/{row['dst_dt']}",
                (row["line"],),
            )
        )
        reasons = refusals.before(ledger, row)
        evidence += [Evidence(f"refused: {reason}", (reason.line,)) for reason in reasons[:_REASONS]]
        if len(reasons) > _REASONS:
            evidence.append(Evidence(f"and {len(reasons) - _REASONS} more refusals before it"))
    return tuple(evidence)


def _step(ledger: Ledger, slow: pl.DataFrame) -> str:
    import polars as pl

    told = ledger.records.filter(pl.col("event") == "dispatch")
    top = slow.row(0, named=True)
    types = f"{top['src_dt']}/{top['wei_dt'] or '–'}/{top['dst_dt']}"
    if not len(told):
        return (
            "The log doesn't say why. Record again with --onednn ON_CREATION,dispatch (oneDNN 3.2 or newer) to see "
            f"which implementations were refused and for what; look first at the types {types} and the layouts."
        )
    return (
        f"Take away what the faster implementations refuse: most often the combination of types ({types}), a "
        "post-operation, or a layout. In PyTorch, change the dtype of that layer, or run it without the fusion."
    )
