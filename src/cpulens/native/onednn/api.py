"""The C API of oneDNN 3.x through ctypes: the library, its functions typed once, and statuses turned into errors."""

from __future__ import annotations

import ctypes
import threading
from ctypes import CDLL, POINTER, Structure, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t, c_uint, c_void_p
from functools import cached_property
from typing import Any, Final

from cpulens.errors import BackendUnavailable, NativeError
from cpulens.native import find
from cpulens.native.onednn.types import STATUS

_HANDLE = c_void_p
_OUT = POINTER(c_void_p)
_DIMS = POINTER(c_int64)


class _Version(Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


class ExecArg(Structure):
    """``dnnl_exec_arg_t``: an argument's index and its memory."""

    _fields_ = (("arg", c_int), ("memory", c_void_p))


#: Functions that answer a status → their arguments. None changed between 3.0 and 3.13.
_FUNCTIONS: Final[dict[str, list[Any]]] = {
    "dnnl_set_verbose": [c_int],
    "dnnl_engine_create": [_OUT, c_int, c_size_t],
    "dnnl_stream_create": [_OUT, _HANDLE, c_uint],
    "dnnl_stream_wait": [_HANDLE],
    "dnnl_stream_destroy": [_HANDLE],
    "dnnl_memory_desc_create_with_strides": [_OUT, c_int, _DIMS, c_int, _DIMS],
    "dnnl_memory_desc_create_with_tag": [_OUT, c_int, _DIMS, c_int, c_int],
    "dnnl_memory_desc_clone": [_OUT, _HANDLE],
    "dnnl_memory_desc_query": [_HANDLE, c_int, c_void_p],
    "dnnl_memory_desc_destroy": [_HANDLE],
    "dnnl_memory_create": [_OUT, _HANDLE, _HANDLE, c_void_p],
    "dnnl_memory_get_data_handle": [_HANDLE, _OUT],
    "dnnl_memory_destroy": [_HANDLE],
    "dnnl_primitive_attr_create": [_OUT],
    "dnnl_primitive_attr_destroy": [_HANDLE],
    "dnnl_primitive_attr_set_fpmath_mode": [_HANDLE, c_int],
    "dnnl_primitive_attr_set_scratchpad_mode": [_HANDLE, c_int],
    "dnnl_primitive_attr_set_scales_mask": [_HANDLE, c_int, c_int],
    "dnnl_primitive_attr_set_zero_points_mask": [_HANDLE, c_int, c_int],
    "dnnl_primitive_attr_set_post_ops": [_HANDLE, _HANDLE],
    "dnnl_post_ops_create": [_OUT],
    "dnnl_post_ops_destroy": [_HANDLE],
    "dnnl_post_ops_append_eltwise": [_HANDLE, c_int, c_float, c_float],
    "dnnl_post_ops_append_sum": [_HANDLE, c_float, c_int32, c_int],
    "dnnl_post_ops_append_binary": [_HANDLE, c_int, _HANDLE],
    "dnnl_matmul_primitive_desc_create": [_OUT, *[_HANDLE] * 6],
    "dnnl_convolution_forward_primitive_desc_create": [
        *(_OUT, _HANDLE, c_int, c_int),
        *[_HANDLE] * 4,
        *[_DIMS] * 4,
        _HANDLE,
    ],
    "dnnl_inner_product_forward_primitive_desc_create": [_OUT, _HANDLE, c_int, *[_HANDLE] * 5],
    "dnnl_eltwise_forward_primitive_desc_create": [
        *(_OUT, _HANDLE, c_int, c_int, _HANDLE, _HANDLE, c_float, c_float, _HANDLE)
    ],
    "dnnl_softmax_forward_primitive_desc_create": [_OUT, _HANDLE, c_int, c_int, _HANDLE, _HANDLE, c_int, _HANDLE],
    "dnnl_reorder_primitive_desc_create": [_OUT, *[_HANDLE] * 5],
    "dnnl_primitive_desc_query": [_HANDLE, c_int, c_int, c_void_p],
    "dnnl_primitive_desc_next_impl": [_HANDLE],
    "dnnl_primitive_desc_destroy": [_HANDLE],
    "dnnl_primitive_create": [_OUT, _HANDLE],
    "dnnl_primitive_execute": [_HANDLE, _HANDLE, c_int, POINTER(ExecArg)],
    "dnnl_primitive_destroy": [_HANDLE],
}

_CPU_ENGINE: Final = 1
_IN_ORDER: Final = 1


class OneDnn:
    """One loaded oneDNN 3.x: its typed C functions as attributes, and its CPU engine.

    A function that answers a status raises `NativeError` unless it succeeded. The engine lives as long as the
    process: memories, primitives and the library's own cache refer to it.
    """

    def __init__(self, dll: CDLL) -> None:
        self._dll = dll
        self.path = dll._name
        self.version = self._read_version()
        for name, arguments in _FUNCTIONS.items():
            function = getattr(dll, name)
            function.argtypes, function.restype, function.errcheck = arguments, c_int, self._check
            setattr(self, name, function)
        self.dnnl_memory_desc_equal = dll.dnnl_memory_desc_equal
        self.dnnl_memory_desc_equal.argtypes, self.dnnl_memory_desc_equal.restype = [_HANDLE, _HANDLE], c_int
        self.dnnl_memory_desc_get_size = dll.dnnl_memory_desc_get_size
        self.dnnl_memory_desc_get_size.argtypes, self.dnnl_memory_desc_get_size.restype = [_HANDLE], c_size_t
        dll.dnnl_fmt_tag2str.argtypes, dll.dnnl_fmt_tag2str.restype = [c_int], c_char_p
        self._streams = threading.local()

    def __getattr__(self, name: str) -> Any:
        # Only reached for names that were not set: tells type checkers that the C functions are attributes.
        raise AttributeError(f"oneDNN binding has no {name}")

    def _read_version(self) -> tuple[int, int, int]:
        try:
            ask = self._dll.dnnl_version
        except AttributeError:
            raise BackendUnavailable(f"{self.path} is not oneDNN: it exports no dnnl_version") from None
        ask.argtypes, ask.restype = [], POINTER(_Version)
        found = ask().contents
        if found.major != 3:
            raise BackendUnavailable(
                f"{self.path} is oneDNN {found.major}.{found.minor}; these bindings speak the API of 3.x: "
                f"install onednn-cpu-gomp, or set {find.ONEDNN.variable} to a libdnnl.so.3"
            )
        return (found.major, found.minor, found.patch)

    def _check(self, status: int, function: Any, arguments: tuple[Any, ...]) -> int:
        if status != 0:
            call, name = function.__name__, STATUS.get(status, str(status))
            raise NativeError(f"oneDNN refused {call}: {name}", call=call, status=name)
        return status

    @property
    def version_text(self) -> str:
        """Such as "3.2.0"."""
        return ".".join(map(str, self.version))

    @cached_property
    def engine(self) -> c_void_p:
        """The CPU engine. Raises `BackendUnavailable` where the library can't have one."""
        handle = c_void_p()
        try:
            self.dnnl_engine_create(ctypes.byref(handle), _CPU_ENGINE, 0)
        except NativeError as error:
            raise BackendUnavailable(
                f"{self.path} (oneDNN {self.version_text}) has no CPU engine here ({error.status}); a build on SYCL "
                f"needs an OpenCL runtime for the CPU, one on OpenMP does not: pip install {find.ONEDNN.package}"
            ) from None
        return handle

    @property
    def stream(self) -> c_void_p:
        """An in-order stream on the CPU engine, one for each thread that asks."""
        if not hasattr(self._streams, "handle"):
            handle = c_void_p()
            self.dnnl_stream_create(ctypes.byref(handle), self.engine, _IN_ORDER)
            self._streams.handle = handle
        found: c_void_p = self._streams.handle
        return found

    @cached_property
    def format_tags(self) -> dict[str, int]:
        """Name → ``dnnl_format_tag_t``, as this library numbers them; the first 2 (undef, any) are left out."""
        tags: dict[str, int] = {}
        value = 2
        while True:
            name = self._dll.dnnl_fmt_tag2str(value).decode()
            if not name.isalnum():  # "unknown fmt_tag" ends the list
                return tags
            tags.setdefault(name, value)
            value += 1


_lock = threading.Lock()
_library: OneDnn | None = None


def library() -> OneDnn:
    """The oneDNN of this process, loaded at the first call; raises `BackendUnavailable` when there is none."""
    global _library
    with _lock:
        if _library is None:
            _library = OneDnn(find.load(find.ONEDNN))
        return _library
