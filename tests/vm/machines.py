"""The machines that are booted: their processors, NUMA nodes and memory, as QEMU is told.

Each has checks of its own in ``guest/on_<name>.py``, which state by hand what the launcher must do there.
"""

from __future__ import annotations

from typing import NamedTuple

#: An old processor: it has leaf 0xB, from which Linux learns who is whose sibling, and none of the string and vector
#: instructions that glibc and Linux would prefer on a newer one and that emulation makes slow.
PROCESSOR = "Nehalem-v1"


class Machine(NamedTuple):
    """One machine: `processors` is QEMU's -smp, `nodes` are (options of -numa node, MiB of memory; 0: none)."""

    name: str
    processors: str
    nodes: tuple[tuple[str, int], ...]
    more: tuple[str, ...] = ()  #: further options of QEMU
    #: One thread for all emulated processors costs less than one each, and two machines are booted at a time.
    threads: str = "single"
    order: tuple[int, ...] = ()  #: local APICs in the order in which the firmware lists them; (): ascending


def distances(*rows: str) -> tuple[str, ...]:
    """Return the options for a distance table, one row of numbers for each node."""
    table = [row.split() for row in rows]
    return tuple(
        word
        for source, row in enumerate(table)
        for target, value in enumerate(row)
        for word in ("-numa", f"dist,src={source},dst={target},val={value}")
    )


def bandwidths(*rows: tuple[int, int, int]) -> tuple[str, ...]:
    """Return the options for the firmware's HMAT: rows of (node of the processors, node of the memory, GiB/s)."""
    options = ["-machine", "hmat=on"]
    for initiator, target, gigabytes in rows:
        pair = f"initiator={initiator},target={target},hierarchy=memory"
        options += ["-numa", f"hmat-lb,{pair},data-type=access-latency,latency=100"]
        options += ["-numa", f"hmat-lb,{pair},data-type=access-bandwidth,bandwidth={gigabytes}G"]
    return tuple(options)


#: Two packages of two cores, siblings numbered side by side; beside each a fast memory without processors.
ADJACENT = Machine(
    "adjacent",
    "8,sockets=2,cores=2,threads=2",
    (("cpus=0-3,initiator=0", 192), ("cpus=4-7,initiator=1", 192), ("initiator=0", 96), ("initiator=1", 96)),
    (
        *distances("10 21 13 23", "21 10 23 13", "13 23 10 25", "23 13 25 10"),
        *bandwidths((0, 0, 20), (1, 1, 20), (0, 2, 60), (1, 3, 60)),
    ),
)

#: Two packages of two cores: enough to see how runs end.
ENDINGS = Machine("endings", "4,sockets=2,cores=2,threads=1", (("cpus=0-1", 160), ("cpus=2-3", 160)))

#: The cores of the first machine again; the firmware lists the first threads of all of them first, so siblings are
#: numbered four apart. The last one can be unplugged.
APART = Machine(
    "apart",
    "7,sockets=2,cores=2,threads=2,maxcpus=8",
    (("cpus=0-3", 160), ("cpus=4-7", 160)),
    ("-device", f"{PROCESSOR}-x86_64-cpu,id=last,socket-id=1,core-id=1,thread-id=1"),
    "multi",  # with one thread for all, QEMU can't take a processor away
    (0, 2, 4, 6, 1, 3, 5, 7),
)

#: Three packages of two cores; the middle one has no memory, and the last is nearer to it than the first.
MEMORYLESS = Machine(
    "memoryless",
    "6,sockets=3,cores=2,threads=1",
    (("cpus=0-1", 192), ("cpus=2-3", 0), ("cpus=4-5", 160)),
    distances("10 30 20", "30 10 15", "20 15 10"),
)

#: Three packages with two L3 caches each, on which control groups leave only a part to the launcher.
SOCKETS = Machine(
    "sockets",
    "12,sockets=3,dies=2,cores=2,threads=1",
    (("cpus=0-3", 160), ("cpus=4-7", 128), ("cpus=8-11", 128)),
    distances("10 20 30", "20 10 20", "30 20 10"),
)

#: Two packages of three cores; the kernel's account of its nodes is then changed by the checks. Three cores leave gaps
#: in the numbers of the local APICs, and QEMU 7.2 then loses interrupts that are addressed by a mask. Linux uses no
#: masks when there may be more than 8 processors, hence the empty third package.
NODELESS = Machine("nodeless", "6,sockets=3,cores=3,threads=1,maxcpus=9", (("cpus=0-2", 160), ("cpus=3-8", 160)))

MACHINES = {machine.name: machine for machine in (ADJACENT, ENDINGS, SOCKETS, APART, MEMORYLESS, NODELESS)}


def arguments(machine: Machine) -> list[str]:
    """Return QEMU's options for the machine itself."""
    options = ["-accel", f"tcg,thread={machine.threads}", "-cpu", PROCESSOR, "-smp", machine.processors]
    options += ["-m", f"{sum(size for _, size in machine.nodes)}M"]
    for number, (node, size) in enumerate(machine.nodes):
        memory = ""
        if size:
            options += ["-object", f"memory-backend-ram,id=memory{number},size={size}M"]
            memory = f",memdev=memory{number}"
        options += ["-numa", f"node,nodeid={number},{node}{memory}"]
    return [*options, *machine.more]
