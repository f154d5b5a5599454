"""Make a plan that was saved, here or elsewhere, ready for this host."""

from __future__ import annotations

import os
import sys

from cpulens.errors import PlacementError
from cpulens.machine import cpulist
from run_cpu.job import Job, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from cpulens.machine.limits import Limits
    from cpulens.machine.topology import Topology


def fit(job: Job, topology: Topology, limits: Limits, argv: list[str] | None) -> Job:
    """Return a saved plan made ready for this host; `argv` replaces its command.

    The user's own variables stay, libraries that are not here are not preloaded, a Python that is not here becomes this
    one; each is noted. Raises PlacementError when a CPU or memory node of the plan can't be used here.
    """
    allowed = topology.cpus if limits.cpus is None else topology.cpus & limits.cpus
    missing = {cpu for process in job.processes for cpu in process.instance.cpus} - allowed
    if missing and job.bind_cpus:
        raise PlacementError(
            f"the plan uses CPUs {cpulist.form(missing)}, which are not online and allowed here "
            f"({cpulist.form(allowed)} are); make a plan for this host"
        )
    memory = {node.id for node in topology.nodes if limits.memory_nodes is None or node.id in limits.memory_nodes}
    absent = {node for process in job.processes for node in process.instance.memory_nodes} - memory
    if absent:
        raise PlacementError(
            f"the plan uses memory of NUMA nodes {cpulist.form(absent)}, which can't be used here "
            f"({cpulist.form(memory) or 'none'} can); make a plan for this host"
        )
    notes: dict[str, None] = {}
    processes = tuple(_fit_process(process, argv, notes) for process in job.processes)
    return job._replace(processes=processes, notes=tuple(notes))


def _fit_process(process: Process, argv: list[str] | None, notes: dict[str, None]) -> Process:
    environment = dict(process.environment)
    for name, value in process.environment.items():
        own = os.environ.get(name)
        if own and own != value and name != "LD_PRELOAD":
            notes[f"{name}={own} is yours and stays; the plan has {value}"] = None
            del environment[name]
    if "LD_PRELOAD" in environment:
        environment["LD_PRELOAD"] = ":".join(_present(environment["LD_PRELOAD"].split(":"), notes))
        if not environment["LD_PRELOAD"]:
            del environment["LD_PRELOAD"]
    command = list(argv or process.argv)
    python = os.path.basename(command[0]).startswith("python")
    if argv is None and python and os.path.isabs(command[0]) and not os.path.exists(command[0]):
        notes[f"the plan's {command[0]} is not here; {sys.executable} runs the program"] = None
        command[0] = sys.executable
    return Process(process.instance, environment, command)


def _present(paths: Iterable[str], notes: dict[str, None]) -> list[str]:
    present = []
    for path in filter(None, paths):
        if os.path.exists(path):
            present.append(path)
        else:
            notes[f"the plan preloads {path}, which is not here; it is left out"] = None
    own = [path for path in os.environ.get("LD_PRELOAD", "").split(":") if path and path not in present]
    return present + own if present else []
