"""How near each kernel came to what its host can do, and where the rest of the time went.

The model: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures" (2009). A kernel that does W operations and moves Q bytes can't take less time than the longer of
W / (peak of its data type) and Q / (bandwidth), so at the intensity W / Q the attainable rate is the smaller of the
peak and intensity × bandwidth. The bandwidth is that of the memory which holds the kernel's own data: what fits into a
cache may come from there. Kernels before it may have left the data elsewhere; then it was not the kernel that was slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.summary import columns
from cpulens.errors import LogError
from cpulens.machine import peaks as known_peaks
from cpulens.machine.peaks import Peaks

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

DEFAULT_BY: Final = ("primitive", "implementation", "problem")

#: Primitives whose operations are matrix products: their peak is that of their data types. All others compute in f32.
_PRODUCTS: Final = ("convolution", "deconvolution", "matmul", "inner_product", "rnn", "gemm", "sdpa", "gated_mlp")
_INTEGERS: Final = ("s8", "u8", "s4", "u4")
_REAL: Final = {"cf32": "f32", "cf64": "f64", "cf16": "f16"}
_FPMATH: Final = re.compile(r"attr-fpmath:(bf16|f16)\b")
_SPARSE: Final = re.compile(r"mkl_sparse_([sdcz])_")


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


def threads(trace: Trace) -> int | None:
    """Threads of a run: what oneDNN's header says, else the most that a oneMKL call was allowed; None: not said."""
    counts = (one.get("threads") for one in trace.facts.get("libraries", []))
    said = [count for count in counts if isinstance(count, int)]
    if said:
        return max(said)
    most = trace.texts["threads"].max()
    return int(most) if isinstance(most, int) else None


def of_run(trace: Trace) -> list[Peaks]:
    """The peaks that a run carries of its own host."""
    found = (known_peaks.from_record(record) for record in trace.facts.get("peaks") or [])
    return [one for one in found if one is not None]


def choose(trace: Trace, others: Iterable[Peaks] = ()) -> tuple[Peaks, str]:
    """The peaks that fit a run, and where they come from: those that it carries, else `others` of the same host.

    `others` (of this host, say) count when processor and CPUs are those that the run was recorded on. Raises LogError
    with the next step when none was measured with the run's number of threads.
    """
    count = threads(trace)
    carried = of_run(trace)
    machine = trace.facts.get("machine") or {}
    same = [
        one
        for one in others
        if machine.get("cpu") is not None
        and all(machine.get(key) == one.conditions.get(key) for key in ("cpu", "architecture", "cpus_allowed"))
    ]
    for found, origin in (
        (carried, "recorded with the run"),
        (same, "this host, which has the same processor and CPUs"),
    ):
        fitting = known_peaks.for_threads(found, count) if count is not None else (found[0] if found else None)
        if fitting is not None:
            return fitting, origin
    measured = sorted({one.threads for one in (*carried, *same)})
    used = "a number of threads that it doesn't say" if count is None else f"{count} thread{'s' if count != 1 else ''}"
    seen = f"those that are known are for {', '.join(map(str, measured))} threads" if measured else "none are known"
    raise LogError(
        f"the run used {used}, and there are no peaks of its host for that ({seen}); on that host: "
        f"cpulens peak --threads {count or 'N'} --json > peaks.json, then give --peaks peaks.json"
    )


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
        flops, size = text["flops"], text["bytes"]
        bandwidth = peaks.bandwidth(size)
        product = peaks.products.get(data_type(text) or "")
        if bandwidth is None or (flops > 0 and product is None):
            continue
        compute_ms = flops / (product.gflops_per_s * 1e6) if product and flops else 0.0
        memory_ms = size / (bandwidth * 1e6)
        rows.append((text["text"], flops, size, max(compute_ms, memory_ms), compute_ms > memory_ms))
    schema = {
        "text": pl.UInt32,
        "flops": pl.Float64,
        "bytes": pl.Float64,
        "perfect_ms": pl.Float64,
        "computes": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def data_type(text: Mapping[str, Any]) -> str | None:
    """The data type whose peak limits a kernel: f32, bf16, int8, f16 or f64; None where it can't be told."""
    primitive, src, weights = str(text.get("primitive")), text.get("src_dt"), text.get("wei_dt")
    if sparse := _SPARSE.match(primitive):
        return {"s": "f32", "c": "f32"}.get(sparse[1], "f64")
    if text.get("library") == "onednn" and not primitive.startswith(_PRODUCTS):
        return "f64" if src == "f64" else "f32"
    if src in _INTEGERS and weights in _INTEGERS:
        return "int8"
    math = _FPMATH.search(str(text.get("attributes") or ""))
    if src == "f32" and math:
        return math[1]
    src = _REAL.get(str(src), src)
    return src if src in ("f32", "bf16", "f16", "f64") else None


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
