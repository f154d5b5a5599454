"""Which memory an instance gets, and how."""

from __future__ import annotations

from cpulens.errors import PlacementError
from cpulens.machine import cpulist
from cpulens.machine.memory import available_bytes, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cpulens.machine.limits import Limits
    from cpulens.machine.topology import Node, Topology
    from run_cpu.placement.partition import Chunk
    from run_cpu.placement.plan import Plan

    Bandwidth = Callable[[int], int | None]


def memory_for(
    chunk: Chunk, topology: Topology, limits: Limits, wish: str, alone: bool, bandwidth: Bandwidth
) -> tuple[tuple[int, ...], str]:
    """Return the memory nodes of an instance on these slots, and the policy of its memory.

    `wish` is the request's; `alone`: it is the only instance, so spanning nodes means all the bandwidth there is, and
    its memory is interleaved. `bandwidth` tells a node's read bandwidth, for --hbm. Raises PlacementError when there
    is no high-bandwidth memory where some is asked for.
    """
    own = [node for node in topology.nodes if node.id in {slot.core.node for slot in chunk}]
    if wish == "kernel" or not own:
        return (), "default"
    usable = [
        n for n in topology.nodes if n.has_memory and (limits.memory_nodes is None or n.id in limits.memory_nodes)
    ]
    if wish.endswith("hbm"):
        near = {_fast_node(node, usable, bandwidth).id for node in own}
    else:
        found = (node if node in usable else nearest(node, usable) for node in own)
        near = {node.id for node in found if node is not None}
    if not near:
        return (), "default"
    if wish.startswith("bind"):
        policy = "bind"
    elif wish == "interleave" or (wish == "prefer" and alone and len(near) > 1):
        policy = "interleave"
    else:
        policy = "preferred" if len(near) == 1 else "preferred-many"
    return tuple(sorted(near)), policy


def _fast_node(node: Node, usable: list[Node], bandwidth: Bandwidth) -> Node:
    """The high-bandwidth node next to `node`: the firmware's figure decides, else size does (it is the smaller)."""
    without_cpus = [other for other in usable if not other.cpus]
    own = bandwidth(node.id)
    faster = [other for other in without_cpus if own and (bandwidth(other.id) or 0) > own]
    if not faster:
        known = node.size_bytes or 0
        faster = [
            other
            for other in without_cpus
            if bandwidth(other.id) is None
            and other.size_bytes
            and other.size_bytes < known
            and _is_neighbour(node, other)
        ]
    best = nearest(node, faster)
    if best is None:
        nodes = cpulist.form(other.id for other in usable)
        raise PlacementError(
            f"--hbm: no high-bandwidth memory is known near NUMA node {node.id} (nodes with memory: {nodes}); "
            "leave --hbm out"
        )
    return best


#: Firmware gives memory on the package a distance below that of another package; GPU memory lies far beyond.
_FAR = 40


def _is_neighbour(node: Node, other: Node) -> bool:
    return node.distances.get(other.id, 0) < _FAR


#: Less than this for an instance, and not even an interpreter starts.
_LEAST_BYTES = 64 << 20


def check_free_memory(plan: Plan, root: str = "/") -> list[str]:
    """Return a note on how much memory a strict binding leaves to the instances.

    What does not fit is killed, so the figure is always said. Raises PlacementError where next to nothing is free.
    """
    notes = []
    for nodes in dict.fromkeys(
        instance.memory_nodes for instance in plan.instances if instance.memory_policy == "bind"
    ):
        known = [available_bytes(node, root) for node in nodes]
        if None in known:
            continue
        sharing = sum(not set(nodes).isdisjoint(instance.memory_nodes) for instance in plan.instances)
        each = sum(size for size in known if size is not None) // sharing
        listed = cpulist.form(nodes)
        if each < _LEAST_BYTES:
            raise PlacementError(
                f"--membind: NUMA nodes {listed} have {each >> 20} MiB free for each of {sharing} instances; "
                "leave --membind out, so that memory may come from elsewhere"
            )
        notes.append(
            f"--membind: an instance on NUMA nodes {listed} is killed when it needs more than {each / 2**30:.1f} GiB"
        )
    return notes
