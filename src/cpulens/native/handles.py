"""Ownership of C objects: destroyed once, never at interpreter exit, never in a forked child."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from ctypes import c_void_p
from types import TracebackType
from typing import Self


def _destroy(destroy: Callable[[c_void_p], object], handle: c_void_p, owner: int) -> None:
    # A child has a copy of the memory, but maybe of a lock that another thread held at the fork: leave it.
    if os.getpid() == owner:
        destroy(handle)


class Owned:
    """Owns the C object `handle`; it is destroyed by `close`, at the end of a ``with`` block, or with this object."""

    def __init__(self, handle: c_void_p, destroy: Callable[[c_void_p], object]) -> None:
        self._handle: c_void_p | None = handle
        self._finalizer = weakref.finalize(self, _destroy, destroy, handle, os.getpid())
        self._finalizer.atexit = False  # the process's end frees everything; the library may be gone by then

    @property
    def handle(self) -> c_void_p:
        """The C object; raises `ValueError` once it is closed."""
        if self._handle is None:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    #: What ctypes passes when this object stands for a C argument.
    _as_parameter_ = handle

    @property
    def closed(self) -> bool:
        """Whether the C object is gone."""
        return self._handle is None

    def close(self) -> None:
        """Destroy the C object now; closing again does nothing."""
        self._handle = None
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
