"""Which cores may be used, and in which order they are handed out."""

from __future__ import annotations

from typing import NamedTuple

from cpulens.errors import PlacementError
from cpulens.machine import cpulist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cpulens.machine.limits import Limits
    from cpulens.machine.topology import Core, Topology
    from run_cpu.request import Numbers, Request


class Slot(NamedTuple):
    """A core with those of its CPUs that an instance on it may use; slots are never split between instances."""

    cpus: tuple[int, ...]
    core: Core


class Pool(NamedTuple):
    """The slots to place on, in order."""

    slots: tuple[Slot, ...]
    allowed: frozenset[int]  #: CPUs that may be used without being named
    ordered: bool = False  #: the user gave an order that must be kept
    slower: int = 0  #: cores left out because they are of a slower kind
    notes: tuple[str, ...] = ()


def build_pool(topology: Topology, limits: Limits, request: Request) -> Pool:
    """Return the slots that `request` may use: online, allowed, not isolated unless named, of the right kind and nodes.

    Raises PlacementError when nothing is left, or when a named CPU or node can't be used.
    """
    permitted = topology.cpus if limits.cpus is None else topology.cpus & limits.cpus
    if not permitted:
        raise PlacementError(
            f"none of the CPUs allowed here ({_listed(limits.cpus)}) is online ({_listed(topology.cpus)}); "
            "check the cpuset or the affinity that this process was started with"
        )
    allowed = permitted - topology.isolated or permitted
    if request.cpus is not None:
        return _named(topology, permitted, allowed, request.cpus)
    notes = []
    slower = 0
    if permitted != allowed:
        left_alone = _listed(permitted - allowed)
        notes.append(f"isolated CPUs {left_alone} are left alone; --core-list uses them when it names them")
    cores = [core for core in topology.cores if allowed.intersection(core.cpus)]
    if request.nodes is not None:
        wanted = _nodes(topology, cores, request.nodes)
        cores = [core for core in cores if core.node in wanted]
    fast = [core for core in cores if not core.efficient]
    if fast and len(fast) < len(cores) and not request.efficient:
        notes.append(
            f"{len(cores) - len(fast)} slower cores stay idle, since they would hold up the fast ones; "
            "--use-e-cores adds them"
        )
        slower, cores = len(cores) - len(fast), fast
    slots = [Slot(_threads(core, allowed, request.smt), core) for core in cores]
    return Pool(tuple(sorted(slots, key=_place)), allowed, False, slower, tuple(notes))


def _threads(core: Core, allowed: frozenset[int], smt: bool) -> tuple[int, ...]:
    usable = tuple(cpu for cpu in core.cpus if cpu in allowed)
    return usable if smt else usable[:1]


def _place(slot: Slot) -> tuple[int, int, int, int]:
    """Node by node, then package by package, cache by cache; CPUs without a node come last."""
    core = slot.core
    return (1 << 30 if core.node is None else core.node, core.package, -1 if core.l3 is None else core.l3, slot.cpus[0])


def _named(topology: Topology, permitted: frozenset[int], allowed: frozenset[int], numbers: Numbers) -> Pool:
    """The CPUs of --core-list. An ascending list is a set: siblings go together; any other order is kept as it is."""
    cpus = _resolve(numbers, sorted(permitted), "--core-list", "CPUs")
    for known, what in ((topology.cpus, "online"), (permitted, "in the affinity or cpuset of this process")):
        if unknown := set(cpus) - known:
            raise PlacementError(
                f"--core-list names CPUs {_listed(unknown)}, which are not {what} ({_listed(known)} are)"
            )
    core_of = {cpu: core for core in topology.cores for cpu in core.cpus}
    if cpus != sorted(cpus):
        return Pool(tuple(Slot((cpu,), core_of[cpu]) for cpu in cpus), allowed | set(cpus), True)
    wanted = set(cpus)
    cores = dict.fromkeys(core_of[cpu] for cpu in cpus)
    slots = [Slot(tuple(cpu for cpu in core.cpus if cpu in wanted), core) for core in cores]
    return Pool(tuple(sorted(slots, key=_place)), allowed | wanted)


def _nodes(topology: Topology, cores: list[Core], numbers: Numbers) -> set[int]:
    usable = sorted({core.node for core in cores if core.node is not None})
    if not usable:
        raise PlacementError("--node-id names NUMA nodes, but no CPU that may be used belongs to one; leave it out")
    wanted = _resolve(numbers, usable, "--node-id", "nodes")
    if unknown := set(wanted) - set(usable):
        why = "have no CPU that may be used" if topology.node(min(unknown)) else "do not exist here"
        raise PlacementError(f"--node-id names nodes {_listed(unknown)}, which {why}; usable nodes: {_listed(usable)}")
    return set(wanted)


def _resolve(numbers: Numbers, among: list[int], option: str, what: str) -> list[int]:
    if not numbers.relative:
        return list(numbers.values)
    if max(numbers.values) >= len(among):
        listed = cpulist.form(numbers.values)
        raise PlacementError(
            f"{option} +{listed} counts beyond the {len(among)} {what} that may be used ({_listed(among)})"
        )
    return [among[value] for value in numbers.values]


def _listed(numbers: Iterable[int] | None) -> str:
    return cpulist.form(numbers or ()) or "none"
