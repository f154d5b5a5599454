"""One instance, from its start to its end, as the supervisor sees it."""

from __future__ import annotations

import errno
import os
import time

from run_cpu.binding import explain_refusal
from run_cpu.supervision.relay import Sink, Stream
from run_cpu.supervision.start import Surroundings, start
from run_cpu.supervision.verify import differences, thread_remarks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.job import Process


class Child:
    """An instance that has been started; `code` is None while it runs."""

    def __init__(self, process: Process, bind_cpus: bool, around: Surroundings) -> None:
        self.process = process
        self.number = process.instance.number
        self.streams: list[Stream] = []
        self.remarks: list[str] = []  #: what differs from the plan
        self.code: int | None = None
        self.running = False  #: the program has replaced the forked process
        self.pid = 0
        self.report = -1
        self._bind_cpus = bind_cpus
        self._around = around
        self._complaints = b""
        self.started_s = self.ended_s = time.monotonic()

    def begin(self) -> None:
        """Start it on the launcher's own stdin, stdout and stderr."""
        self.pid, self.report = start(self.process, self._bind_cpus, self._around, (0, 1, 2))

    def begin_piped(self, sinks: tuple[Sink, Sink], prefixes: tuple[bytes, bytes], log: int | None, stdin: int) -> None:
        """Start it on pipes, whose lines go to the sinks behind the prefixes, and to a log."""
        pipes = [os.pipe(), os.pipe()]
        outputs = (pipes[0][1], pipes[1][1])
        self.pid, self.report = start(self.process, self._bind_cpus, self._around, (stdin, *outputs))
        for output in outputs:
            os.close(output)
        reads = (pipes[0][0], pipes[1][0])
        self.streams = [Stream(*ends, log) for ends in zip(reads, sinks, prefixes, strict=True)]

    def hear_report(self) -> list[str]:
        """Read what the forked process says before it becomes the program; return sentences for the user.

        `report` is -1 from the end of it on.
        """
        data = os.read(self.report, 4096)
        self._complaints += data
        if data:
            return []
        os.close(self.report)
        self.report = -1
        said = []
        refused = set()
        self.running = True
        for line in self._complaints.decode().splitlines():
            what, number = line.split()
            if what in ("exec", "failed"):
                self.running = False
                said.append(_unstartable(self.process.argv[0], int(number)))
            else:
                refused.add(what)
                self.remarks.append(explain_refusal(what, int(number), self.process.instance))
        if self.running:
            self.remarks += differences(self.pid, self.process.instance, self._bind_cpus, refused)
        return self.remarks + said

    def look_again(self) -> list[str]:
        """Look at its threads once it has had time to make some; return sentences for the user."""
        if self.code is not None or not self.running or not self._bind_cpus:
            return []
        found = thread_remarks(self.pid, self.process.instance)
        self.remarks += found
        return found

    def end(self, status: int) -> None:
        """Take note of its exit; whatever its pipes still hold is passed on."""
        self.code = status if status >= 0 else 128 - status
        self.ended_s = time.monotonic()
        for stream in self.streams:
            while stream.open and stream.read_some():
                pass


def _unstartable(program: str, number: int) -> str:
    reason = os.strerror(number)
    if number == errno.ENOENT and "/" not in program:
        reason = "there is no such command in PATH"
    return f"{program} can't be started: {reason}"
