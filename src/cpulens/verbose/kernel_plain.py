"""The kernel for small inputs: the standard library alone, so that a thousand lines are read before numpy is loaded."""

from __future__ import annotations

import re
from typing import Final

from cpulens.verbose.reading import Reading

_STAMP: Final = re.compile(rb"((?:onednn|dnnl)_verbose,(?:v\d,)?)(\d{1,15})\.(\d{6}),")
_TIME: Final = re.compile(rb"\d{1,9}(?:\.\d{1,12})?")


def feed(reading: Reading, block: bytes) -> None:
    """Read a block of whole lines; its last line may lack an end."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    timed, add = reading.keys.timed, reading.columns.add
    number, records = reading.lines, 0
    for line in lines:
        if line.endswith(b"\r"):
            line = line[:-1]
        stamp = _STAMP.match(line)
        start_ns = None
        text = line
        if stamp:
            start_ns = int(stamp[2] + stamp[3])
            text = stamp[1] + line[stamp.end() :]
        comma = text.rfind(b",") + 1
        code = timed.get(text[:comma])
        if code is not None and _TIME.fullmatch(text, comma):
            add(code, number, float(text[comma:]), start_ns)
            records += 1
        else:
            reading.careful(line, number)
        number += 1
    reading.tally.records += records
    reading.lines = number
    reading.columns.settle()
