"""The folder of a run: one log for each instance, ``plan.json`` and ``result.json``.

Nothing is overwritten: where a run lies in the folder already, the next one goes to a folder of its own inside it.
"""

from __future__ import annotations

import json
import os
import time

from cpulens.errors import UsageError
from run_cpu import plan_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.job import Conduct, Job
    from run_cpu.supervision.child import Child


class Logs:
    """Where a job's logs go."""

    def __init__(self, job: Job, conduct: Conduct) -> None:
        self.prefix = conduct.log_prefix
        self.started_s = time.time()
        try:
            self.folder = self._claim(conduct.log_folder or ".", plan_file.to_text(job))
        except OSError as error:
            raise UsageError(
                f"--log-path {conduct.log_folder}: {error.strerror}; give a folder that can be written"
            ) from None

    def _claim(self, folder: str, plan: str) -> str:
        """Take the first folder without a plan; creating ``plan.json`` takes it, so two runs never share one."""
        number = 1
        while True:
            place = folder if number == 1 else os.path.join(folder, f"{self.prefix}-{number}")
            os.makedirs(place, exist_ok=True)
            try:
                with open(os.path.join(place, "plan.json"), "x", encoding="utf-8") as file:
                    file.write(plan + "\n")
                return place
            except FileExistsError:
                number += 1

    def path(self, number: int) -> str:
        """Return the path of an instance's log."""
        return os.path.join(self.folder, f"{self.prefix}_instance_{number}.log")

    def open(self, number: int) -> int:
        """Open the log of an instance, both of its outputs in the order of their lines."""
        return os.open(self.path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)

    def finish(self, exit_code: int, children: list[Child]) -> None:
        """Write ``result.json``: how each instance ended, and what it got of its plan."""
        document = {
            "schema": plan_file.SCHEMA,
            "exit_code": exit_code,
            "started_unix_s": round(self.started_s, 3),
            "instances": [
                {
                    "index": child.process.instance.number,
                    "pid": child.pid,
                    "exit_code": child.code,
                    "duration_s": round(child.ended_s - child.started_s, 6),
                    "log": os.path.basename(self.path(child.process.instance.number)),
                    "differences": child.remarks,
                }
                for child in children
            ],
        }
        with open(os.path.join(self.folder, "result.json"), "w", encoding="utf-8") as file:
            file.write(json.dumps(document, indent=1) + "\n")
