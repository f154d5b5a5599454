"""(Topology, Limits, Request) → Plan: pure, the heart of the launcher."""

from __future__ import annotations

from cpulens.errors import PlacementError
from run_cpu.placement import notes, rules
from run_cpu.placement.memory import memory_for
from run_cpu.placement.plan import Instance, Plan
from run_cpu.placement.pool import build_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpulens.machine.limits import Limits
    from cpulens.machine.topology import Topology
    from run_cpu.placement.memory import Bandwidth
    from run_cpu.placement.partition import Chunk
    from run_cpu.request import Request

__all__ = ["Instance", "Plan", "place"]


def place(topology: Topology, limits: Limits, request: Request, bandwidth: Bandwidth = lambda _: None) -> Plan:
    """Return the plan for `request` on a host.

    `bandwidth` gives the read bandwidth of a memory node for --hbm (default: unknown). Raises PlacementError when no
    plan gives exactly what was asked for.
    """
    pool = build_pool(topology, limits, request)
    chunks = rules.divide(pool, request)
    everyone = [part for chunk in chunks for part in _ranks(chunk, request, pool.ordered)]
    mine = everyone[request.local_rank :: request.local_size]
    threads = _threads_each(limits.quota_cpus, len(everyone))
    instances = []
    for index, chunk in enumerate(mine):
        cpus = tuple(cpu for slot in chunk for cpu in slot.cpus)
        nodes, policy = memory_for(chunk, topology, limits, request.memory, len(everyone) == 1, bandwidth)
        ordered = cpus if pool.ordered else tuple(sorted(cpus))
        instances.append(Instance(index, ordered, min(len(cpus), threads), nodes, policy))
    used = {slot.core for chunk in everyone for slot in chunk}
    busy = {cpu for core in used for cpu in core.cpus}
    remarks = topology.notes + pool.notes + notes.remarks(pool, mine, everyone, instances, request, limits)
    chosen = _selected(instances, request)
    return Plan(chosen, tuple(sorted(pool.allowed - busy)), remarks, request.bind_cpus)


def _ranks(chunk: Chunk, request: Request, ordered: bool) -> list[Chunk]:
    """The shares of all local ranks in one instance: the starter runs us once for each of them."""
    if request.local_size == 1:
        return [chunk]
    if request.local_size > len(chunk):
        raise PlacementError(
            f"{request.local_size} local ranks share an instance of {len(chunk)} cores; "
            "start fewer ranks, or fewer and larger instances"
        )
    return rules.equal(chunk, request.local_size, request, keep_order=ordered)


def _threads_each(quota_cpus: float | None, processes: int) -> int:
    """The cgroup's CPU time is shared by all: threads beyond it are only throttled. At least one each."""
    return 1 << 30 if quota_cpus is None else max(1, int(quota_cpus) // processes)


def _selected(instances: list[Instance], request: Request) -> tuple[Instance, ...]:
    if request.only is None:
        return tuple(instances)
    if beyond := [number for number in request.only if number >= len(instances)]:
        raise PlacementError(
            f"instance {beyond[0]} was asked for, but the plan has {len(instances)} (0 to {len(instances) - 1}); "
            "check --rank or --instance-idx against --ninstances"
        )
    return tuple(instances[number] for number in request.only)
