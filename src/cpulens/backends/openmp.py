"""OpenMP: which runtimes are in this process, how many threads each would use, and the conflict of two."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cpulens.backends import pytorch
from cpulens.backends.environment_trial import trial
from cpulens.errors import BackendUnavailable, UsageError
from cpulens.native import loaded

__all__ = [
    "Runtime",
    "conflict",
    "details",
    "get_num_threads",
    "is_available",
    "runtimes",
    "set_num_threads",
    "version",
    "why_not",
]

_GET, _SET, _BIND, _PLACES = "omp_get_max_threads", "omp_set_num_threads", "omp_get_proc_bind", "omp_get_num_places"
#: Functions by which the families are told apart; Intel's and LLVM's is one code under two names.
_GNU, _KMP = "GOMP_parallel", "__kmpc_fork_call"
#: With one of these set, a runtime of Intel's family binds the calling thread when it is asked anything.
_BINDING: Final = ("KMP_AFFINITY", "OMP_PROC_BIND", "OMP_PLACES", "KMP_HW_SUBSET")
_PROC_BIND: Final = {0: "false", 1: "true", 2: "primary", 3: "close", 4: "spread", 5: "by KMP_AFFINITY"}


class Runtime(NamedTuple):
    """One OpenMP runtime in this process. `threads`: how many a parallel region would get; None: not asked."""

    family: str  #: "GNU", "Intel" or "LLVM"
    path: str
    threads: int | None
    proc_bind: str | None  #: false, true, primary, close, spread or by KMP_AFFINITY; None: not asked
    places: int | None  #: how many places threads are bound to; 0: not bound; None: not asked

    @property
    def name(self) -> str:
        """File name without folders."""
        return os.path.basename(self.path) or "the program"


def runtimes(ask: bool | None = None) -> list[Runtime]:
    """Return the runtimes in this process, in load order, found by what they export.

    `ask`: whether to call them for threads and binding. Intel's and LLVM's bind the calling thread at their first
    call when the environment wants binding, so by default they are not asked then, and the fields are None.
    """
    found = []
    for obj in loaded.objects():
        symbols = loaded.exported(obj, _GET, _GNU, _KMP, _BIND, _PLACES) if _may_hold(obj) else {}
        if _GET not in symbols or not (_GNU in symbols or _KMP in symbols):
            continue
        family = _family(obj.name, symbols)
        asked = ask if ask is not None else family == "GNU" or not any(name in os.environ for name in _BINDING)
        bind = _call(symbols, _BIND) if asked else None
        found.append(
            Runtime(
                family,
                os.path.normpath(obj.path) if obj.path else "",
                _call(symbols, _GET) if asked else None,
                None if bind is None else _PROC_BIND.get(bind, str(bind)),
                _call(symbols, _PLACES) if asked else None,
            )
        )
    return found


def _may_hold(obj: loaded.LoadedObject) -> bool:
    """Leaves out what can't hold a runtime: Python's extension modules and the C library's parts."""
    return not re.match(r"(?:libc|libm|libdl|libpthread|ld-linux|linux-vdso|libpython)\b", obj.name) and (
        ".cpython-" not in obj.name
    )


def _family(name: str, symbols: dict[str, int]) -> str:
    if _KMP not in symbols:
        return "GNU"
    return "Intel" if name.startswith("libiomp5") else "LLVM"


def _call(symbols: dict[str, int], name: str) -> int | None:
    if name not in symbols:
        return None
    answer: int = ctypes.CFUNCTYPE(ctypes.c_int)(symbols[name])()
    return answer


def conflict(found: list[Runtime] | None = None) -> str:
    """Return one sentence about several runtimes in this process; "" when there is at most one."""
    several = runtimes() if found is None else found
    if len(several) < 2:
        return ""
    names = " and ".join(f"{runtime.family}'s {runtime.path or runtime.name}" for runtime in several)
    if len({runtime.family for runtime in several}) == 1:
        return (
            f"{len(several)} copies of one OpenMP runtime are loaded, {names}: each keeps its own threads, "
            "and together they use more than the processor has when both are at work"
        )
    return (
        f"{len(several)} OpenMP runtimes are loaded, {names}: each keeps its own threads; and with OMP_PROC_BIND, "
        "OMP_PLACES or GOMP_CPU_AFFINITY set, the first binds this process to one place, all that the next then sees"
    )


