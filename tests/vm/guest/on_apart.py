"""Two packages of two cores whose siblings are numbered four apart. Then CPUs are taken offline and unplugged.

CPUs 0 and 1 are node 0, 2 and 3 node 1; the sibling of CPU n is n + 4.
"""

from __future__ import annotations

from pathlib import Path

from . import line
from .check import Launch, check, placed, wait_for

CPU = Path("/sys/devices/system/cpu")


def _online(number: int, on: bool) -> None:
    (CPU / f"cpu{number}" / "online").write_text("1" if on else "0")


@check
def siblings_lie_apart() -> None:
    for number in range(8):
        siblings = (CPU / f"cpu{number}" / "topology/thread_siblings_list").read_text().strip()
        assert siblings == f"{number % 4},{number % 4 + 4}", f"siblings of CPU {number} are {siblings}"


@check
def one_instance_takes_one_thread_of_each_core() -> None:
    (one,) = Launch().finished(1)
    placed(one, {0, 1, 2, 3}, "interleave:0-1", {0, 1})


@check
def logical_cores_keep_siblings_that_lie_apart_in_one_instance() -> None:
    first, second = Launch("--throughput-mode", "--use-logical-core").finished(2)
    placed(first, {0, 1, 4, 5}, "prefer:0", {0})
    placed(second, {2, 3, 6, 7}, "prefer:1", {1})


@check
def instances_of_two_logical_cores_are_the_siblings_of_one_core() -> None:
    reports = Launch("--ninstances", "4", "--use-logical-core").finished(4)
    for number, report in enumerate(reports):
        placed(report, {number, number + 4}, f"prefer:{number // 2}", {number // 2})


@check
def an_outer_taskset_to_second_threads_is_kept() -> None:
    first, second = Launch("--throughput-mode", before=("taskset", "-c", "1,4,6-7")).finished(2)
    placed(first, {1, 4}, "prefer:0", {0})
    placed(second, {6, 7}, "prefer:1", {1})


@check
def an_offline_cpu_is_replaced_by_its_sibling() -> None:
    _online(1, False)
    first, second = Launch("--throughput-mode").finished(2)
    placed(first, {0, 5}, "prefer:0", {0})
    placed(second, {2, 3}, "prefer:1", {1})


@check
def an_offline_cpu_is_refused_by_name() -> None:
    Launch("--core-list", "0-2").refused("1", "not online")


@check
def an_unplugged_cpu_is_gone() -> None:
    line.unplug("last")
    wait_for(lambda: not (CPU / "cpu7").exists(), "the end of CPU 7")
    first, second = Launch("--throughput-mode", "--use-logical-core", "--fill").finished(2)
    placed(first, {0, 4, 5}, "prefer:0", {0})
    placed(second, {2, 3, 6}, "prefer:1", {1})


@check
def a_core_whose_threads_are_all_offline_is_not_used() -> None:
    _online(5, False)
    (one,) = Launch("--node-id", "0", "--use-logical-core").finished(1)
    placed(one, {0, 4}, "prefer:0", {0})
