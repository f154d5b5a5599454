"""How fast verbose logs are read, in which memory, and against oneDNN's own converter.

Every run is a process of its own, timed from its start to a saved run file plus the sum by primitive and problem.
Memory is that of the process and its children together, looked at every 10 ms, and the largest of them alone as the
system accounts it.

    python benchmarks/parse.py                      # 1 M mixed lines, 1 M oneMKL lines, 1,000 lines to a table
    python benchmarks/parse.py --long 10 50         # and 10 M and 50 M mixed lines
    python benchmarks/parse.py --hostile            # all foreign, all torn, all different, one line of 1 GB
    python benchmarks/parse.py --peer DIR           # and the converter in DIR on the same plain v1 log
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import verbose_logs

_OURS = """
import sys
from cpulens.errors import LogError
from cpulens.verbose import load
try:
    trace = load(sys.argv[1])
except LogError as error:
    sys.exit(f"LogError: {error}")
trace.save(sys.argv[2])
import polars as pl
sums = (
    trace.events.group_by("text").agg(pl.len(), pl.col("duration_ms").sum()).collect(engine="streaming")
    .join(trace.texts, on="text").group_by("primitive", "problem").agg(pl.col("len").sum(), pl.col("duration_ms").sum())
)
lines = trace.facts["lines"]
assert lines["read"] == lines["records"] + lines["own"] + lines["unknown"]
print(len(sums), lines, trace.facts.get("lines_cut", 0))
"""


class Measured(NamedTuple):
    """One process: seconds from start to end, and memory in MB: of all its processes together, and of the largest."""

    seconds: float
    together_mb: float
    largest_mb: float
    output: str


class _Watch(threading.Thread):
    """Add up the resident memory of a process and its children until told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._ended = pid, threading.Event()
        self.most_bytes = 0

    def run(self) -> None:
        while not self._ended.wait(0.01):
            self.most_bytes = max(self.most_bytes, sum(_resident_bytes(pid) for pid in _family(self._pid)))

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(other for child in children for other in _family(int(child)))]


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def run(command: list[str], cwd: Path | None = None) -> Measured:
    """Run a command; its standard output is kept, its failure is shown."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd)
        watch = _Watch(process.pid)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        watch.stop()
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    return Measured(seconds, watch.most_bytes / 1e6, usage.ru_maxrss / 1e3, text.strip())


def read(log: Path, repeat: int) -> Measured:
    """Read a log with our reader, the best of some runs."""
    runs = []
    for _ in range(repeat):
        target = log.with_suffix(".cpulens")
        target.unlink(missing_ok=True)
        runs.append(run([sys.executable, "-c", _OURS, str(log), str(target)]))
    return min(runs, key=lambda measured: measured.seconds)


def show(name: str, log: Path, lines: int, repeat: int) -> Measured:
    """Measure one log and print a row."""
    count = min((run(["wc", "-l", str(log)]) for _ in range(3)), key=lambda measured: measured.seconds)
    found = read(log, repeat)
    size_mb = log.stat().st_size / 1e6
    rates = f"{lines / found.seconds / 1e6:7.2f} M lines/s {size_mb / found.seconds:7.0f} MB/s"
    memory = f"{found.together_mb:6.0f} MB together {found.largest_mb:6.0f} MB largest"
    print(f"{name:<22}{found.seconds:8.2f} s {rates} {memory} {found.seconds / count.seconds:6.1f} x wc -l")
    print(f"{'':<22}{found.output[:150]}", flush=True)
    return found


def small(folder: Path) -> None:
    """A thousand lines to a printed table, the best of ten."""
    log = folder / "small.log"
    verbose_logs.write(log, "mixed", 1000)
    best = min(
        (run([sys.executable, "-m", "cpulens", "top", str(log)]) for _ in range(10)), key=lambda one: one.seconds
    )
    print(f"{'1,000 lines, a table':<22}{best.seconds:8.2f} s", flush=True)


def peer(folder: Path, converter: Path, lines: int, repeat: int) -> None:
    """Run oneDNN's converter on the same plain v1 log: ratios, and the same calls and times for every key."""
    log = folder / "v1.log"
    verbose_logs.write(log, "v1", lines)
    ours = show("v1", log, lines, repeat)
    script = next(path for path in (converter / "verbose_converter.py", converter) if path.is_file())
    keys = ["prim_kind", "impl", "shapes"]
    command = [sys.executable, str(script), "-i", str(log), "-g", "breakdown", "-e", "exec", "-k", *keys]
    theirs = run(command, cwd=script.parent)
    print(
        f"{'verbose_converter':<22}{theirs.seconds:8.2f} s {lines / theirs.seconds / 1e6:7.2f} M lines/s "
        f"{theirs.together_mb:6.0f} MB: {theirs.seconds / ours.seconds:.1f} x our time, "
        f"{theirs.together_mb / ours.together_mb:.1f} x our memory"
    )
    print(f"{'':<22}{_same(log, theirs.output)}")


