"""What processors and memory this host has, from sysfs.

A core is a set of sibling CPUs, never a number: core ids repeat on real hosts. Everything is read below a root, so
another host's copy of ``/sys`` can be read as well (``Documentation/admin-guide/cputopology.rst`` and
``Documentation/ABI/stable/sysfs-devices-node`` of the kernel describe the files).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from cpulens.errors import PlacementError
from cpulens.machine import cpulist
from cpulens.machine.sysfs import Sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Cores are told apart when the faster kind is at least this much faster than the next.
KIND_GAP = 1.15


class Core(NamedTuple):
    """One physical core: its online CPUs, and where it sits."""

    cpus: tuple[int, ...]  #: online siblings, ascending
    package: int  #: kernel's package id; 0 where the kernel does not say
    node: int | None  #: NUMA node; None where no node claims it
    l3: int | None  #: lowest CPU that shares its last cache of level 3; None: not known
    efficient: bool = False  #: a core of a slower kind, on a host that has several kinds


class Node(NamedTuple):
    """One online NUMA node."""

    id: int
    cpus: tuple[int, ...]  #: its online CPUs, ascending; empty for memory-only nodes
    has_memory: bool
    size_bytes: int | None  #: None: the host does not say
    distances: Mapping[int, int]  #: other node → distance; empty where the host does not say


class Topology(NamedTuple):
    """The online part of a host."""

    cores: tuple[Core, ...]  #: by their lowest CPU
    nodes: tuple[Node, ...]  #: by id; empty on hosts without NUMA
    isolated: frozenset[int] = frozenset()  #: CPUs taken from the scheduler at boot
    notes: tuple[str, ...] = ()  #: what is contradictory in the host's own account

    @property
    def cpus(self) -> frozenset[int]:
        """All online CPUs."""
        return frozenset(cpu for core in self.cores for cpu in core.cpus)

    def node(self, number: int) -> Node | None:
        """Return the node of that id, None when it is not online."""
        return next((node for node in self.nodes if node.id == number), None)


def read_topology(root: str = "/") -> Topology:
    """Return the topology of the host whose ``/sys`` lies below `root` (default: this host).

    Raises PlacementError when no online CPU can be found there.
    """
    sysfs = Sysfs(root)
    online = sysfs.numbers("devices/system/cpu/online") or sysfs.numbers("devices/system/cpu/present")
    if not online:
        raise PlacementError(
            f"{sysfs.path('devices/system/cpu/online')} lists no CPU: no plan can be made without the host's /sys; "
            "mount it, or give --sysroot a directory that holds a copy of it"
        )
    nodes = _read_nodes(sysfs, frozenset(online))
    node_of, notes = _claims(nodes)
    package_of = _packages(sysfs, online)
    l3_of = _last_caches(sysfs, online)
    cores = _read_cores(sysfs, online)
    slow = _efficient(sysfs, cores)
    return Topology(
        tuple(
            Core(cpus, package_of[cpus[0]], node_of.get(cpus[0]), l3_of.get(cpus[0]), cpus[0] in slow) for cpus in cores
        ),
        nodes,
        frozenset(sysfs.numbers("devices/system/cpu/isolated")),
        notes,
    )


def _read_cores(sysfs: Sysfs, online: list[int]) -> list[tuple[int, ...]]:
    """Sibling sets, each read once."""
    left = set(online)
    cores = []
    for cpu in sorted(online):
        if cpu not in left:
            continue
        base = f"devices/system/cpu/cpu{cpu}/topology"
        named = sysfs.numbers(f"{base}/core_cpus_list") or sysfs.numbers(f"{base}/thread_siblings_list")
        siblings = tuple(sorted(left.intersection(named) | {cpu}))
        left.difference_update(siblings)
        cores.append(siblings)
    return cores


def _packages(sysfs: Sysfs, online: list[int]) -> dict[int, int]:
    """CPU → package; one look a package where the kernel lists its CPUs."""
    packages: dict[int, int] = {}
    for cpu in online:
        if cpu in packages:
            continue
        base = f"devices/system/cpu/cpu{cpu}/topology"
        package = max(0, sysfs.number(f"{base}/physical_package_id") or 0)
        members = sysfs.numbers(f"{base}/package_cpus_list") or sysfs.numbers(f"{base}/core_siblings_list")
        packages.update(dict.fromkeys(members, package))
        packages[cpu] = package
    return packages


def _last_caches(sysfs: Sysfs, online: list[int]) -> dict[int, int]:
    """CPU → lowest CPU of its L3 group."""
    groups: dict[int, int] = {}
    index: str | None = None
    for cpu in online:
        if cpu in groups:
            continue
        base = f"devices/system/cpu/cpu{cpu}/cache"
        if index is None or sysfs.number(f"{base}/{index}/level") != 3:
            index = next((i for i in sysfs.names(base) if sysfs.number(f"{base}/{i}/level") == 3), None)
        if index is None:
            continue
        members = sysfs.numbers(f"{base}/{index}/shared_cpu_list") or [cpu]
        groups.update(dict.fromkeys(members, min(members)))
    return groups


def _read_nodes(sysfs: Sysfs, online: frozenset[int]) -> tuple[Node, ...]:
    base = "devices/system/node"
    ids = sysfs.numbers(f"{base}/online")
    with_memory = sysfs.numbers(f"{base}/has_memory") or sysfs.numbers(f"{base}/has_normal_memory")
    nodes = []
    for number in sorted(ids):
        size = sysfs.memory_bytes(f"{base}/node{number}/meminfo", "MemTotal")
        has_memory = (number in with_memory if with_memory else True) if size is None else size > 0
        row = [int(word) for word in sysfs.text(f"{base}/node{number}/distance").split() if word.isdecimal()]
        if len(row) == len(ids):
            distances = dict(zip(sorted(ids), row, strict=True))
        else:  # an offline node still has its column on some kernels
            distances = {other: row[other] for other in ids if other < len(row)}
        cpus = tuple(sorted(online.intersection(sysfs.numbers(f"{base}/node{number}/cpulist"))))
        nodes.append(Node(number, cpus, has_memory, size, distances))
    return tuple(nodes)


def _claims(nodes: tuple[Node, ...]) -> tuple[dict[int, int], tuple[str, ...]]:
    """CPU → node. Broken firmware lets several nodes claim a CPU: the lowest gets it."""
    owner: dict[int, int] = {}
    doubled: set[int] = set()
    for node in nodes:
        for cpu in node.cpus:
            if owner.setdefault(cpu, node.id) != node.id:
                doubled.add(cpu)
    if not doubled:
        return owner, ()
    return owner, (f"several NUMA nodes claim CPUs {cpulist.form(doubled)}; each is counted to the lowest of them",)


def _efficient(sysfs: Sysfs, cores: list[tuple[int, ...]]) -> frozenset[int]:
    """First CPUs of the cores of the slower kind(s); empty on a host with one kind."""
    performance = frozenset(sysfs.numbers("devices/cpu_core/cpus"))
    atom = frozenset(sysfs.numbers("devices/cpu_atom/cpus")) | frozenset(sysfs.numbers("devices/cpu_lowpower/cpus"))
    first = [core[0] for core in cores]
    if performance and atom:
        return frozenset(first) & atom
    for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
        if sysfs.number(f"devices/system/cpu/cpu{first[0]}/{name}") is None:
            continue
        speed = {cpu: sysfs.number(f"devices/system/cpu/cpu{cpu}/{name}") for cpu in first}
        known = {cpu: value for cpu, value in speed.items() if value}
        if len(known) == len(first):
            limit = _gap(known.values())
            return frozenset(cpu for cpu, value in known.items() if value < limit)
    return frozenset()


def _gap(speeds: Iterable[int]) -> int:
    """Return the speed above the widest gap that makes two kinds; 0 when there is one kind."""
    steps = sorted(set(speeds))
    gaps = [(high / low, high) for low, high in itertools.pairwise(steps)]
    widest, limit = max(gaps, default=(1.0, 0))
    return limit if widest >= KIND_GAP else 0
