"""The C library's `stdout`: flush it, write to it, point it elsewhere.

On glibc `stdout` is a variable: the libraries' `printf` follows it wherever it points, while Python's `print`, other
processes and descriptor 1 are not touched. musl declares it constant: there descriptor 1 itself must be taken.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
from typing import Any, Final

from cpulens.errors import CaptureError

_IOLBF: Final = 1
_BUFFER_BYTES: Final = 1 << 20


def can_swap() -> bool:
    """Whether `stdout` is a variable here (glibc)."""
    return hasattr(os, "confstr") and (_confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")


def _confstr(name: str) -> str | None:
    try:
        return os.confstr(name)
    except (ValueError, OSError):
        return None


class CStdout:
    """The stream itself, and a second one that can stand in for it."""

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None, use_errno=True)
        self._fflush, self._fputs, self._fileno = libc.fflush, libc.fputs, libc.fileno
        self._fflush.argtypes = [ctypes.c_void_p]
        self._fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
        self._fileno.argtypes = [ctypes.c_void_p]
        self._ferror, self._clearerr = libc.ferror, libc.clearerr
        self._ferror.argtypes = self._clearerr.argtypes = [ctypes.c_void_p]
        self._fdopen = libc.fdopen
        self._fdopen.argtypes = [ctypes.c_int, ctypes.c_char_p]
        self._fdopen.restype = ctypes.c_void_p
        self._setvbuf = libc.setvbuf
        self._setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_size_t]
        try:
            self._pointer = ctypes.c_void_p.in_dll(libc, "stdout")
        except ValueError as error:
            raise CaptureError("this C library exports no `stdout`: native output can't be reached") from error
        self._buffer: Any = None

    def flush(self) -> None:
        """Flush `stdout` only: `fflush(NULL)` hangs while another thread sits in a C read."""
        self._fflush(self._pointer)

    def write_line(self, line: bytes) -> None:
        """Print one line the way the libraries do, and flush it, so that it stands in order among theirs."""
        self._fputs(line, self._pointer)
        self._fflush(self._pointer)

    def descriptor(self, stream: int) -> int:
        """The descriptor that a stream writes to; -1 when it is closed."""
        return int(self._fileno(stream))

    def open_stand_in(self, fd: int) -> int:
        """A second stream on `fd`, line-buffered, so that a line is one write and none is lost at a SIGKILL.

        It is never closed: another thread may be about to print through it.
        """
        stream: int | None = self._fdopen(fd, b"a")
        if not stream:
            code = ctypes.get_errno()
            raise CaptureError(f"the C library can't open a stream for the captured lines: {os.strerror(code)}")
        self._buffer = ctypes.create_string_buffer(_BUFFER_BYTES)
        self._setvbuf(stream, self._buffer, _IOLBF, _BUFFER_BYTES)
        return stream

    def point_at(self, stream: int) -> int:
        """Let `stdout` be `stream` from now on; returns what it was. Both are flushed."""
        before = self._pointer.value or 0
        self.flush()
        self._pointer.value = stream
        return before

    def flush_stream(self, stream: int) -> bool:
        """Flush a stream; False when what was written to it could not all be stored (a full disk)."""
        self._fflush(stream)
        failed = bool(self._ferror(stream))
        if failed:
            self._clearerr(stream)
        return not failed


def write_all(fd: int, data: bytes) -> None:
    """Write bytes to a descriptor, whole, also where it is non-blocking; a closed descriptor takes and drops them.

    Raises BrokenPipeError when the reader has left.
    """
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [])
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            return
