"""What a recording holds: numbers equal to the raw lines, regions, iterations, facts, its table, its file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests_support import Program

PRELUDE = """
import collections, json, os, re, sys, threading, time
import numpy as np
import cpulens
from cpulens.native import mkl, onednn
mkl.set_threading_layer("gnu")
a = np.ones((64, 64), "float32")
image, kernel = np.ones((2, 8, 16, 16), "float32"), np.ones((16, 8, 3, 3), "float32")
def infer():
    onednn.convolution(image, kernel, formats="any")
    onednn.matmul(a, a)
    onednn.softmax(a)
    mkl.sgemm(a, a)
    mkl.rfft(a)
infer()
"""


def successful(result: subprocess.CompletedProcess[bytes]) -> str:
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    return result.stdout.decode()


def test_numbers_equal_the_raw_lines_and_fit_into_the_wall_time(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record("ON_CREATION") as recording:
    infer()
raw = open(recording.spill_path, "rb").read().decode()
expected = collections.defaultdict(list)
for line in raw.splitlines():
    if ",exec," in line:                       # a line of oneDNN 3.2: the kind is the fifth field, the time the last
        expected[line.split(",")[4]].append(float(line.rsplit(",", 1)[1]))
    elif call := re.match(r"MKL_VERBOSE (\\w+)\\(.*?\\)? ([\\d.]+)(us|ms|s) CNR", line):
        unit = {"us": 1e-3, "ms": 1.0, "s": 1e3}[call[3]]
        expected[call[1].lower()].append(float(call[2]) * unit)
found = {row.key[0]: row for row in recording.summary(by="primitive").rows}
assert set(found) == set(expected) >= {"convolution", "matmul", "softmax", "reorder", "sgemm", "fft"}, set(found)
for kind, times in expected.items():
    assert found[kind].calls == len(times)
    assert abs(found[kind].total_ms - sum(times)) < 1e-9, kind
    assert found[kind].first_ms == times[0] or abs(found[kind].first_ms - times[0]) < 1e-12
total = sum(map(sum, expected.values()))
summary = recording.summary()
assert abs(summary.total_ms - total) < 1e-9
assert total <= recording.facts["wall_ms"]
assert abs(sum(row.share for row in summary.rows) - 1) < 1e-9
"""
    )
    successful(program(code))


def test_regions_and_iterations(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.region("outside"):
    with cpulens.record() as recording:
        onednn.matmul(a, a)
        for number in range(3):
            cpulens.iteration()
            with cpulens.region("first"):
                onednn.matmul(a, a)
                with cpulens.region("with, comma / and slash"):
                    mkl.sgemm(a, a)
                onednn.softmax(a)
rows = recording.trace.frame.filter(__import__("polars").col("event") == "exec").select(
    "primitive", "region", "iteration").collect().rows()
print(json.dumps(rows))
"""
    )
    rows = json.loads(successful(program(code)))
    inner = "outside/first/with, comma / and slash"
    expected = [["matmul", "outside", None]]
    for number in range(3):
        expected += [
            ["matmul", "outside/first", number],
            ["sgemm", inner, number],
            ["softmax", "outside/first", number],
        ]
    assert rows == expected


def test_regions_of_two_threads_are_not_guessed(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as recording:
    with cpulens.region("main"):
        onednn.matmul(a, a)
        def other():
            with cpulens.region("other"):
                onednn.softmax(a)
        thread = threading.Thread(target=other); thread.start(); thread.join()
        onednn.matmul(a, a)
rows = recording.trace.frame.filter(__import__("polars").col("event") == "exec").select("primitive", "region")
print(json.dumps(rows.collect().rows()), recording.trace.facts["regions_ambiguous"])
"""
    )
    output = successful(program(code))
    assert output == '[["matmul", "main"], ["softmax", null], ["matmul", "main"]] 1\n'


