"""How near each kernel came to what its host can do, and where the rest of the time went.

At the intensity of W operations for Q bytes the attainable rate is the smaller of the peak and W / Q × bandwidth; see
`cpulens.analyze.attainable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.attainable import least_time
from cpulens.analyze.summary import columns
from cpulens.machine.peaks import Peaks

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

DEFAULT_BY: Final = ("primitive", "implementation", "problem")


@dataclass(frozen=True, slots=True)
class Kernel:
    """The executions of one key. Times in milliseconds; what can't be known is None.

    `perfect_ms`: the least time by the model. `lost_ms`: total less perfect. `efficiency`: perfect by total: achieved
    by attainable at this intensity; above 1 where the peaks are too low (measured beside other programs), the data came
    from a faster cache, or the kernel does less work than is counted (Winograd). `bound`: "compute" or "memory", what
    limits most of its perfect time. `intensity`: operations a byte. `attainable_gflops_per_s`: at that intensity.
    """

    key: tuple[Any, ...]
    calls: int
    total_ms: float
    perfect_ms: float
    lost_ms: float
    efficiency: float | None
    bound: str
    intensity: float | None
    gflops_per_s: float | None
    gbytes_per_s: float | None
    attainable_gflops_per_s: float | None


@dataclass(frozen=True, slots=True)
class Roofline:
    """Kernels by the time they lost, most first.

    `total_ms`: all execution. `known_ms`: the part whose kernels have a cost and a peak; `perfect_ms`, `lost_ms` and
    `efficiency` are of that part. `unknown`: the rest by primitive, milliseconds, most first.
    """

    by: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    total_ms: float
    known_ms: float
    perfect_ms: float
    lost_ms: float
    efficiency: float | None
    unknown: tuple[tuple[str, float], ...]
    peaks: Peaks
    origin: str
    facts: Mapping[str, Any]


def roofline(
    trace: Trace, peaks: Peaks, by: str | tuple[str, ...] | list[str] = DEFAULT_BY, *, origin: str = "given"
) -> Roofline:
    """Compare every executed kernel with what `peaks` allow; `by`: columns that make a key."""
    import polars as pl

    keys = columns(by)
    costs = _least_times(trace.texts, peaks)
    time = pl.col("duration_ms")
    frame = trace.frame.filter((pl.col("event") == "exec") & time.is_finite())
    named = [pl.col(name).alias(f"key_{at}") for at, name in enumerate(keys)]
    executed = frame.group_by([*named, "text", "primitive", "component", "inner"], maintain_order=True).agg(
        calls=pl.len(), total_ms=time.sum()
    )
    grouped = executed.join(costs.lazy(), on="text", how="left").collect(engine="streaming")
    total_ms = float(grouped.filter(~pl.col("inner"))["total_ms"].sum())
    # A partition of the graph API is told by the primitives inside it, where they are printed.
    known = grouped.filter(pl.col("perfect_ms").is_not_null())
    kernels = sorted(_kernels(known, keys), key=lambda one: one.lost_ms, reverse=True)
    known_ms, perfect_ms = float(known["total_ms"].sum()), sum(one.perfect_ms for one in kernels)
    return Roofline(
        by=keys,
        kernels=tuple(kernels),
        total_ms=total_ms,
        known_ms=known_ms,
        perfect_ms=perfect_ms,
        lost_ms=known_ms - perfect_ms,
        efficiency=perfect_ms / known_ms if known_ms > 0 else None,
        unknown=tuple(_unknown(grouped)),
        peaks=peaks,
        origin=origin,
        facts=trace.facts,
    )


def _least_times(texts: pl.DataFrame, peaks: Peaks) -> pl.DataFrame:
    """For each text that has a cost and a peak: its least time, and the part of it that computing takes."""
    import polars as pl

    rows = []
    for text in texts.filter(pl.col("flops").is_not_null() & pl.col("bytes").is_not_null()).iter_rows(named=True):
        least = least_time(text, peaks)
        if least is not None:
            rows.append((text["text"], text["flops"], text["bytes"], least.milliseconds, least.bound == "compute"))
    schema = {
        "text": pl.UInt32,
        "flops": pl.Float64,
        "bytes": pl.Float64,
        "perfect_ms": pl.Float64,
        "computes": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _kernels(known: pl.DataFrame, keys: tuple[str, ...]) -> Iterable[Kernel]:
    import polars as pl

    names = [f"key_{at}" for at in range(len(keys))]
    calls = pl.col("calls")
    sums = known.group_by(names, maintain_order=True).agg(
        calls.sum(),
        pl.col("total_ms").sum(),
        perfect_ms=(pl.col("perfect_ms") * calls).sum(),
        computing_ms=(pl.col("perfect_ms") * calls).filter(pl.col("computes")).sum(),
        flops=(pl.col("flops") * calls).sum(),
        bytes=(pl.col("bytes") * calls).sum(),
    )
    for one in sums.iter_rows(named=True):
        total_ms, perfect_ms, flops, size = (one[name] for name in ("total_ms", "perfect_ms", "flops", "bytes"))
        yield Kernel(
            key=tuple(one[name] for name in names),
            calls=one["calls"],
            total_ms=total_ms,
            perfect_ms=perfect_ms,
            lost_ms=total_ms - perfect_ms,
            efficiency=_ratio(perfect_ms, total_ms),
            bound="compute" if 2 * one["computing_ms"] > perfect_ms else "memory",
            intensity=_ratio(flops, size),
            gflops_per_s=_ratio(flops, total_ms * 1e6),
            gbytes_per_s=_ratio(size, total_ms * 1e6),
            attainable_gflops_per_s=_ratio(flops, perfect_ms * 1e6),
        )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _unknown(grouped: pl.DataFrame) -> list[tuple[str, float]]:
    """Execution time without a model, by primitive; of a partition what is left beside the primitives inside it."""
    import polars as pl

    left: dict[str, float] = {}
    missing = grouped.filter(pl.col("perfect_ms").is_null() & (pl.col("component") != "graph"))
    for primitive, spent in missing.select("primitive", "total_ms").iter_rows():
        left[primitive or "?"] = left.get(primitive or "?", 0.0) + spent
    partitions = float(grouped.filter(pl.col("component") == "graph")["total_ms"].sum())
    inside = float(grouped.filter("inner")["total_ms"].sum())
    if partitions > inside:
        left["graph partitions"] = partitions - inside
    return sorted(((name, spent) for name, spent in left.items() if spent > 0), key=lambda one: one[1], reverse=True)
