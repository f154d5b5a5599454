"""Which memory is near which node, how much of it is free, and which of it is fast."""

from __future__ import annotations

from cpulens.machine.sysfs import Sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cpulens.machine.topology import Node


def nearest(node: Node, candidates: Iterable[Node]) -> Node | None:
    """Return the candidate nearest to `node` by the firmware's distances; None without candidates.

    Where no distance is known, or several are as near, the closest id counts, then the lower one.
    """
    far = 1 << 16
    return min(candidates, key=lambda c: (node.distances.get(c.id, far), abs(c.id - node.id), c.id), default=None)


def available_bytes(number: int, root: str = "/") -> int | None:
    """Return what a node can still give: free memory and its page cache; None when the host does not say."""
    sysfs = Sysfs(root)
    name = f"devices/system/node/node{number}/meminfo"
    free = sysfs.memory_bytes(name, "MemFree")
    if free is None:
        return None
    reclaimable = [sysfs.memory_bytes(name, field) or 0 for field in ("Active(file)", "Inactive(file)", "SReclaimable")]
    return free + sum(reclaimable)


def read_bandwidth(number: int, root: str = "/") -> int | None:
    """Return the read bandwidth of a node for its nearest processors in MiB/s, by the HMAT; None: not said."""
    return Sysfs(root).number(f"devices/system/node/node{number}/access0/initiators/read_bandwidth")
