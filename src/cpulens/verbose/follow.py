"""A log that is still being written."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO, Final

_POLL_SECONDS: Final = 0.1


class Follower:
    """Wait for more at the end of a file.

    Called when a read found nothing: True when there may be more. It ends when interrupted (Ctrl-C), when the file has
    not grown for `idle_seconds` (None: never), or when it was replaced or cut.
    """

    def __init__(self, path: Path, file: IO[bytes], idle_seconds: float | None) -> None:
        self._path, self._file, self._idle_seconds = path, file, idle_seconds
        self._waited_since: float | None = None
        self._size = -1
        self.interrupted = False

    def __call__(self) -> bool:
        """Wait a moment; False: the log counts as finished."""
        if self.interrupted:
            return False
        now = time.monotonic()
        size = os.fstat(self._file.fileno()).st_size
        if size != self._size or self._waited_since is None:
            self._size, self._waited_since = size, now
        if self._idle_seconds is not None and now - self._waited_since >= self._idle_seconds:
            return False
        if self._replaced():
            return False
        try:
            time.sleep(_POLL_SECONDS)
        except KeyboardInterrupt:
            self.interrupted = True
        return True

    def _replaced(self) -> bool:
        try:
            there, here = os.stat(self._path), os.fstat(self._file.fileno())
        except FileNotFoundError:
            return True
        return (there.st_ino, there.st_dev) != (here.st_ino, here.st_dev) or here.st_size < self._file.tell()
