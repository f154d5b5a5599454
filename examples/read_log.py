"""Read a log that somebody sent: any version of oneDNN or oneMKL, whatever else is in it.

python examples/read_log.py [LOG …]
"""

import sys
from pathlib import Path

import polars as pl

import cpulens

logs = sys.argv[1:] or [str(Path(__file__).parent / "conv.log")]
trace = cpulens.load(*logs)

for library in trace.facts["libraries"]:
    print(library["library"], library["version"], library["isa"], sep=", ")
print(trace.facts["lines"])

# A trace is two tables and their join, as lazy polars frames: ask what you like.
creations = (
    trace.frame.filter(pl.col("event") == "create")
    .group_by("primitive", "cache")
    .agg(pl.len().alias("times"), pl.col("duration_ms").sum())
    .sort("duration_ms", descending=True)
)
for primitive, cache, times, duration_ms in creations.collect().iter_rows():
    print(f"{primitive} created {times} times ({cache}): {duration_ms:.2f} ms")