def test_a_header_seen_earlier_is_among_the_facts(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as first:
    infer()
with cpulens.record() as second:
    infer()
for recording in (first, second):
    print([(one["library"], one["version"].split()[0]) for one in recording.trace.facts["libraries"]])
print(b",info," in second.raw(), recording.trace.events.collect()["start_ns"].drop_nulls().len() > 4)
"""
    )
    lines = successful(program(code)).splitlines()
    assert lines[0] == lines[1]
    assert "('onednn', '3.2.0')" in lines[0]
    assert "('mkl', '" in lines[0]
    assert lines[2] == "False True"


def test_stamps_lie_inside_the_block(program: Program) -> None:
    code = (
        PRELUDE
        + """
before = time.time_ns()
with cpulens.record() as recording:
    infer()
after = time.time_ns()
starts = recording.trace.events.collect()["start_ns"].drop_nulls()
assert len(starts) >= 4
assert before - 1_000_000 <= starts.min() and starts.max() <= after
"""
    )
    successful(program(code))


def test_the_printed_table_and_the_saved_run_say_the_same(program: Program, tmp_path: Path) -> None:
    run, raw = tmp_path / "a run.cpulens", tmp_path / "raw.log"
    code = (
        PRELUDE
        + f"""
with cpulens.record() as recording:
    infer()
recording.save({str(run)!r})
recording.save({str(raw)!r})
print(recording)
try:
    recording.save({str(run)!r})
except cpulens.errors.TraceFileError as error:
    print(error, file=sys.stderr)
"""
    )
    result = program(code)
    table = successful(result)
    for word in ("matmul", "convolution", "reorder", "sgemm", "fft", "oneDNN", "oneMKL", "wall time"):
        assert word in table
    assert b"exists" in result.stderr
    from_run, from_raw = (
        json.loads(
            subprocess.run([sys.executable, "-m", "cpulens", "top", str(path), "--json"], capture_output=True).stdout
        )
        for path in (run, raw)
    )
    assert from_run["rows"] == from_raw["rows"]
    assert from_run["lines"] == from_raw["lines"]
    assert from_run["facts"]["wall_ms"] >= from_run["total_ms"] > 0


def test_a_recording_entered_again_adds_up(program: Program) -> None:
    code = (
        PRELUDE
        + """
recording = cpulens.record()
@recording
def decorated():
    onednn.matmul(a, a)
decorated()
onednn.matmul(a, a)
decorated()
with recording, recording:
    onednn.matmul(a, a)
print(recording.summary(by="primitive").rows[0].calls, len(recording.facts["scopes_ms"]))
"""
    )
    assert successful(program(code)) == "3 3\n"


def test_results_can_be_asked_inside_the_block(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as recording:
    onednn.matmul(a, a)
    print(recording.summary(by="primitive").rows[0].calls)
    onednn.matmul(a, a)
    print(recording.summary(by="primitive").rows[0].calls)
print(recording.summary(by="primitive").rows[0].calls)
"""
    )
    assert successful(program(code)) == "1\n2\n2\n"


def test_a_library_loaded_inside_the_block(program: Program) -> None:
    code = """
import cpulens, numpy as np
with cpulens.record() as unmarked:
    from cpulens.native import onednn
    onednn.matmul(np.ones((4, 4), "f"), np.ones((4, 4), "f"))
print(unmarked.notes)
"""
    assert "was loaded inside the block and switched on only at its end" in successful(program(code))
    marked = """
import cpulens, numpy as np
with cpulens.record() as recording:
    from cpulens.native import onednn
    onednn.version()
    with cpulens.region("after loading"):
        onednn.matmul(np.ones((4, 4), "f"), np.ones((4, 4), "f"))
print(recording.notes, recording.summary(by="region").rows[0].key)
"""
    assert successful(program(marked)) == "[] ('after loading',)\n"


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("pass", ["oneDNN is not loaded", "oneMKL is not loaded"]),
        ("import numpy as np; np.ones((64, 64)) @ np.ones((64, 64))", ["OpenBLAS"]),
        ("import torch; torch.ones(3).sum()", ["libtorch_cpu.so was asked and printed nothing"]),
    ],
)
def test_nothing_recorded_says_why(program: Program, block: str, words: list[str]) -> None:
    result = program(f"import cpulens\n{block}\nwith cpulens.record() as recording:\n    {block}\nprint(recording)")
    assert result.returncode == 1
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("cpulens.errors.LogError: nothing was recorded; ")
    for word in words:
        assert word in last


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("cpulens.record('LOUD')", "UsageError: 'LOUD' is not a verbose level of onednn"),
        ("cpulens.record(mkl=2)", "UsageError: 2 is not a verbose level of mkl"),
        ("cpulens.record(max_bytes=0)", "UsageError: max_bytes=0"),
        ("cpulens.record(capture='pipe').__enter__()", "CaptureError: capture 'pipe' is not known"),
        ("cpulens.region('two\\nlines')", "UsageError: a marker's name is one line"),
        ("cpulens.record().trace", "CaptureError: nothing was recorded yet"),
    ],
)
def test_misuse_is_one_clear_sentence(program: Program, call: str, words: str) -> None:
    result = program(f"import cpulens\n{call}")
    assert result.returncode == 1
    assert result.stderr.decode().splitlines()[-1].startswith(f"cpulens.errors.{words}")
