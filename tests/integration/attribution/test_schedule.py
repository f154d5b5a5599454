"""A schedule records the iterations that were asked for, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attribution_support import PRELUDE, said
from cpulens.errors import UsageError
from cpulens.recording import Schedule
from tests_support import Program


@given(
    wait=st.integers(0, 3), warmup=st.integers(0, 3), active=st.integers(1, 3), repeat=st.integers(0, 3),
    iterations=st.integers(0, 40),
)  # fmt: skip
def test_phases_are_those_of_a_drawn_out_list(
    wait: int, warmup: int, active: int, repeat: int, iterations: int
) -> None:
    cycle = ["wait"] * wait + ["warmup"] * warmup + ["active"] * active
    drawn = cycle * (repeat or 41) + ["wait"] * 41
    schedule = Schedule(wait, warmup, active, repeat)
    assert [schedule.phase(at) for at in range(iterations)] == drawn[:iterations]
    assert schedule.phase(-1) == "wait"
    assert Schedule.parse(str(schedule)) == schedule


@pytest.mark.parametrize("words", ["active=0", "wait=-1", "wait", "pause=1", "wait=1,wait=2", "active=1.5", ""])
def test_a_schedule_that_is_none_is_refused(words: str) -> None:
    with pytest.raises(UsageError):
        Schedule.parse(words)


#: Iteration n convolves n + 2 images, so that each kernel says in which iteration it ran.
CODE = """
images, weights = torch.randn(32, 16, 8, 8), torch.randn(16, 16, 3, 3)
def one(count):
    torch.conv2d(images[:count], weights)
def run(iterations):
    for number in range(iterations):
        cpulens.iteration()
        with cpulens.region("all"):
            one(number + 2)
"""
RECORD = """
schedule = cpulens.Schedule(wait=2, warmup=1, active=2, repeat=2)
recording = cpulens.record(schedule=schedule)
one(32)
with recording:
    one(32)
    run(20)
convolutions = recording.trace.frame.filter(pl.col("event") == "exec", pl.col("primitive") == "convolution")
rows = convolutions.select(pl.col("problem").str.extract(r"mb(\\d+)_"), "iteration", "region").collect().rows()
never = cpulens.record(schedule=schedule)
with never:
    run(2)
unmarked = cpulens.record(schedule=schedule)
with unmarked:
    one(32)
words = []
for empty in (never, unmarked):
    try:
        empty.trace
    except cpulens.errors.CaptureError as error:
        words.append(str(error))
say(rows=rows, facts=recording.facts, words=words)
"""


@pytest.mark.torch
def test_a_recording_in_the_process(program: Program) -> None:
    result = program(PRELUDE + CODE + RECORD)
    assert b"verbose" not in result.stdout.rpartition(b"\n{")[0]
    values = said(result)
    asked = [3, 4, 8, 9]
    assert values["rows"] == [[str(number + 2), at, "all"] for at, number in enumerate(asked)]
    assert values["facts"]["schedule"] == {"wait": 2, "warmup": 1, "active": 2, "repeat": 2, "iterations": asked}
    assert len(values["facts"]["scopes_ns"]) == 2
    assert "2 iterations began" in values["words"][0]
    assert "no cpulens.iteration() was called" in values["words"][1]


@pytest.mark.torch
def test_a_recorded_command(program: Program, tmp_path: Path) -> None:
    script, run = tmp_path / "script.py", tmp_path / "run.cpulens"
    script.write_text(PRELUDE + CODE + "one(32); run(10); print('own text')\n")
    code = f"""
import subprocess, sys
def cpulens(*words):
    return subprocess.run([sys.executable, "-m", "cpulens", *words], capture_output=True, text=True)
record = ["record", "-o", {str(run)!r}, "--force", "--schedule", "wait=3,active=2,repeat=1"]
done = cpulens(*record, "--", sys.executable, {str(script)!r})
assert (done.returncode, done.stdout) == (0, "own text\\n"), done
top = cpulens("top", {str(run)!r}, "--json", "--by", "primitive,problem,iteration,region")
refused = cpulens(*record, "--onednn", "ON,dispatch", "--", "true")
import json
print(json.dumps({{"top": json.loads(top.stdout), "refused": [refused.returncode, refused.stderr]}}))
"""
    values: dict[str, Any] = json.loads(program(code).stdout)
    rows = values["top"]["rows"]
    ran = {(row["problem"].partition("_")[0], row["iteration"]) for row in rows if row["primitive"] == "convolution"}
    assert ran == {("mb5", 0), ("mb6", 1)}
    assert {row["region"] for row in rows} == {"all"}
    assert values["refused"][0] == 2
    assert "takes numbers only" in values["refused"][1]
