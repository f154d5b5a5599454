"""Comparisons of recordings made here and now: the same program, and one that does more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from comparison_support import diff_json
from cpulens.analyze.compare import compare
from cpulens.trace import Trace
from tests_support import Program

CODE = """
import sys
import numpy as np
import cpulens
from cpulens.native import onednn
path, iterations, formats, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
image, weights = np.ones((1, 16, size, size), "float32"), np.ones((32, 16, 3, 3), "float32")
a = np.ones((64, 256), "float32")
b = np.ones((256, 64), "float32")
def infer():
    onednn.convolution(image, weights, formats=formats)
    for _ in range(3):
        onednn.matmul(a, b)
    onednn.softmax(a)
infer()
with cpulens.record(onednn="ON") as recording:
    for _ in range(iterations):
        cpulens.iteration()
        infer()
recording.save(path)
"""


@pytest.fixture
def recorded(program: Program, tmp_path: Path):  # type: ignore[no-untyped-def]
    def run(name: str, iterations: int, formats: str = "any", size: int = 16, threads: str = "1") -> str:
        path = str(tmp_path / f"{name}.cpulens")
        result = program(CODE, path, str(iterations), formats, str(size), OMP_NUM_THREADS=threads)
        assert result.returncode == 0, result.stderr.decode()
        return path

    return run


def test_reshuffled_iterations_of_a_real_run_are_the_same(recorded) -> None:  # type: ignore[no-untyped-def]
    trace = Trace.open(recorded("long", 300))
    rng, tries, alarms = np.random.default_rng(5), 100, 0
    events = trace.events.collect()
    for _ in range(tries):
        half = rng.permutation(300)[:150].tolist()
        chosen = pl.col("iteration").is_in(half)
        sides = [trace.with_events(events.filter(part).lazy()) for part in (chosen, ~chosen)]
        found = compare(*sides)
        alarms += found.total.significant or any(kernel.effect.significant for kernel in found.kernels)
    assert alarms <= 0.03 * tries  # at most 1 % are expected; 3 of 100 leave room for chance


def test_more_work_and_other_settings_are_told(recorded) -> None:  # type: ignore[no-untyped-def]
    base, new = recorded("base", 40), recorded("new", 60, size=48, threads="2")
    _, found = diff_json(base, new)
    differences = {one["name"]: (one["base"], one["new"]) for one in found["differences"]}
    assert differences["OMP_NUM_THREADS"] == ("1", "2")
    assert differences["oneDNN threads"] == (1, 2)
    assert (found["basis"]["base"], found["basis"]["new"]) == (40, 60)
    # Nine times the pixels: another convolution, with reorders of its own.
    kinds = {kernel["primitive"]: kernel["kind"] for kernel in found["kernels"]}
    assert kinds["convolution"] == "other work"
    assert kinds["softmax"] == "matched"
    matmul = next(kernel for kernel in found["kernels"] if kernel["primitive"] == "matmul")
    assert matmul["base"]["calls"] == matmul["new"]["calls"] == 3


def test_layouts_chosen_by_the_library_bring_reorders(recorded) -> None:  # type: ignore[no-untyped-def]
    _, found = diff_json(recorded("plain", 30, "plain"), recorded("any", 30, "any"))
    convolution = next(kernel for kernel in found["kernels"] if kernel["primitive"] == "convolution")
    assert convolution["kind"] == "matched"
    assert "layout" in [change["what"] for change in convolution["changes"]]
    added = [kernel for kernel in found["kernels"] if kernel["kind"] == "added"]
    assert added and {kernel["primitive"] for kernel in added} == {"reorder"}
    assert all(kernel["new"]["calls"] == 1 for kernel in added)
    cause = next(cause for cause in found["causes"] if cause["text"].startswith("reorder: only in new"))
    assert cause["delta_ms"] == pytest.approx(sum(kernel["delta_ms"] for kernel in added))
