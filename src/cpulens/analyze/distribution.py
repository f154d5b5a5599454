"""How the times of a kernel spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpulens.trace import Trace


@dataclass(frozen=True, slots=True)
class Spread:
    """The times of all calls of one text, the first included, in milliseconds; quantiles by linear interpolation."""

    text: int
    calls: int
    min_ms: float
    p5_ms: float
    p25_ms: float
    median_ms: float
    p75_ms: float
    p95_ms: float
    max_ms: float


def spreads(trace: Trace, texts: Sequence[int]) -> list[Spread]:
    """The spread of each of these texts that has a time, in their order."""
    import polars as pl

    time = pl.col("duration_ms")
    shares = {"p5_ms": 0.05, "p25_ms": 0.25, "median_ms": 0.5, "p75_ms": 0.75, "p95_ms": 0.95}
    found = (
        trace.events.filter(pl.col("text").is_in(list(texts)) & time.is_finite())
        .group_by("text")
        .agg(
            calls=pl.len(),
            min_ms=time.min(),
            **{name: time.quantile(share, "linear") for name, share in shares.items()},
            max_ms=time.max(),
        )
        .collect()
    )
    by_text = {row["text"]: Spread(**row) for row in found.iter_rows(named=True)}
    return [by_text[text] for text in texts if text in by_text]
