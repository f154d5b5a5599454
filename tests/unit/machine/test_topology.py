"""Reading a host's /sys: each kind of host as a few facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpulens.errors import PlacementError
from cpulens.machine import cpulist
from cpulens.machine.limits import read_limits, read_quota
from cpulens.machine.memory import available_bytes, nearest, read_bandwidth
from cpulens.machine.topology import Topology, read_topology
from launcher_hosts import MadeCore, MadeHost, limits_of, regular, topology_of, write_root


def put(root: Path, name: str, text: object) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.mark.parametrize(
    "host",
    [
        regular(2, 2, 3, threads=2, l3=3),
        regular(1, 1, 4, threads=4, numbering="adjacent"),
        regular(2, 1, 4, threads=2, numbering="robin", l3=2),
        MadeHost((MadeCore((0, 1)), MadeCore((2,), slow=True)), {0: 100}),
        MadeHost((MadeCore((4,), 0, None), MadeCore((5, 7), 1, 1)), {1: 100, 3: 50}, {1: [10, 20], 3: [20, 10]}),
        MadeHost((MadeCore((3000,), 7, 1023),), {1023: 0, 5: 10}, isolated=(3000,), allowed=(3000, 3001), mems=(5,)),
        MadeHost((MadeCore((1, 2), 0, None),), {}),
    ],
)
def test_what_is_written_is_read(host: MadeHost, tmp_path: Path) -> None:
    root = str(write_root(host, tmp_path, quota_cpus=2.5))
    assert read_topology(root) == topology_of(host)
    limits = limits_of(host, 2.5)
    assert read_limits(root) == limits._replace(memory_nodes=limits.memory_nodes or frozenset({0}))


def test_this_host() -> None:
    """Compared with what Python and the kernel say elsewhere."""
    import os

    topology, limits = read_topology(), read_limits()
    assert limits.cpus == os.sched_getaffinity(0)
    assert len(topology.cpus) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert limits.cpus <= topology.cpus


def test_no_sys_at_all(tmp_path: Path) -> None:
    with pytest.raises(PlacementError, match="lists no CPU"):
        read_topology(str(tmp_path))


def test_a_bare_sys(tmp_path: Path) -> None:
    """Some sandboxes show which CPUs there are, and nothing about them."""
    put(tmp_path, "sys/devices/system/cpu/online", "0-2")
    topology = read_topology(str(tmp_path))
    assert [core.cpus for core in topology.cores] == [(0,), (1,), (2,)]
    assert {(core.package, core.node, core.l3, core.efficient) for core in topology.cores} == {(0, None, None, False)}


def test_offline_siblings_and_nodes_that_name_offline_cpus(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/cpu/online", "1-3")
    for cpu in (1, 2, 3):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list", "0-1" if cpu < 2 else "2-3")
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id", -1)
    put(tmp_path, "sys/devices/system/node/online", "0")
    put(tmp_path, "sys/devices/system/node/node0/cpulist", "0-87")
    topology = read_topology(str(tmp_path))
    assert [(core.cpus, core.package, core.node) for core in topology.cores] == [((1,), 0, 0), ((2, 3), 0, 0)]
    assert topology.nodes[0].cpus == (1, 2, 3)
    assert topology.nodes[0].has_memory  # nothing says that it has none


def test_old_names(tmp_path: Path) -> None:
    """Before Linux 5.4 siblings were thread_siblings_list and packages core_siblings_list."""
    put(tmp_path, "sys/devices/system/cpu/online", "0-3")
    for cpu in range(4):
        base = f"sys/devices/system/cpu/cpu{cpu}/topology"
        put(tmp_path, f"{base}/thread_siblings_list", f"{cpu % 2},{cpu % 2 + 2}")
        put(tmp_path, f"{base}/physical_package_id", cpu % 2)
        put(tmp_path, f"{base}/core_siblings_list", f"{cpu % 2},{cpu % 2 + 2}")
    assert [(core.cpus, core.package) for core in read_topology(str(tmp_path)).cores] == [((0, 2), 0), ((1, 3), 1)]


def test_several_nodes_claim_a_cpu(tmp_path: Path) -> None:
    host = regular(1, 1, 4)
    write_root(host, tmp_path)
    put(tmp_path, "sys/devices/system/node/online", "0-1")
    put(tmp_path, "sys/devices/system/node/node1/cpulist", "0-3")
    topology = read_topology(str(tmp_path))
    assert {core.node for core in topology.cores} == {0}
    assert topology.notes == ("several NUMA nodes claim CPUs 0-3; each is counted to the lowest of them",)


def kinds(tmp_path: Path, name: str, values: list[int]) -> list[bool]:
    put(tmp_path, "sys/devices/system/cpu/online", f"0-{len(values) - 1}")
    for cpu, value in enumerate(values):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/{name}", value)
    return [core.efficient for core in read_topology(str(tmp_path)).cores]


def test_kinds_of_cores_by_arm_capacity(tmp_path: Path) -> None:
    # Grace Blackwell: X925 at 997 and 1017, A725 at 718 and 731. One slot of each differs by bins, not by kind.
    assert kinds(tmp_path, "cpu_capacity", [718, 731, 997, 1017]) == [True, True, False, False]


def test_a_few_favoured_cores_are_no_kind(tmp_path: Path) -> None:
    assert kinds(tmp_path, "cpufreq/cpuinfo_max_freq", [5600000, 5800000, 5600000]) == [False] * 3


def test_kinds_of_cores_by_frequency(tmp_path: Path) -> None:
    assert kinds(tmp_path, "cpufreq/cpuinfo_max_freq", [5000000, 5000000, 3800000]) == [False, False, True]


def test_kinds_of_cores_by_intels_own_lists(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/cpu_core/cpus", "0-1")
    put(tmp_path, "sys/devices/cpu_atom/cpus", "2")
    assert kinds(tmp_path, "cpufreq/cpuinfo_max_freq", [3000000, 3000000, 3000000]) == [False, False, True]


def test_core_ids_that_repeat_mean_nothing(tmp_path: Path) -> None:
    """Some Arm hosts count cores anew in each cluster; the sibling lists stay right."""
    put(tmp_path, "sys/devices/system/cpu/online", "0-5")
    for cpu in range(6):
        base = f"sys/devices/system/cpu/cpu{cpu}/topology"
        put(tmp_path, f"{base}/core_id", cpu % 2)
        put(tmp_path, f"{base}/core_cpus_list", cpu)
    assert [core.cpus for core in read_topology(str(tmp_path)).cores] == [(cpu,) for cpu in range(6)]


def test_an_l3_that_is_not_index3(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/cpu/online", "0-3")
    for cpu in range(4):
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index2/level", 3)
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index2/shared_cpu_list", "0-1" if cpu < 2 else "2-3")
        put(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/cache/index3/level", 2)
    assert [core.l3 for core in read_topology(str(tmp_path)).cores] == [0, 0, 2, 2]


def test_distances_of_a_kernel_that_counts_offline_nodes(tmp_path: Path) -> None:
    put(tmp_path, "sys/devices/system/cpu/online", "0")
    put(tmp_path, "sys/devices/system/node/online", "1")
    put(tmp_path, "sys/devices/system/node/node1/distance", "21 10")
    assert read_topology(str(tmp_path)).nodes[0].distances == {1: 10}


def test_nearest_memory() -> None:
    host: Topology = topology_of(
        regular(1, 4, 1)._replace(distances={0: [10, 20, 15, 20], 1: [20] * 4, 2: [15, 20, 10, 20], 3: [20] * 4})
    )
    node = {n.id: n for n in host.nodes}
    assert nearest(node[0], [node[1], node[2], node[3]]) == node[2]
    assert nearest(node[0], [node[3], node[1]]) == node[1]
    assert nearest(node[0], []) is None


def test_memory_that_a_node_can_still_give(tmp_path: Path) -> None:
    sizes = {"MemTotal": 1000, "MemFree": 100, "Active(file)": 20, "Inactive(file)": 30, "SReclaimable": 4}
    lines = [f"Node 2 {name}: {size} kB" for name, size in sizes.items()]
    put(tmp_path, "sys/devices/system/node/node2/meminfo", "\n".join(lines))
    assert available_bytes(2, str(tmp_path)) == 154 * 1024
    assert available_bytes(3, str(tmp_path)) is None
    put(tmp_path, "sys/devices/system/node/node2/access0/initiators/read_bandwidth", 819200)
    assert read_bandwidth(2, str(tmp_path)) == 819200


# Quotas: the smallest of all ancestors counts, in both versions of cgroups.


def test_quota_of_every_ancestor_v2(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/a/b/c")
    put(tmp_path, "sys/fs/cgroup/a/b/c/cpu.max", "max 100000")
    put(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "250000 100000")
    put(tmp_path, "sys/fs/cgroup/a/cpu.max", "800000 100000")
    assert read_quota(str(tmp_path)) == 2.5
    put(tmp_path, "sys/fs/cgroup/a/b/cpu.max", "max 100000")
    assert read_quota(str(tmp_path)) == 8
    put(tmp_path, "sys/fs/cgroup/a/cpu.max", "max 100000")
    assert read_quota(str(tmp_path)) is None


@pytest.mark.parametrize("folder", ["cpu,cpuacct", "cpu"])
def test_quota_of_every_ancestor_v1(tmp_path: Path, folder: str) -> None:
    put(tmp_path, "proc/self/cgroup", "5:memory:/\n4:cpu,cpuacct:/docker/x\n0::/")
    for name, quota in (("docker/x", -1), ("docker", 150000), ("", -1)):
        put(tmp_path, f"sys/fs/cgroup/{folder}/{name}/cpu.cfs_quota_us", quota)
        put(tmp_path, f"sys/fs/cgroup/{folder}/{name}/cpu.cfs_period_us", 100000)
    assert read_quota(str(tmp_path)) == 1.5


def test_quota_in_a_container_that_sees_its_own_cgroup_as_the_root(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "4:cpu,cpuacct:/docker/0123abcd")
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", 50000)
    put(tmp_path, "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", 100000)
    assert read_quota(str(tmp_path)) == 0.5


@pytest.mark.parametrize("text", ["", "max", "x y", "100000 0", "-1 100000"])
def test_a_quota_file_that_says_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, "sys/fs/cgroup/cpu.max", text)
    assert read_quota(str(tmp_path)) is None


# Lists


def test_lists() -> None:
    assert cpulist.parse("0-3,8") == [0, 1, 2, 3, 8]
    assert cpulist.parse("8, 1 ,0") == [8, 1, 0]
    assert cpulist.parse("1,1-2") == [1, 2]
    assert cpulist.parse("\n") == []
    assert cpulist.form([8, 0, 1, 2, 8]) == "0-2,8"
    assert cpulist.form([]) == ""
    for wrong in ("a", "3-1", "1-", "-1", "1.5", "²"):
        with pytest.raises(ValueError, match="range"):
            cpulist.parse(wrong)
