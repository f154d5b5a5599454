"""A picture of a machine in signs: packages, nodes and L3 caches, and which cores this process may use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cpulens.machine import cpulist


def picture(machine: Mapping[str, Any], width: int) -> Iterator[str]:
    """Packages, nodes and L3 caches with a sign for each core: # usable, + half, . not by this process, e slower kind.

    Cores that share an L3 stand together; blanks part them.
    """
    allowed = set(cpulist.parse(machine["cpus_allowed"])) if machine["cpus_allowed"] else None
    sizes = {node["node"]: node["memory_bytes"] for node in machine["nodes"]}
    places: dict[tuple[int, int | None], list[str]] = {}
    for group in machine["groups"]:
        signs = "".join(_sign(core, allowed, group["efficient"]) for core in group["cores"])
        places.setdefault((group["package"], group["node"]), []).append(signs)
    for (package, node), groups in places.items():
        size = sizes.get(node)
        memory = f" {size / 2**30:.0f} GiB" if size else ""
        head = f"  package {package}" + (f" node {node}{memory}" if node is not None else "")
        yield from _filled(f"{head:<26} ", groups, width)
    for node in machine["nodes"]:
        if not node["cpus"] and node["has_memory"]:
            yield f"  memory without CPUs: node {node['node']} {(node['memory_bytes'] or 0) / 2**30:.0f} GiB"
    used = {sign for groups in places.values() for sign in "".join(groups)}
    words = {"#": "usable", "e": "usable, of a slower kind", "+": "in part", ".": "not by this process"}
    yield "  one sign a core: " + ", ".join(f"{sign} {word}" for sign, word in words.items() if sign in used)


def _sign(core: str, allowed: set[int] | None, efficient: Iterable[int]) -> str:
    cpus = [int(cpu) for cpu in core.split("+")]
    if allowed is not None and not allowed.intersection(cpus):
        return "."
    if allowed is not None and not allowed.issuperset(cpus):
        return "+"
    return "e" if cpus[0] in efficient else "#"


def _filled(head: str, groups: list[str], width: int) -> Iterator[str]:
    room = max(width - len(head), 16)
    line = ""
    for piece in (group[start : start + room] for group in groups for start in range(0, len(group), room)):
        if line and len(line) + 1 + len(piece) > room:
            yield head + line
            head, line = " " * len(head), ""
        line += (" " if line else "") + piece
    yield head + line
