"""Two packages of two cores, siblings side by side; nodes 0 and 1 have processors, 2 and 3 are fast memory beside them.

CPUs 0-3 are node 0 (cores 0-1 and 2-3), CPUs 4-7 node 1 (cores 4-5 and 6-7). Memory nodes: 2 is near 0, 3 near 1.
"""

from __future__ import annotations

import signal

from .check import Launch, check, memory_mib, placed

# Instances in the main modes


@check
def one_instance_without_options_spans_both_nodes_with_interleaved_memory() -> None:
    launch = Launch()
    (one,) = launch.finished(1)
    placed(one, {0, 2, 4, 6}, "interleave:0-1", {0, 1})
    assert "NUMA nodes 0-1" in launch.stderr()


@check
def throughput_mode_starts_one_instance_on_each_node_with_processors() -> None:
    first, second = Launch("--throughput-mode").finished(2)
    placed(first, {0, 2}, "prefer:0", {0})
    placed(second, {4, 6}, "prefer:1", {1})


@check
def logical_cores_keep_both_siblings_in_one_instance() -> None:
    first, second = Launch("--throughput-mode", "--use-logical-core").finished(2)
    placed(first, {0, 1, 2, 3}, "prefer:0", {0})
    placed(second, {4, 5, 6, 7}, "prefer:1", {1})


@check
def four_instances_have_a_core_each_and_the_memory_beside_it() -> None:
    reports = Launch("--ninstances", "4").finished(4)
    for report, (cpu, node) in zip(reports, [(0, 0), (2, 0), (4, 1), (6, 1)], strict=True):
        placed(report, {cpu}, f"prefer:{node}", {node})


@check
def two_logical_cores_each_are_the_siblings_of_one_core() -> None:
    reports = Launch("--ncores-per-instance", "2", "--use-logical-core").finished(4)
    for report, (cpu, node) in zip(reports, [(0, 0), (2, 0), (4, 1), (6, 1)], strict=True):
        placed(report, {cpu, cpu + 1}, f"prefer:{node}", {node})


@check
def latency_mode_takes_four_cores_across_nodes_where_none_has_four() -> None:
    (one,) = Launch("--latency-mode").finished(1)
    placed(one, {0, 2, 4, 6}, "interleave:0-1", {0, 1})


@check
def package_mode_starts_one_instance_on_each_package() -> None:
    first, second = Launch("--package-mode").finished(2)
    placed(first, {0, 2}, "prefer:0", {0})
    placed(second, {4, 6}, "prefer:1", {1})


@check
def one_node_is_used_alone_when_it_is_named() -> None:
    (one,) = Launch("--node-id", "1").finished(1)
    placed(one, {4, 6}, "prefer:1", {1})


@check
def a_core_list_is_taken_as_it_is() -> None:
    first, second = Launch("--core-list", "1,3,5-6", "--ninstances", "2").finished(2)
    placed(first, {1, 3}, "prefer:0", {0})
    placed(second, {5, 6}, "prefer:1", {1})


@check
def one_rank_of_a_plan_is_started_alone() -> None:
    (one,) = Launch("--ninstances", "4", "--rank", "2").finished(1)
    placed(one, {4}, "prefer:1", {1})


@check
def a_python_file_is_started_by_this_python_with_its_arguments_untouched() -> None:
    launch = Launch("--node-id", "0", program="/srv/guest/probe.py", words="size=4 --weird= *")
    (one,) = launch.finished(1)
    placed(one, {0, 2}, "prefer:0", {0})
    assert one["argv"] == ["/srv/guest/probe.py", str(launch.folder), "size=4", "--weird=", "*"]


# Memory


@check
def strict_memory_stays_on_its_node() -> None:
    first, second = Launch("--throughput-mode", "--membind").finished(2)
    placed(first, {0, 2}, "bind:0", {0})
    placed(second, {4, 6}, "bind:1", {1})


@check
def strict_memory_kills_what_does_not_fit_on_its_node() -> None:
    launch = Launch("--node-id", "1", "--membind", words=f"size={memory_mib(1, 'MemTotal') + 8}")
    launch.ended(128 + signal.SIGKILL)
    assert "is killed when it needs more than" in launch.stderr(), launch.stderr()


@check
def preferred_memory_goes_elsewhere_when_its_node_is_full() -> None:
    size = memory_mib(1, "MemTotal") + 8
    free = memory_mib(1, "MemFree")
    (one,) = Launch("--node-id", "1", words=f"size={size}").finished(1)
    assert one["policy"] == "prefer:1"
    assert one["pages"][1] > free * 256 * 3 // 4, f"{free} MiB were free on node 1, pages by node are {one['pages']}"
    assert sum(one["pages"].values()) >= size * 256 and len(one["pages"]) > 1, one["pages"]


@check
def interleaved_memory_is_even_over_the_nodes_of_the_instance() -> None:
    first, second = Launch("--core-list", "0,4,2,6", "--ninstances", "2", "--interleave").finished(2)
    placed(first, {0, 4}, "interleave:0-1", {0, 1})
    placed(second, {2, 6}, "interleave:0-1", {0, 1})


@check
def several_instances_over_both_nodes_prefer_both() -> None:
    first, second = Launch("--core-list", "0,4,2,6", "--ninstances", "2").finished(2)
    placed(first, {0, 4}, "prefer (many):0-1", set(first["pages"]))
    placed(second, {2, 6}, "prefer (many):0-1", set(second["pages"]))
    assert set(first["pages"]) | set(second["pages"]) <= {0, 1}


@check
def high_bandwidth_memory_is_the_fast_node_beside_the_processors() -> None:
    first, second = Launch("--throughput-mode", "--hbm").finished(2)
    placed(first, {0, 2}, "prefer:2", {2})
    placed(second, {4, 6}, "prefer:3", {3})


@check
def high_bandwidth_memory_can_be_strict() -> None:
    (one,) = Launch("--node-id", "1", "--hbm", "--membind").finished(1)
    placed(one, {4, 6}, "bind:3", {3})


@check
def memory_is_left_to_the_kernel_without_numactl() -> None:
    (one,) = Launch("--node-id", "1", "--disable-numactl").finished(1)
    placed(one, {4, 6}, "default", {1})


@check
def nothing_is_bound_without_numactl_and_taskset() -> None:
    (one,) = Launch("--node-id", "1", "--disable-numactl", "--disable-taskset").finished(1)
    placed(one, set(range(8)), "default", set(one["pages"]), threads=2)


# Under somebody else's affinity


@check
def an_outer_taskset_is_never_left() -> None:
    (one,) = Launch(before=("taskset", "-c", "3,5-7")).finished(1)
    placed(one, {3, 5, 6}, "interleave:0-1", {0, 1})


@check
def throughput_mode_under_an_outer_taskset_takes_what_is_left_of_each_node() -> None:
    first, second = Launch("--throughput-mode", "--use-logical-core", before=("taskset", "-c", "2,4-5")).finished(2)
    placed(first, {2}, "prefer:0", {0})
    placed(second, {4, 5}, "prefer:1", {1})


@check
def a_core_outside_an_outer_taskset_is_refused() -> None:
    Launch("--core-list", "0-3", before=("taskset", "-c", "0-2")).refused("3", "affinity")


@check
def ranks_of_an_outer_starter_divide_cores_and_threads() -> None:
    environ = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    (one,) = Launch(**environ).finished(1)
    placed(one, {4, 6}, "prefer:1", {1})
    assert one["environ"]["OMP_NUM_THREADS"] == "2"
