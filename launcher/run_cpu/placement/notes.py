"""What a plan has to say for itself: one line each for what crosses, what stays idle, what is held back."""

from __future__ import annotations

from cpulens.machine import cpulist
from run_cpu.placement.partition import group, largest_inside, node_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cpulens.machine.limits import Limits
    from run_cpu.placement.partition import Chunk
    from run_cpu.placement.plan import Instance
    from run_cpu.placement.pool import Pool, Slot
    from run_cpu.request import Request


def remarks(
    pool: Pool, mine: list[Chunk], everyone: list[Chunk], instances: list[Instance], request: Request, limits: Limits
) -> tuple[str, ...]:
    """Return the notes on the pieces of a plan, in the order in which a reader needs them."""
    found = [_crossing(mine, instances), _shared_cores(mine), _idle(pool, everyone, request)]
    if limits.quota_cpus is not None and any(i.threads < len(i.cpus) for i in instances):
        found.append(
            f"the cgroup grants {limits.quota_cpus:g} CPUs of time: {instances[0].threads} threads for each instance, "
            f"not {len(instances[0].cpus)}"
        )
    if request.local_size > 1:
        found.append(f"local rank {request.local_rank} of {request.local_size}: its share of every instance")
    return tuple(note for note in found if note)


def _crossing(mine: list[Chunk], instances: list[Instance]) -> str:
    crossing = [
        i for i, chunk in enumerate(mine) if len({node_of(slot) for slot in chunk if slot.core.node is not None}) > 1
    ]
    if not crossing:
        return ""
    nodes = cpulist.form(slot.core.node for i in crossing for slot in mine[i] if slot.core.node is not None)
    if len(mine) == 1:
        how = " and its memory is interleaved over them" if instances[0].memory_policy == "interleave" else ""
        return f"one instance spans NUMA nodes {nodes}{how}; --throughput-mode starts one on each node"
    what, verb = ("instance", "spans") if len(crossing) == 1 else ("instances", "span")
    which = cpulist.form(crossing)
    return f"{what} {which} {verb} several NUMA nodes ({nodes}): memory of one node is remote to the others"


def _shared_cores(mine: list[Chunk]) -> str:
    owner: dict[object, int] = {}
    for index, chunk in enumerate(mine):
        for slot in chunk:
            if owner.setdefault(slot.core, index) != index:
                siblings = cpulist.form(slot.core.cpus)
                return f"instances {owner[slot.core]} and {index} share a core (CPUs {siblings}), as --core-list orders"
    return ""


def _idle(pool: Pool, everyone: list[Chunk], request: Request) -> str:
    used = {slot.core for chunk in everyone for slot in chunk}
    idle = [slot for slot in pool.slots if slot.core not in used]
    if not idle:
        return ""
    count = len({slot.core for slot in idle})
    listed = cpulist.form(cpu for slot in idle for cpu in slot.cpus)
    return f"{count} of {count + len(used)} cores stay idle (CPUs {listed}){_remedy(pool, everyone, idle, request)}"


def _remedy(pool: Pool, everyone: list[Chunk], idle: list[Slot], request: Request) -> str:
    """Which option would use the idle cores, and what it would give."""
    count, slots = len(everyone), len(pool.slots)
    homes = {node_of(slot) for chunk in everyone for slot in chunk}
    remedies = []
    if request.ncores is not None or request.mode == "latency":
        size = request.ncores or len(everyone[0])
        larger = largest_inside([len(domain) for domain in group(pool.slots, node_of)], count)
        if request.ninstances is None and request.cross == "avoid" and slots // size > count:
            remedies.append(f"--allow-cross-node makes {slots // size} instances")
        if larger > len(everyone[0]):
            remedies.append(f"--ninstances {count} alone gives {larger} cores to each")
    else:
        if not request.fill and any(node_of(slot) in homes for slot in idle):
            remedies.append("--fill hands them to the instances")
        if request.cross == "avoid" and not request.mode and slots // count > min(map(len, everyone)):
            remedies.append(f"--allow-cross-node gives {slots // count} cores to each")
        if request.mode == "throughput" and any(slot.core.node is None for slot in idle):
            remedies.append(f"--ninstances {count + 1} also uses those that belong to no node")
    return f"; {', or '.join(remedies)}" if remedies else ""
