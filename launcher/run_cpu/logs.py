"""The folder of a run: one log for each instance, ``plan.json`` and ``result.json``."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.job import Job
    from run_cpu.supervisor import Child


class Logs:
    """Where a job's logs go."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.folder = job.log_folder or "."
        os.makedirs(self.folder, exist_ok=True)

    def open(self, index: int) -> int:
        """Open the log of an instance for appending."""
        path = os.path.join(self.folder, f"{self.job.log_prefix}_instance_{index}.log")
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def finish(self, exit_code: int, children: list[Child]) -> None:
        """Write how it ended."""
