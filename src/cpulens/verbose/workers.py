"""Long files are read by several processes, each by a range of bytes.

Processes, not threads: two threads gain little under the interpreter's lock. Each is a fresh interpreter that runs this
module, so nothing is forked from a program with threads. It writes columns to files and its entries to one more.
"""

from __future__ import annotations

import gc
import itertools
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from cpulens.errors import LogError
from cpulens.trace.backing import Backing
from cpulens.verbose import source
from cpulens.verbose.keys import Entry
from cpulens.verbose.parts import Part
from cpulens.verbose.reading import Reading

MOST: Final = 8
_RESULT: Final = "result"
_DONE: Final = "done"
_EARLY: Final = "early-"
_ERRORS: Final = "errors"
_POLL_SECONDS: Final = 0.02


def count(wanted: int | None) -> int:
    """Say how many processes shall read: as many as wanted, or one per usable CPU, at most 8."""
    if wanted is not None:
        return max(wanted, 1)
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST)


def read(
    path: Path,
    size_bytes: int,
    processes: int,
    prepare: Callable[[list[Entry]], None],
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[list[Part], Backing]:
    """Read a file with so many processes; the backing holds the columns of the parts.

    `prepare` is called with the first process's entries while they come, so that they can be understood meanwhile.
    """
    backing = Backing()
    bounds = [size_bytes * at // processes for at in range(processes + 1)]
    started: list[tuple[subprocess.Popen[bytes], Path]] = []
    try:
        for start, end in itertools.pairwise(bounds):
            folder = backing.folder / f"part-{len(started)}"
            folder.mkdir()
            started.append((_start(path, start, end, folder), folder))
        _warm_up()
        _watch(started, size_bytes, prepare, progress)
        parts = [_finished(process, folder) for process, folder in started]
    except BaseException:
        for process, _ in started:
            process.kill()
            process.communicate()
        backing.close()
        raise
    return parts, backing


def _start(path: Path, start: int, end: int, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "cpulens.verbose.workers", str(path), str(start), str(end), str(folder)]
    # numpy would start a pool of threads for linear algebra, of which there is none here.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with (folder / _ERRORS).open("wb") as errors:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors, env=environment)


def _warm_up() -> None:
    """Load what will be needed next while the others read."""
    import numpy
    import polars

    del numpy, polars


def _watch(
    started: list[tuple[subprocess.Popen[bytes], Path]],
    size_bytes: int,
    prepare: Callable[[list[Entry]], None],
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Use the time until the processes have ended: understand texts, and tell how far they are."""
    seen = 0
    while any(process.poll() is None for process, _ in started):
        early = started[0][1] / f"{_EARLY}{seen}"
        if early.exists():
            with early.open("rb") as file:
                prepare(pickle.load(file))
            seen += 1
            continue
        if progress is not None:
            progress(sum(_done_bytes(folder) for _, folder in started), size_bytes)
        time.sleep(_POLL_SECONDS)


def _done_bytes(folder: Path) -> int:
    with suppress(OSError, ValueError):
        return int((folder / _DONE).read_text())
    return 0


def _finished(process: subprocess.Popen[bytes], folder: Path) -> Part:
    if process.wait() != 0:
        last = (folder / _ERRORS).read_text("utf-8", "replace").strip().rpartition("\n")[2]
        raise LogError(
            f"A reading process ended with code {process.returncode}: {last or 'no word'}. "
            "Try again with one process (--workers 1)."
        )
    with (folder / _RESULT).open("rb") as file:
        part: Part = pickle.load(file)
    return part


class _Teller:
    """What a process tells while it reads: bytes done, and its entries early on, in batches."""

    def __init__(self, folder: Path, reading: Reading) -> None:
        self._folder, self._reading = folder, reading
        self._done = (folder / _DONE).open("w", encoding="ascii")
        self._bytes = self._blocks = self._batches = self._told = 0

    def block(self, size_bytes: int) -> None:
        """Tell of one more block; entries after 4, 16, 64, … blocks."""
        self._bytes += size_bytes
        self._blocks += 1
        self._done.seek(0)
        self._done.write(str(self._bytes))
        self._done.flush()
        if self._blocks == 4 ** (self._batches + 1):
            batch = self._folder / f"{_EARLY}{self._batches}"
            with batch.with_suffix(".part").open("wb") as file:
                pickle.dump(self._reading.keys.entries[self._told :], file, protocol=pickle.HIGHEST_PROTOCOL)
            batch.with_suffix(".part").rename(batch)
            self._told = len(self._reading.keys.entries)
            self._batches += 1

    def close(self) -> None:
        """Stop telling."""
        self._done.close()


def main(arguments: list[str]) -> None:
    """Read one range: path, first byte, last byte, folder for the result."""
    from cpulens.verbose.kernel_numpy import Kernel

    gc.disable()  # there are no cycles here, and looking for them takes longer than reading
    path, folder = Path(arguments[0]), Path(arguments[3])
    reading = Reading(folder)
    kernel = Kernel(reading)
    file, limit = source.from_descriptor_range(path, int(arguments[1]), int(arguments[2]))
    with file, closing(_Teller(folder, reading)) as teller:
        for block in source.blocks(file, limit):
            kernel.feed(block.data)
            reading.tally.cut += block.cut
            teller.block(len(block.data))
    reading.columns.close()
    part = Part.of(reading)
    part.columns, part.folder = None, folder
    with (folder / _RESULT).open("wb") as result:
        pickle.dump(part, result, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main(sys.argv[1:])
