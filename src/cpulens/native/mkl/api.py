"""oneMKL through its single dynamic library ``libmkl_rt``: loading, version, verbose mode, threads.

``libmkl_rt`` loads its interface, threading and kernel layers itself, at the first call of a computing function.
Which OpenMP runtime that brings is decided by the threading layer, so it must be chosen before.
"""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import CDLL, c_char_p, c_int
from typing import Any, Final

from cpulens.errors import BackendUnavailable, NativeError, UsageError
from cpulens.native import find, loaded

#: Name of a threading layer → its number in ``mkl_service.h``.
THREADING_LAYERS: Final = {"intel": 0, "sequential": 1, "gnu": 3, "tbb": 4}
#: Start of an OpenMP runtime's file name → the layer that works with it.
_LAYER_OF_RUNTIME: Final = {"libgomp": "gnu", "libiomp5": "intel", "libomp.": "intel"}
#: Layer → the runtime that it loads by name; oneMKL ends the process when that fails.
_RUNTIME_OF_LAYER: Final = {"gnu": "libgomp.so.1", "intel": "libiomp5.so", "tbb": "libtbb.so.12"}
_LAYER_FILES: Final = ("libmkl_intel_thread", "libmkl_sequential", "libmkl_gnu_thread", "libmkl_tbb_thread")


class OneMkl:
    """The loaded ``libmkl_rt``; its C functions are attributes, typed by `declare`."""

    def __init__(self, dll: CDLL) -> None:
        self._dll = dll
        self.path = dll._name
        if not hasattr(dll, "MKL_Get_Version_String"):
            raise BackendUnavailable(f"{self.path} is not oneMKL's libmkl_rt: it exports no MKL_Get_Version_String")

    def declare(self, name: str, arguments: list[Any], result: Any = None) -> Any:
        """The C function `name` with these argument types. Raises `BackendUnavailable` where this version lacks it."""
        try:
            function = self._dll[name]  # a new object each time: a variadic function is declared in several ways
        except AttributeError:
            raise BackendUnavailable(f"{self.path} has no {name}: a newer oneMKL is needed") from None
        function.argtypes, function.restype = arguments, result
        return function


_lock = threading.RLock()
_library: OneMkl | None = None


def library() -> OneMkl:
    """The oneMKL of this process, loaded at the first call; raises `BackendUnavailable` when there is none.

    Unless ``MKL_THREADING_LAYER`` is set, a copy loaded here gets the threading layer of the OpenMP runtime that the
    process has already, so that there is one: GNU's beside libgomp, Intel's beside libiomp5. Without any, oneMKL's
    own default stays (Intel's).
    """
    global _library
    with _lock:
        if _library is None:
            before = _layer_in_use()
            _library = OneMkl(find.load(find.ONEMKL))
            layer = _layer_to_match()
            if layer is not None and before is None and "MKL_THREADING_LAYER" not in os.environ:
                _choose(_library, layer)
        return _library


def _layer_to_match() -> str | None:
    present = {
        layer for obj in loaded.objects() for start, layer in _LAYER_OF_RUNTIME.items() if obj.name.startswith(start)
    }
    return present.pop() if len(present) == 1 else None


def _layer_in_use() -> str | None:
    for obj in loaded.objects():
        if obj.name.startswith(_LAYER_FILES):
            return obj.name.removeprefix("libmkl_").partition(".")[0].removesuffix("_thread")
    return None


def _load_runtime(lib: OneMkl, layer: str) -> None:
    """Load the layer's runtime, from beside oneMKL if the linker knows none. Raises `BackendUnavailable`."""
    name = _RUNTIME_OF_LAYER.get(layer)
    if name is None or any(obj.name.startswith(name) for obj in loaded.objects()):
        return
    refusal = ""
    for path in (os.path.join(os.path.dirname(lib.path), name), name):
        try:
            CDLL(path, mode=ctypes.RTLD_GLOBAL)
            return
        except OSError as error:
            refusal = str(error)
    raise BackendUnavailable(f"oneMKL's {layer} threading layer needs {name}, which does not load: {refusal}")


def _choose(lib: OneMkl, name: str) -> int:
    _load_runtime(lib, name)
    answer: int = lib.declare("MKL_Set_Threading_Layer", [c_int], c_int)(THREADING_LAYERS[name])
    return answer


def set_threading_layer(name: str) -> None:
    """Choose "gnu", "intel", "tbb" or "sequential"; it must come before any other call of oneMKL in this process.

    Raises `NativeError` when another layer runs already, `BackendUnavailable` when the layer's runtime (libgomp,
    libiomp5, libtbb) is missing, `UsageError` for an unknown name.
    """
    if name not in THREADING_LAYERS:
        raise UsageError(f"unknown oneMKL threading layer {name!r}; known: {', '.join(THREADING_LAYERS)}")
    lib, running = library(), _layer_in_use()
    # Not asked while another runs: its runtime would be loaded in vain.
    answer = THREADING_LAYERS[running] if running in THREADING_LAYERS else _choose(lib, name)
    if answer != THREADING_LAYERS[name]:
        running = next((known for known, value in THREADING_LAYERS.items() if value == answer), "another")
        raise NativeError(
            f"oneMKL can't take the {name} threading layer: {running} is in use since its first call in this process",
            call="MKL_Set_Threading_Layer",
            status=str(answer),
        )


def threading_layer() -> str | None:
    """The layer in use; None while oneMKL has not loaded it: the first call of nearly any function does."""
    return _layer_in_use()


def version() -> str:
    """Version and build in oneMKL's own words; loads it. Raises `BackendUnavailable`."""
    text = ctypes.create_string_buffer(512)
    library().declare("MKL_Get_Version_String", [c_char_p, c_int])(text, len(text))
    return text.value.decode("utf-8", "replace").strip()


def set_verbose(level: int) -> int:
    """Set the verbose mode (0 off, 1 on, 2 on with GPU times waited for) and return the level that was accepted.

    Scopes that nest and restore are in `cpulens.backends.mkl`.
    """
    # The lower-case name is the Fortran entry, which takes a pointer: calling that by value crashes.
    accepted: int = library().declare("MKL_Verbose", [c_int], c_int)(level)
    return accepted


def set_num_threads(count: int) -> None:
    """Number of threads that oneMKL may use from now on, in all its domains; at least 1."""
    if count < 1:
        raise UsageError(f"oneMKL can't run on {count} threads")
    library().declare("MKL_Set_Num_Threads", [c_int])(count)


def max_threads() -> int:
    """Number of threads that oneMKL would use for the next call."""
    found: int = library().declare("MKL_Get_Max_Threads", [], c_int)()
    return found