def _same(log: Path, breakdown: str) -> str:
    """Compare calls and times per key; theirs are rounded to 0.01 ms, and leave `gemm_api` out."""
    import polars as pl

    from cpulens.verbose import load

    keys = ["primitive", "implementation", "problem"]
    chosen = load(log).frame.filter((pl.col("event") == "exec") & (pl.col("primitive") != "gemm_api"))
    table = chosen.group_by(keys).agg(pl.len(), pl.col("duration_ms").sum()).collect(engine="streaming")
    ours = {row[:3]: row[3:] for row in table.rows()}
    rows = [row for row in csv.reader(breakdown.splitlines()) if len(row) > 5 and row[3].isdigit()]
    theirs = {tuple(row[:3]): (int(row[3]), float(row[4])) for row in rows}
    if ours.keys() != theirs.keys():
        raise SystemExit(f"the keys differ: {len(ours)} of ours, {len(theirs)} of theirs")
    for key, (calls, time_ms) in theirs.items():
        if ours[key][0] != calls or abs(ours[key][1] - time_ms) > 0.0051:
            raise SystemExit(f"{key}: {ours[key]} of ours, {(calls, time_ms)} of theirs")
    return f"calls and times equal for all {len(ours):,} keys"


def hostile(folder: Path) -> None:
    """Logs that are meant to be slow."""
    for kind in ("foreign", "torn", "different"):
        log = folder / f"{kind}.log"
        verbose_logs.write(log, kind, 1_000_000)
        if kind in ("foreign", "torn"):  # one whole record, for a log without any is refused
            with log.open("ab") as file:
                file.write(b"onednn_verbose,exec,cpu,sum,jit,undef,,,,8,0.5\n")
        show(f"1 M {kind}", log, 1_000_000, 1)
        log.unlink()
    log = folder / "wide.log"
    line = b"onednn_verbose,exec,cpu,sum,jit,undef,,,,8,0.5\n"
    with log.open("wb") as file:
        file.write(line)
        for _ in range(1000):
            file.write(b"x" * 1_000_000)
        file.write(b"\n" + line)
    show("one line of 1 GB", log, 3, 1)
    log.unlink()


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", nargs="*", type=int, default=[], metavar="MILLIONS", help="longer mixed logs as well")
    parser.add_argument("--hostile", action="store_true", help="logs that are meant to be slow")
    parser.add_argument("--peer", type=Path, metavar="DIR", help="a copy of oneDNN's scripts/verbose_converter")
    parser.add_argument("--lines", type=int, default=1_000_000, help="of the first logs (default: %(default)s)")
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of each, of which the best counts (default: %(default)s)"
    )
    parser.add_argument("--folder", type=Path, help="where the logs are made (default: a temporary folder)")
    args = parser.parse_args()
    print(f"{len(os.sched_getaffinity(0))} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        small(folder)
        for kind in ("mixed", "mkl"):
            log = folder / f"{kind}.log"
            verbose_logs.write(log, kind, args.lines)
            show(f"{kind}", log, args.lines, args.repeat)
        for millions in args.long:
            log = folder / "long.log"
            verbose_logs.write(log, "mixed", millions * 1_000_000)
            show(f"mixed, {millions} M", log, millions * 1_000_000, 1)
            log.unlink()
        if args.hostile:
            hostile(folder)
        if args.peer:
            peer(folder, args.peer.resolve(), args.lines, args.repeat)


if __name__ == "__main__":
    main()
