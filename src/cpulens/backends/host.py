"""The host as plain values: packages, nodes, caches and cores, what of them may be used, and how it is set up.

Only read, never changed; what can't be read is null, and a note says so.
"""

from __future__ import annotations

import os
import platform
from typing import Any

from cpulens.errors import CpulensError
from cpulens.machine import cpulist
from cpulens.machine.limits import read_limits
from cpulens.machine.sysfs import Sysfs, read_text
from cpulens.machine.topology import Core, Topology, read_topology


def machine(root: str = "/") -> dict[str, Any]:
    """Return the topology in lists of CPUs such as "0-27,56-83", and what this process may use of it.

    `groups`: one entry for each package, node and L3 cache, in that order, with its cores' CPUs, siblings joined by
    "+" where a core has several online.
    """
    limits = read_limits(root)
    values: dict[str, Any] = {
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "cpus_allowed": None if limits.cpus is None else cpulist.form(limits.cpus),
        "memory_nodes_allowed": None if limits.memory_nodes is None else cpulist.form(limits.memory_nodes),
        "quota_cpus": limits.quota_cpus,
        "notes": [],
    }
    try:
        topology = read_topology(root)
    except CpulensError as error:
        return {**values, **_no_topology(), "notes": [f"the topology is not known: {str(error).partition(': ')[0]}"]}
    return {**values, **_described(topology), "notes": list(topology.notes)}


def _no_topology() -> dict[str, Any]:
    names = ("cpus_online", "packages", "cores", "threads_per_core", "cpus_isolated")
    return {**dict.fromkeys(names), "nodes": [], "groups": []}


def _described(topology: Topology) -> dict[str, Any]:
    return {
        "cpus_online": cpulist.form(topology.cpus),
        "packages": len({core.package for core in topology.cores}),
        "cores": len(topology.cores),
        "threads_per_core": max(len(core.cpus) for core in topology.cores),
        "cpus_isolated": cpulist.form(topology.isolated),
        "nodes": [
            {
                "node": node.id,
                "cpus": cpulist.form(node.cpus),
                "memory_bytes": node.size_bytes,
                "has_memory": node.has_memory,
            }
            for node in topology.nodes
        ],
        "groups": _groups(topology.cores),
    }


def _groups(cores: tuple[Core, ...]) -> list[dict[str, Any]]:
    groups: dict[tuple[int, int | None, int | None], list[Core]] = {}
    for core in cores:
        groups.setdefault((core.package, core.node, core.l3), []).append(core)
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1]))
    return [
        {
            "package": package,
            "node": node,
            "l3": l3,
            "cores": ["+".join(map(str, core.cpus)) for core in members],
            "efficient": [core.cpus[0] for core in members if core.efficient],
        }
        for (package, node, l3), members in ordered
    ]


def tuning(root: str = "/") -> dict[str, Any]:
    """Return frequency governors (governor → CPUs), turbo, huge pages, NUMA balancing, swap and SMT.

    Each is null where the host doesn't say (a virtual machine shows no governor).
    """
    sysfs = Sysfs(root)
    governors: dict[str, list[int]] = {}
    for cpu in sysfs.numbers("devices/system/cpu/online"):
        governor = sysfs.text(f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")
        if governor:
            governors.setdefault(governor, []).append(cpu)
    no_turbo = sysfs.number("devices/system/cpu/intel_pstate/no_turbo")
    boost = sysfs.number("devices/system/cpu/cpufreq/boost") if no_turbo is None else 1 - no_turbo
    balancing = read_text(os.path.join(root, "proc/sys/kernel/numa_balancing")).strip()
    huge = read_text(os.path.join(root, "proc/sys/vm/nr_hugepages")).strip()
    smt = sysfs.number("devices/system/cpu/smt/active")
    return {
        "governors": {name: cpulist.form(cpus) for name, cpus in governors.items()} or None,
        "turbo": None if boost is None else bool(boost),
        "transparent_huge_pages": _chosen(sysfs.text("kernel/mm/transparent_hugepage/enabled")),
        "huge_pages_reserved": int(huge) if huge.isdecimal() else None,
        "numa_balancing": balancing != "0" if balancing else None,
        "smt": None if smt is None else bool(smt),
        "swap": _swap(root),
    }


def _chosen(text: str) -> str | None:
    """The word in brackets of "always [madvise] never"."""
    start, end = text.find("["), text.find("]")
    return text[start + 1 : end] if 0 <= start < end else None


def _swap(root: str) -> bool | None:
    lines = read_text(os.path.join(root, "proc/swaps")).splitlines()
    return len(lines) > 1 if lines else None
