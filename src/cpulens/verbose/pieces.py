"""Where in a physical line the libraries' records stand.

A line is cut before every marker: what stands before the first one is the program's own text, each further piece
begins with its marker. Nothing is decoded: any bytes are right, and the pieces joined are the line again.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

#: A marker may follow anything, even a letter: two processes that share a pipe glue their lines in mid-word, and a
#: colour code ends in a letter. Other people's `ov_cpu_verbose` and `xft_verbose` don't end in these words. What must
#: follow keeps prose (`MKL_VERBOSE=1 python …`, `see onednn_verbose, which`) with the program.
MARKER: Final = re.compile(
    rb"(?:mkldnn|dnnl|onednn)(?:_graph)?_verbose,(?=[a-z0-9])"
    rb"|MKL_VERBOSE (?=[A-Z]|oneMKL |[a-z]\w*(?:\(|::))"
    rb"|cpulens,v1,(?=begin,|end,|iteration,|layer,)"
)

#: A line without any of these holds no marker: three searches are much quicker than the expression.
HINTS: Final = (b"_verbose,", b"MKL_VERBOSE ", b"cpulens,v1,")


class Piece(NamedTuple):
    """One piece of a line: `verbose` tells a library's record (or what claims to be one) from the program's text."""

    verbose: bool
    text: bytes


def split(line: bytes) -> list[Piece]:
    """Cut one physical line, its end included, into pieces; an empty line is one piece of own text."""
    if not (HINTS[0] in line or HINTS[1] in line or HINTS[2] in line):
        return [Piece(False, line)]
    first = MARKER.match(line)
    if first:
        tail = line[first.end() :]
        if not (HINTS[0] in tail or HINTS[1] in tail or HINTS[2] in tail):
            return [Piece(True, line)]
    starts = [found.start() for found in MARKER.finditer(line)]
    if not starts:
        return [Piece(False, line)]
    pieces = [Piece(False, line[: starts[0]])] if starts[0] else []
    pieces += [Piece(True, line[start:end]) for start, end in zip(starts, [*starts[1:], len(line)], strict=True)]
    return pieces
