"""What a started instance really got, read back from ``/proc`` and compared with the plan."""

from __future__ import annotations

import os

from cpulens.machine import cpulist
from cpulens.machine.limits import memory_policy, status_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.placement import Instance


def differences(pid: int, instance: Instance, bind_cpus: bool, refused: set[str]) -> list[str]:
    """Return a sentence for each thing that differs from the plan and was not refused already; [] once it has ended."""
    found = []
    cpus = status_lists(f"/proc/{pid}/status").get("Cpus_allowed_list")
    if bind_cpus and cpus and "cpus" not in refused and cpus != frozenset(instance.cpus):
        planned, got = cpulist.form(instance.cpus), cpulist.form(cpus)
        found.append(f"instance {instance.number} was to run on CPUs {planned}, and runs on {got}")
    policy = memory_policy(pid) if instance.memory_policy != "default" else ""
    if policy and not refused & {"memory", "preferred"} and policy != _planned(instance):
        found.append(f"instance {instance.number} was to have its memory {_planned(instance)}, but has it {policy}")
    return found


def _planned(instance: Instance) -> str:
    return f"{instance.memory_policy}:{cpulist.form(instance.memory_nodes)}"


def thread_remarks(pid: int, instance: Instance) -> list[str]:
    """Return a sentence where the program's threads have crowded on fewer CPUs than planned."""
    planned = frozenset(instance.cpus)
    masks = [status_lists(f"/proc/{pid}/task/{task}/status").get("Cpus_allowed_list") for task in _tasks(pid)]
    known = [mask for mask in masks if mask]
    if not known:
        return []
    who = f"instance {instance.number}"
    outside = [mask for mask in known if not mask <= planned]
    if outside:
        got = cpulist.form(frozenset().union(*outside))
        return [f"{who}: the program has moved threads of its own to CPUs {got}, outside its {cpulist.form(planned)}"]
    pinned = [mask for mask in known if len(mask) == 1]
    homes = frozenset().union(*pinned)
    if len(homes) < min(len(pinned), len(planned)):
        return [f"{who}: {len(pinned)} threads are pinned to CPUs {cpulist.form(homes)} alone; {_CROWDED}"]
    return []


#: What makes threads crowd.
_CROWDED = "look for OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY or KMP_AFFINITY, or a program that binds itself"


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
