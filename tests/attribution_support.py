"""What the tests of attribution share."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

#: What every program begins with. `kernels(trace)`: [layer, what ran] of each execution, in order.
PRELUDE = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent / "integration" / "attribution")!r})
import polars as pl
import torch
import cpulens
import models

torch.set_num_threads(2)
COLUMNS = ["library", "primitive", "implementation", "tensors", "problem", "auxiliary", "attributes"]

def kernels(trace):
    rows = trace.frame.filter(pl.col("event") == "exec").select("layer", *COLUMNS).collect().rows()
    return [[layer, " ".join(map(str, what))] for layer, *what in rows]

def recorded(call, model=None, **options):
    recording = cpulens.record(**options)
    if model is not None:
        recording.watch(model)
    with recording, torch.no_grad():
        call()
    return recording

def say(**values):
    print(json.dumps(values))
"""


def said(result: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr.decode()
    values: dict[str, Any] = json.loads(result.stdout.decode().splitlines()[-1])
    return values
