"""Bytes from the instances' pipes to the launcher's outputs and logs, line by line. No line is cut, none is lost."""

from __future__ import annotations

import errno
import os
import stat
from collections import deque

#: One read; also the most a pipe holds.
READ_BYTES = 1 << 16
#: A write of this size to a pipe that poll calls writable does not block.
PIPE_BYTES = 4096
#: Above this much waiting output the instances' pipes are left to fill, so that a slow reader slows the writers.
HIGH_WATER_BYTES = 4 << 20
#: A line longer than this is passed on in pieces.
LONGEST_LINE_BYTES = 8 << 20


class Sink:
    """One output of the launcher; what is put there is written when poll says that it can be."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.broken = False
        self.trouble = ""  #: why it broke, when not because the reader has gone
        self.waiting_bytes = 0
        self._queue: deque[memoryview] = deque()
        plain_file = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._step_bytes = READ_BYTES if plain_file else PIPE_BYTES

    def put(self, data: bytes) -> None:
        """Take `data` for writing; nothing is kept once the reader has gone."""
        if data and not self.broken:
            self._queue.append(memoryview(data))
            self.waiting_bytes += len(data)

    def write_some(self) -> None:
        """Write one step. After an error (the reader has gone, the disk is full) the sink is broken."""
        if not self._queue:
            return
        try:
            written = os.write(self.descriptor, self._queue[0][: self._step_bytes])
        except BlockingIOError:
            return
        except OSError as error:
            self.drop()
            self.broken = True
            self.trouble = "" if error.errno == errno.EPIPE else os.strerror(error.errno or 0)
            return
        self.waiting_bytes -= written
        rest = self._queue.popleft()[written:]
        if rest:
            self._queue.appendleft(rest)

    def drop(self) -> None:
        """Forget what waits."""
        self._queue.clear()
        self.waiting_bytes = 0


class Stream:
    """One pipe of an instance: its lines go to a sink, each behind `prefix`, and as they are to a log."""

    def __init__(self, descriptor: int, sink: Sink, prefix: bytes, log: int | None) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.sink = sink
        self.open = True
        self._prefix = prefix
        self.trouble = ""  #: why its log could not be written on
        self._log = log
        self._partial: list[bytes] = []
        self._partial_bytes = 0

    @property
    def wanted(self) -> bool:
        """Whether anybody still takes the lines; when not, the instance meets a closed pipe as it would without us."""
        return self._log is not None or not self.sink.broken

    def read_some(self) -> bool:
        """Read once and pass whole lines on; False when there was nothing to read (end, or nothing now)."""
        try:
            data = os.read(self.descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data or not self.wanted:
            self.close()
            return False
        end = data.rfind(b"\n") + 1
        if end:
            self._emit(b"".join([*self._partial, data[:end]]))
            self._partial, self._partial_bytes = [], 0
            data = data[end:]
        if data:
            self._partial.append(data)
            self._partial_bytes += len(data)
            if self._partial_bytes > LONGEST_LINE_BYTES:
                self._emit_partial()
        return True

    def close(self) -> None:
        """Pass on a last line without an end, and close the pipe."""
        if self.open:
            self.open = False
            self._emit_partial()
            os.close(self.descriptor)

    def _emit_partial(self) -> None:
        text = b"".join(self._partial)
        self._partial, self._partial_bytes = [], 0
        if text:
            self._emit(text)

    def _emit(self, text: bytes) -> None:
        if self._log is not None:
            try:
                write_all(self._log, text)
            except OSError as error:
                self._log = None
                self.trouble = os.strerror(error.errno or 0)
        if self._prefix:
            text = text.removesuffix(b"\n")
            text = self._prefix + text.replace(b"\n", b"\n" + self._prefix) + b"\n"
        self.sink.put(text)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a file."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
