"""Record one or both sides of a planted fault: `python run.py NAME SIDE RUN.cpulens [SIDE RUN.cpulens]`.

A program has `faulty()` and `healthy()`. Each prepares what is not to be recorded, and returns the part that is.
"""

import importlib
import sys

import cpulens

program = importlib.import_module(sys.argv[1])
for side, path in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
    part = getattr(program, side)()
    with cpulens.record(onednn=getattr(program, "ONEDNN", "ON"), mkl="ON") as recording:
        part()
    recording.save(path)
