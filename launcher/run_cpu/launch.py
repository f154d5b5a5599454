"""From parsed options to running instances: topology, plan, variables, command, supervision."""

from __future__ import annotations

import os
import sys

from cpulens.errors import UsageError
from cpulens.machine.limits import Limits, memory_policy, read_limits
from cpulens.machine.memory import read_bandwidth
from cpulens.machine.topology import Topology, read_topology
from run_cpu import environment, ranks
from run_cpu.command import build_command
from run_cpu.job import GRACE_S, Conduct, Job, Process
from run_cpu.placement import place
from run_cpu.preload import choose_preloads
from run_cpu.request import Request, build_request
from run_cpu.text import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from run_cpu.environment import Variable


def launch(args: argparse.Namespace) -> int:
    """Plan and run what the options ask for; return the exit code. Raises CpulensError when that can't be."""
    if sys.platform != "linux":
        raise UsageError(f"run_cpu places programs on Linux only; this is {sys.platform}")
    request = build_request(args, os.environ)
    conduct = _conduct(args)
    root = _root(args.sysroot)
    topology, limits = read_topology(root), read_limits(root)
    variables: list[list[Variable]] = []
    if args.plan_from:
        job = _saved(args, topology, limits)
    else:
        request, inherited = _with_callers_memory(_undivided(request, limits, root), topology, root)
        job, variables = plan_job(args, request, topology, limits, root)
        job = job._replace(notes=(*inherited, *job.notes))
    if args.dry_run:
        _show(job, topology, variables, root, args.json)
        return 0
    for note in job.notes:
        complain(note)
    from run_cpu.supervision import supervise

    return supervise(job, conduct)


def plan_job(
    args: argparse.Namespace, request: Request, topology: Topology, limits: Limits, root: str
) -> tuple[Job, list[list[Variable]]]:
    """Place the request and give each instance its command and variables; return the job, and the variables' reasons.

    `root` is where memory in use and libraries are looked up.
    """
    argv = build_command(args.program, args.program_args, args.module, args.no_python)
    plan = place(topology, limits, request, lambda node: read_bandwidth(node, root))
    preloads = choose_preloads(args, os.environ, root)
    processes = []
    variables = []
    notes = [*plan.notes, *preloads.warnings]
    for instance in plan.instances:
        own = environment.variables_of(
            instance, preloads, os.environ, plan.bind_cpus, request.smt, benchmark=args.benchmark
        )
        variables.append(own)
        processes.append(Process(instance, {v.name: v.value for v in own if v.value is not None}, argv))
        notes += environment.kept_notes(own, instance, os.environ)
    if args.benchmark and preloads.allocator != "jemalloc":
        notes.append("--benchmark changes nothing: its settings are jemalloc's, which is not preloaded")
    if request.memory.startswith("bind"):
        from run_cpu.placement.memory import check_free_memory

        notes += check_free_memory(plan, root)
    return Job(tuple(processes), plan.idle_cpus, tuple(dict.fromkeys(notes)), plan.bind_cpus), variables


def _saved(args: argparse.Namespace, topology: Topology, limits: Limits) -> Job:
    from run_cpu import plan_file, replay

    argv = None
    if args.program:
        argv = build_command(args.program, args.program_args, args.module, args.no_python)
    return replay.fit(plan_file.read_plan(args.plan_from), topology, limits, argv)


def _show(job: Job, topology: Topology, variables: list[list[Variable]], root: str, as_json: bool) -> None:
    from run_cpu import explain, plan_file
    from run_cpu.advice import advice

    job = job._replace(notes=(*job.notes, *advice(job, root)))
    if not variables:
        saved = [process.environment.items() for process in job.processes]
        variables = [[environment.Variable(*item, "from the plan") for item in items] for items in saved]
    print(plan_file.to_text(job) if as_json else explain.explain(job, topology, variables), flush=True)


def _undivided(request: Request, limits: Limits, root: str) -> Request:
    """Leave out the division among local ranks where the starter has bound each of them already."""
    rank = ranks.local_rank(os.environ)
    if rank is None or root != "/" or limits.cpus is None or not ranks.is_bound_by_starter(rank, limits.cpus):
        return request
    return request._replace(local_rank=0, local_size=1)


def _with_callers_memory(request: Request, topology: Topology, root: str) -> tuple[Request, tuple[str, ...]]:
    """Keep a memory policy that we were started under (by numactl, say), unless another is asked for."""
    policy = memory_policy() if root == "/" and topology.nodes and request.memory == "prefer" else ""
    if policy.split(":")[0] in ("", "default", "local"):
        return request, ()
    note = f"the memory policy that run_cpu was started under, {policy}, stays; --membind or --interleave replace it"
    return request._replace(memory="kernel"), (note,)


def _root(sysroot: str | None) -> str:
    if sysroot is None:
        return "/"
    if not os.path.isdir(sysroot):
        raise UsageError(f"--sysroot {sysroot} is not a directory; give one that holds a host's sys and proc")
    return os.path.abspath(sysroot)


def _conduct(args: argparse.Namespace) -> Conduct:
    return Conduct(args.on_failure, _grace_s(args.grace), args.log_path or None, args.log_file_prefix)


def _grace_s(text: str | None) -> float:
    if text is None:
        return GRACE_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e6:
        raise UsageError(f"--grace {text!r} is not a number of seconds; write one such as 5 or 0.5")
    return seconds
