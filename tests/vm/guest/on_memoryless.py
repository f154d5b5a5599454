"""Three packages of two cores. Node 1 (CPUs 2-3) has no memory; node 2 (4-5) is nearer to it than node 0 (0-1)."""

from __future__ import annotations

from .check import Launch, check, placed


@check
def a_node_without_memory_gets_that_of_the_nearest() -> None:
    reports = Launch("--throughput-mode").finished(3)
    for report, (cpu, node) in zip(reports, [(0, 0), (2, 2), (4, 2)], strict=True):
        placed(report, {cpu, cpu + 1}, f"prefer:{node}", {node})


@check
def strict_memory_for_a_node_without_memory_is_that_of_the_nearest() -> None:
    (one,) = Launch("--node-id", "1", "--membind").finished(1)
    placed(one, {2, 3}, "bind:2", {2})


@check
def interleaved_memory_leaves_out_the_node_without_memory() -> None:
    (one,) = Launch().finished(1)
    placed(one, {0, 1, 2, 3, 4, 5}, "interleave:0,2", {0, 2})


@check
def a_core_each_has_the_nearest_memory() -> None:
    reports = Launch("--ncores-per-instance", "1").finished(6)
    for cpu, report in enumerate(reports):
        node = 0 if cpu < 2 else 2
        placed(report, {cpu}, f"prefer:{node}", {node})


@check
def two_instances_on_three_nodes_stay_inside_two_of_them() -> None:
    first, second = Launch("--ninstances", "2").finished(2)
    homes = [{0, 1}, {2, 3}, {4, 5}]
    for report in (first, second):
        node = 0 if report["cpus"] == homes[0] else 2
        assert report["cpus"] in homes, report["cpus"]
        placed(report, report["cpus"], f"prefer:{node}", {node})


@check
def high_bandwidth_memory_is_refused_where_there_is_none() -> None:
    Launch("--throughput-mode", "--hbm").refused("--hbm", "no high-bandwidth memory")
