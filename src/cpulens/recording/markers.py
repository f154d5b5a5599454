"""Marker lines: where a region or iteration begins, and which layer runs, in the stream of the libraries' lines.

One line, ``cpulens,v1,<kind>,<thread>[@<time>],<name>``, printed through the same C stream as the libraries print
through and flushed, so that it stands in order among theirs. Any program can print it (`printf` and `fflush`).
Without a recording, here or around the process (`cpulens record`), nothing is printed.

=========  ====================================================================================
begin      region `name` begins; regions of a thread nest
end        region `name` ends
iteration  the next iteration begins; its name is for the reader of the log
layer      from here on `thread` runs layer `name`, the path of a module; an empty name: none
=========  ====================================================================================

`time` is Unix time in milliseconds with six decimals, as oneDNN's stamps; without it coverage knows no wall time.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Final

from cpulens.backends import verbosity
from cpulens.backends.scope import Scope
from cpulens.capture.tap import RECORDED_FROM_OUTSIDE, open_tap, tap
from cpulens.errors import UsageError
from cpulens.recording import schedule

_open: dict[tuple[int, int], str] = {}
_serial = 0
_lock: Final = threading.Lock()


def line(kind: str, thread: int, name: str) -> bytes:
    """One marker line with the time of now, its end included. Raises UsageError for a name with a line break in it."""
    if "\n" in name or "\r" in name or "\0" in name:
        raise UsageError(f"a marker's name is one line of text, {name!r} is not")
    milliseconds, nanoseconds = divmod(time.time_ns(), 1_000_000)
    text = f"cpulens,v1,{kind},{thread}@{milliseconds}.{nanoseconds:06d},{name}\n"
    return text.encode("utf-8", "surrogateescape")


class region(Scope):
    """Name what runs inside a `with` block or a decorated function: its kernels carry `name` in the column `region`.

    Regions nest: the column holds the path, outermost first, joined by "/". oneDNN's lines carry no thread: while
    regions are open in two threads at once, `region` is null, and the trace's facts count it. Costs 15 µs while
    something records, and next to nothing otherwise. Raises UsageError for a name with a line break.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        line("begin", 0, name)
        self.name = name

    def _enter(self) -> tuple[int, int]:
        global _serial
        thread = threading.get_native_id()
        with _lock:
            _serial += 1
            token = (thread, _serial)
            _open[token] = self.name
        _print("begin", thread, self.name)
        return token

    def _leave(self, token: tuple[int, int]) -> None:
        with _lock:
            _open.pop(token, None)
        _print("end", token[0], self.name)


def iteration(name: str = "") -> None:
    """Say that an iteration begins here: kernels from here to the next call have the next number in `iteration`.

    The first call begins iteration 0. Raises UsageError for a name with a line break.
    """
    line("iteration", 0, name)
    schedule.advance()
    if schedule.outside is None or schedule.outside.is_active:
        _print("iteration", threading.get_native_id(), name)


def open_regions() -> bytes:
    """Begin markers of the regions that are open now, oldest first: what a recording that starts now must know."""
    with _lock:
        return b"".join(line("begin", thread, name) for (thread, _), name in _open.items())


def _print(kind: str, thread: int, name: str) -> None:
    text = line(kind, thread, name)
    if open_tap() is not None or os.environ.get(RECORDED_FROM_OUTSIDE):
        verbosity.refresh()
        tap().write_line(text)
