"""From parsed options to running instances: topology, plan, variables, command, supervision."""

from __future__ import annotations

import os
import sys

from cpulens.errors import UsageError
from cpulens.machine.limits import Limits, read_limits
from cpulens.machine.memory import read_bandwidth
from cpulens.machine.topology import read_topology
from run_cpu import ranks
from run_cpu.command import build_command
from run_cpu.environment import thread_variables
from run_cpu.job import Job, Process
from run_cpu.placement import Plan, place
from run_cpu.request import GRACE_S, Request, build_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse


def launch(args: argparse.Namespace) -> int:
    """Plan and run what the options ask for; return the exit code. Raises CpulensError when that can't be."""
    if sys.platform != "linux":
        raise UsageError(f"run_cpu places programs on Linux only; this is {sys.platform}")
    request = build_request(args, os.environ)
    root = args.sysroot or "/"
    limits = read_limits(root)
    request = _undivided(request, limits, root)
    plan = place(read_topology(root), limits, request, lambda node: read_bandwidth(node, root))
    argv = build_command(args.program, args.program_args, args.module, args.no_python)
    job = _job(plan, argv, args)
    if args.dry_run:
        from run_cpu import explain

        return explain.show(job, plan, as_json=args.json)
    for note in plan.notes:
        print(f"run_cpu: {note}", file=sys.stderr)
    from run_cpu.supervise import supervise

    return supervise(job)


def _undivided(request: Request, limits: Limits, root: str) -> Request:
    """Leave out the division among local ranks where the starter has bound each of them already."""
    rank = ranks.local_rank(os.environ)
    if rank is None or root != "/" or limits.cpus is None or not ranks.is_bound_by_starter(rank, limits.cpus):
        return request
    return request._replace(local_rank=0, local_size=1)


def _job(plan: Plan, argv: list[str], args: argparse.Namespace) -> Job:
    processes = []
    for instance in plan.instances:
        variables = thread_variables(instance, os.environ)
        environment = {v.name: v.value for v in variables if v.value is not None}
        processes.append(Process(instance, environment, argv))
    return Job(
        tuple(processes),
        plan.bind_cpus,
        args.on_failure,
        _grace(args.grace),
        args.log_path or None,
        args.log_file_prefix,
    )


def _grace(text: str | None) -> float:
    if text is None:
        return GRACE_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise UsageError(f"--grace {text!r} is not a number of seconds; write one such as 5 or 0.5")
    return seconds
