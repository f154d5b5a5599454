"""The Chrome trace: its documented form, slices that nest, durations that are the table's."""

from __future__ import annotations

import gzip
import io
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cpulens
from analyze_support import EPOCH_MS, F32, header, mark, run, sgemm, trace_of
from cpulens.cli import main
from cpulens.report.chrome import write_chrome
from cpulens.trace import Trace

LOGS = [
    log
    for log in sorted((Path(__file__).parents[2] / "data" / "logs").glob("*.log"))
    if b"_verbose," in log.read_bytes() or b"MKL_VERBOSE" in log.read_bytes()
]


def chrome(trace: Trace) -> dict[str, Any]:
    file = io.BytesIO()
    write_chrome(trace, file)
    return json.loads(file.getvalue())


def slices(document: dict[str, Any], kind: str = "") -> list[dict[str, Any]]:
    """Complete events; of kernels only, unless a kind is named."""
    found = [event for event in document["traceEvents"] if event["ph"] == "X"]
    return [one for one in found if (one["cat"] == kind if kind else "," in one["cat"])]


def ns(microseconds: float) -> int:
    """Written with three decimals."""
    return round(microseconds * 1000)


def check_form(document: dict[str, Any]) -> None:
    """What the Trace Event Format asks of an object and of the phases X, C and M."""
    assert isinstance(document["traceEvents"], list)
    assert document["displayTimeUnit"] in ("ms", "ns")
    for event in document["traceEvents"]:
        assert isinstance(event["name"], str) and event["name"]
        assert type(event["pid"]) is int and type(event["tid"]) is int
        assert isinstance(event["args"], dict)
        if event["ph"] == "X":
            assert isinstance(event["cat"], str)
            assert event["ts"] >= 0 and event["dur"] >= 0
        elif event["ph"] == "C":
            assert event["ts"] >= 0
            assert event["args"] and all(type(value) in (int, float) for value in event["args"].values())
        else:
            assert event["ph"] == "M"
            known = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}
            assert list(event["args"]) == [known[event["name"]]]


def check_nesting(document: dict[str, Any]) -> None:
    """Two slices of a thread are apart, or the later one lies in the earlier one, in the order of the file."""
    open_: dict[tuple[int, int], list[int]] = defaultdict(list)
    last: dict[tuple[int, int], int] = defaultdict(int)
    for event in document["traceEvents"]:
        if event["ph"] != "X":
            continue
        thread = (event["pid"], event["tid"])
        begin, end = ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])
        assert begin >= last[thread]
        last[thread] = begin
        while open_[thread] and open_[thread][-1] <= begin:
            open_[thread].pop()
        assert not open_[thread] or end <= open_[thread][-1], event
        open_[thread].append(end)


def check_durations(document: dict[str, Any], trace: Trace) -> None:
    """Each kernel's slices sum to the table's time, to half a nanosecond a slice."""
    table = (
        trace.frame.filter(pl.col("event").is_in(["exec", "create", "compile"]))
        .filter(pl.col("duration_ms").is_finite() & (pl.col("duration_ms") >= 0))
        .collect()
    )
    written: dict[str, int] = defaultdict(int)
    for one in slices(document):
        written[one["name"].split()[-1]] += ns(one["dur"])
    expected: dict[str, list[float]] = defaultdict(list)
    for row in table.iter_rows(named=True):
        expected[row["implementation"] or row["primitive"] or row["component"]].append(row["duration_ms"])
    assert written.keys() == {name.split()[-1] for name in expected}
    assert len(slices(document)) == len(table)
    total = sum(sum(times) for times in expected.values())
    assert sum(written.values()) == pytest.approx(total * 1e6, abs=0.5 * len(table) + 1)
    for name, times in expected.items():
        if sum(other.split()[-1] == name.split()[-1] for other in expected) == 1:
            assert written[name.split()[-1]] == pytest.approx(sum(times) * 1e6, abs=0.5 * len(times) + 1)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_every_real_log_gives_a_valid_trace(log: Path) -> None:
    trace = cpulens.load(log)
    document = chrome(trace)
    check_form(document)
    check_nesting(document)
    check_durations(document, trace)


LINES = st.one_of(
    st.builds(
        lambda at, time: run(time, start_ms=at),
        st.integers(0, 400).map(lambda step: step / 16),
        st.sampled_from([0.0, 0.000244, 0.25, 1.0, 3.0625, 9.0]),
    ),
    st.builds(sgemm, st.sampled_from([0.5, 2.0])),
    st.builds(run, st.sampled_from([0.5, 2.0])),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, min_size=1, max_size=25))
def test_slices_nest_however_calls_overlap(lines: list[str]) -> None:
    trace = trace_of(header(), *lines)
    document = chrome(trace)
    check_form(document)
    check_nesting(document)
    check_durations(document, trace)


