"""Conditions, slices of iterations and shares."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison_support import iterations, log, matmul, reorder
from cpulens.analyze.selection import Selection, condition, covering, iteration_slice, select, share
from cpulens.analyze.summary import largest, summarize
from cpulens.errors import CpulensError, LogError, UsageError
from cpulens.trace import Trace


def mixed() -> Trace:
    return log([(matmul("8x8:8x8"), 2.0), (matmul("9x9:9x9"), 0.5), (reorder("ab", "ba"), 0.25)] * 4)


@pytest.mark.parametrize(
    ("where", "records"),
    [
        ("primitive == 'matmul'", 8),
        ("primitive = 'matmul' and duration_ms > 1", 4),
        ("primitive == 'matmul' AND NOT problem LIKE '8x%'", 4),
        ("primitive in ('reorder', 'pooling')", 4),
        ("event == 'info'", 1),
        ("region is null", 13),
        # Null is neither true nor false: the header has no primitive, and is left out by both.
        ("primitive != 'matmul'", 4),
        ("not primitive == 'matmul'", 4),
        ("duration_ms between 0.3 and 0.6", 4),
    ],
)
def test_conditions_choose_records(where: str, records: int) -> None:
    chosen = select(mixed(), Selection(where))
    assert len(chosen.events.collect()) == records
    assert chosen.facts["notes"][-1] == f"only where {where} ({records} of 13 records)"
    assert summarize(chosen, by="event").rows


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ('primitive == "matmul"', "text stands in single quotes: 'matmul'"),
        ("primitiv == 'matmul'", "'primitiv', which is not a column of the trace; it has text, library"),
        ("primitive == 3", "cannot compare string with numeric"),
        ("primitive", "must be of type `Boolean`"),
        ("duration_ms >", "unable to parse"),
        ("", "unable to parse"),
        ("read_csv('/etc/passwd') == 1", "unsupported function"),
        ("primitive == 'a'; drop table run", "unexpected token"),
        ("primitive ~ '('", "regex"),
        ("(select 1) = 1", "can't be used"),
        ("inner and " * 2000 + "inner", "characters long"),
    ],
)
def test_what_is_no_condition_gets_one_sentence(where: str, words: str) -> None:
    with pytest.raises(UsageError) as error:
        Selection(where)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 2


WORDS = ["primitive", "==", "'a'", "(", ")", "and", "not", "-", "1", "is", "null", "in", "*", "duration_ms", "/"]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS), max_size=15).map(" ".join)))
@settings(deadline=None, max_examples=300)
def test_any_text_is_a_condition_or_a_usage_error(text: str) -> None:
    try:
        condition(text)
    except UsageError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "wanted", ["3:", ":3", ":", "2:4", "::2", "1::3", "-2:", ":-1", "4", "-1", "0", "7:100", "-100:2"]
)
def test_slices_are_pythons(wanted: str) -> None:
    trace = iterations(8, [(matmul(), 1.0), (reorder("ab", "ba"), 0.5)])
    numbers = list(range(8))
    whole = wanted if ":" in wanted else f"{wanted}:{int(wanted) + 1 or ''}"
    expected = eval(f"numbers[{whole}]", {"numbers": numbers})
    chosen = select(trace, Selection(iterations=wanted)).events.collect()
    assert sorted(set(chosen["iteration"])) == expected
    assert summarize(select(trace, Selection("event == 'exec'", wanted))).phases.executions == 2 * len(expected)


@pytest.mark.parametrize("wanted", ["", "a", "1:2:3:4", "::0", "5:1:-1", "1.5", "3 :", "1,2"])
def test_what_is_no_slice_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match="iterations"):
        iteration_slice(wanted)


def test_iterations_without_marks_are_found_by_their_period() -> None:
    calls = [(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 2.0)]
    chosen = select(log(calls * 10), Selection(iterations="3:"))
    assert len(chosen.events.collect()) == 14
    assert any("found by their period" in note for note in chosen.facts["notes"])
    with pytest.raises(UsageError, match="no marks of iterations, and its kernels no repeating period"):
        select(log([(matmul(f"{n}x8:8x8"), 1.0) for n in range(40)]), Selection(iterations="3:"))


def test_nothing_chosen_is_said() -> None:
    with pytest.raises(LogError, match="no record of the run is chosen by where primitive == 'pooling'"):
        select(mixed(), Selection("primitive == 'pooling'"))
    with pytest.raises(LogError, match="iterations 9:"):
        select(iterations(8, [(matmul(), 1.0)]), Selection(iterations="9:"))


def test_no_selection_is_the_trace_itself() -> None:
    trace = mixed()
    assert select(trace, Selection()) is trace


def test_a_chosen_part_can_be_saved(tmp_path) -> None:  # type: ignore[no-untyped-def]
    trace = mixed()
    trace.save(tmp_path / "all.cpulens")
    chosen = select(Trace.open(tmp_path / "all.cpulens"), Selection("primitive == 'reorder'"))
    chosen.save(tmp_path / "part.cpulens")
    assert len(Trace.open(tmp_path / "part.cpulens").events.collect()) == 4


@pytest.mark.parametrize(
    ("text", "value"), [("90%", 0.9), ("0.9", 0.9), ("5 %", 0.05), ("1", 1.0), (".25", 0.25), ("0%", 0)]
)
def test_shares(text: str, value: float) -> None:
    assert share(text, "--cumulative") == pytest.approx(value)


@pytest.mark.parametrize("text", ["90", "150%", "-5%", "", "half", "nan", "%", "inf"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--cumulative .* is no share; write it as 90% or 0\.9"):
        share(text, "--cumulative")


@given(st.lists(st.floats(0, 1), max_size=20), st.floats(0, 1))
def test_covering_takes_no_more_than_needed(parts: list[float], wanted: float) -> None:
    count = covering(parts, wanted)
    assert count == len(parts) or sum(parts[:count]) >= wanted - 1e-9
    assert count == 0 or sum(parts[: count - 1]) < wanted


def test_the_largest_rows_of_a_summary() -> None:
    # 8.0, 2.0 and 1.0 ms of 11: the first two are 91 %.
    summary = summarize(mixed(), by="problem")
    rows = largest(summary, 0.9).rows
    assert [row.total_ms for row in rows] == [8.0, 2.0]
    assert largest(summary, 0.9).facts["notes"][-1] == "only the largest rows that make up 90 % of the time: 2 of 3"
    assert len(largest(summary, 1.0).rows) == 3


def test_errors_are_ours() -> None:
    assert issubclass(UsageError, CpulensError)
