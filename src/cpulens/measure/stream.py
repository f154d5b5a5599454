"""Passes over memory through oneMKL and oneDNN, ready to be timed.

After STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High Performance Computers"): copy and triad,
the triad in the form y = a x + y that BLAS has; and a pass that only reads, as a kernel with few results does. Bytes
are those that are read and written; a line that a store fetches first is not counted.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import c_float, c_int64, c_void_p
from typing import Final, NamedTuple

from cpulens.errors import BackendUnavailable, CpulensError
from cpulens.machine import cpulist
from cpulens.machine.sysfs import Sysfs, read_text
from cpulens.native import mkl, onednn

KERNELS: Final = ("copy", "triad", "read")
_SMALLEST_BYTES: Final = 1 << 19
_STEP: Final = 2
#: STREAM's rule: each array at least four times as large as the caches.
_BEYOND_CACHES: Final = 4
_LEAST_ARRAY_BYTES: Final = 64 << 20
#: Four of it make 0.747 in f32.
_BYTE: Final = 0x3F


class Pass(NamedTuple):
    """One kernel over two arrays; `bytes_moved` by one execution."""

    kernel: str
    library: str
    size_bytes: int
    bytes_moved: int
    execute: Callable[[], object]


class Plan(NamedTuple):
    """Sizes of two arrays together, ascending, and what is to be known about the largest."""

    sizes_bytes: tuple[int, ...]
    notes: tuple[str, ...]


def plan(caches_bytes: int | None, available_bytes: int | None) -> Plan:
    """From what a core's own cache holds to arrays of four times all caches, or of an eighth of the free memory."""
    notes = []
    wanted = max(_BEYOND_CACHES * (caches_bytes or 0), _LEAST_ARRAY_BYTES)
    if caches_bytes is None:
        notes.append("the size of the last cache is not known: the largest arrays may lie in it")
    limit = max((available_bytes or 8 * wanted) // 8, 1 << 20)
    if wanted > limit:
        notes.append(
            f"the largest arrays are {limit >> 20} MiB each, an eighth of the memory that is free; "
            f"{wanted >> 20} MiB would be beyond the caches for sure"
        )
    largest = 2 * min(wanted, limit)
    sizes = [_SMALLEST_BYTES]
    while sizes[-1] * _STEP < largest // 2:
        sizes.append(sizes[-1] * _STEP)
    return Plan((*sizes, largest), tuple(notes))


def caches_bytes(root: str = "/") -> int | None:
    """All caches of the last level that the allowed CPUs use, together; None when the host does not say."""
    sysfs, found = Sysfs(root), {}
    allowed = sorted(os.sched_getaffinity(0)) if root == "/" else sysfs.numbers("devices/system/cpu/online")
    for cpu in allowed:
        base = f"devices/system/cpu/cpu{cpu}/cache"
        levels = {sysfs.number(f"{base}/{index}/level") or 0: index for index in sysfs.names(base) if "index" in index}
        if not levels:
            continue
        last = f"{base}/{levels[max(levels)]}"
        size = sysfs.text(f"{last}/size")
        if size.endswith("K") and size[:-1].isdecimal():
            shared = sysfs.numbers(f"{last}/shared_cpu_list") or [cpu]
            found[cpulist.form(shared)] = int(size[:-1]) << 10
    return sum(found.values()) or None


def available_bytes() -> int | None:
    """What this host can give without swapping; None when it does not say."""
    for line in read_text("/proc/meminfo").splitlines():
        words = line.split()
        if words[:1] == ["MemAvailable:"] and words[1].isdecimal():
            return int(words[1]) << 10
    return None


@contextmanager
def passes(size_bytes: int) -> Iterator[list[Pass]]:
    """Every pass that the libraries here have over two arrays of f32 of `size_bytes` together, for the block's time."""
    count = size_bytes // 8
    x, y = _Array(count), _Array(count)
    try:
        found = list(_mkl(count, x.address, y.address))
        if x.memory is not None and y.memory is not None:
            scale = onednn.Eltwise("eltwise_linear", x.memory.descriptor, y.memory.descriptor, 1.0, 0.0)
            scale.bind(src=x.memory, dst=y.memory)
            found.append(Pass("copy", "onednn", 8 * count, 8 * count, scale.execute))
        yield found
    finally:
        x.close()
        y.close()


def _mkl(count: int, x: int, y: int) -> Iterator[Pass]:
    try:
        library = mkl.library()
    except BackendUnavailable:
        return
    copy = library.declare("cblas_scopy", [c_int64, c_void_p, c_int64, c_void_p, c_int64])
    axpy = library.declare("cblas_saxpy", [c_int64, c_float, c_void_p, c_int64, c_void_p, c_int64])
    dot = library.declare("cblas_sdot", [c_int64, c_void_p, c_int64, c_void_p, c_int64], c_float)
    array = 4 * count
    yield Pass("copy", "mkl", 2 * array, 2 * array, lambda: copy(count, x, 1, y, 1))
    yield Pass("triad", "mkl", 2 * array, 3 * array, lambda: axpy(count, 1e-6, x, 1, y, 1))
    yield Pass("read", "mkl", 2 * array, 2 * array, lambda: dot(count, x, 1, y, 1))


class _Array:
    """`count` equal numbers. With oneDNN each page is first written by the thread that will use it, so it lies near."""

    def __init__(self, count: int) -> None:
        self.memory: onednn.Memory | None = None
        self._raw: object = None
        try:
            descriptor = onednn.MemoryDescriptor((count,), "f32", "a")
            self.memory = onednn.Memory(descriptor)
            with onednn.Eltwise("eltwise_linear", descriptor, descriptor, 0.0, 1.0) as touch:
                touch.bind(src=self.memory, dst=self.memory)
                touch.execute()
            self.address = self.memory.address
        except CpulensError:
            self.memory = None
            raw = (c_float * count)()
            self._raw, self.address = raw, ctypes.addressof(raw)
        ctypes.memset(self.address, _BYTE, 4 * count)

    def close(self) -> None:
        """Give the memory back."""
        if self.memory is not None:
            self.memory.close()
        self._raw = None
