"""Record a whole command: its environment set, its lines taken out of its output, its libraries looked at."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cpulens.capture.child import Child
from cpulens.capture.spill import Spill
from cpulens.errors import LogError
from cpulens.recording import facts as known
from cpulens.recording.diagnosis import why_nothing
from cpulens.recording.recorder import DEFAULT_MAX_BYTES
from cpulens.recording.request import child_environment, scheduled
from cpulens.recording.schedule import Schedule

if TYPE_CHECKING:
    from cpulens.trace import Trace


class RecordedCommand:
    """One command and what it printed: `run()`, then `exit_code`, `trace`, `raw()`, `facts`."""

    def __init__(
        self,
        command: list[str],
        onednn: str | None,
        mkl: str | None,
        max_bytes: int = DEFAULT_MAX_BYTES,
        schedule: Schedule | None = None,
    ) -> None:
        self.command = command
        self.schedule = schedule
        self.environment, self.levels, self.notes = child_environment(dict(os.environ), onednn, mkl)
        if schedule is not None:
            scheduled(self.environment, self.levels, schedule)
        self.spill = Spill()
        self.exit_code = 0
        self._child = Child(command, self.environment, self.spill, max_bytes)
        self._paths: set[str] = set()

    def run(self) -> int:
        """Run it to its end; returns its exit code, 128 + n when signal n ended it, 127 or 126 when it can't start."""
        try:
            self.exit_code = self._child.run(self._look)
        except FileNotFoundError:
            self.exit_code = 127
            self.notes.append(f"{self.command[0]}: no such command")
        except OSError as error:
            self.exit_code = 126
            self.notes.append(f"{self.command[0]} can't be started: {error.strerror}")
        if self._child.truncated:
            self.notes.append("the recording reached its size limit: later lines are missing")
        if self._child.left_behind:
            self.notes.append("a process that the command left behind still writes; its later output was not followed")
        return self.exit_code

    @property
    def started(self) -> bool:
        """Whether the command ran at all."""
        return self._child.wall_ms > 0

    def raw(self) -> bytes:
        """The libraries' lines and markers, as they came."""
        return self.spill.read(0)

    @property
    def facts(self) -> dict[str, Any]:
        """Command, machine, the variables it got, wall time in milliseconds, exit code, notes."""
        return {
            **known.common(self.command, self.environment, child=True),
            "levels": self.levels,
            "wall_ms": self._child.wall_ms,
            "exit_code": self.exit_code,
            "openmp": known.openmp_runtimes(self._paths),
            **({"schedule": self.schedule.as_facts()} if self.schedule else {}),
            "notes": list(self.notes),
        }

    @property
    def trace(self) -> Trace:
        """The recorded kernels. Raises LogError, which says why, when there are none."""
        from cpulens.verbose import load

        self.require_lines()
        return load(self.spill.path, facts=self.facts, own=self._child.own_pieces)

    def require_lines(self) -> None:
        """Raise LogError, which says why, when no line was caught."""
        if not self.spill.size():
            reasons = why_nothing(self._paths or None, self.levels)
            if self.schedule is not None:
                reasons.insert(0, f"the schedule {self.schedule} waits for calls of cpulens.iteration() in the program")
            raise LogError("; ".join(["nothing was recorded", *reasons]))

    def _look(self, pid: int) -> None:
        """Remember which shared objects the command and its children have mapped, for a word when nothing comes."""
        for process in [pid, *_children(pid)]:
            try:
                with open(f"/proc/{process}/maps", encoding="utf-8", errors="surrogateescape") as file:
                    self._paths.update(line[line.index("/") :].rstrip("\n") for line in file if ".so" in line)
            except (OSError, ValueError):
                continue


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
