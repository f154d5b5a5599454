"""A plan as JSON: what ``--dry-run --json`` prints, ``plan.json`` holds and ``--plan-from`` reads.

Schema 1: ``{"schema": 1, "instances": [{"index", "cpus", "threads", "memory_nodes", "memory_policy", "environment",
"argv"}, …], "idle_cpus": […], "notes": […]}``, and ``"bind_cpus": false`` where nothing is to be bound.
"""

from __future__ import annotations

import json
import sys

from cpulens.errors import UsageError
from run_cpu.job import Job, Process
from run_cpu.placement import Instance
from run_cpu.placement.plan import POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1


def to_document(job: Job) -> dict[str, Any]:
    """Return the plan as what json.dumps takes."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "instances": [
            {
                "index": process.instance.number,
                "cpus": list(process.instance.cpus),
                "threads": process.instance.threads,
                "memory_nodes": list(process.instance.memory_nodes),
                "memory_policy": process.instance.memory_policy,
                "environment": process.environment,
                "argv": process.argv,
            }
            for process in job.processes
        ],
        "idle_cpus": list(job.idle_cpus),
        "notes": list(job.notes),
    }
    if not job.bind_cpus:
        document["bind_cpus"] = False
    return document


def to_text(job: Job) -> str:
    """Return the plan as one JSON object, with a line for each instance."""
    document = to_document(job)
    instances = ",\n  ".join(json.dumps(instance) for instance in document["instances"])
    texts = {name: json.dumps(value) for name, value in document.items()}
    texts["instances"] = f"[\n  {instances}\n ]"
    lines = [f"{json.dumps(name)}: {text}" for name, text in texts.items()]
    return "{\n " + ",\n ".join(lines) + "\n}"


def read_plan(path: str) -> Job:
    """Return the plan in a file (``-``: stdin). Raises UsageError when it can't be read or is not such a plan."""
    try:
        if path == "-":
            document = json.load(sys.stdin)
        else:
            with open(path, encoding="utf-8") as file:
                document = json.load(file)
    except (OSError, ValueError) as error:
        raise UsageError(f"--plan-from {path}: {error}; give a file that --dry-run --json has written") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"--plan-from {path}: not a plan of schema {SCHEMA}; write one with --dry-run --json")
    try:
        processes = tuple(_process(entry) for entry in document["instances"])
        idle = tuple(int(cpu) for cpu in document.get("idle_cpus", ()))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"--plan-from {path}: an instance of the plan is damaged ({error!r}); write it anew") from None
    if not processes:
        raise UsageError(f"--plan-from {path}: the plan has no instance; write it anew with --dry-run --json")
    return Job(processes, idle, (), document.get("bind_cpus", True) is not False)


def _process(entry: dict[str, Any]) -> Process:
    policy = str(entry["memory_policy"])
    if policy not in POLICIES:
        raise ValueError(f"memory_policy {policy!r}")
    cpus = tuple(int(cpu) for cpu in entry["cpus"])
    if not cpus:
        raise ValueError("no CPUs")
    instance = Instance(
        int(entry["index"]), cpus, int(entry["threads"]), tuple(int(node) for node in entry["memory_nodes"]), policy
    )
    environment = {str(name): str(value) for name, value in dict(entry["environment"]).items()}
    argv = [str(word) for word in entry["argv"]]
    if not argv:
        raise ValueError("no argv")
    return Process(instance, environment, argv)