def test_stamped_slices_stand_at_their_time() -> None:
    document = chrome(trace_of(header(), run(1.5, start_ms=10), run(0.5, start_ms=20.25)))
    assert [(one["ts"], one["dur"]) for one in slices(document)] == [(0, 1500), (10250, 500)]
    assert int(document["otherData"]["origin_unix_ns"]) == (EPOCH_MS + 10) * 1_000_000


def test_without_stamps_slices_lie_end_to_end_and_say_so() -> None:
    document = chrome(trace_of(header(), run(1.5), run(0.5), run(2.0)))
    assert [(one["ts"], one["dur"]) for one in slices(document)] == [(0, 1500), (1500, 500), (2000, 2000)]
    assert document["otherData"]["origin_unix_ns"] is None
    assert "end to end" in document["otherData"]["time"]
    assert all(one["args"]["time_stamp"] == "none" for one in slices(document))
    names = [event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"]
    assert all("end to end" in name for name in names)


def test_a_call_without_a_stamp_follows_what_stands_before_it() -> None:
    document = chrome(trace_of(header(), run(1.0, start_ms=0), sgemm(2.0), run(1.0, start_ms=5)))
    assert sorted((one["ts"], one["dur"]) for one in slices(document)) == [(0, 1000), (1000, 2000), (5000, 1000)]


def test_calls_at_the_same_time_get_lanes_of_their_own() -> None:
    document = chrome(trace_of(header(), run(4.0, start_ms=0), run(4.0, start_ms=1), run(1.0, start_ms=4.5)))
    assert [one["tid"] for one in sorted(slices(document), key=lambda one: one["ts"])] == [1, 2, 1]


def test_a_step_of_the_clock_is_no_overlap() -> None:
    document = chrome(trace_of(header(), run(1.0, start_ms=0), run(1.0, start_ms=0.999756)))
    assert [(one["tid"], one["ts"]) for one in slices(document)] == [(1, 0), (1, 1000)]


def test_layers_and_regions_are_around_their_kernels() -> None:
    trace = trace_of(
        header(),
        mark("begin", "forward", at_ms=0),
        mark("layer", "encoder.fc1", at_ms=0.5),
        run(1.0, start_ms=1),
        mark("layer", "encoder.fc2", at_ms=2),
        run(1.0, start_ms=3),
        mark("layer", "", at_ms=4.5),
        mark("end", "forward", at_ms=5),
    )
    document = chrome(trace)
    check_nesting(document)
    around = {one["name"]: (one["ts"], one["dur"]) for kind in ("region", "layer") for one in slices(document, kind)}
    assert around == {"forward": (0, 3000), "encoder": (0, 3000), "encoder.fc1": (0, 1000), "encoder.fc2": (2000, 1000)}


def test_counters_are_the_sum_of_what_runs() -> None:
    # 64 × 64 × 64 products of two operations: 524,288 of them in 1 ms are 0.524288 GFLOP/s.
    document = chrome(trace_of(header(threads=2), run(1.0, start_ms=0), run(1.0, start_ms=0.5)))
    counted = defaultdict(list)
    for event in document["traceEvents"]:
        if event["ph"] == "C":
            counted[event["name"]].append((event["ts"], event["args"][event["name"]]))
    one, both = pytest.approx(0.524288, rel=1e-5), pytest.approx(1.048576, rel=1e-5)
    assert counted["GFLOP/s"] == [(0, one), (500, both), (1000, one), (1500, 0)]
    assert counted["threads"] == [(0, 2), (500, 4), (1000, 2), (1500, 0)]


def test_each_instance_is_a_process(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.log").write_text(header() + run(1.0, start_ms=0))
    target = tmp_path / "both.trace.json.gz"
    assert main(["export", str(tmp_path / "one.log"), str(tmp_path / "two.log"), "-o", str(target)]) == 0
    document = json.loads(gzip.decompress(target.read_bytes()))
    check_form(document)
    names = {
        event["pid"]: event["args"]["name"] for event in document["traceEvents"] if event["name"] == "process_name"
    }
    assert [one["pid"] for one in slices(document)] == [1, 2]
    assert "one" in names[1] and "two" in names[2]


def test_hostile_text_stays_text() -> None:
    evil = run(1.0, "matmul", 'x</script>"\u2028\x07\u202e', "1x1:1x1", F32)
    document = chrome(trace_of(header(), evil))
    check_form(document)
    file = io.BytesIO()
    write_chrome(trace_of(header(), evil), file)
    assert all(32 <= byte < 127 or byte == 10 for byte in file.getvalue())
    assert any("\\x07" in one["name"] and "\\u2028" in one["name"] for one in slices(document))
