"""Where in a physical line the libraries' records stand.

A line is cut before every marker: what stands before the first one is the program's own text, each further piece
begins with its marker. Nothing is decoded: any bytes are right, and the pieces joined are the line again.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: A whole word before `_verbose`: `ov_cpu_verbose` and `xft_verbose` are other people's. What must follow a marker
#: keeps prose (`MKL_VERBOSE=1 python …`, `see onednn_verbose,`) with the program.
MARKER: Final = re.compile(
    rb"(?<![A-Za-z0-9_])(?:"
    rb"(?:mkldnn|dnnl|onednn)(?:_graph)?_verbose,(?=[a-z0-9])"
    rb"|MKL_VERBOSE (?=[A-Za-z])"
    rb"|cpulens,v1,(?=begin,|end,|iteration,)"
    rb")"
)


class Piece(NamedTuple):
    """One piece of a line: `verbose` tells a library's record (or what claims to be one) from the program's text."""

    verbose: bool
    text: bytes


def split(line: bytes) -> list[Piece]:
    """Cut one physical line, its end included, into pieces; an empty line is one piece of own text."""
    starts = [found.start() for found in MARKER.finditer(line)]
    if not starts:
        return [Piece(False, line)]
    pieces = [Piece(False, line[: starts[0]])] if starts[0] else []
    pieces += [Piece(True, line[start:end]) for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return pieces
