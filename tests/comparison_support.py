"""Logs and traces for tests of comparisons."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl

from cpulens.trace import Trace
from cpulens.verbose import load

HEADER = "onednn_verbose,info,oneDNN v3.2.0 (commit 40112196287e8866a7259df35f817229454d0c96)"
STEP_MS = 2.0**-12


def matmul(
    problem: str = "64x64:64x64",
    *,
    implementation: str = "brg:avx512_core",
    dt: str = "f32",
    tag: str = "ab",
    attributes: str = "",
) -> str:
    """A line of oneDNN 3.2 up to its time."""
    tensors = f"src_{dt}::blocked:ab::f0 wei_{dt}::blocked:{tag}::f0 dst_{dt}::blocked:ab::f0"
    return f"onednn_verbose,exec,cpu,matmul,{implementation},undef,{tensors},{attributes},,{problem},"


def reorder(source: str, target: str, problem: str = "64x64") -> str:
    tensors = f"src_f32::blocked:{source}::f0 dst_f32::blocked:{target}::f0"
    return f"onednn_verbose,exec,cpu,reorder,jit:uni,undef,{tensors},,,{problem},"


def log(calls: Iterable[tuple[str, float]], header: str = HEADER) -> Trace:
    """Read a log of these lines and times."""
    lines = [header, *(f"{text}{time:g}" for text, time in calls)]
    return load("\n".join(lines).encode() + b"\n")


def iterations(count: int, calls: Sequence[tuple[str, float]], header: str = HEADER) -> Trace:
    """Read a log in which the program marked its iterations, each of the same calls."""
    body = [f"{text}{time:g}" for text, time in calls]
    lines = [header]
    for number in range(count):
        lines += [f"cpulens,v1,iteration,1,{number}", *body]
    return load("\n".join(lines).encode() + b"\n")


def quantised(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Times as the clock of oneDNN gives them."""
    return np.round(np.maximum(values, 0) / STEP_MS) * STEP_MS


def sampled(times: dict[str, np.ndarray[Any, Any]], rng: np.random.Generator) -> Trace:
    """A trace of kernels with these times, in random order: problem → times."""
    template = log([(matmul(problem), 1.0) for problem in times])
    runs = template.texts.filter(pl.col("event") == "exec")
    codes = dict(zip(runs["problem"], runs["text"], strict=True))
    text = np.concatenate([np.full(len(values), codes[problem]) for problem, values in times.items()])
    duration = np.concatenate(list(times.values()))
    order = rng.permutation(len(text))
    return of_events(template, text[order], duration[order])


def of_events(
    template: Trace, text: np.ndarray[Any, Any], duration: np.ndarray[Any, Any], iteration: Any = None
) -> Trace:
    """The texts of a trace with other events."""
    schema = template.events.collect_schema()
    columns = {
        "seq": np.arange(len(text)),
        "line": np.arange(1, len(text) + 1),
        "text": text,
        "duration_ms": duration,
        "inner": np.zeros(len(text), bool),
    }
    if iteration is not None:
        columns["iteration"] = iteration
    events = pl.DataFrame(columns).select(
        (pl.col(name) if name in columns else pl.lit(None)).cast(kind).alias(name) for name, kind in schema.items()
    )
    return template.with_events(events.lazy())


def cpulens(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "cpulens", *arguments], input=stdin, capture_output=True)


def diff_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and the object of `cpulens diff --json`."""
    result = cpulens("diff", "--json", *arguments)
    assert result.returncode in (0, 3), result.stderr
    return result.returncode, json.loads(result.stdout)
