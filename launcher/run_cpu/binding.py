"""Bind the calling process to CPUs and memory; what it starts inherits both. Each falls back on its own."""

from __future__ import annotations

import errno
import os

from run_cpu import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from run_cpu.placement import Instance


def bind(instance: Instance, bind_cpus: bool) -> Iterator[tuple[str, int]]:
    """Bind this process as planned; yield (``cpus`` or ``memory`` or ``preferred``, errno) for what the kernel refuses.

    Kernels before 5.15 have no preferred-many: the lowest node is preferred then (``preferred``).
    """
    if bind_cpus:
        try:
            os.sched_setaffinity(0, instance.cpus)
        except OSError as error:
            yield "cpus", error.errno or 0
    if instance.memory_policy == "default":
        return
    try:
        linux.set_mempolicy(instance.memory_policy, instance.memory_nodes)
    except OSError as error:
        if instance.memory_policy == "preferred-many" and error.errno == errno.EINVAL:
            yield "preferred", error.errno
            try:
                linux.set_mempolicy("preferred", instance.memory_nodes[:1])
            except OSError as again:
                yield "memory", again.errno or 0
        else:
            yield "memory", error.errno or 0


def explain_refusal(what: str, number: int, instance: Instance) -> str:
    """Return one sentence: what was refused, why, what stays, what to do."""
    reason = os.strerror(number)
    who = f"instance {instance.number}"
    if what == "cpus":
        return f"{who} could not be bound to its CPUs ({reason}) and runs on all CPUs allowed"
    if what == "preferred":
        node = instance.memory_nodes[0]
        return f"{who}: this kernel can't prefer several nodes (Linux 5.15 can); its memory prefers node {node}"
    advice = "; in a container --cap-add SYS_NICE allows it" if number == errno.EPERM else ""
    return f"{who}: its memory could not be placed (set_mempolicy: {reason}), the kernel's own policy stays{advice}"
