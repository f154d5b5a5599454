"""oneMKL's lines: where the text, the time and the thread stand.

``MKL_VERBOSE NAME(args) <number><unit> CNR:… Dyn:… FastMM:… TID:… NThr:…``. The unit follows the magnitude, so the
number alone says nothing. Pointers differ in every line and say nothing of the problem: they become ``ptr``.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: After a comma or a bracket, or a name and a colon: `16:0x16` among the lengths of an FFT is none.
POINTER: Final = re.compile(rb"(?<=[,(])0x[0-9a-fA-F]*|(?<=[A-Za-z]:)0x[0-9a-fA-F]{5,16}")
HEADER: Final = re.compile(
    rb"MKL_VERBOSE ((?:Intel\(R\) MKL|oneMKL)\s.*?) (?:Product |Beta )?build (\d{8}) for (.*), (\w+) ([\d.,]+)GHz(.*)",
    re.DOTALL,
)
_CALL: Final = re.compile(
    rb"MKL_VERBOSE (.*) (\d+)(?:[.,](\d+))?(ns|us|ms|s)"
    rb"((?: +(?:CNR:[A-Z0-9_]+(?:,[A-Z]+)?|Dyn:\d|FastMM:\d|TID:\d+|NThr:\d+(?:,[A-Za-z]\w*:\d+)*"
    rb"|WDiv:\w+:[-+]?\d+[.,]\d+|GPU\d+))*)",
    re.DOTALL,
)
_NAME: Final = re.compile(rb"(?:END )?[A-Za-z_][\w:]*\s?[(:]")
_THREAD: Final = re.compile(rb" +TID:(\d{1,9})(?: (?= ))*")
_PLAIN: Final = re.compile(rb"(?: [A-Z][A-Za-z]*:[^ ]+)*?(?: TID:\d+ *)?(?: NThr:[^ ]+)?")
_OTHER: Final = re.compile(rb"MKL_VERBOSE (?:BEGIN \w+\(.*\)\s*$|Detected GPU|WARNING|ERROR)", re.DOTALL)
#: Powers of ten from a unit to milliseconds, as a numerator and a denominator: one rounding only.
_SCALE: Final = {b"ns": (1, 10**6), b"us": (1, 10**3), b"ms": (1, 1), b"s": (1000, 1)}


class Line(NamedTuple):
    """A oneMKL line cut up: `text` is the line without pointers, time and thread."""

    text: bytes
    duration_ms: float | None
    thread: int | None
    plain: bool
    rest: bytes


def cut(piece: bytes) -> Line | None:
    """Cut pointers, time and thread out of a line; None when it isn't a whole line of any version."""
    found = _CALL.match(piece)
    if found and _NAME.match(found[1]):
        call, whole, decimals, unit, tail = found.groups()
        thread = _THREAD.search(tail)
        text = b"MKL_VERBOSE " + POINTER.sub(b"ptr", call) + b" " + _THREAD.sub(b"", tail).strip()
        rest = piece[found.end() :].strip(b" \t")
        duration_ms: float | None = milliseconds(whole, decimals or b"", unit)
        on_gpu = b" GPU" in tail
        if on_gpu and duration_ms == 0:
            duration_ms = None  # level 1 doesn't time what runs on a GPU, and prints 0.00s
        plain = not rest and not on_gpu and decimals is not None
        return Line(text, duration_ms, int(thread[1]) if thread else None, plain, rest)
    if HEADER.match(piece) or _OTHER.match(piece):
        return Line(POINTER.sub(b"ptr", piece), None, None, False, b"")
    return None


def milliseconds(whole: bytes, decimals: bytes, unit: bytes) -> float:
    """Read a number with its unit as milliseconds, rounded once: the double nearest to what is printed."""
    up, down = _SCALE[unit]
    scaled: float = (int(whole + decimals) * up) / (down * 10 ** len(decimals))
    return scaled


def coarse(text: bytes) -> bytes:
    """Give the text without its arguments."""
    call, opened, after = text.partition(b"(")
    if not opened:
        return b"MKL_VERBOSE"
    return call + b"()" + (after.rpartition(b")")[2] if b")" in after else b"")
