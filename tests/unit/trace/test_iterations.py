"""Iterations found by the period of the kernels."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import UsageError
from cpulens.trace.iterations import Period, find_period, mark, warm_up
from cpulens.verbose import load

DATA = Path(__file__).parents[2] / "data" / "logs"


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=30, unique=True),
    st.integers(3, 20),
    st.lists(st.integers(100, 200), max_size=10),
    st.lists(st.integers(300, 400), max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_a_repeated_sequence_is_found(once: list[int], times: int, before: list[int], after: list[int]) -> None:
    """Kernels of a set-up before, of a clean-up after, neither longer than what repeats."""
    sequence = before + once * times + after
    if len(before) + len(after) <= len(once) * times:
        assert find_period(sequence) == Period(len(before), len(once), times)


def test_layers_that_repeat_inside_are_not_the_iteration() -> None:
    layer = [1, 2, 3]
    iteration = [0, *layer * 6, 9]
    assert find_period(iteration * 4) == Period(0, len(iteration), 4)


def test_a_last_iteration_that_was_cut_counts_only_as_what_follows() -> None:
    assert find_period([1, 2, 3, 4] * 5 + [1, 2]) == Period(0, 4, 5)


def test_chance_has_no_period() -> None:
    rng = random.Random(7)
    assert find_period([rng.randrange(40) for _ in range(3000)]) is None
    assert find_period([]) is None
    assert find_period([1]) is None
    assert find_period(list(range(50))) is None


@pytest.mark.parametrize(
    ("times_ms", "count"),
    [([9, 5, 2, 2, 2, 2], 2), ([2, 2, 2, 2], 0), ([9, 2], 0), ([2.5, 2, 2, 9, 2, 2], 0), ([30, 2, 2, 2], 1), ([], 0)],
)
def test_warm_up_is_what_begins_clearly_slower(times_ms: list[float], count: int) -> None:
    assert warm_up(times_ms) == count


@pytest.mark.parametrize(
    ("name", "length", "count"),
    # Counted in the raw text: executions of the file over the iterations that its description names.
    [
        ("torch213_resnet_all_ts.log", 35, 3),
        ("torch213_conv_v2.log", 11, 4),
        ("torch213_cache_storm_v2.log.gz", 2108, 2),
    ],
)
def test_real_logs(name: str, length: int, count: int) -> None:
    trace = mark(load(DATA / name), "auto")
    told = trace.facts["iterations"]
    assert (told["found"], told["length"], told["count"], told["before"], told["after"]) == (
        "period",
        length,
        count,
        0,
        0,
    )
    runs = trace.frame.filter(pl.col("event") == "exec").collect()
    assert runs["iteration"].to_list() == [number for number in range(count) for _ in range(length)]


def test_a_log_without_a_period_says_so() -> None:
    trace = mark(load(DATA / "onednn_v3.1_cpp_v2_ts.log"), "auto")
    assert trace.facts["iterations"]["found"] is None
    assert trace.facts["notes"] == ["Iterations: the 30 executions have no repeating period."]
    assert trace.events.select(pl.col("iteration").null_count()).collect().item() == 65


def test_markers_win() -> None:
    run = "onednn_verbose,v1,primitive,exec,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,8,0.5\n"
    trace = load(("cpulens,v1,iteration,1,\n" + run * 6).encode())
    assert mark(trace, "auto") is trace
    with pytest.raises(UsageError, match="no way to find iterations"):
        mark(trace, "guess")


def test_each_instance_has_its_own_period(tmp_path: Path) -> None:
    line = "onednn_verbose,v1,primitive,exec,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,{},0.5\n"
    (tmp_path / "a.log").write_text("".join(line.format(size) for size in (1, 2)) * 5)
    (tmp_path / "b.log").write_text("".join(line.format(size) for size in (1, 2, 3)) * 4)
    trace = mark(load(tmp_path / "a.log", tmp_path / "b.log"), "auto")
    told = trace.facts["iterations"]
    assert [(told[name]["length"], told[name]["count"]) for name in ("a.log", "b.log")] == [(2, 5), (3, 4)]
    last = trace.events.group_by("instance", maintain_order=True).agg(pl.col("iteration").max()).collect()
    assert last.rows() == [("a.log", 4), ("b.log", 3)]