def is_available() -> bool:
    """Return whether PyTorch is built with OpenMP, when it is loaded.

    Without PyTorch: whether a runtime is in this process; with none, whether this environment has one that loads
    (tried in a child, once).
    """
    if pytorch.loaded() is not None:
        return bool(pytorch.built_with("has_openmp"))
    return bool(runtimes(ask=False)) or trial("openmp").loads


def version() -> str | None:
    """Return the version of OpenMP that PyTorch was compiled for, such as "4.5"; None without PyTorch.

    The runtimes have no function that tells theirs.
    """
    torch = pytorch.loaded()
    if torch is None:
        return None
    found = re.search(r"OpenMP \d+ \(a\.k\.a\. OpenMP ([0-9.]+)\)", torch.__config__.show())
    return found[1] if found else None


def why_not() -> str:
    """One sentence with the evidence for `is_available`."""
    found = runtimes(ask=False)
    where = " and ".join(runtime.path or runtime.name for runtime in found)
    if pytorch.loaded() is not None:
        words = "with" if is_available() else "without"
        return f"PyTorch {pytorch.version()} is built {words} OpenMP" + (f"; loaded as {where}" if where else "")
    if found:
        return f"OpenMP is loaded as {where}"
    tried = trial("openmp")
    return f"OpenMP is installed but not loaded: {tried.path}" if tried.loads else tried.reason


def details() -> dict[str, Any]:
    """Return answer, evidence, each runtime, and the conflict of several ("" without one)."""
    found = runtimes()
    return {
        "available": is_available(),
        "reason": why_not(),
        "version": version(),
        "runtimes": [runtime._asdict() for runtime in found],
        "conflict": conflict(found),
    }


def get_num_threads() -> int:
    """Return how many threads a parallel region of this process would use: PyTorch's, else the first runtime's.

    Raises `BackendUnavailable` when no runtime is loaded.
    """
    torch = pytorch.loaded()
    if torch is not None:
        return int(torch.get_num_threads())
    found = runtimes(ask=True)
    if not found or found[0].threads is None:
        raise BackendUnavailable(f"there are no OpenMP threads to count in this process: {why_not()}")
    return found[0].threads


def set_num_threads(count: int) -> None:
    """Set how many threads parallel regions of the calling thread use, in PyTorch and in every runtime here.

    Raises `UsageError` for less than 1, `BackendUnavailable` when no runtime is loaded.
    """
    swap_num_threads(count)


def swap_num_threads(count: int) -> Callable[[], None]:
    """Set the number of threads as `set_num_threads` does; returns what puts back the numbers that were found."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise UsageError(f"{count!r} is not a number of threads; it is a whole number from 1 on")
    torch = pytorch.loaded()
    setters = {found.path: _setter(found) for found in runtimes(ask=False)}
    if torch is None and not setters:
        raise BackendUnavailable(f"there are no OpenMP threads to set in this process: {why_not()}")
    before = {found.path: found.threads for found in runtimes(ask=True)}
    of_torch = None if torch is None else torch.get_num_threads()

    def put_back() -> None:
        if torch is not None:
            torch.set_num_threads(of_torch)
        for path, setter in setters.items():
            setter(before[path])

    if torch is not None:
        torch.set_num_threads(count)
    for setter in setters.values():
        setter(count)
    return put_back


def _setter(runtime: Runtime) -> Callable[[int | None], None]:
    obj = next(obj for obj in loaded.objects() if runtime.path == (os.path.normpath(obj.path) if obj.path else ""))
    address = loaded.exported(obj, _SET)[_SET]
    return ctypes.CFUNCTYPE(None, ctypes.c_int)(address)
