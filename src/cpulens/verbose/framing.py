"""From one piece of a line to its frame: the constant text, and the stamp, time and thread that vary.

Two lines that say the same of the same problem have the same text, so each text has to be understood only once.
The frame is decided by the piece alone: every era of every library may stand in one log.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cpulens.verbose import mkl_framing, onednn_framing

ONEDNN: Final = 1
MKL: Final = 2
MARKER: Final = 3
UNKNOWN: Final = 0

_MARKER_LINE: Final = re.compile(
    rb"(cpulens,v1,(?:begin|end|iteration|layer),)(\d{1,9})(?:@(\d{1,12}|[1-8]\d{12})\.(\d{6}))?,(.*)", re.DOTALL
)
_ANSI: Final = re.compile(rb"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Frame(NamedTuple):
    """A record without what varies.

    `duration_ms` is None where the line prints no time; `start_ns` and `thread` are None where it has none. `plain`:
    the same text before any other plain decimal number is the same record, so a kernel may trust it. `rest`: what
    follows the record on the line without being part of it.
    """

    kind: int
    text: bytes
    duration_ms: float | None = None
    start_ns: int | None = None
    thread: int | None = None
    plain: bool = False
    rest: bytes = b""


def frame(piece: bytes) -> Frame:
    """Frame a piece that begins with a marker; its kind is UNKNOWN when the piece is not a whole record."""
    if piece[-1:] in (b"\n", b"\r"):
        piece = piece.rstrip(b"\r\n")
    if b"\x1b" in piece:
        piece = _ANSI.sub(b"", piece)
    if piece.startswith(b"MKL_VERBOSE "):
        call = mkl_framing.cut(piece)
        if call:
            return Frame(MKL, call.text, call.duration_ms, None, call.thread, call.plain, call.rest)
    elif piece.startswith(b"cpulens,"):
        found = _MARKER_LINE.fullmatch(piece)
        if found:
            start_ns = int(found[3] + found[4]) if found[3] else None
            return Frame(MARKER, found[1] + found[5], None, start_ns, int(found[2]))
    else:
        line = onednn_framing.cut(piece)
        if line:
            return Frame(ONEDNN, line.text, line.duration_ms, line.start_ns, None, line.plain, line.rest)
    return Frame(UNKNOWN, piece)


def coarse(kind: int, text: bytes) -> bytes:
    """Give the text without the fields that tell problems apart: what is kept of it beyond the limit of texts."""
    if kind == ONEDNN:
        return onednn_framing.coarse(text)
    if kind == MKL:
        return mkl_framing.coarse(text)
    if kind == MARKER:
        return b",".join([*text.split(b",", 3)[:3], b""])
    return b""
