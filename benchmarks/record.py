"""What recording costs: capture, scopes, import, and the way from a log to a printed table.

    python benchmarks/record.py

Every figure stands beside its peer from the same run: the machine may be noisy, the ratio is what counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

ROUNDS = 40
CALLS = 500

LOOP = f"""
import statistics, sys, time
import cpulens
from cpulens.backends import mkldnn
from cpulens.native import onednn
import numpy as np

a = np.ones((8, 64), "float32")
source = onednn.memory_of(a)
primitive = onednn.Eltwise("eltwise_logistic", source.descriptor, source.descriptor)
primitive.bind(src=source)
primitive.allocate()

def loop():
    started = time.perf_counter()
    for _ in range({CALLS}):
        primitive.execute()
    return (time.perf_counter() - started) / {CALLS} * 1e6

def printed():
    with mkldnn.verbose("ON"):
        return loop()

def captured():
    with cpulens.record("ON", None):
        return loop()

for each in (loop, printed, captured):
    each()
rounds = [[each() for each in (loop, printed, captured)] for _ in range({ROUNDS})]
print(*(statistics.median(column) for column in zip(*rounds)),
      statistics.median(row[2] / row[1] for row in rounds), file=sys.stderr)
"""

SCOPES = """
import sys, time, cpulens
from cpulens.backends import mkl, mkldnn
from cpulens.native import onednn, mkl as native
import numpy as np
native.set_threading_layer("gnu")
onednn.matmul(np.ones((8, 8), "float32"), np.ones((8, 8), "float32"))
native.sgemm(np.ones((8, 8), "float32"), np.ones((8, 8), "float32"))

def cost(scope, times=2000):
    for _ in range(100):
        with scope():
            pass
    started = time.perf_counter()
    for _ in range(times):
        with scope():
            pass
    return (time.perf_counter() - started) / times * 1e6

print(cost(lambda: mkldnn.verbose("ON")), cost(lambda: mkl.verbose("ON")), cost(cpulens.record), file=sys.stderr)
"""


def floats(code: str) -> list[float]:
    """Run code in a process whose standard output is a file; the figures it prints on standard error."""
    with tempfile.TemporaryFile() as file:
        result = subprocess.run(
            [sys.executable, "-c", code], stdout=file, stderr=subprocess.PIPE, text=True, check=True
        )
    return [float(word) for word in result.stderr.split()]


def seconds(command: list[str], rounds: int = 9) -> float:
    """Median wall time of a command."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def thousand_lines(path: str) -> None:
    """A log of 1,000 real lines, over a few shapes."""
    code = """
import numpy as np
from cpulens.native import onednn
for times in range(1000):
    a = np.ones((8, 8 + times % 50), "float32")
    onednn.matmul(a, a.T.copy())
"""
    with open(path, "wb") as file:
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "ONEDNN_VERBOSE": "1"}, stdout=file, check=True)


def main() -> None:
    """Measure and print one table."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    silent, printed, captured, ratio = floats(LOOP)
    print(f"small primitive, {ROUNDS} rounds of {CALLS} calls in turn, median per call:")
    print(f"  verbose off                     {silent:8.2f} µs")
    print(f"  verbose on, stdout to a file    {printed:8.2f} µs")
    print(f"  captured by record()            {captured:8.2f} µs   {(ratio - 1) * 100:+.1f} % of printing to a file")
    onednn, mkl, record = floats(SCOPES)
    print("entering and leaving an empty scope, libraries known:")
    print(f"  mkldnn.verbose {onednn:.1f} µs, mkl.verbose {mkl:.1f} µs, record {record:.1f} µs")
    bare = seconds([sys.executable, "-c", "pass"])
    package = seconds([sys.executable, "-c", "import cpulens"])
    print(f"python {bare * 1e3:.0f} ms, with import cpulens {package * 1e3:.0f} ms")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "thousand.log")
        thousand_lines(log)
        top = seconds([sys.executable, "-m", "cpulens", "top", log])
        tables = seconds([sys.executable, "-c", "import polars, rich.table"])
        print(f"1,000 lines to a printed table {top:.2f} s, of it python, polars and rich alone {tables:.2f} s")


if __name__ == "__main__":
    main()
