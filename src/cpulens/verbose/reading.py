"""One reader of lines: the state that its kernels share, and the careful way for a single line."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cpulens.verbose import framing, pieces
from cpulens.verbose.columns import Columns
from cpulens.verbose.keys import Keys

_HINTS: Final = pieces.HINTS
_MARKERS: Final = (b"onednn_verbose,", b"MKL_VERBOSE ", b"dnnl_verbose,", b"mkldnn_verbose,", b"cpulens,v1,")
_ERRORS: Final = (b"MKL ERROR", b"MKL FATAL ERROR")
_KEPT_ERRORS: Final = 5
_UTF8_BOM: Final = b"\xef\xbb\xbf"


@dataclass
class Tally:
    """Pieces counted. `read` is always `records` + `own` + `unknown`."""

    records: int = 0
    own: int = 0
    unknown: int = 0
    cut: int = 0
    first_unknown: tuple[int, str] | None = None
    errors: list[tuple[int, str]] = field(default_factory=list)

    @property
    def read(self) -> int:
        """All pieces."""
        return self.records + self.own + self.unknown


class Reading:
    """Keys, columns and counts of one run through some lines."""

    def __init__(self, folder: Path | None = None) -> None:
        self.keys = Keys()
        self.columns = Columns(folder)
        self.tally = Tally()
        self.lines = 0
        #: Code of the record taken last, if the same text before any plain time is the same record.
        self.last_plain_code: int | None = None

    def careful(self, line: bytes, number: int) -> None:
        """Take one physical line apart, whatever it is; `number` is counted from 0."""
        if not (_HINTS[0] in line or _HINTS[1] in line or _HINTS[2] in line):
            self.own(line, number)
            return
        instance = None
        if number == 0:
            line = line.removeprefix(_UTF8_BOM)
        if not line.startswith(_MARKERS):
            from cpulens.verbose import prefixes

            found = prefixes.strip(line)
            line, instance = found.text, found.instance
        for piece in pieces.split(line):
            if piece.verbose:
                self.record(piece.text, number, instance)
            else:
                self.own(piece.text, number)

    def headed(self, line: bytes, number: int) -> None:
        """Take a line that begins like one with a marker, as a kernel has seen."""
        tail = line[8:]
        more = _HINTS[0] in tail or _HINTS[1] in tail or _HINTS[2] in tail
        if more or not pieces.MARKER.match(line):
            self.careful(line, number)
        else:
            self.record(line, number, None)

    def record(self, piece: bytes, number: int, instance: str | None) -> None:
        """Take a piece that begins with a marker."""
        frame = framing.frame(piece)
        code = self.keys.code(frame, instance)
        self.columns.add(code, number, frame.duration_ms, frame.start_ns)
        self.last_plain_code = None
        if frame.kind == framing.UNKNOWN:
            self.tally.unknown += 1
            if self.tally.first_unknown is None:
                self.tally.first_unknown = (number, frame.text[:400].decode("utf-8", "replace"))
            return
        self.tally.records += 1
        if frame.plain and instance is None and self.keys.entries[code].whole:
            self.keys.remember(frame, code)
            self.last_plain_code = code
        if frame.rest:
            self.own(frame.rest, number)

    def own(self, text: bytes, number: int) -> None:
        """Count a piece of the program's own text; oneMKL's error messages in it are noted."""
        self.tally.own += 1
        if b"ERROR" in text and len(self.tally.errors) < _KEPT_ERRORS and any(error in text for error in _ERRORS):
            self.tally.errors.append((number, text[:200].decode("utf-8", "replace").strip()))
