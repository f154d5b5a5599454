"""Small logs by hand, for tests of analyses."""

from __future__ import annotations

from typing import Any

import cpulens
from cpulens.analyze.findings import Finding, Thresholds, find
from cpulens.trace import Trace

#: Start of the first kernel, in milliseconds of Unix time.
EPOCH_MS = 1_796_113_262_148


def header(threads: int = 2, isa: str = "Intel AVX2", version: str = "3.12.0") -> str:
    """A header of oneDNN."""
    return (
        f"onednn_verbose,v1,info,oneDNN v{version} (commit N/A)\n"
        f"onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:{threads}\n"
        f"onednn_verbose,v1,info,cpu,isa:{isa}\n"
    )


def tensors(**layouts: str) -> str:
    """Descriptors: `src="f32:ab"` → src:f32::blocked:ab::f0."""
    spelled = (f"{name}:{one.partition(':')[0]}::blocked:{one.partition(':')[2]}::f0" for name, one in layouts.items())
    return " ".join(spelled)


F32 = tensors(src="f32:ab", wei="f32:ab", dst="f32:ab")


def run(
    time_ms: float,
    primitive: str = "matmul",
    implementation: str = "brg_matmul:avx2",
    problem: str = "64x64:64x64",
    descriptors: str = F32,
    auxiliary: str = "",
    start_ms: float | None = None,
    operation: str = "exec",
) -> str:
    """One line of oneDNN: an execution, unless `operation` says otherwise."""
    stamp = "" if start_ms is None else f"{EPOCH_MS + start_ms:.6f},"
    return (
        f"onednn_verbose,v1,{stamp}primitive,{operation},cpu,{primitive},{implementation},undef,{descriptors},,"
        f"{auxiliary},{problem},{time_ms:.6g}\n"
    )


def moved(time_ms: float, problem: str, source: str, target: str) -> str:
    """A reorder."""
    return run(time_ms, "reorder", "jit:uni", problem, tensors(src=source, dst=target))


def sgemm(time_ms: float, size: int = 64, threads: int = 2, caller: int = 0) -> str:
    """A product of oneMKL."""
    return (
        f"MKL_VERBOSE SGEMM(N,N,{size},{size},{size},0x1,0x2,{size},0x3,{size},0x4,0x5,{size}) {time_ms * 1e3:.2f}us "
        f"CNR:OFF Dyn:1 FastMM:1 TID:{caller}  NThr:{threads}\n"
    )


def mark(kind: str, name: str = "", at_ms: float | None = None) -> str:
    """A marker."""
    stamp = "" if at_ms is None else f"@{EPOCH_MS + at_ms:.6f}"
    return f"cpulens,v1,{kind},7{stamp},{name}\n"


def trace_of(*lines: str, **facts: Any) -> Trace:
    """Read lines as one log, with these facts."""
    return cpulens.load("".join(lines).encode(), facts=facts or None)


def found_in(trace: Trace, **thresholds: Any) -> dict[str, Finding]:
    """The findings of a trace by their codes."""
    return {finding.code: finding for finding in find(trace, Thresholds(**thresholds))}


def lines_named(finding: Finding) -> set[int]:
    """All lines that a finding's evidence names."""
    return {line for piece in finding.evidence for line in piece.lines}
