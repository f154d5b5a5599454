"""The plan: which CPUs, threads and memory every instance gets."""

from __future__ import annotations

from typing import NamedTuple


class Instance(NamedTuple):
    """One process to start."""

    index: int
    cpus: tuple[int, ...]
    threads: int
    memory_nodes: tuple[int, ...] = ()
    memory_policy: str = "default"  #: default, preferred, preferred-many, bind, interleave


class Plan(NamedTuple):
    """All processes to start on this host."""

    instances: tuple[Instance, ...]
    idle_cpus: tuple[int, ...]  #: allowed CPUs whose core no instance uses
    notes: tuple[str, ...] = ()
    bind_cpus: bool = True
