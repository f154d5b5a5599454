"""The plan for people: a picture of the host, the variables with their reasons, and a shell line for each instance."""

from __future__ import annotations

import os
import shlex

from cpulens.machine import cpulist
from run_cpu.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cpulens.machine.topology import Core, Topology
    from run_cpu.environment import Variable
    from run_cpu.job import Job, Process

WIDTH = 80
#: One letter an instance; x is taken.
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwyz0123456789"
IDLE, BARRED = ".", "x"

_MEMORY_OPTION = {
    "preferred": "--preferred",
    "preferred-many": "--preferred-many",
    "bind": "--membind",
    "interleave": "--interleave",
}


def explain(job: Job, topology: Topology, variables: Sequence[Sequence[Variable]]) -> str:
    """Return the whole explanation; `variables` holds those of each instance of the job."""
    parts = [
        *picture(job, topology),
        "",
        *instances(job),
        "",
        *(variable_lines(variables) or ["variables: none"]),
        "",
        "by hand:",
        *(f"  {shell_line(process, job.bind_cpus)}" for process in job.processes),
    ]
    if job.notes:
        parts += ["", "notes:", *(f"  - {note}" for note in job.notes)]
    return "\n".join(map(printable, parts))


def letter(number: int) -> str:
    """Return the letter of an instance; they repeat on hosts with more instances than letters."""
    return LETTERS[number % len(LETTERS)]


def picture(job: Job, topology: Topology) -> list[str]:
    """Return packages × nodes × L3 × cores, a sign for each core."""
    owner = {cpu: letter(p.instance.number) for p in job.processes for cpu in p.instance.cpus}
    idle = set(job.idle_cpus)
    lines = []
    for package in sorted({core.package for core in topology.cores}):
        lines.append(f"package {package}")
        here = [core for core in topology.cores if core.package == package]
        for node in sorted({-1 if core.node is None else core.node for core in here}):
            cores = [core for core in here if (-1 if core.node is None else core.node) == node]
            caches = dict.fromkeys(core.l3 for core in cores)
            groups = ["".join(_sign(c, owner, idle) for c in cores if c.l3 == cache) for cache in caches]
            lines += _folded(f"  node {node:<4}" if node >= 0 else "  no node  ", groups)
    for memory in topology.nodes:
        if not memory.cpus and memory.has_memory:
            users = "".join(letter(p.instance.number) for p in job.processes if memory.id in p.instance.memory_nodes)
            lines.append(f"memory without CPUs: node {memory.id}" + (f", used by {users}" if users else ""))
    return [*lines, f"one sign a core: a letter its instance, {IDLE} idle, {BARRED} not allowed; blanks part L3 caches"]


def _sign(core: Core, owner: dict[int, str], idle: set[int]) -> str:
    taken = next((owner[cpu] for cpu in core.cpus if cpu in owner), None)
    return taken or (IDLE if idle.intersection(core.cpus) else BARRED)


def _folded(head: str, groups: list[str]) -> list[str]:
    """Fill lines with groups; a group longer than a line is cut."""
    room = WIDTH - len(head)
    pieces = [group[start : start + room] for group in groups for start in range(0, len(group), room)]
    lines: list[str] = []
    for piece in pieces:
        if lines and len(lines[-1]) + 1 + len(piece) <= WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append((head if not lines else " " * len(head)) + piece)
    return lines


def instances(job: Job) -> list[str]:
    """Return a table of the instances."""
    rows = [("", "instance", "CPUs", "threads", "memory")]
    for process in job.processes:
        one = process.instance
        nodes = cpulist.form(one.memory_nodes)
        memory = f"{one.memory_policy} {nodes}".strip()
        rows.append((letter(one.number), str(one.number), cpulist.form(one.cpus), str(one.threads), memory))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    if not job.bind_cpus:
        lines.append("the CPUs are planned, not bound")
    return lines


def variable_lines(variables: Sequence[Sequence[Variable]]) -> list[str]:
    """Return the variables under their reasons; values that differ are given instance by instance."""
    by_reason: dict[str, dict[str, list[str | None]]] = {}
    for own in variables:
        for variable in own:
            by_reason.setdefault(variable.reason, {}).setdefault(variable.name, []).append(variable.value)
    lines = []
    for reason, settings in by_reason.items():
        lines.append(f"  {reason}:")
        for name, values in settings.items():
            different = list(dict.fromkeys(value for value in values if value is not None))
            if different:
                lines.append(f"    {name}={','.join(different)}" + (" (by instance)" if len(different) > 1 else ""))
            else:
                lines[-1] += f" {name}" if lines[-1].endswith(":") else f", {name}"
    return ["variables:", *(line.removesuffix(": LD_PRELOAD") for line in lines)] if lines else []


def shell_line(process: Process, bind_cpus: bool) -> str:
    """Return a line that does the same with util-linux' taskset and numactl, ready to be pasted into a shell."""
    words = ["env", *(f"{name}={value}" for name, value in process.environment.items())] if process.environment else []
    instance = process.instance
    if instance.memory_policy != "default":
        words += ["numactl", f"{_MEMORY_OPTION[instance.memory_policy]}={cpulist.form(instance.memory_nodes)}"]
        if bind_cpus:
            words.append(f"--physcpubind={cpulist.form(instance.cpus)}")
    elif bind_cpus:
        words += ["taskset", "-c", cpulist.form(instance.cpus)]
    return quoted([*words, *process.argv])


def quoted(words: Iterable[str]) -> str:
    """Return words quoted for a shell; what can't be shown is written as the escapes of ``$'…'``, byte for byte."""
    return " ".join(shlex.quote(word) if word.isprintable() else _escaped(word) for word in words)


def _escaped(word: str) -> str:
    plain = {*range(0x20, 0x7F)} - {*b"\\'"}
    return "$'" + "".join(chr(byte) if byte in plain else f"\\x{byte:02x}" for byte in os.fsencode(word)) + "'"
