"""From the options of a command line to one Request that is consistent in itself, or a sentence why it is not."""

from __future__ import annotations

from typing import NamedTuple

from cpulens.errors import UsageError
from cpulens.machine import cpulist
from run_cpu import ranks
from run_cpu.conflicts import refuse_conflicts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


class Numbers(NamedTuple):
    """A list of the command line; `relative`: its numbers count among what is allowed."""

    values: tuple[int, ...]
    relative: bool = False


class Request(NamedTuple):
    """What to place: counts are None where the user left them open."""

    mode: str = ""  #: latency, throughput, l3, package; "": by counts
    ninstances: int | None = None
    ncores: int | None = None  #: cores an instance, CPUs with SMT
    cpus: Numbers | None = None
    nodes: Numbers | None = None
    smt: bool = False
    efficient: bool = False
    cross: str = "avoid"  #: avoid, never, allow
    fill: bool = False
    close: bool = False
    only: tuple[int, ...] | None = None  #: instances to start; None: all
    memory: str = "prefer"  #: prefer, bind, interleave, hbm, kernel
    bind_cpus: bool = True
    local_rank: int = 0
    local_size: int = 1


def build_request(args: argparse.Namespace, environ: Mapping[str, str]) -> Request:
    """Return the request that the options make, divided among the local ranks that `environ` tells of.

    Raises UsageError, naming both options, when two of them contradict each other.
    """
    given = {name for name, value in vars(args).items() if _is_given(name, value)}
    refuse_conflicts(given)
    mode = next((m for m in ("latency", "throughput", "l3", "package") if f"{m}_mode" in given), "")
    counted = given & {"ninstances", "ncores_per_instance"}
    if "multi_instance" in given and not counted and not mode:
        mode = "throughput"
    memory, bind_cpus = _binding(args, given)
    rank = ranks.local_rank(environ)
    return Request(
        mode=mode,
        ninstances=args.ninstances if "ninstances" in given else None,
        ncores=args.ncores_per_instance if "ncores_per_instance" in given else None,
        cpus=_numbers(args.core_list, "--core-list"),
        nodes=_numbers(args.node_id, "--node-id"),
        smt=args.use_logical_core,
        efficient=args.use_e_cores,
        cross="never" if args.skip_cross_node_cores else "allow" if args.allow_cross_node else "avoid",
        fill=args.fill,
        close=args.strategy == "close",
        only=_only(args, given),
        memory=memory,
        bind_cpus=bind_cpus,
        local_rank=rank.rank if rank else 0,
        local_size=rank.size if rank else 1,
    )


def _is_given(name: str, value: object) -> bool:
    """Whether an option was used: torch's -1 and ipexrun's 0 and '' mean that it was not."""
    if name in ("ninstances", "ncores_per_instance"):
        return isinstance(value, int) and value > 0
    if name == "rank":
        return isinstance(value, int) and value >= 0
    if name in ("node_id", "instance_idx"):
        return value not in (None, "", "-1")
    return value not in (None, "", False)


def _numbers(text: str | None, option: str) -> Numbers | None:
    if text is None or text.strip() in ("", "-1"):
        return None
    plain = text.strip()
    try:
        values = tuple(cpulist.parse(plain.removeprefix("+")))
    except ValueError as reason:
        raise UsageError(f"{option} {text!r}: {reason}; write a list such as 0-3,8") from None
    if not values:
        raise UsageError(f"{option} {text!r} names nothing; write a list such as 0-3,8")
    return Numbers(values, plain.startswith("+"))


def _only(args: argparse.Namespace, given: set[str]) -> tuple[int, ...] | None:
    if "rank" in given:
        return (args.rank,)
    if "instance_idx" in given:
        numbers = _numbers(args.instance_idx, "--instance-idx")
        return numbers.values if numbers else None
    return None


def _binding(args: argparse.Namespace, given: set[str]) -> tuple[str, bool]:
    """Return the memory policy wished for, and whether CPUs are bound."""
    asked = [name for name in ("membind", "interleave", "hbm") if name in given]
    if asked == ["membind", "hbm"]:
        return "bind-hbm", True
    if asked:
        return {"membind": "bind"}.get(asked[0], asked[0]), args.multi_task_manager != "none"
    if args.disable_numactl or args.multi_task_manager in ("none", "taskset"):
        return "kernel", not (args.disable_taskset or args.multi_task_manager == "none")
    return "prefer", True
