"""The plan: which CPUs, threads and memory every instance gets."""

from __future__ import annotations

from typing import NamedTuple

#: default: the kernel places memory by itself.
POLICIES = ("default", "preferred", "preferred-many", "bind", "interleave")


class Instance(NamedTuple):
    """One process to start."""

    number: int
    cpus: tuple[int, ...]
    threads: int
    memory_nodes: tuple[int, ...] = ()
    memory_policy: str = "default"  #: one of POLICIES


class Plan(NamedTuple):
    """All processes to start on this host."""

    instances: tuple[Instance, ...]
    idle_cpus: tuple[int, ...]  #: allowed CPUs whose core no instance uses
    notes: tuple[str, ...] = ()
    bind_cpus: bool = True
