"""Two packages of three cores (CPUs 0-2 and 3-5), whose account of NUMA is changed.

Linux on x86 gives every CPU a node, so a CPU without one, as other architectures and some firmware have it, is made
by an edited ``cpulist`` mounted over the kernel's. Affinity and memory are the kernel's own as ever.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from .check import Launch, check, placed

NODES = Path("/sys/devices/system/node")


@contextlib.contextmanager
def mounted_over(place: Path, text: str) -> Iterator[None]:
    """Put a text in place of a file."""
    edited = Path("/tmp/check-edited")
    edited.write_text(text)
    subprocess.run(["mount", "--bind", edited, place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


@check
def the_host_as_it_is() -> None:
    first, second = Launch("--throughput-mode").finished(2)
    placed(first, {0, 1, 2}, "prefer:0", {0})
    placed(second, {3, 4, 5}, "prefer:1", {1})


@check
def throughput_mode_leaves_a_cpu_without_a_node_idle() -> None:
    with mounted_over(NODES / "node1/cpulist", "3-4\n"):
        first, second = Launch("--throughput-mode", "--fill").finished(2)
    placed(first, {0, 1, 2}, "prefer:0", {0})
    placed(second, {3, 4}, "prefer:1", {1})


@check
def a_cpu_without_a_node_is_used_when_it_is_named() -> None:
    with mounted_over(NODES / "node1/cpulist", "3-4\n"):
        (one,) = Launch("--core-list", "5").finished(1)
    placed(one, {5}, "default", {1})


@check
def all_cores_include_those_without_a_node() -> None:
    with mounted_over(NODES / "node1/cpulist", "3-4\n"):
        (one,) = Launch().finished(1)
    placed(one, {0, 1, 2, 3, 4, 5}, "interleave:0-1", {0, 1})


@check
def a_node_whose_cpus_have_no_node_gives_none() -> None:
    with mounted_over(NODES / "node1/cpulist", "\n"):
        (one,) = Launch("--throughput-mode").finished(1)
    placed(one, {0, 1, 2}, "prefer:0", {0})


@check
def a_kernel_without_numa_binds_cpus_alone() -> None:
    subprocess.run(["mount", "-t", "tmpfs", "empty", NODES], check=True)
    try:
        first, second = Launch("--ninstances", "2").finished(2)
    finally:
        subprocess.run(["umount", NODES], check=True)
    placed(first, {0, 1, 2}, "default", {0})
    placed(second, {3, 4, 5}, "default", {1})
