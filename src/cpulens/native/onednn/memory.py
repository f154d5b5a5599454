"""Memory objects: a descriptor with data behind it, the library's own or the caller's buffer."""

from __future__ import annotations

import ctypes
from ctypes import c_size_t, c_void_p
from typing import Any

from cpulens.errors import UsageError
from cpulens.native.handles import Owned
from cpulens.native.onednn.api import library
from cpulens.native.onednn.descriptors import MemoryDescriptor
from cpulens.native.onednn.types import FormatKind

_ALLOCATE = c_size_t(-1).value  # DNNL_MEMORY_ALLOCATE


class Memory(Owned):
    """Data of a tensor laid out as `descriptor` says.

    Without `buffer` the library allocates it (aligned to 64 bytes or more, contents undefined). With one (anything
    with the buffer protocol; writable unless the primitive only reads it) the data stays there and is kept alive.
    A buffer that is too small raises `UsageError`.
    """

    def __init__(self, descriptor: MemoryDescriptor, buffer: Any = None) -> None:
        if descriptor.format_kind is FormatKind.any:
            raise UsageError(f"memory needs a definite layout; {descriptor!r} leaves it open: ask the primitive first")
        lib, raw = library(), c_void_p()
        self._buffer: Any
        self._buffer, address = (None, _ALLOCATE) if buffer is None else _address(buffer, descriptor)
        lib.dnnl_memory_create(ctypes.byref(raw), descriptor, lib.engine, address)
        super().__init__(raw, lib.dnnl_memory_destroy)
        self._lib = lib
        self.descriptor = descriptor

    @property
    def address(self) -> int:
        """Address of the first byte."""
        found = c_void_p()
        self._lib.dnnl_memory_get_data_handle(self, ctypes.byref(found))
        return found.value or 0

    def bytes_view(self) -> memoryview:
        """The stored bytes, inner padding included, without a copy; it must not be used after `close`."""
        size = self.descriptor.reach_bytes
        view = (ctypes.c_uint8 * size).from_address(self.address) if size else (ctypes.c_uint8 * 0)()
        view._keep = self  # type: ignore[attr-defined]
        return memoryview(view).cast("B")

    def __repr__(self) -> str:
        return f"<Memory {self.descriptor!r}>"


def _address(buffer: Any, descriptor: MemoryDescriptor) -> tuple[Any, int]:
    """What must be kept alive, and the address of its first byte."""
    # numpy tells the address of read-only and strided arrays too, which the buffer protocol won't give to ctypes.
    interface = getattr(buffer, "__array_interface__", None)
    if interface is not None:
        _check_size(descriptor, _reach_bytes(buffer))
        return buffer, interface["data"][0]
    view = memoryview(buffer)
    _check_size(descriptor, view.nbytes)
    if not view.contiguous:
        raise UsageError("a buffer for oneDNN must be contiguous")
    flat = view.cast("B")
    array: Any = ctypes.c_uint8 * flat.nbytes
    keep = array.from_buffer_copy(flat) if flat.readonly else array.from_buffer(flat)
    return keep, ctypes.addressof(keep)


def _reach_bytes(array: Any) -> int:
    """Bytes from an array's first element to the end of its last."""
    if array.size == 0:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize + sum((size - 1) * step for size, step in steps))


def _check_size(descriptor: MemoryDescriptor, available_bytes: int) -> None:
    if available_bytes < descriptor.reach_bytes:
        raise UsageError(f"{descriptor!r} needs {descriptor.reach_bytes} bytes; the buffer has {available_bytes}")
