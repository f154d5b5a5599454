"""The file into which captured text is written: readable by `cpulens top` even when the process dies.

Opened with O_APPEND, so that a forked child's lines and ours never overwrite each other; made by mkstemp (mode 0600,
a name nobody else can have taken). It lives as long as somebody may still read it, and in any case until the process
ends in good order; a crash leaves it behind.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import tempfile
import weakref
from typing import Final

from cpulens.errors import CaptureError

#: Descriptors below this may be taken for standard streams by a program that closed them.
_FIRST_FREE: Final = 10


_living: weakref.WeakSet[Spill] = weakref.WeakSet()


class Spill:
    """One spill: its `path`, a descriptor `fd` to append to it, and `size()` in bytes."""

    def __init__(self) -> None:
        self.path, self.fd = _make()
        self._pid = os.getpid()
        self._finalizer = weakref.finalize(self, _remove, self.path, self.fd, self._pid)
        self._finalizer.atexit = False  # `_remove_all` does it, after the tap has read what came last
        _living.add(self)

    def size(self) -> int:
        """Bytes written so far, by whomever."""
        return os.fstat(self.fd).st_size

    def read(self, start: int, end: int | None = None) -> bytes:
        """The bytes from `start` to `end` (default: to what is there now)."""
        if end is None:
            end = self.size()
        parts = []
        while start < end:
            part = os.pread(self.fd, min(end - start, 1 << 22), start)
            if not part:
                break
            parts.append(part)
            start += len(part)
        return b"".join(parts)

    def remove(self) -> None:
        """Close and delete it; a second time does nothing."""
        self._finalizer()

    def keep(self) -> None:
        """Leave the file where it is when the process ends."""
        self._finalizer.detach()


def _make() -> tuple[str, int]:
    try:
        low, path = tempfile.mkstemp(prefix=f"cpulens-{os.getpid()}-", suffix=".log")
    except OSError as error:
        raise CaptureError(
            f"no spill file can be made for the captured lines ({error}); set TMPDIR to a folder that can be written"
        ) from error
    os.close(low)
    taken = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        return path, above_standard_streams(taken)
    finally:
        os.close(taken)


def above_standard_streams(fd: int) -> int:
    """A duplicate of `fd` well above 0 to 2, or just above them where the descriptor limit is that low."""
    for lowest in (_FIRST_FREE, 3):
        try:
            return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        except OSError as error:
            reason = error
    raise CaptureError(f"no descriptor is free for the captured lines ({reason}); raise the limit (ulimit -n)")


def _remove(path: str, fd: int, pid: int) -> None:
    os.close(fd)
    if os.getpid() == pid:
        with contextlib.suppress(OSError):  # somebody cleaned the folder, or it can't be written any more
            os.unlink(path)


def _remove_all() -> None:
    for spill in list(_living):
        spill.remove()


# Registered when this module is loaded, so before the tap's own, and therefore run after it.
atexit.register(_remove_all)
