"""What is started: the plan's instances, each with its variables and its command."""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.placement import Instance


class Process(NamedTuple):
    """One instance as it is started."""

    instance: Instance
    environment: dict[str, str]  #: added or changed variables only
    argv: list[str]


class Job(NamedTuple):
    """All instances, and how to stand by them."""

    processes: tuple[Process, ...]
    bind_cpus: bool = True
    on_failure: str = "kill"  #: kill the others, or wait for them, when an instance fails
    grace_s: float = 5.0  #: between SIGTERM and SIGKILL
    log_folder: str | None = None
    log_prefix: str = "run"

    @property
    def direct(self) -> bool:
        """Whether the only instance keeps the terminal, stdin and both outputs of the launcher."""
        return len(self.processes) == 1 and self.log_folder is None
