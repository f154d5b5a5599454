"""A line of progress for what takes more than a second; nothing where nobody looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TextIO

from cpulens.report.text import visible

_AFTER_SECONDS = 1.0
_EVERY_SECONDS = 0.2


@contextmanager
def reading_progress(stream: TextIO) -> Iterator[Callable[[int, int | None], None] | None]:
    """Give a function to call with bytes done and bytes in all; None when `stream` is no terminal."""
    if not stream.isatty():
        yield None
        return
    started = last = time.monotonic()
    shown = False

    def show(done: int, size: int | None) -> None:
        nonlocal last, shown
        now = time.monotonic()
        if now - started < _AFTER_SECONDS or now - last < _EVERY_SECONDS:
            return
        last, shown = now, True
        rate = done / (now - started)
        text = f"read {done / 1e6:,.0f} MB at {rate / 1e6:,.0f} MB/s"
        if size:
            text = f"{100 * done / size:3.0f} % {text}, {max(size - done, 0) / max(rate, 1):.0f} s left"
        stream.write(f"\r\x1b[K{text}")
        stream.flush()

    try:
        yield show
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()


@contextmanager
def step_progress(stream: TextIO) -> Iterator[Callable[[str], None]]:
    """Give a function to call with what is under way; it says nothing where `stream` is no terminal."""
    if not stream.isatty():
        yield lambda _: None
        return

    def say(what: str) -> None:
        stream.write(f"\r\x1b[K{visible(what)[: get_terminal_size().columns - 1]}")
        stream.flush()

    try:
        yield say
    finally:
        stream.write("\r\x1b[K")
        stream.flush()
