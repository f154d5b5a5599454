"""Captured bytes, parted: the libraries' lines, the program's own text, and the headers that come once per process.

The program's output has the first claim: a piece that carries a marker but doesn't look like a line of the library
(prose about `MKL_VERBOSE`, half a line) is handed on as own text, and kept for the reader all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from cpulens.verbose.pieces import split

_STAMP: Final = rb"(?:\d+[.,]\d+,|\d\.?\d*e\+\d+,)?"
_LINE: Final = re.compile(
    rb"(?:mkldnn|dnnl|onednn)(?:_graph)?_verbose,(?:v\d+,)?" + _STAMP + rb"(?:primitive,|graph,|ukernel,|common,)?"
    rb"(?:info|exec|create|create_nested|compile|error|warn|warning|debuginfo|cpu|gpu)[,:]"
    rb"|MKL_VERBOSE (?:(?:BEGIN |END )?[\w:]+\s*\(|FFT: |Detected |WARNING: |[^\n]*?build \d{8} )"
    rb"|cpulens,v1,(?:begin|end|iteration|layer),\d+(?:@\d+\.\d{6})?,"
)
_HINTS: Final = (b"_verbose,", b"MKL_VERBOSE ", b"cpulens,v1,")
_HEADER: Final = re.compile(
    rb"[a-z]+(?:_graph)?_verbose,(?:v\d+,)?(?:primitive,|graph,|common,)?info,[^\n]*"
    rb"|MKL_VERBOSE [^\n]*?build \d{8} [^\n]*"
)

#: What a chunk may end with that the next one could complete to a marker.
_MARKERS: Final = (
    *(name + b"_verbose," for name in (b"mkldnn", b"dnnl", b"onednn", b"dnnl_graph", b"onednn_graph")),
    b"MKL_VERBOSE ",
    *(b"cpulens,v1," + kind + b"," for kind in (b"begin", b"end", b"iteration", b"layer")),
)


class Parted(NamedTuple):
    """Bytes for the program's output, bytes for the reader, and the number of pieces of own text among the first."""

    own: bytes
    verbose: bytes
    own_pieces: int


def own_text(data: bytes) -> bytes:
    """What is left of `data` without the libraries' lines and markers, byte for byte."""
    return part(data).own


def part(data: bytes) -> Parted:
    """Part whole lines; a last line without its end is taken as it is."""
    own: list[bytes] = []
    verbose: list[bytes] = []
    pieces = 0
    for line in _lines(data):
        if not any(hint in line for hint in _HINTS):
            own.append(line)
            pieces += 1
            continue
        for piece in split(line):
            if piece.verbose:
                verbose.append(piece.text)
            if not piece.verbose or not _LINE.match(piece.text):
                own.append(piece.text)
            pieces += not piece.verbose
    return Parted(b"".join(own), b"".join(verbose), pieces)


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines that end at a newline only: a lone carriage return or form feed is the program's own."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def undecided(line: bytes) -> int:
    """How many bytes at the end of an unfinished line must wait for what follows: a record, or what may become one."""
    marked = next((len(piece.text) for piece in reversed(split(line)) if piece.verbose), 0)
    return marked or max((length for marker in _MARKERS for length in _overlaps(line, marker)), default=0)


def _overlaps(line: bytes, marker: bytes) -> Iterator[int]:
    return (length for length in range(1, len(marker) + 1) if line.endswith(marker[:length]))


def header_lines(data: bytes) -> list[bytes]:
    """The lines in which a library introduces itself: version, runtime, instruction set."""
    if b"info," not in data and b"build " not in data:
        return []
    return _HEADER.findall(data)


class Stream:
    """Parts a stream as it comes: own text leaves at once, a library's line when it is whole."""

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, chunk: bytes) -> Parted:
        """Take the next bytes; returns what can be said of them and of what waited."""
        data = self._waiting + chunk
        cut = data.rfind(b"\n") + 1
        ready, rest = data[:cut], data[cut:]
        keep = len(rest) - undecided(rest)
        self._waiting = rest[keep:]
        return _joined(part(ready), part(rest[:keep]))

    @property
    def may_be_text(self) -> bool:
        """Whether what waits is only a beginning of a marker, which a silent program may have meant as text."""
        return bool(self._waiting) and not any(piece.verbose for piece in split(self._waiting))

    def finish(self) -> Parted:
        """What still waited."""
        waiting, self._waiting = self._waiting, b""
        return part(waiting)


def _joined(first: Parted, second: Parted) -> Parted:
    return Parted(first.own + second.own, first.verbose + second.verbose, first.own_pieces + second.own_pieces)
