"""Three packages of two dies with an L3 each; control groups (version 2) leave a part of them to the launcher.

CPUs 0-3 are node 0, 4-7 node 1, 8-11 node 2; each two neighbours (0-1, 2-3, …) are a die with its own L3.
"""

from __future__ import annotations

import signal
from pathlib import Path

from .check import Launch, check, placed

GROUPS = Path("/sys/fs/cgroup")
PACKAGES = ({0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11})


def group(name: str, **settings: str) -> tuple[str, ...]:
    """Make a control group, with every group above it, and return the command that runs another one inside it.

    The settings are those of the innermost group: ``cpuset_cpus="0-3"`` is written to its ``cpuset.cpus``.
    """
    place = GROUPS
    for part in name.split("/"):
        (place / "cgroup.subtree_control").write_text("+cpuset +cpu +memory")
        place /= part
        place.mkdir(exist_ok=True)
    for setting, value in settings.items():
        (place / setting.replace("_", ".", 1)).write_text(value)
    return "sh", "-c", f'echo $$ > {place}/cgroup.procs; exec "$@"', "sh"


@check
def throughput_mode_takes_each_package() -> None:
    for node, report in enumerate(Launch("--throughput-mode").finished(3)):
        placed(report, PACKAGES[node], f"prefer:{node}", {node})


@check
def l3_mode_takes_each_die() -> None:
    for number, report in enumerate(Launch("--l3-mode").finished(6)):
        node = number // 2
        placed(report, {2 * number, 2 * number + 1}, f"prefer:{node}", {node})


@check
def latency_mode_stays_inside_packages() -> None:
    for node, report in enumerate(Launch("--latency-mode").finished(3)):
        placed(report, PACKAGES[node], f"prefer:{node}", {node})


@check
def five_instances_are_equal_and_inside_packages() -> None:
    reports = Launch("--ninstances", "5").finished(5)
    taken: set[int] = set()
    for report in reports:
        cpus = report["cpus"]
        (node,) = [n for n, package in enumerate(PACKAGES) if cpus <= package]
        assert len(cpus) == 2 and not cpus & taken, f"{cpus} after {taken}"
        taken |= cpus
        placed(report, cpus, f"prefer:{node}", {node})


@check
def a_cpuset_bounds_cpus_and_memory() -> None:
    inside = group("bounded", cpuset_cpus="2-6", cpuset_mems="0-1")
    (one,) = Launch(before=inside).finished(1)
    placed(one, {2, 3, 4, 5, 6}, "interleave:0-1", {0, 1})


@check
def throughput_mode_in_a_cpuset_has_as_many_instances_as_nodes_are_left() -> None:
    inside = group("bounded", cpuset_cpus="2-6", cpuset_mems="0-1")
    launch = Launch("--throughput-mode", before=inside)
    first, second = launch.finished(2)
    placed(first, {2, 3}, "prefer:0", {0})
    assert len(second["cpus"]) == 2 and second["cpus"] < {4, 5, 6}, second["cpus"]
    placed(second, second["cpus"], "prefer:1", {1})
    assert "1 of 5 cores" in launch.stderr(), launch.stderr()


@check
def memory_outside_the_cpuset_is_replaced_by_the_nearest_inside() -> None:
    inside = group("far", cpuset_cpus="8-11", cpuset_mems="0-1")
    (one,) = Launch("--membind", before=inside).finished(1)
    placed(one, PACKAGES[2], "bind:1", {1})


@check
def a_cpuset_and_an_outer_taskset_both_count() -> None:
    inside = group("bounded", cpuset_cpus="2-6", cpuset_mems="0-1")
    (one,) = Launch(before=(*inside, "taskset", "-c", "5-11")).finished(1)
    placed(one, {5, 6}, "prefer:1", {1})


@check
def a_cpu_outside_the_cpuset_is_refused() -> None:
    inside = group("bounded", cpuset_cpus="2-6", cpuset_mems="0-1")
    Launch("--core-list", "6-7", before=inside).refused("7", "cpuset")


@check
def threads_stay_below_the_quota() -> None:
    inside = group("slow", cpu_max="300000 100000")
    launch = Launch("--node-id", "0", before=inside)
    (one,) = launch.finished(1)
    placed(one, PACKAGES[0], "prefer:0", {0}, threads=3)
    assert "grants 3 CPUs" in launch.stderr(), launch.stderr()


@check
def the_smallest_quota_of_all_groups_above_counts_and_is_shared() -> None:
    group("tight", cpu_max="200000 50000")
    inside = group("tight/loose", cpu_max="900000 100000")
    for node, report in enumerate(Launch("--throughput-mode", before=inside).finished(3)):
        placed(report, PACKAGES[node], f"prefer:{node}", {node}, threads=1)


@check
def quota_and_cpuset_together() -> None:
    group("both", cpuset_cpus="4-9", cpuset_mems="1-2", cpu_max="450000 100000")
    inside = group("both/inner", cpuset_cpus="4-8")
    first, second = Launch("--ninstances", "2", "--strategy", "close", before=inside).finished(2)
    placed(first, {4, 5}, "prefer:1", {1})
    placed(second, {6, 7}, "prefer:1", {1})


@check
def the_memory_limit_of_a_group_ends_an_instance_and_the_launcher_says_so() -> None:
    inside = group("small", memory_max="48M")
    launch = Launch("--node-id", "0", words="size=64", before=inside)
    launch.ended(128 + signal.SIGKILL)
