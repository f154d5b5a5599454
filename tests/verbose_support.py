"""Verbose lines of every era, made to order, and what they must be read as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars  # noqa: F401  its import changes the environment once, which no test of ours should be blamed for
from hypothesis import strategies as st

from cpulens.verbose.kernel_numpy import Kernel
from cpulens.verbose.kernel_plain import feed
from cpulens.verbose.reading import Reading


@dataclass(frozen=True)
class Line:
    """A line, and the record it holds: library, event, primitive, implementation, time in ms, start in ns."""

    text: str
    library: str
    event: str
    primitive: str | None
    implementation: str | None
    duration_ms: float | None
    start_ns: int | None = None


PRIMITIVES = st.sampled_from(("convolution", "matmul", "reorder", "inner_product", "eltwise", "softmax", "sum"))
IMPLEMENTATIONS = st.sampled_from(
    ("jit:avx512_core", "brg_matmul:avx512_core_amx", "ref:any", "gemm:jit", "simple:any", "acl")
)
SHAPES = st.lists(st.integers(1, 4096), min_size=1, max_size=4).map(lambda sizes: "x".join(map(str, sizes)))
#: As `%g` prints a number of milliseconds.
TIMES = st.floats(0, 1e5, allow_nan=False).map(lambda time: f"{time:.6g}")
STAMPS = st.integers(10**12, 2 * 10**12).flatmap(
    lambda ms: st.integers(0, 10**6 - 1).map(lambda part: f"{ms}.{part:06d}")
)


@st.composite
def onednn_lines(draw: Any) -> Line:
    era = draw(st.sampled_from("AABCDEFGHI"))
    operation = draw(st.sampled_from(("exec", "create")))
    primitive, implementation = draw(PRIMITIVES), draw(IMPLEMENTATIONS)
    shape, time = draw(SHAPES), draw(TIMES)
    stamp = draw(STAMPS) if era in "EFGHI" and draw(st.booleans()) else None
    state = draw(st.sampled_from((":cache_hit", ":cache_miss"))) if operation == "create" and era in "DEFGHI" else ""
    marker = {"A": "mkldnn", "B": "mkldnn", "C": "dnnl", "D": "dnnl", "E": "dnnl"}.get(era, "onednn")
    tensors = {
        "A": "fdata:nchw fdiff:undef",
        "G": "src_f32::blocked:ab::f0 dst_f32::blocked:ab::f0",
        "H": "src_f32::blocked:ab::f0 dst_f32::blocked:ab::f0",
        "I": "src:f32::blocked:ab::f0 dst:f32::blocked:ab::f0",
    }.get(era, "src_f32::blocked:ab:f0 dst_f32::blocked:ab:f0")
    fields = [operation + state]
    if era != "A":
        fields.append("cpu")
    fields += [primitive, implementation, "forward_inference", tensors]
    if era in "DEFGHI":
        fields.append("")
    fields += ["", shape, time]
    head = [f"{marker}_verbose"]
    if era == "I":
        head.append("v1")
    if stamp:
        head.append(stamp)
    if era in "HI":
        head.append("primitive")
    start_ns = int(stamp.replace(".", "")) if stamp else None
    return Line(",".join(head + fields), "onednn", operation, primitive, implementation, float(time), start_ns)


@st.composite
def mkl_lines(draw: Any) -> Line:
    number = draw(st.integers(0, 99_999))
    unit = draw(st.sampled_from(("ns", "us", "ms", "s")))
    pointer = f"0x{draw(st.integers(1 << 20, 1 << 47)):x}"
    routine = draw(st.sampled_from(("SGEMM", "DGEMV", "DGETRF", "ZAXPY")))
    n = draw(st.integers(1, 999))
    call = f"{routine}(N,{n},{n},{pointer},{n},{pointer})"
    tail = draw(
        st.sampled_from(
            (
                "CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2",
                "CNR:AUTO,STRICT Dyn:1 FastMM:1",
                "CNR:OFF Dyn:0 FastMM:1 TID:12 NThr:48",
            )
        )
    )
    text = f"MKL_VERBOSE {call} {number // 100}.{number % 100:02d}{unit} {tail}"
    # Exact in decimal: the number printed, moved to milliseconds.
    exponent = {"ns": -6, "us": -3, "ms": 0, "s": 3}[unit] - 2
    return Line(text, "mkl", "exec", routine.lower(), None, float(f"{number}e{exponent}"))


LINES = onednn_lines() | mkl_lines()
OWN_TEXT = st.text(st.characters(blacklist_characters="\n\r\x1b", blacklist_categories=("Cs",)), max_size=60).filter(
    lambda text: "_verbose," not in text and "MKL_VERBOSE " not in text and "cpulens,v1," not in text
)


def rows_of(reading: Reading) -> list[tuple[Any, ...]]:
    """What a reading holds, row by row, without the numbers that only it knows."""
    columns, entries = reading.columns, reading.keys.entries
    return [
        (entries[code][:5], line, time, start)
        for code, line, time, start in zip(columns.codes, columns.lines, columns.durations, columns.starts, strict=True)
    ]


def read_plainly(data: bytes) -> Reading:
    """Line by line, by the careful way alone: the measure of both kernels."""
    reading = Reading()
    lines = data.split(b"\n")
    for line in lines[:-1] if not lines[-1] else lines:
        reading.careful(line.removesuffix(b"\r"), reading.lines)
        reading.lines += 1
    return reading


def read_with(kernel: str, data: bytes, block_bytes: int = 1 << 20) -> Reading:
    """By one of the kernels, in blocks of whole lines."""
    reading = Reading()
    bulk = Kernel(reading)
    start = 0
    while start < len(data):
        end = data.find(b"\n", start + block_bytes - 1) + 1 or len(data)
        if kernel == "numpy":
            bulk.feed(data[start:end])
        else:
            feed(reading, data[start:end])
        start = end
    return reading
