"""The peaks of this host: matrix products and passes over memory, through the libraries that inference uses."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Final

from cpulens.errors import BackendUnavailable, UsageError
from cpulens.machine import peaks
from cpulens.machine.peaks import Peaks, Product, Stream
from cpulens.measure import gemm, stream
from cpulens.measure.threads import default_threads, threads_set_to
from cpulens.measure.timing import shortest
from cpulens.native import mkl, onednn

#: Time for each call that is measured; what is slower than a quarter of it runs four times.
BUDGET_S: Final = 0.3
_SIZES: Final = (256, 512, 1024, 2048, 4096, 8192)
#: Beyond 2048 a larger matrix is tried while it is this much faster, and one product takes no longer than that.
_ENOUGH: Final = 2048
_WORTH: Final = 1.02
_LONGEST_S: Final = 1.0
#: Variables under which the libraries run other kernels, or on other cores.
_VARIABLES: Final = (
    "DNNL_MAX_CPU_ISA",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "ONEDNN_MAX_CPU_ISA",
)

Say = Callable[[str], None]


def peak(
    threads: int | None = None, *, refresh: bool = False, budget_s: float = BUDGET_S, say: Say = lambda _: None
) -> Peaks:
    """The peaks of this host with `threads` threads, from the cache when they were measured under the same conditions.

    `threads` defaults to one for each physical core that this process may use, within its CPU quota. `refresh`:
    measure again, and keep the better of each figure. `budget_s`: time for each product, half of it for each pass;
    about half a minute in all at the default. `say` is told what is under way. The result is stored where the cache can
    be written.

    Raises `BackendUnavailable` when neither oneDNN nor oneMKL is here, `UsageError` for less than one thread.
    """
    count = default_threads() if threads is None else threads
    if count < 1:
        raise UsageError(f"peaks of {count} threads can't be measured; it takes at least 1")
    found = conditions()
    cached = peaks.load(peaks.path_of(count, found))
    if cached is not None and not refresh:
        return cached
    with threads_set_to(count):
        measured = _measure(count, found, budget_s, say)
    if cached is not None:
        measured = measured.better(cached)
    try:
        peaks.store(measured)
    except OSError as error:
        note = f"not kept for later: {peaks.folder()} can't be written ({error.strerror})"
        measured = measured._replace(notes=(*measured.notes, note))
    return measured


def conditions() -> dict[str, Any]:
    """Host, libraries and variables: what the figures hold for. Loads the libraries."""
    libraries, reasons = {}, []
    for name, library in (("onednn", onednn), ("mkl", mkl)):
        try:
            libraries[name] = library.version()
        except BackendUnavailable as error:
            reasons.append(str(error))
    if not libraries:
        raise BackendUnavailable(
            f"peaks are measured through oneDNN and oneMKL, and neither is here: {'; '.join(reasons)}"
        )
    variables = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return {**peaks.host(), "libraries": libraries, "environment": variables}


def _measure(threads: int, found: dict[str, Any], budget_s: float, say: Say) -> Peaks:
    products: dict[str, Product] = {}
    notes: list[str] = []
    for data_type in gemm.TYPES:
        say(f"matrix products in {data_type}")
        best = best_product(data_type, budget_s)
        if best is None:
            notes.append(f"no library here multiplies matrices of {data_type} on this processor")
        else:
            products[data_type] = best
    plan = stream.plan(stream.caches_bytes(), stream.available_bytes())
    streams: list[Stream] = []
    for size in plan.sizes_bytes:
        say(f"passes over {size / (1 << 20):,.1f} MiB")
        streams += best_streams(size, budget_s / 2)
    missing = [kernel for kernel in stream.KERNELS if all(one.kernel != kernel for one in streams)]
    if missing:
        notes.append(f"without oneMKL there is no pass for {' and '.join(missing)}")
    measured = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    return Peaks(threads, products, tuple(streams), found, measured, (*plan.notes, *notes))


def best_product(data_type: str, budget_s: float) -> Product | None:
    """The fastest product over libraries and sizes; None where no library has one."""
    best: Product | None = None
    for n in _SIZES:
        before, longest = best, 0.0
        for call in gemm.calls(data_type, n):
            timing = shortest(call.execute, budget_s)
            longest = max(longest, timing.seconds)
            rate = call.operations / timing.seconds / 1e9
            if best is None or rate > best.gflops_per_s:
                best = Product(rate, call.library, call.implementation, n, timing.settled)
        if best is None or longest * 8 > _LONGEST_S:
            break
        if n >= _ENOUGH and before is not None and best.gflops_per_s < before.gflops_per_s * _WORTH:
            break
    return best


def best_streams(size_bytes: int, budget_s: float) -> list[Stream]:
    """The fastest of each kernel over arrays of one size."""
    best: dict[str, Stream] = {}
    with stream.passes(size_bytes) as passes:
        for one in passes:
            timing = shortest(one.execute, budget_s)
            rate = one.bytes_moved / timing.seconds / 1e9
            if one.kernel not in best or rate > best[one.kernel].gbytes_per_s:
                best[one.kernel] = Stream(one.kernel, one.size_bytes, rate, one.library, timing.settled)
    return list(best.values())
