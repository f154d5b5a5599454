"""Wall time against kernels, worked out by hand."""

from __future__ import annotations

import pytest

from analyze_support import EPOCH_MS, mark, run, sgemm, trace_of
from cpulens.analyze.coverage import cover

NS = EPOCH_MS * 10**6


def test_iterations_last_to_the_next_marker_and_the_last_one_to_the_end_of_its_scope() -> None:
    trace = trace_of(
        mark("iteration", at_ms=0),
        run(2.0, start_ms=1.0),
        sgemm(3.0),
        mark("iteration", at_ms=10),
        run(4.0, start_ms=11.0),
        scopes_ns=[[NS - 5_000_000, NS + 18_000_000]],
        scopes_ms=[23.0],
    )
    first, second = cover(trace).stretches
    assert (first.kind, first.name, first.wall_ms) == ("iteration", "iteration 0", pytest.approx(10.0))
    assert (first.onednn_ms, first.mkl_ms, first.calls) == (2.0, 3.0, 2)
    # Two lines into a file: 4 µs and 11 µs.
    assert first.printing_ms == pytest.approx(0.015)
    assert first.neither_ms == pytest.approx(10.0 - 2.0 - 3.0 - 0.015)
    assert second.wall_ms == pytest.approx(8.0)
    assert second.neither_ms == pytest.approx(8.0 - 4.0 - 0.004)


def test_the_last_iteration_without_a_scope_lasts_to_its_last_line() -> None:
    trace = trace_of(
        mark("iteration", at_ms=0), run(2.0, start_ms=1.0), run(3.0, start_ms=5.0), exit_code=0, wall_ms=99.0
    )
    (only,) = cover(trace).stretches
    assert only.wall_ms == pytest.approx(8.0)
    assert only.printing_ms == pytest.approx(2 * 0.009)  # through a pipe


def test_iterations_of_a_schedule_end_with_their_scope() -> None:
    trace = trace_of(
        mark("iteration", at_ms=0),
        run(2.0, start_ms=1.0),
        mark("iteration", at_ms=100),
        run(2.0, start_ms=101.0),
        scopes_ns=[[NS, NS + 5_000_000], [NS + 100_000_000, NS + 106_000_000]],
    )
    assert [one.wall_ms for one in cover(trace).stretches] == pytest.approx([5.0, 6.0])


def test_a_scope_without_iterations_and_a_whole_command() -> None:
    (scope,) = cover(trace_of(run(2.0), scopes_ms=[4.0, 6.0], wall_ms=10.0)).stretches
    assert (scope.kind, scope.wall_ms, scope.onednn_ms) == ("scope", 10.0, 2.0)
    (command,) = cover(trace_of(run(2.0), exit_code=0, wall_ms=50.0)).stretches
    assert command.kind == "command"
    assert cover(trace_of(run(2.0))).stretches == ()


def test_a_graph_partition_counts_once_and_creations_are_the_librarys_time() -> None:
    partition = (
        f"onednn_verbose,v1,{EPOCH_MS:.6f},graph,exec,cpu,100002,matmul_post_ops,mm,,"
        "in0_f32:1:strided:undef:8x8:8s1 out0_f32:2:strided:undef:8x8:8s1,"
        "fpm:strict,larger_partition_kernel_t,dnnl_backend,3\n"
    )
    created = run(1.0, operation="create:cache_miss", start_ms=5.0)
    trace = trace_of(run(2.0, start_ms=0.5), partition, created, scopes_ms=[10.0], wall_ms=10.0)
    (scope,) = cover(trace).stretches
    assert scope.onednn_ms == pytest.approx(4.0)
    assert scope.calls == 1


def test_kernels_that_overlap_leave_nothing_and_that_is_said() -> None:
    (scope,) = cover(trace_of(run(8.0), run(8.0), scopes_ms=[10.0], wall_ms=10.0)).stretches
    assert scope.neither_ms == 0
    assert scope.overlapping


def test_gaps_between_stamped_lines() -> None:
    trace = trace_of(
        run(1.0, start_ms=0.0),
        run(1.0, start_ms=1.5),  # 0.5 ms after the first
        run(1.0, "softmax", "jit:avx2", "8x8", start_ms=2.5),  # at once
        run(1.0, start_ms=6.5),  # 3 ms after the softmax
    )
    longest, other = cover(trace).gaps
    assert (longest.after, longest.count, longest.line) == ("softmax jit:avx2", 1, 3)
    assert longest.total_ms == pytest.approx(3.0, abs=1e-3)
    assert (other.after, other.count) == ("matmul brg_matmul:avx2", 1)
    assert other.longest_ms == pytest.approx(0.5, abs=1e-3)


def test_no_gap_is_claimed_across_mkl_between_scopes_or_without_stamps() -> None:
    assert cover(trace_of(run(1.0), run(1.0))).gaps == ()
    assert cover(trace_of(run(1.0, start_ms=0.0), sgemm(1.0), run(1.0, start_ms=9.0))).gaps == ()
    lines = [run(1.0, start_ms=0.0), run(1.0, start_ms=9.0)]
    assert len(cover(trace_of(*lines)).gaps) == 1
    scopes = [[NS - 1_000_000, NS + 2_000_000], [NS + 8_000_000, NS + 11_000_000]]
    assert cover(trace_of(*lines, scopes_ns=scopes)).gaps == ()


def test_a_gap_begins_where_the_longest_of_overlapping_kernels_ended() -> None:
    trace = trace_of(run(1.0, start_ms=0.0), run(5.0, start_ms=0.5), run(1.0, start_ms=3.0), run(1.0, start_ms=7.5))
    (gap,) = cover(trace).gaps
    assert gap.total_ms == pytest.approx(2.0, abs=1e-3)


def test_gaps_of_two_processes_are_not_mixed() -> None:
    lines = [run(1.0, start_ms=0.0), run(1.0, start_ms=1.0), run(1.0, start_ms=1.0), run(1.0, start_ms=4.0)]
    trace = trace_of(*(f"[{number % 2}] {line}" for number, line in enumerate(lines)))
    (gap,) = cover(trace).gaps
    assert (gap.count, gap.total_ms) == (1, pytest.approx(2.0, abs=1e-3))
