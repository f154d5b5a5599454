"""A summary as JSON: the contract for scripts."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpulens.analyze.summary import Summary


def summary_object(summary: Summary) -> dict[str, Any]:
    """`{"schema": 1, "facts", "lines", "total_ms", "phases", "rows": [{KEY…, "calls", "total_ms", "share", …}]}`."""
    rows = [
        {
            **dict(zip(summary.by, row.key, strict=True)),
            "calls": row.calls,
            "total_ms": row.total_ms,
            "share": row.share,
            "cumulative": row.cumulative,
            "median_ms": row.median_ms,
            "p95_ms": row.p95_ms,
            "first_ms": row.first_ms,
            "gflops_per_s": row.gflops_per_s,
            "gbytes_per_s": row.gbytes_per_s,
        }
        for row in summary.rows
    ]
    return {
        "schema": 1,
        "facts": summary.facts,
        "lines": summary.lines,
        "total_ms": summary.total_ms,
        "phases": dataclasses.asdict(summary.phases),
        "rows": rows,
    }
