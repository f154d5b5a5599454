"""What is started: the plan's instances, each with its variables and its command, and how to stand by them."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.placement import Instance

#: Seconds between SIGTERM and SIGKILL; shorter than the ten that container engines give us.
GRACE_S = 5.0


class Process(NamedTuple):
    """One instance as it is started."""

    instance: Instance
    environment: dict[str, str]  #: added or changed variables only
    argv: list[str]


class Job(NamedTuple):
    """All instances of a plan, ready to start; what a plan file holds."""

    processes: tuple[Process, ...]
    idle_cpus: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    bind_cpus: bool = True


class Conduct(NamedTuple):
    """How to stand by the instances."""

    on_failure: str = "kill"  #: kill the others, or wait for them, when an instance fails
    grace_s: float = GRACE_S  #: between SIGTERM and SIGKILL
    log_folder: str | None = None
    log_prefix: str = "run"
