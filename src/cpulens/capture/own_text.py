"""Captured bytes, parted: the program's own text, and the headers that the libraries print once per process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cpulens.verbose.pieces import split

_STARTS: Final = (b"onednn_verbose,", b"MKL_VERBOSE ", b"dnnl_verbose,", b"cpulens,v1,")
_HINTS: Final = (b"_verbose,", b"MKL_VERBOSE ", b"cpulens,v1,")
_HEADER: Final = re.compile(
    rb"[a-z]+_verbose,(?:v\d+,)?(?:primitive,|graph,|common,)?info,[^\n]*|MKL_VERBOSE [^\n]*?build \d{8} [^\n]*"
)


def own_text(data: bytes) -> bytes:
    """What is left of `data` without the libraries' lines and markers, byte for byte."""
    return b"".join(_own_parts(data))


def _own_parts(data: bytes) -> Iterator[bytes]:
    for line in _lines(data):
        if not any(hint in line for hint in _HINTS):
            yield line
        elif not line.startswith(_STARTS) or sum(line.count(hint) for hint in _HINTS) > 1:
            yield from (piece.text for piece in split(line) if not piece.verbose)


def _lines(data: bytes) -> Iterator[bytes]:
    """Lines that end at a newline only: a lone carriage return or form feed is the program's own."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start) + 1 or len(data)
        yield data[start:end]
        start = end


def header_lines(data: bytes) -> list[bytes]:
    """The lines in which a library introduces itself: version, runtime, instruction set."""
    if b"info," not in data and b"build " not in data:
        return []
    return _HEADER.findall(data)
