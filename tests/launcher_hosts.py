"""Hosts made up for the launcher's tests: a few facts each, as a system root or as the launcher's own values."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from cpulens.machine.limits import Limits
from cpulens.machine.topology import Core, Node, Topology


class MadeCore(NamedTuple):
    cpus: tuple[int, ...]
    package: int = 0
    node: int | None = 0
    l3: int | None = None  # any number that cores of one L3 share
    slow: bool = False


class MadeHost(NamedTuple):
    """What a host consists of; CPUs that are in no core are offline."""

    cores: tuple[MadeCore, ...]
    memory: dict[int, int]  # node → MiB; 0: a node without memory
    distances: dict[int, list[int]] | None = None  # node → distances to all nodes, in their order
    isolated: tuple[int, ...] = ()
    allowed: tuple[int, ...] | None = None
    mems: tuple[int, ...] | None = None

    @property
    def online(self) -> set[int]:
        return {cpu for core in self.cores for cpu in core.cpus}

    @property
    def usable(self) -> set[int]:
        """CPUs that a plan may use without naming them."""
        allowed = self.online & set(self.online if self.allowed is None else self.allowed)
        return allowed - set(self.isolated) or allowed

    def core_of(self, cpu: int) -> MadeCore:
        return next(core for core in self.cores if cpu in core.cpus)

    def node_cpus(self, node: int) -> list[int]:
        return sorted(cpu for core in self.cores if core.node == node for cpu in core.cpus)


def regular(
    packages: int,
    nodes: int,
    cores: int | list[int],
    threads: int = 1,
    numbering: str = "halves",
    l3: int | None = None,
) -> MadeHost:
    """`nodes` on each package; `cores` on each node (a list: on each node of the host).

    Numbering of CPUs: `halves` (second threads after all cores), `adjacent` (2k, 2k+1), `robin` (dealt to the nodes in
    turn). `l3`: cores that share a cache, counted inside a node.
    """
    sizes = cores if isinstance(cores, list) else [cores] * (packages * nodes)
    total = sum(sizes)
    homes = [(node, place) for node, size in enumerate(sizes) for place in range(size)]
    if numbering == "robin":
        homes.sort(key=lambda home: (home[1], home[0]))
    made = []
    for number, (node, place) in enumerate(homes):
        if numbering == "adjacent":
            cpus = tuple(number * threads + thread for thread in range(threads))
        else:
            cpus = tuple(number + total * thread for thread in range(threads))
        made.append(MadeCore(cpus, node // nodes, node, None if l3 is None else node * 1000 + place // l3))
    return MadeHost(tuple(made), dict.fromkeys(range(len(sizes)), 1000))


def topology_of(host: MadeHost) -> Topology:
    """The host as the launcher would have read it."""
    l3 = {core.l3: min(min(c.cpus) for c in host.cores if c.l3 == core.l3) for core in host.cores}
    cores = [
        Core(core.cpus, core.package, core.node, None if core.l3 is None else l3[core.l3], core.slow)
        for core in sorted(host.cores)
    ]
    nodes = [
        Node(
            node,
            tuple(host.node_cpus(node)),
            size > 0,
            size << 20,
            dict(zip(sorted(host.memory), host.distances[node], strict=True)) if host.distances else {},
        )
        for node, size in sorted(host.memory.items())
    ]
    return Topology(tuple(cores), tuple(nodes), frozenset(host.isolated))


def limits_of(host: MadeHost, quota_cpus: float | None = None) -> Limits:
    """What of it may be used."""
    allowed = host.online if host.allowed is None else host.allowed
    mems = host.memory if host.mems is None else host.mems
    return Limits(frozenset(allowed), frozenset(mems), quota_cpus)


def listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def write_root(host: MadeHost, root: Path, quota_cpus: float | None = None) -> Path:
    """Write what the kernel of such a host would show below `root`."""

    def put(name: str, text: object) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    put("sys/devices/system/cpu/online", listed(host.online))
    put("sys/devices/system/cpu/isolated", listed(host.isolated))
    for core in host.cores:
        for cpu in core.cpus:
            base = f"sys/devices/system/cpu/cpu{cpu}"
            put(f"{base}/topology/core_cpus_list", listed(core.cpus))
            put(f"{base}/topology/physical_package_id", core.package)
            put(f"{base}/cpufreq/cpuinfo_max_freq", 2000000 if core.slow else 4000000)
            if core.l3 is not None:
                put(f"{base}/cache/index3/level", 3)
                sharing = [c for other in host.cores if other.l3 == core.l3 for c in other.cpus]
                put(f"{base}/cache/index3/shared_cpu_list", listed(sharing))
    if host.memory:
        put("sys/devices/system/node/online", listed(host.memory))
    for node, size in host.memory.items():
        base = f"sys/devices/system/node/node{node}"
        put(f"{base}/cpulist", listed(host.node_cpus(node)))
        put(f"{base}/meminfo", f"Node {node} MemTotal:  {size * 1024} kB\nNode {node} MemFree:  {size * 1024} kB")
        if host.distances:
            put(f"{base}/distance", " ".join(map(str, host.distances[node])))
    allowed = listed(host.online if host.allowed is None else host.allowed)
    mems = listed(host.memory if host.mems is None else host.mems) or "0"
    put("proc/self/status", f"Name:\tpython\nCpus_allowed_list:\t{allowed}\nMems_allowed_list:\t{mems}")
    if quota_cpus is not None:
        put("sys/fs/cgroup/cpu.max", f"{int(quota_cpus * 100000)} 100000")
    return root
