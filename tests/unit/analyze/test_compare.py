"""compare(): what is the same work, what changed, and the difference as a sum of causes."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison_support import HEADER, iterations, log, matmul, of_events, quantised, reorder, sampled
from cpulens.analyze.compare import Comparison, Kernel, compare
from cpulens.analyze.compare.numbering import numbered
from cpulens.errors import LogError, UsageError
from cpulens.trace import Trace
from cpulens.verbose import load


def only(comparison: Comparison, **identity: str) -> Kernel:
    found = [one for one in comparison.kernels if identity.items() <= one.identity.items()]
    assert len(found) == 1, [one.label for one in comparison.kernels]
    return found[0]


def steady(rng: np.random.Generator, median: float, count: int = 100) -> np.ndarray:
    return quantised(median * rng.normal(1, 0.02, count))


def test_direction_and_size_of_a_change() -> None:
    rng = np.random.default_rng(1)
    base = sampled({"1x1:1x1": steady(rng, 1.0), "2x2:2x2": steady(rng, 2.0)}, rng)
    new = sampled({"1x1:1x1": steady(rng, 1.5), "2x2:2x2": steady(rng, 1.0)}, rng)
    found = compare(base, new)
    slower, faster = only(found, problem="1x1:1x1"), only(found, problem="2x2:2x2")
    assert slower.effect.slower and not slower.effect.faster
    assert faster.effect.faster and not faster.effect.slower
    assert slower.effect.ratio == pytest.approx(1.5, rel=0.02)
    assert faster.effect.ratio == pytest.approx(0.5, rel=0.02)
    assert slower.effect.low <= 1.5 <= slower.effect.high
    # 100 calls each: 300 ms before, 250 ms after.
    assert found.total_ms.base == pytest.approx(300, rel=0.01)
    assert found.total_ms.new == pytest.approx(250, rel=0.01)
    assert found.total.faster
    assert found.total.ratio == pytest.approx(250 / 300, rel=0.01)


def test_sides_swapped_give_the_inverse() -> None:
    rng = np.random.default_rng(2)
    base = sampled({"1x1:1x1": steady(rng, 1.0), "2x2:2x2": steady(rng, 2.0)}, rng)
    new = sampled({"1x1:1x1": steady(rng, 1.3), "2x2:2x2": steady(rng, 2.0)}, rng)
    there, back = compare(base, new), compare(new, base)
    for one in there.kernels:
        other = only(back, problem=one.identity["problem"])
        assert one.effect.ratio == pytest.approx(1 / other.effect.ratio)
        assert one.effect.low == pytest.approx(1 / other.effect.high)
        assert one.effect.p_value == pytest.approx(other.effect.p_value)
        assert one.delta_ms == pytest.approx(-other.delta_ms)
    assert there.total.low == pytest.approx(1 / back.total.high)


def test_too_few_calls_are_not_judged() -> None:
    found = compare(log([(matmul(), 1.0)] * 8), log([(matmul(), 50.0)] * 8))
    effect = only(found, primitive="matmul").effect
    # The first call is cold, so there are seven: the median of fewer than eight has no interval at 99 %.
    assert effect.reason == "too few calls"
    assert not effect.significant
    assert effect.ratio == 50.0
    assert compare(log([(matmul(), 1.0)] * 9), log([(matmul(), 50.0)] * 9)).kernels[0].effect.slower


def test_a_change_below_the_minimum_effect_is_not_called_one() -> None:
    rng = np.random.default_rng(3)
    base, new = ({"1x1:1x1": quantised(median * rng.normal(1, 0.001, 500))} for median in (10.0, 10.05))
    found = compare(sampled(base, rng), sampled(new, rng))
    assert found.kernels[0].effect.p_value < 1e-9
    assert not found.kernels[0].effect.significant
    assert compare(sampled(base, rng), sampled(new, rng), min_effect=0.001).kernels[0].effect.significant


def test_the_first_call_stands_apart() -> None:
    base = [(matmul(), 100.0), *[(matmul(), 1.0)] * 10]
    new = [(matmul(), 30.0), *[(matmul(), 1.0)] * 10]
    found = compare(log(base), log(new))
    kernel = only(found, primitive="matmul")
    assert (kernel.base.first_ms, kernel.base.mean_ms, kernel.base.total_ms) == (100.0, 1.0, 11.0)
    assert (found.first_ms.base, found.first_ms.new) == (99.0, 29.0)
    assert found.total_ms.base == found.total_ms.new == 11.0
    assert not kernel.effect.significant


def test_a_chosen_part_of_a_run_has_no_cold_call_of_its_own() -> None:
    calls = [(matmul(), 100.0), *[(matmul(), time) for time in np.linspace(1, 2, 20)]]
    found = compare(log(calls), log(calls), where="seq > 5")
    kernel = only(found, primitive="matmul")
    assert kernel.base.first_ms is None
    assert kernel.base.samples == kernel.base.records


def test_implementation_layout_and_type_are_named() -> None:
    base = [(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 1.0), (matmul("7x7:7x7"), 1.0)] * 10
    new = [
        (matmul("8x8:8x8", implementation="ref:any", tag="ba"), 4.0),
        (matmul("9x9:9x9", dt="bf16"), 1.0),
        (matmul("7x7:7x7", attributes="attr-post-ops:eltwise_relu"), 1.0),
    ] * 10
    found = compare(log(base), log(new))
    changes = {
        kernel.identity["problem"]: [(one.what, one.base, one.new) for one in kernel.changes]
        for kernel in found.kernels
    }
    assert changes == {
        "8x8:8x8": [("implementation", "brg:avx512_core", "ref:any"), ("layout", "wei:ab", "wei:ba")],
        "9x9:9x9": [("types", "src:f32 wei:f32 dst:f32", "src:bf16 wei:bf16 dst:bf16")],
        "7x7:7x7": [("attributes", "", "attr-post-ops:eltwise_relu")],
    }
    assert found.causes[0].text == "matmul: implementation brg:avx512_core → ref:any, layout, 1 kernel"
    assert found.causes[0].delta_ms == pytest.approx(30.0)


def test_owning_a_scratchpad_changes_no_problem() -> None:
    found = compare(log([(matmul(attributes="attr-scratchpad:user"), 1.0)] * 3), log([(matmul(), 1.0)] * 3))
    assert [kernel.kind for kernel in found.kernels] == ["matched"]
    assert found.kernels[0].changes == ()


def test_added_removed_and_other_work() -> None:
    softmax = (
        "onednn_verbose,exec,cpu,softmax,jit:avx512_core,forward_inference,src_f32::blocked:ab::f0,,"
        "alg:softmax_accurate axis:1,8x8,"
    )
    base = [(matmul("8x8:8x8"), 1.0), (reorder("ab", "ba"), 0.5), (reorder("ab", "AB16b"), 0.5)] * 4
    new = [(matmul("8x8:8x8"), 1.0), (reorder("ab", "ba"), 0.5), (softmax, 0.25)] * 4 + [(matmul("9x9:9x9"), 3.0)]
    found = compare(log(base), log(new))
    kinds = {kernel.label: kernel.kind for kernel in found.kernels}
    assert kinds == {
        "matmul 8x8:8x8 f32": "matched",
        "matmul 9x9:9x9 f32": "added",
        "reorder 64x64 f32 ab → ba": "matched",
        "reorder 64x64 f32 ab → AB16b": "removed",
        "softmax 8x8 f32": "added",
    }
    other = compare(log(base), log([(reorder("ab", "cd"), 2.0)] * 3))
    assert {kernel.kind for kernel in other.kernels} == {"other work", "removed"}
    kernel = only(other, primitive="reorder")
    assert kernel.delta_ms == pytest.approx(6.0 - 4.0)
    assert not kernel.effect.significant and kernel.effect.ratio == pytest.approx(6.0 / 4.0)
    assert kernel.changes[0].base == "reorder 64x64 f32 ab → ba; reorder 64x64 f32 ab → AB16b"


def test_a_reorder_back_is_another_reorder() -> None:
    found = compare(
        log([(reorder("ab", "ba"), 1.0)] * 3), log([(reorder("ab", "ba"), 1.0), (reorder("ba", "ab"), 1.0)] * 3)
    )
    assert sorted((kernel.label, kernel.kind) for kernel in found.kernels) == [
        ("reorder 64x64 f32 ab → ba", "matched"),
        ("reorder 64x64 f32 ba → ab", "added"),
    ]


def test_unequal_numbers_of_iterations_are_divided_out() -> None:
    calls = [(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 2.0)]
    found = compare(iterations(10, calls), iterations(25, calls))
    assert (found.basis.per, found.basis.base, found.basis.new) == ("iteration", 10, 25)
    assert found.total_ms.base == pytest.approx(3.0) and found.total_ms.new == pytest.approx(3.0)
    assert only(found, problem="9x9:9x9").new.calls == 1.0
    unmarked = compare(log(calls * 10), log(calls * 25))
    assert unmarked.basis.per == "calls"
    assert "2.5 times" in unmarked.basis.text
    assert unmarked.total_ms.new == pytest.approx(30.0)
    as_is = compare(log(calls * 10), log(calls * 25), per="run")
    assert (as_is.total_ms.base, as_is.total_ms.new) == (pytest.approx(30.0), pytest.approx(75.0))


def test_more_reorders_at_the_same_number_of_iterations_are_counted() -> None:
    work = [(matmul(f"{n}x8:8x8"), 1.0) for n in range(1, 6)]
    found = compare(log([*work, (reorder("ab", "ba"), 0.5)] * 10), log([*work, *[(reorder("ab", "ba"), 0.5)] * 3] * 10))
    assert [(cause.kind, cause.text) for cause in found.causes[:1]] == [
        ("calls", "reorder: 20 more calls of the same, 10 → 30 calls")
    ]
    assert found.causes[0].delta_ms == pytest.approx(20 * 0.5)


def test_iterations_that_are_asked_for_are_found_by_their_period() -> None:
    calls = [(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 2.0)]
    found = compare(log(calls * 10), log(calls * 25), per="iteration")
    assert (found.basis.base, found.basis.new) == (10, 25)
    with pytest.raises(UsageError, match="no repeating period"):
        compare(log([(matmul(f"{n}x8:8x8"), 1.0) for n in range(40)]), log(calls * 25), per="iteration")


def test_several_runs_must_agree() -> None:
    rng = np.random.default_rng(6)

    def run(median: float) -> object:
        return sampled({"1x1:1x1": steady(rng, median, 200)}, rng)

    # Runs of one program that differ by more than the change between the sides: pooled calls would call it significant.
    mixed = compare([run(1.0), run(1.2)], [run(1.1), run(1.3)])
    assert mixed.kernels[0].effect.p_value < 0.01
    assert not mixed.kernels[0].effect.significant and not mixed.total.significant
    apart = compare([run(1.0), run(1.05)], [run(1.2), run(1.3)])
    assert apart.kernels[0].effect.slower and apart.total.slower
    assert apart.runs.base == 2


def test_many_runs_are_the_samples() -> None:
    rng = np.random.default_rng(8)

    def runs(medians: np.ndarray) -> list:
        return [sampled({"1x1:1x1": steady(rng, median, 60)}, rng) for median in medians]

    same = compare(runs(rng.normal(1, 0.05, 9)), runs(rng.normal(1, 0.05, 9)))
    assert not same.kernels[0].effect.significant and not same.total.significant
    slower = compare(runs(rng.normal(1, 0.02, 9)), runs(rng.normal(1.2, 0.02, 9)))
    assert slower.kernels[0].effect.slower and slower.total.slower


def test_differences_around_come_with_their_values() -> None:
    base = log([(matmul(), 1.0)] * 3)
    new = log([(matmul(), 1.0)] * 3, header=HEADER.replace("3.2.0", "3.5.1"))
    base.facts |= {"machine": {"cpu": "A", "cpus_online": 4}, "environment": {"OMP_NUM_THREADS": "4"}}
    new.facts |= {"machine": {"cpu": "A", "cpus_online": 8}, "environment": {}}
    found = {one.name: (one.base, one.new) for one in compare(base, new).differences}
    assert found == {
        "oneDNN version": ("3.2.0", "3.5.1"),
        "machine cpus_online": (4, 8),
        "OMP_NUM_THREADS": ("4", None),
    }
    del new.facts["environment"]
    assert "new says nothing of its environment: it can't be compared" in compare(base, new).notes


def test_versions_spell_one_problem_alike() -> None:
    old = (
        "dnnl_verbose,exec,cpu,convolution,jit:avx2,forward_inference,src_f32::blocked:abcd:f0 "
        "wei_f32::blocked:abcd:f0 bia_undef::undef::f0 dst_f32::blocked:abcd:f0,,alg:convolution_direct,"
        "mb1_g1ic3oc8_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1,"
    )
    new = (
        "onednn_verbose,v1,primitive,exec,cpu,convolution,jit:avx512_core,forward_inference,"
        "src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 bia:undef::undef::: dst:f32::blocked:abcd::f0,,"
        "alg:convolution_direct,mb1_ic3oc8_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1,"
    )
    found = compare(log([(old, 1.0)] * 3), log([(new, 1.0)] * 3))
    assert [(one.what, one.base, one.new) for one in found.kernels[0].changes] == [
        ("implementation", "jit:avx2", "jit:avx512_core")
    ]


def test_kernels_can_be_matched_by_columns() -> None:
    base = log([(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 1.0)] * 6)
    new = log([(matmul("4x4:4x4"), 1.0), (reorder("ab", "ba"), 1.0)] * 6)
    found = compare(base, new, by="primitive")
    assert {kernel.label: kernel.kind for kernel in found.kernels} == {"matmul": "matched", "reorder": "added"}
    with pytest.raises(UsageError, match="duration_ms"):
        compare(base, new, by=["duration_ms"])
    with pytest.raises(UsageError, match="nonsense is not a column"):
        compare(base, new, by="nonsense")


def test_regressions_need_a_kernel_that_matters() -> None:
    rng = np.random.default_rng(9)
    # The second kernel is 0.2 % of the time: its slowdown is told, but fails nothing.
    base = {"1x1:1x1": steady(rng, 10.0), "2x2:2x2": steady(rng, 0.02)}
    new = {"1x1:1x1": steady(rng, 10.0), "2x2:2x2": steady(rng, 0.03)}
    found = compare(sampled(base, rng), sampled(new, rng))
    assert only(found, problem="2x2:2x2").effect.slower
    assert found.regressions(0.05) == ()
    new["1x1:1x1"] = steady(rng, 11.0)
    worse = compare(sampled(base, rng), sampled(new, rng))
    assert [one.kernel and one.kernel.identity["problem"] for one in worse.regressions(0.05)] == [None, "1x1:1x1"]
    assert worse.regressions(0.5) == ()
    assert compare(sampled(new, rng), sampled(base, rng)).regressions(0.0) == ()


def test_times_below_the_clocks_step_have_no_ratio() -> None:
    found = compare(log([(matmul(), 0.0)] * 20), log([(matmul(), 0.000244)] * 20))
    assert found.kernels[0].effect.ratio is None
    assert found.kernels[0].effect.reason == "below the clock's step"
    assert found.total.ratio is None


def test_the_same_twice_is_the_same() -> None:
    rng = np.random.default_rng(10)
    trace = sampled({"1x1:1x1": steady(rng, 1.0), "2x2:2x2": steady(rng, 2.0)}, rng)
    found = compare(trace, trace)
    assert found.total_ms.base == found.total_ms.new
    assert all(kernel.effect.ratio == 1.0 and kernel.effect.p_value == 1.0 for kernel in found.kernels)
    assert found == compare(trace, trace)


def test_a_side_without_timed_executions_is_refused() -> None:
    header_only = log([])
    good = log([(matmul(), 1.0)] * 3)
    with pytest.raises(LogError, match="new run 1 has no timed execution"):
        compare(good, header_only)
    with pytest.raises(LogError, match="no record of the base run 1 is chosen"):
        compare(good, good, where="primitive == 'pooling'")
    with pytest.raises(UsageError, match="at least one"):
        compare([], good)


LINES = [
    matmul("8x8:8x8"),
    matmul("8x8:8x8", implementation="ref:any"),
    matmul("9x9:9x9"),
    reorder("ab", "ba"),
    reorder("ab", "cd"),
]
kernels = st.lists(
    st.tuples(st.sampled_from(LINES), st.integers(1, 4000).map(lambda steps: steps / 1000)), min_size=1, max_size=40
)


@given(kernels, kernels, st.sampled_from([None, "calls", "run"]))
@settings(deadline=None, max_examples=60)
def test_causes_are_the_whole_difference(base: list, new: list, per: str | None) -> None:
    found = compare(log(base), log(new), per=per)
    difference = found.total_ms.new - found.total_ms.base
    assert math.fsum(cause.delta_ms for cause in found.causes) == pytest.approx(difference, abs=1e-9)
    assert math.fsum(kernel.delta_ms for kernel in found.kernels) == pytest.approx(difference, abs=1e-9)
    # What one run took is its total and what its first calls took beyond.
    base_ms = found.total_ms.base + found.first_ms.base
    assert base_ms == pytest.approx(math.fsum(time for _, time in base), abs=1e-4)
    records = sum(kernel.base.records for kernel in found.kernels if kernel.base)
    assert records == len(base)


def test_time_inside_of_a_partition_counts_once() -> None:
    trace = log([(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 5.0)] * 10)
    events = trace.events.collect()
    inner = events["text"] == events["text"][1]
    inside = trace.with_events(events.with_columns(inner=inner).lazy())
    found = compare(inside, inside)
    counted = sum(kernel.base.total_ms for kernel in found.kernels if not kernel.inner)
    assert found.total_ms.base == pytest.approx(counted)
    assert sum(kernel.inner for kernel in found.kernels) == 1
    assert any("graph partitions" in note for note in found.notes)


def test_two_processes_have_a_cold_call_each() -> None:
    text_calls = [(matmul(), 50.0), *[(matmul(), 1.0)] * 5]
    one = log(text_calls + text_calls)
    events = one.events.collect()
    assert events["instance"].null_count() == len(events)
    first = int(events.filter(pl.col("duration_ms") == 50.0)["seq"][1])
    process = pl.when(pl.col("seq") < first).then(pl.lit("0")).otherwise(pl.lit("1")).alias("instance")
    two = one.with_events(events.with_columns(process).lazy())
    assert compare(two, two).kernels[0].base.first_ms == 50.0
    assert compare(two, two).kernels[0].base.mean_ms == 1.0
    assert compare(one, one).kernels[0].base.mean_ms > 1.0


def test_of_events_keeps_the_texts() -> None:
    template = log([(matmul(), 1.0)])
    made = of_events(template, template.events.collect()["text"].to_numpy(), np.array([0.0, 2.0]))
    assert made.texts.equals(template.texts)


columns_of_rows = st.integers(1, 30).flatmap(
    lambda rows: st.tuples(
        *(
            st.lists(st.one_of(st.none(), values), min_size=rows, max_size=rows)
            for values in (st.integers(-3, 4), st.sampled_from(["a", "b"]), st.booleans(), st.integers(0, 2**40))
        )
    )
)


@given(columns_of_rows)
@settings(deadline=None)
def test_rows_are_numbered_by_their_values(columns: tuple[list, ...]) -> None:
    kinds = (pl.Int64, pl.String, pl.Boolean, pl.Int64)
    number, firsts = numbered([pl.Series(values, dtype=kind) for values, kind in zip(columns, kinds, strict=True)])
    rows = list(zip(*columns, strict=True))
    assert [rows.index(row) for row in rows] == [int(firsts[at]) for at in number]
    assert sorted(set(number)) == list(range(len(firsts)))


def test_runs_of_unequal_length_are_compared_per_iteration() -> None:
    def run(count: int, time: float) -> Trace:
        return iterations(count, [(matmul("8x8:8x8"), time), (matmul("9x9:9x9"), 2 * time)])

    # Without dividing each run by its own length, the short ones would be the fast ones on both sides.
    found = compare([run(10, 1.0), run(40, 1.01)], [run(12, 1.5), run(30, 1.51)])
    assert found.total.slower
    assert found.total.ratio == pytest.approx(1.5, rel=0.02)
    same = compare([run(10, 1.0), run(40, 1.01)], [run(30, 1.0), run(12, 1.01)])
    assert not same.total.significant
    calls = [(matmul("8x8:8x8"), 1.0), (matmul("9x9:9x9"), 2.0)]
    longer = [(text, 1.5 * time) for text, time in calls]
    unmarked = compare([log(calls * 10), log(calls * 40)], [log(longer * 12), log(longer * 30)])
    assert unmarked.total.slower
    assert unmarked.total.ratio == pytest.approx(1.5, rel=0.02)


def test_a_kernel_that_one_side_runs_outside_of_iterations_only() -> None:
    work = [(matmul("8x8:8x8"), 1.0)] * 2
    lines = [HEADER, matmul("9x9:9x9") + "7"]
    for number in range(5):
        lines += [f"cpulens,v1,iteration,1,{number}", *(f"{text}{time:g}" for text, time in work)]
    set_up_only = load("\n".join(lines).encode())
    found = compare(set_up_only, iterations(5, [*work, (matmul("9x9:9x9"), 2.0)]))
    assert {kernel.identity["problem"]: kernel.kind for kernel in found.kernels} == {
        "8x8:8x8": "matched",
        "9x9:9x9": "added",
    }
    assert "1 call outside of any iteration left out" in found.basis.text
    assert found.causes[0].text == "matmul: only in new, 1 call"
    back = compare(iterations(5, [*work, (matmul("9x9:9x9"), 2.0)]), set_up_only)
    assert only(back, problem="9x9:9x9").kind == "removed"
    assert back.total_ms.new - back.total_ms.base == pytest.approx(-2.0)


def test_the_hosts_snapshot_stands_for_the_machine() -> None:
    base, new = log([(matmul(), 1.0)] * 3), log([(matmul(), 1.0)] * 3)
    for trace, pages in ((base, "madvise"), (new, "always")):
        trace.facts["machine"] = {"cpu": pages}
        trace.facts["host"] = {
            "tuning": {"transparent_huge_pages": pages, "governors": ["performance"]},
            "processor": {"notes": [pages], "unusable": {"amx": pages}},
            "allocators": {"preloaded": ["tcmalloc"] if pages == "always" else []},
        }
    found = {one.name: (one.base, one.new) for one in compare(base, new).differences}
    assert found == {
        "tuning transparent_huge_pages": ("madvise", "always"),
        "allocators preloaded": ("", "tcmalloc"),
    }
