"""How long `cpulens diff` takes on long runs, and how much memory.

    python benchmarks/diff.py [ROWS]

writes two runs of ROWS executions each (default 10 million, of 3,000 kernels, one of them slowed by 5 %), compares them
with and without a condition, and prints wall time, processor time and peak memory of the whole command.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from cpulens.trace import Trace
from cpulens.trace.schema import EVENT_COLUMNS
from cpulens.trace.tables import schema
from cpulens.verbose import load

KERNELS = 3000
STEP_MS = 2.0**-12
SLOWED = 7
LINE = (
    "onednn_verbose,exec,cpu,matmul,brg:avx512_core,undef,src_f32::blocked:ab::f0 wei_f32::blocked:ab::f0 "
    "dst_f32::blocked:ab::f0,,,{number}x64:64x64,1"
)


def write_run(path: Path, rows: int, seed: int, factor: float) -> None:
    """A run of kernels in fixed order, with medians from a microsecond to some milliseconds and 5 % of noise."""
    template = load("\n".join(LINE.format(number=number + 1) for number in range(KERNELS)).encode())
    medians = np.random.default_rng(0).lognormal(-3, 1.5, KERNELS)
    medians[SLOWED] *= factor
    text = np.tile(np.arange(KERNELS, dtype=np.uint32), rows // KERNELS + 1)[:rows]
    times = medians[text] * (1 + 0.05 * np.random.default_rng(seed).standard_normal(rows))
    known = {"seq": np.arange(rows), "line": np.arange(1, rows + 1), "text": text}
    known["duration_ms"] = np.round(times / STEP_MS) * STEP_MS
    events = pl.LazyFrame({**known, "inner": np.zeros(rows, bool)}).select(
        (pl.col(name) if name in (*known, "inner") else pl.lit(None)).cast(kind).alias(name)
        for name, kind in schema(EVENT_COLUMNS).items()
    )
    facts = {**template.facts, "lines": {"read": rows, "records": rows, "own": 0, "unknown": 0}}
    Trace(template.texts, events, facts).save(path, force=True)


def measured(*arguments: str) -> tuple[str, float, float, float]:
    """Output, wall seconds, processor seconds and peak MB of one command."""
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "cpulens", *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.returncode
    return output, time.perf_counter() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Write the runs and measure."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory(prefix="cpulens-benchmark-") as folder:
        base, new = Path(folder) / "base.cpulens", Path(folder) / "new.cpulens"
        for path, seed, factor in ((base, 1, 1.0), (new, 2, 1.05)):
            child = os.fork()
            if child == 0:  # what writing takes must not stand in the way of what comparing does
                write_run(path, rows, seed, factor)
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        print(f"{rows:,} executions a side, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
        for name, options in (("diff", []), ("with --where", ["--where", "duration_ms > 0.01"])):
            output, wall, processor, peak = measured("diff", "--limit", "1", *options, str(base), str(new))
            found = next(line for line in output.splitlines() if "slower, 1 kernel" in line)
            print(
                f"{name:>13}: {wall:5.1f} s, processor {processor:5.1f} s, peak {peak:5.0f} MB; found: {found.strip()}"
            )
        print(f"this process: peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
