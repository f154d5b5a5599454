"""What one stretch of a log came to: entries, counts, and columns in memory or in files. Many stretches are one log."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cpulens.verbose.columns import Columns
from cpulens.verbose.keys import Entry
from cpulens.verbose.reading import Reading, Tally
from cpulens.verbose.sequence import Row


@dataclass
class Part:
    """One stretch: `codes` index into `entries`; `lines` is how many physical lines it has."""

    entries: list[Entry]
    tally: Tally
    lines: int
    rows: int
    beyond: int
    beyond_unknown: int
    columns: Columns | None = None
    folder: Path | None = None
    _files: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, reading: Reading) -> Part:
        """Take what a reading in this process came to."""
        return cls(
            reading.keys.entries,
            reading.tally,
            reading.lines,
            len(reading.columns),
            reading.keys.beyond,
            reading.keys.beyond_unknown,
            reading.columns,
        )

    def read(self, first: int, last: int) -> list[array[Any]]:
        """Give rows `first` to before `last` as arrays: codes, lines, durations, starts."""
        if self.columns is not None:
            columns = self.columns
            return [column[first:last] for column in (columns.codes, columns.lines, columns.durations, columns.starts)]
        if not self._files:
            assert self.folder is not None
            self._files = [(self.folder / name).open("rb") for name in Columns.NAMES]
        found = []
        for file, kind in zip(self._files, Columns.TYPES, strict=True):
            column = array(kind)
            file.seek(first * column.itemsize)
            column.fromfile(file, last - first)
            found.append(column)
        return found

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._files.clear()


CHUNK_ROWS: Final = 1 << 18


class Log:
    """All parts of one log as one: codes count on through the parts, so do lines and rows."""

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts
        self.code_starts, self.line_starts, self.row_starts = [0], [0], [0]
        for part in parts:
            self.code_starts.append(self.code_starts[-1] + len(part.entries))
            self.line_starts.append(self.line_starts[-1] + part.lines)
            self.row_starts.append(self.row_starts[-1] + part.rows)

    @property
    def rows(self) -> int:
        """All records."""
        return self.row_starts[-1]

    def entries(self) -> Iterator[Entry]:
        """All entries, in the order of their codes."""
        for part in self.parts:
            yield from part.entries

    def chunks(self) -> Iterator[tuple[int, int, int, list[array[Any]]]]:
        """Give the columns piece by piece: number of the first row, what to add to codes and to lines, the arrays."""
        for at, part in enumerate(self.parts):
            for first in range(0, part.rows, CHUNK_ROWS):
                columns = part.read(first, min(first + CHUNK_ROWS, part.rows))
                yield self.row_starts[at] + first, self.code_starts[at], self.line_starts[at], columns

    def some_rows(self, first: int, last: int) -> list[Row]:
        """Give a few rows, wherever they lie."""
        found: list[Row] = []
        for at, part in enumerate(self.parts):
            start, end = max(first, self.row_starts[at]), min(last, self.row_starts[at + 1])
            if start < end:
                codes, _, durations, starts = part.read(start - self.row_starts[at], end - self.row_starts[at])
                before = self.code_starts[at]
                found += [Row(code + before, *rest) for code, *rest in zip(codes, durations, starts, strict=True)]
        return found

    def tally(self) -> Tally:
        """All counts together; line numbers count through the parts."""
        total = Tally()
        for start, part in zip(self.line_starts, self.parts, strict=False):
            tally = part.tally
            total.records += tally.records
            total.own += tally.own
            total.unknown += tally.unknown
            total.cut += tally.cut
            total.errors += [(start + number, text) for number, text in tally.errors]
            if total.first_unknown is None and tally.first_unknown is not None:
                total.first_unknown = (start + tally.first_unknown[0], tally.first_unknown[1])
        return total

    def close(self) -> None:
        """Close the files of all parts."""
        for part in self.parts:
            part.close()
