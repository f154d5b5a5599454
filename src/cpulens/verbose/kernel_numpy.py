"""The kernel for long logs: numpy finds lines, stamps and times of a whole block at once.

What it takes is right by construction: a line is a known head, perhaps a stamp, a text that the careful way has
understood as a whole line before, and a plain decimal number. All else goes the careful way, line by line.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cpulens.verbose import numbers_numpy
from cpulens.verbose.columns import NO_START, NO_TIME, Columns
from cpulens.verbose.kernel_mkl import Calls
from cpulens.verbose.pieces import HINTS
from cpulens.verbose.reading import Reading

#: What a line may begin with; a longer head stands before a shorter one that begins the same.
_HEADS: Final = (
    b"onednn_verbose,v1,",
    b"onednn_verbose,v0,",
    b"onednn_verbose,",
    b"dnnl_verbose,",
    b"mkldnn_verbose,",
    b"onednn_graph_verbose,",
)
_MKL: Final = b"MKL_VERBOSE "
_NONE: Final = np.empty(0, np.int64)
#: Lines shorter than this go the careful way.
_SHORTEST: Final = 48
#: A stamp is 13 digits of milliseconds, a point, 6 more digits, a comma: from 2001 to 2286.
_STAMP_BYTES: Final = 21
_STAMP_DIGITS: Final = [*range(13), *range(14, 20)]
_ALLOCATION_BYTES: Final = 31 << 20
#: Short cuts kept for each head.
_KEPT_KEYS: Final = 200_000


class Kernel:
    """Feed blocks of whole lines into a reading."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        # The allocator learns from this that blocks are worth keeping, instead of giving each back to the system.
        bytearray(_ALLOCATION_BYTES)
        #: Short cuts: body of a line, to its last comma or to its end → code.
        self._timed: dict[bytes, dict[bytes, int]] = {head: {} for head in _HEADS}
        self._untimed: dict[bytes, dict[bytes, int]] = {head: {} for head in _HEADS}
        self._mkl: dict[bytes, int] = {}

    def feed(self, block: bytes) -> None:
        """Read a block of whole lines; its last line may lack an end."""
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        if not block.endswith(b"\n"):
            block += b"\n"
        lines = _Lines(block)
        for head in _HEADS:
            self._head(lines, head)
        self._mkl_lines(lines)
        if lines.headless == lines.count:
            self._no_heads(block, lines)
        else:
            self._rest(lines)

    def _no_heads(self, block: bytes, lines: _Lines) -> None:
        """Take a block in which no line begins with a marker: most often the program's own text throughout."""
        reading = self.reading
        if any(hint in block for hint in HINTS) or b"ERROR" in block:
            for number, line in enumerate(block[:-1].split(b"\n"), reading.lines):
                reading.careful(line, number)
        else:
            reading.tally.own += lines.count
        reading.lines += lines.count

    def _head(self, lines: _Lines, head: bytes) -> None:
        rows = lines.with_head(head)
        if not len(rows):
            return
        bodies = lines.starts[rows] + len(head)
        bodies = bodies + lines.stamps(rows, bodies)
        timed, numbers, times = lines.times(rows)
        for chosen, ends, known in (
            (timed, numbers, self._timed[head]),
            (~timed, lines.ends[rows], self._untimed[head]),
        ):
            at = rows[chosen]
            if not len(at):
                continue
            begins, stops = bodies[chosen].tolist(), ends[chosen].tolist()
            # A key that is looked up and dropped at once stays in the processor's cache; a list of them would not.
            data, code_of = lines.data, known.get
            codes = np.array([code_of(data[begin:stop], -1) for begin, stop in zip(begins, stops, strict=True)])
            for miss in np.flatnonzero(codes < 0).tolist():
                lines.keys[int(at[miss])] = (known, head, data[begins[miss] : stops[miss]])
            lines.codes[at] = codes
        lines.durations[rows[timed]] = times[timed]

    def _mkl_lines(self, lines: _Lines) -> None:
        rows = lines.with_head(_MKL)
        if not len(rows):
            return
        starts, ends = lines.starts[rows], lines.ends[rows]
        data = lines.data
        texts = [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        calls = Calls(texts, ends - starts)
        code_of = self._mkl.get
        codes = np.array([code_of(key, -1) for key in calls.keys])
        codes[~calls.usual] = -1
        lines.durations[rows] = calls.durations_ms
        for at in np.flatnonzero((codes < 0) & calls.usual).tolist():
            lines.keys[int(rows[at])] = (self._mkl, _MKL, calls.keys[at])
        lines.codes[rows] = codes

    def _rest(self, lines: _Lines) -> None:
        """Take what is left the careful way, and put all records into the order of their lines."""
        reading = self.reading
        outer, reading.columns = reading.columns, Columns()
        try:
            rows = np.flatnonzero(lines.codes < 0)
            bounds = lines.starts[rows].tolist(), lines.ends[rows].tolist()
            for row, start, end in zip(rows.tolist(), *bounds, strict=True):
                self._careful(lines, row, start, end)
            careful = reading.columns
        finally:
            reading.columns = outer
        done = np.flatnonzero(lines.codes >= 0)
        reading.tally.records += len(done)
        codes = lines.codes[done].astype(np.uint32)
        columns: list[Any] = [codes, done + reading.lines, lines.durations[done], lines.start_ns[done]]
        if len(careful.codes):
            others: tuple[Any, ...] = (careful.codes, careful.lines, careful.durations, careful.starts)
            columns = [
                np.concatenate([mine, np.frombuffer(other, other.typecode)])
                for mine, other in zip(columns, others, strict=True)
            ]
            order = np.argsort(columns[1], kind="stable")
            columns = [column[order] for column in columns]
        outer.extend(columns)
        reading.lines += lines.count
        outer.settle()

    def _careful(self, lines: _Lines, row: int, start: int, end: int) -> None:
        reading = self.reading
        shortcut = lines.keys.get(row)
        if shortcut is None:
            reading.careful(lines.data[start:end], reading.lines + row)
            return
        known, head, key = shortcut
        code = known.get(key)
        if code is not None:  # its text became known earlier in this block
            lines.codes[row] = code
            return
        reading.headed(lines.data[start:end], reading.lines + row)
        if head is _MKL:
            code = reading.last_plain_code
        elif known is self._timed[head]:
            code = reading.keys.timed.get(head + key)
        else:
            code = reading.keys.untimed.get(head + key)
        if code is not None and len(known) < _KEPT_KEYS:
            known[key] = code


class _Lines:
    """One block as columns: where its lines begin and end, and what is known of each."""

    def __init__(self, block: bytes) -> None:
        self.data = block
        self._bytes = np.frombuffer(block, np.uint8)
        self._words: Any = np.ndarray((max(len(block) - 7, 0),), "<u8", block, strides=(1,))
        self.ends = np.flatnonzero(self._bytes == 10)
        self.count = len(self.ends)
        self.starts = np.empty_like(self.ends)
        self.starts[0] = 0
        np.add(self.ends[:-1], 1, out=self.starts[1:])
        self.codes = np.full(self.count, -1, np.int64)
        self.durations = np.full(self.count, NO_TIME)
        self.start_ns = np.full(self.count, NO_START)
        #: Row → its short cut's table, head and key, for rows whose key wasn't known.
        self.keys: dict[int, Any] = {}
        #: Rows that are long enough for every look at a fixed distance, and their first 8 bytes.
        self._rows = np.flatnonzero(self.ends - self.starts >= _SHORTEST)
        self._first_words = self._words[self.starts[self._rows]]
        self._left = len(self._rows)
        #: How many lines began with no head that was asked for.
        self.headless = self.count

    def with_head(self, head: bytes) -> Any:
        """Give the rows that begin with a head, and take them away."""
        if not self._left:
            return _NONE
        at_rows = np.flatnonzero(self._first_words == int.from_bytes(head[:8], "little"))
        for at in range(8, len(head), 8):
            if not len(at_rows):
                return at_rows
            part = head[at : at + 8]
            mask = np.uint64((1 << 8 * len(part)) - 1)
            words = self._words[self.starts[self._rows[at_rows]] + at] & mask
            at_rows = at_rows[words == int.from_bytes(part, "little")]
        if not len(at_rows):
            return _NONE
        self._first_words[at_rows] = 0
        self._left -= len(at_rows)
        self.headless -= len(at_rows)
        return self._rows[at_rows]

    def stamps(self, rows: Any, at: Any) -> Any:
        """Read the stamps that stand at these places, and give their lengths: 0 where there is none."""
        lengths = np.zeros(len(rows), np.int64)
        some = np.flatnonzero((self._bytes[at] - 48 < 10) & (self.ends[rows] - at > _STAMP_BYTES))
        if not len(some):
            return lengths
        columns = numbers_numpy.windows(self._bytes, at[some], _STAMP_BYTES)
        right = (columns[13] == 46) & (columns[20] == 44)
        digits = columns[_STAMP_DIGITS] - 48
        right &= (digits < 10).all(axis=0)
        start_ns = numbers_numpy.integers(digits)[right]
        some = some[right]
        self.start_ns[rows[some]] = start_ns
        lengths[some] = _STAMP_BYTES
        return lengths

    def times(self, rows: Any) -> tuple[Any, Any, Any]:
        """Read the plain decimal number after the last comma: whether there is one, where it begins, the value."""
        right, begins, mantissa, decimals = numbers_numpy.decimals(self._bytes, self.ends[rows], ord(","))
        return right, begins, mantissa / numbers_numpy.POWERS[decimals]
