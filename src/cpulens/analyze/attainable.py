"""Which peaks a run is measured by, and the least time that a kernel takes at them.

The model: Williams, Waterman, Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures" (2009). A kernel that does W operations and moves Q bytes can't take less time than the longer of
W / (peak of its data type) and Q / (bandwidth). The bandwidth is that of the memory which holds the kernel's own data:
what fits into a cache may come from there. Kernels before it may have left the data elsewhere; then it was not the
kernel that was slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cpulens.errors import LogError
from cpulens.machine import peaks as known_peaks
from cpulens.machine.peaks import Peaks

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

#: Primitives whose operations are matrix products: their peak is that of their data types. All others compute in f32.
_PRODUCTS: Final = ("convolution", "deconvolution", "matmul", "inner_product", "rnn", "gemm", "sdpa", "gated_mlp")
_INTEGERS: Final = ("s8", "u8", "s4", "u4")
_REAL: Final = {"cf32": "f32", "cf64": "f64", "cf16": "f16"}
_FPMATH: Final = re.compile(r"attr-fpmath:(bf16|f16)\b")
_SPARSE: Final = re.compile(r"mkl_sparse_([sdcz])_")


def threads(facts: Mapping[str, Any], texts: pl.DataFrame) -> int | None:
    """Threads of a run: what oneDNN's header says, else the most that a oneMKL call was allowed; None: not said."""
    counts = (one.get("threads") for one in facts.get("libraries", []))
    said = [count for count in counts if isinstance(count, int)]
    if said:
        return max(said)
    most = texts["threads"].max()
    return most if isinstance(most, int) else None


def of_run(facts: Mapping[str, Any]) -> list[Peaks]:
    """The peaks that a run carries of its own host in its facts, for one number of threads each."""
    found = (known_peaks.from_record(record) for record in facts.get("peaks") or [])
    return [one for one in found if one is not None]


def choose(trace: Trace, others: Iterable[Peaks] = ()) -> tuple[Peaks, str]:
    """The peaks that fit a run, and where they come from: those that it carries, else `others` of the same host.

    `others` (of this host, say) count when processor and CPUs are those that the run was recorded on. Raises LogError
    with the next step when none was measured with the run's number of threads.
    """
    count = threads(trace.facts, trace.texts)
    carried = of_run(trace.facts)
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


class Least(NamedTuple):
    """The least time of one execution, and what sets it: "compute" or "memory"."""

    milliseconds: float
    bound: str


def least_time(text: Mapping[str, Any], peaks: Peaks) -> Least | None:
    """How long one execution must take at these peaks; None where its cost, or the peak of its type, is not known.

    `text`: the columns of a text, `flops` and `bytes` among them.
    """
    flops, size = text.get("flops"), text.get("bytes")
    if flops is None or size is None:
        return None
    bandwidth, product = peaks.bandwidth(size), peaks.products.get(data_type(text) or "")
    if bandwidth is None or (flops > 0 and product is None):
        return None
    compute_ms = flops / (product.gflops_per_s * 1e6) if product and flops else 0.0
    memory_ms = size / (bandwidth * 1e6)
    return Least(max(compute_ms, memory_ms), "compute" if compute_ms > memory_ms else "memory")


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
