"""Peaks of a host as a person reads them, and the sizes they hold for."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Final

from cpulens.machine.peaks import Peaks
from cpulens.report.text import count, rate, visible

_LIBRARIES: Final = {"onednn": "oneDNN", "mkl": "oneMKL"}


def peaks_text(peaks: Peaks, where: str | None = None, width: int = 100) -> str:
    """Conditions, GEMM by data type, passes over memory by size, notes. `where`: the file that keeps them."""
    parts = [_head(peaks, where), _products(peaks), _streams(peaks), _notes(peaks)]
    lines = [line for part in parts for line in (*part, "")]
    wrapper = textwrap.TextWrapper(
        width, subsequent_indent=" " * 10, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return "\n".join(wrapper.fill(visible(line)) for line in lines).rstrip("\n")


def _head(peaks: Peaks, where: str | None) -> Iterator[str]:
    conditions = peaks.conditions
    cpus = conditions.get("cpus_allowed")
    yield f"host      {conditions.get('cpu') or 'unknown processor'}" + (f", {count(len(cpus), 'CPU')}" if cpus else "")
    yield f"threads   {peaks.threads}"
    for name, version in (conditions.get("libraries") or {}).items():
        yield f"{_LIBRARIES.get(name, name):<10}{version}"
    for name, value in (conditions.get("environment") or {}).items():
        yield f"{name}={value}"
    yield f"measured  {peaks.measured}" + (f", kept in {where}" if where else "")


def _products(peaks: Peaks) -> Iterator[str]:
    yield f"{'GEMM':<10}{'GFLOP/s':>9}  by"
    for name, one in peaks.products.items():
        words = [_LIBRARIES.get(one.library, one.library), one.implementation or "", f"{one.n} x {one.n} x {one.n}"]
        yield f"{name:<10}{rate(one.gflops_per_s):>9}  {' '.join(word for word in words if word)}"


def _streams(peaks: Peaks) -> Iterator[str]:
    kernels = list(dict.fromkeys(one.kernel for one in peaks.streams))
    yield f"{'GB/s':<12}" + "".join(f"{kernel:>9}" for kernel in kernels)
    for size in dict.fromkeys(one.size_bytes for one in peaks.streams):
        found = {one.kernel: one.gbytes_per_s for one in peaks.streams if one.size_bytes == size}
        yield f"{binary(size):<12}" + "".join(f"{rate(found.get(kernel)):>9}" for kernel in kernels)
    yield "copy: y = x; triad: y = a x + y; read: x · y. Sizes: both arrays together; bytes: those read and written."


def _notes(peaks: Peaks) -> Iterator[str]:
    for note in remarks(peaks):
        yield f"note: {note}"


def remarks(peaks: Peaks) -> Iterator[str]:
    """What must be known about the figures, a sentence each."""
    yield from peaks.notes
    if peaks.unsettled:
        yield (
            f"the times of {', '.join(peaks.unsettled)} did not settle: other programs kept the processor busy, and "
            "the true peaks are higher; on an idle host: cpulens peak --refresh"
        )


def binary(size_bytes: float) -> str:
    """512 KiB, 2 MiB, 1.2 GiB."""
    for unit in ("B", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:.4g} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.3g} GiB"
