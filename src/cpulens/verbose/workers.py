"""Long files are read by several processes, each by a range of bytes.

Processes, not threads: two threads gain little under the interpreter's lock. Each is a fresh interpreter that runs this
module, so nothing is forked from a program with threads. It writes columns to files and its entries to one more.
"""

from __future__ import annotations

import itertools
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cpulens.errors import LogError
from cpulens.trace.backing import Backing
from cpulens.verbose import source
from cpulens.verbose.parts import Part
from cpulens.verbose.reading import Reading

MOST: Final = 8
_RESULT: Final = "result"
_DONE: Final = "done"
_POLL_SECONDS: Final = 0.1


def count(size_bytes: int, wanted: int | None, least_bytes: int) -> int:
    """Say how many processes are worth it: one per usable CPU, each with at least `least_bytes` / 2 to read."""
    if wanted is not None:
        return max(wanted, 1)
    if size_bytes < least_bytes:
        return 1
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, MOST)


def read(
    path: Path, size_bytes: int, processes: int, progress: Callable[[int, int | None], None] | None = None
) -> tuple[list[Part], Backing]:
    """Read a file with so many processes; the backing holds the columns of the parts."""
    backing = Backing()
    bounds = [size_bytes * at // processes for at in range(processes + 1)]
    started: list[tuple[subprocess.Popen[bytes], Path]] = []
    try:
        for start, end in itertools.pairwise(bounds):
            folder = backing.folder / f"part-{len(started)}"
            folder.mkdir()
            module = [sys.executable, "-P", "-m", "cpulens.verbose.workers"]
            command = [*module, str(path), str(start), str(end), str(folder)]
            started.append((subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE), folder))
        _warm_up()
        if progress is not None:
            _watch([process for process, _ in started], [folder for _, folder in started], size_bytes, progress)
        parts = [_finished(process, folder) for process, folder in started]
    except BaseException:
        for process, _ in started:
            process.kill()
            process.communicate()
        backing.close()
        raise
    return parts, backing


def _warm_up() -> None:
    """Load what will be needed next while the others read."""
    import numpy
    import polars

    del numpy, polars


def _watch(
    processes: list[subprocess.Popen[bytes]],
    folders: list[Path],
    size_bytes: int,
    progress: Callable[[int, int | None], None],
) -> None:
    """Tell how far the processes are until they have ended."""
    while any(process.poll() is None for process in processes):
        done = 0
        for folder in folders:
            with suppress(OSError, ValueError):
                done += int((folder / _DONE).read_text())
        progress(done, size_bytes)
        time.sleep(_POLL_SECONDS)


def _finished(process: subprocess.Popen[bytes], folder: Path) -> Part:
    _, words = process.communicate()
    if process.returncode != 0:
        last = words.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise LogError(
            f"A reading process ended with code {process.returncode}: {last or 'no word'}. "
            "Try again with one process (--processes 1)."
        )
    with (folder / _RESULT).open("rb") as file:
        part: Part = pickle.load(file)
    return part


def main(arguments: list[str]) -> None:
    """Read one range: path, first byte, last byte, folder for the result."""
    from cpulens.verbose.kernel_numpy import Kernel

    path, folder = Path(arguments[0]), Path(arguments[3])
    reading = Reading(folder)
    kernel = Kernel(reading)
    done_bytes = 0
    done = (folder / _DONE).open("w", encoding="ascii")
    file, limit = source.from_descriptor_range(path, int(arguments[1]), int(arguments[2]))
    with file, done:
        for block in source.blocks(file, limit):
            kernel.feed(block.data)
            reading.tally.cut += block.cut
            done_bytes += len(block.data)
            done.seek(0)
            done.write(str(done_bytes))
            done.flush()
    reading.columns.close()
    part = Part.of(reading)
    part.columns, part.folder = None, folder
    with (folder / _RESULT).open("wb") as result:
        pickle.dump(part, result, protocol=pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main(sys.argv[1:])
