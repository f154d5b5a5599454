"""Parts of a spill: what each entering of a recording's block caught, as one log or as raw text."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Final, NamedTuple

from cpulens.capture.spill import Spill

_IN_MEMORY_BYTES: Final = 16 << 20


class Slice(NamedTuple):
    """The part of a spill that belongs to one entering of the block, and what was known when it began.

    `preamble`: the headers that the libraries had printed before, and the regions that were open.
    """

    spill: Spill
    start: int
    end: int
    preamble: bytes


@contextlib.contextmanager
def joined(slices: list[Slice]) -> Iterator[bytes | str]:
    """The slices as one log: in memory while they are small, else a file, which the reader reads in parts."""
    if sum(part.end - part.start for part in slices) <= _IN_MEMORY_BYTES:
        yield b"".join(part.spill.read(part.start, part.end) for part in slices)
        return
    with tempfile.NamedTemporaryFile(prefix="cpulens-slice-") as file:
        for part in slices:
            for start in range(part.start, part.end, _IN_MEMORY_BYTES):
                file.write(part.spill.read(start, min(start + _IN_MEMORY_BYTES, part.end)))
        file.flush()
        yield file.name


def last_whole_line(spill: Spill, start: int, end: int) -> int:
    """Where the last whole line before `end` ends."""
    tail_start = max(start, end - (1 << 16))
    cut = spill.read(tail_start, end).rfind(b"\n") + 1
    return tail_start + cut if cut else end


def write_raw(path: str | os.PathLike[str], data: bytes, force: bool) -> None:
    """Write bytes to a new file. Raises TraceFileError when it exists, unless `force`, or can't be written."""
    from cpulens.errors import TraceFileError

    try:
        with open(path, "wb" if force else "xb") as file:
            file.write(data)
    except FileExistsError:
        raise TraceFileError(f"{os.fspath(path)} exists; choose another name, or force=True to replace it") from None
    except OSError as error:
        raise TraceFileError(f"{os.fspath(path)} can't be written: {error.strerror}") from error
