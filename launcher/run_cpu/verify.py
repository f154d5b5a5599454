"""What a started instance really got, read back from ``/proc`` and compared with the plan."""

from __future__ import annotations

from cpulens.machine import cpulist
from cpulens.machine.limits import status_lists

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.placement import Instance

#: How ``numa_maps`` spells a policy.
_SPELLING = {"prefer": "preferred", "prefer (many)": "preferred-many"}


def differences(pid: int, instance: Instance, bind_cpus: bool, refused: set[str]) -> list[str]:
    """Return a sentence for each thing that differs from the plan and was not refused already; [] once it has ended."""
    found = []
    cpus = status_lists(f"/proc/{pid}/status").get("Cpus_allowed_list")
    if bind_cpus and cpus and "cpus" not in refused and cpus != frozenset(instance.cpus):
        planned, got = cpulist.form(instance.cpus), cpulist.form(cpus)
        found.append(f"instance {instance.number} was to run on CPUs {planned}, but the kernel lets it run on {got}")
    policy = memory_policy(pid)
    if policy and not refused & {"memory", "preferred"} and policy != _planned(instance):
        found.append(f"instance {instance.number} was to have its memory {_planned(instance)}, but has it {policy}")
    return found


def memory_policy(pid: int) -> str:
    """Return the policy of a process's memory as ``preferred:0``; "" when it can't be read."""
    try:
        with open(f"/proc/{pid}/numa_maps", encoding="ascii", errors="replace") as file:
            line = file.readline()
    except OSError:
        return ""
    # 55d0c0a00000 prefer (many):0-1 file=/usr/bin/python3 …
    _, _, rest = line.partition(" ")
    name = "prefer (many)" if rest.startswith("prefer (many)") else rest.split(":")[0].split(" ")[0]
    nodes = rest.removeprefix(name).removeprefix(":").split(" ")[0] if name != "default" else ""
    spelled = _SPELLING.get(name, name)
    return f"{spelled}:{nodes}" if nodes else spelled.strip()


def _planned(instance: Instance) -> str:
    if instance.memory_policy == "default":
        return "default"
    return f"{instance.memory_policy}:{cpulist.form(instance.memory_nodes)}"
