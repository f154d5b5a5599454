"""Texts become numbers: each distinct text once, with a bound on how many are kept.

A key is what a kernel can cut out of a line quickly; an entry is the text behind it. Beyond the bound (a field that
varies in every line would fill the memory) a text is kept without its problem: counted and timed by library,
operation, primitive and implementation.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cpulens.verbose import framing

#: Distinct texts kept in full, and how many of their bytes; beyond either, only the coarse part is kept.
MAX_TEXTS: Final = 100_000
MAX_TEXT_BYTES: Final = 64 << 20
#: Texts that were not understood, kept in full.
MAX_UNKNOWN: Final = 20_000


class Entry(NamedTuple):
    """What a code stands for. `whole`: False where only the coarse part of the text is kept."""

    kind: int
    text: bytes
    thread: int | None
    instance: str | None
    whole: bool


class Keys:
    """The table of entries of one reader, and the short cuts of its kernels."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        #: Text without stamp and time, comma before the time included → code: only where any plain time may follow.
        self.timed: dict[bytes, int] = {}
        #: The whole line without its stamp → code, for lines that never have a time.
        self.untimed: dict[bytes, int] = {}
        #: Records, and pieces that were not understood, of which only the coarse part is kept.
        self.beyond = self.beyond_unknown = 0
        self._codes: dict[tuple[int, bytes, int | None, str | None], int] = {}
        self._size = 0
        self._unknown = 0
        #: Code of all unknown pieces beyond the limit, once it is reached.
        self._unknown_code: int | None = None

    def code(self, frame: framing.Frame, instance: str | None) -> int:
        """Give the code of a frame; a new one for a new text."""
        if self._unknown_code is not None and frame.kind == framing.UNKNOWN and instance is None:
            self.beyond_unknown += 1
            return self._unknown_code
        found = self._codes.get((frame.kind, frame.text, frame.thread, instance))
        if found is not None:
            return found
        if not self._room(frame):
            return self._coarse(frame, instance)
        entry = Entry(frame.kind, frame.text, frame.thread, instance, True)
        return self._add((frame.kind, frame.text, frame.thread, instance), entry)

    def _coarse(self, frame: framing.Frame, instance: str | None) -> int:
        text = framing.coarse(frame.kind, frame.text)
        thread = frame.thread if frame.kind == framing.MARKER else None
        key = (-1 - frame.kind, text, thread, instance)
        code = self._codes.get(key)
        if code is None:
            code = self._add(key, Entry(frame.kind, text, thread, instance, False))
        if frame.kind != framing.UNKNOWN:
            self.beyond += 1
        else:
            self.beyond_unknown += 1
            if instance is None:
                self._unknown_code = code
        return code

    def remember(self, frame: framing.Frame, code: int) -> None:
        """Let kernels take the short cut for this text from now on; the frame is a plain one."""
        if frame.duration_ms is None:
            self.untimed[frame.text] = code
        else:
            self.timed[frame.text + b","] = code

    def _add(self, key: tuple[int, bytes, int | None, str | None], entry: Entry) -> int:
        code = len(self.entries)
        self.entries.append(entry)
        self._codes[key] = code
        return code

    def _room(self, frame: framing.Frame) -> bool:
        if frame.kind == framing.UNKNOWN:
            self._unknown += 1
            if self._unknown > MAX_UNKNOWN:
                return False
        self._size += len(frame.text)
        return len(self.entries) < MAX_TEXTS and self._size < MAX_TEXT_BYTES
