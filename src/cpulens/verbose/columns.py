"""What a kernel gives: four plain columns, in memory or in files."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

#: In `durations`: the line prints no time.
NO_TIME: Final = -sys.float_info.max
#: In `starts`: the line has no stamp.
NO_START: Final = -(2**63)
#: Rows kept in memory before they go to the files.
_FLUSH_ROWS: Final = 1 << 18


class Columns:
    """One row per record: its code, the number of its line (from 0), its time and its start.

    With a `folder` the columns go to files there (`codes`, `lines`, `durations`, `starts`, native byte order), so a log
    of any length takes the same memory.
    """

    NAMES: Final = ("codes", "lines", "durations", "starts")
    TYPES: Final = ("I", "q", "d", "q")

    def __init__(self, folder: Path | None = None) -> None:
        self.codes: array[int] = array("I")
        self.lines: array[int] = array("q")
        self.durations: array[float] = array("d")
        self.starts: array[int] = array("q")
        self._files = [open(folder / name, "wb") for name in self.NAMES] if folder else []  # noqa: SIM115
        self.rows_flushed = 0

    def _all(self) -> tuple[array[Any], ...]:
        return self.codes, self.lines, self.durations, self.starts

    def __len__(self) -> int:
        return self.rows_flushed + len(self.codes)

    def add(self, code: int, line: int, duration_ms: float | None, start_ns: int | None) -> None:
        """Add one record."""
        self.codes.append(code)
        self.lines.append(line)
        self.durations.append(NO_TIME if duration_ms is None else duration_ms)
        self.starts.append(NO_START if start_ns is None else start_ns)

    def extend(self, columns: Sequence[Any]) -> None:
        """Add many records: four arrays of the columns' types, in the columns' order."""
        for mine, more in zip(self._all(), columns, strict=True):
            mine.frombytes(memoryview(more).cast("B"))

    def settle(self) -> None:
        """Move rows to the files when there are enough of them."""
        if self._files and len(self.codes) >= _FLUSH_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left and close the files."""
        if self._files:
            self._flush()
            for file in self._files:
                file.close()

    def _flush(self) -> None:
        self.rows_flushed += len(self.codes)
        for file, column in zip(self._files, self._all(), strict=True):
            column.tofile(file)
            del column[:]
