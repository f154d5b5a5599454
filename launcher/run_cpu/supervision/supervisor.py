"""The small process between the launcher and the instances.

It adopts every orphaned descendant (it is their subreaper), so nothing that an instance leaves behind gets away. When
the launcher's end of the control pipe closes, the launcher is dead, and all is ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from run_cpu import linux
from run_cpu.supervision.child import Child
from run_cpu.supervision.loop import Loop
from run_cpu.supervision.relay import HIGH_WATER_BYTES, Sink
from run_cpu.text import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from run_cpu.job import Conduct, Job, Process
    from run_cpu.logs import Logs
    from run_cpu.supervision.start import Surroundings

#: Signals that ask for the end; after the grace they are followed by SIGKILL.
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
#: When the launcher was killed, nobody waits for a long farewell.
ORPHANED_GRACE_S = 2.0
#: Between rounds of SIGKILL, for what was forked meanwhile.
_AGAIN_S = 0.1
#: When threads are looked at: by then a program has usually made them.
LOOK_AGAIN_S = 3.0


class Supervisor:
    """Starts the instances of a job and stands by them until nothing of them is left."""

    def __init__(self, job: Job, conduct: Conduct, control: int, around: Surroundings, logs: Logs | None) -> None:
        self.job = job
        self.conduct = conduct
        self.around = around
        self.logs = logs
        self.loop = Loop()
        self.children: list[Child] = []
        self.exit_code = 0
        self._control = control
        self._childless = False
        self._cleaning = False
        self._kill_s: float | None = None  # when SIGKILL follows
        self._look_s: float | None = time.monotonic() + LOOK_AGAIN_S
        self._said: set[str] = set()
        self.out, self.err = _sinks()

    def run(self) -> int:
        """Run the job to its end and return its exit code."""
        linux.set_subreaper(True)
        linux.allow_descriptors(4 * len(self.job.processes) + 64)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # we speak from the background of a terminal
        self.loop.watch_signals((signal.SIGCHLD, *ENDING), self._signalled)
        self.loop.watch(self._control, self._commanded)
        for process in self.job.processes:
            self._start(process)
        while not self._gone() or self.out.waiting_bytes or self.err.waiting_bytes:
            self._step()
        self._attend_outputs()  # for what the last write met
        while self.err.waiting_bytes:
            self.err.write_some()
        if self.logs:
            try:
                self.logs.finish(self.exit_code, self.children)
            except OSError as error:
                os.write(2, f"run_cpu: result.json can't be written: {error.strerror}\n".encode())
        return self.exit_code

    def _gone(self) -> bool:
        """Whether nothing is left of the instances; without a usable /proc only they themselves can be followed."""
        return self._childless or (all(child.code is not None for child in self.children) and not linux.proc_is_ours())

    # Starting

    def _start(self, process: Process) -> None:
        child = Child(process, self.job.bind_cpus, self.around)
        single = len(self.job.processes) == 1
        if single and self.logs is None:
            child.begin()
        else:
            prefixes = (b"", b"") if single else (_prefix(child.number, self.out), _prefix(child.number, self.err))
            log = self.logs.open(child.number) if self.logs else None
            stdin = 0 if single else os.open(os.devnull, os.O_RDONLY)
            child.begin_piped((self.out, self.err), prefixes, log, stdin)
            if stdin:
                os.close(stdin)
        self.children.append(child)
        self.loop.watch(child.report, lambda: self._hear(child, child.report))
        for stream in child.streams:
            self.loop.watch(stream.descriptor, self._relay_of(child, stream.descriptor))

    def _hear(self, child: Child, descriptor: int) -> None:
        said = child.hear_report()
        if child.report < 0:
            self.loop.unwatch(descriptor)
        for text in said:
            self.say(text)

    def _relay_of(self, child: Child, descriptor: int) -> Callable[[], None]:
        stream = next(stream for stream in child.streams if stream.descriptor == descriptor)

        def relay() -> None:
            stream.read_some()
            if not stream.open:
                self.loop.unwatch(descriptor)

        return relay

    # The loop

    def _step(self) -> None:
        self._attend_outputs()
        due = min((due for due in (self._kill_s, self._look_s) if due is not None), default=None)
        self.loop.wait(None if due is None else due - time.monotonic())
        now = time.monotonic()
        if self._look_s is not None and now >= self._look_s:
            self._look_s = None
            for child in self.children:
                for text in child.look_again():
                    self.say(text)
        if self._kill_s is not None and now >= self._kill_s:
            self._kill()
        self._reap()

    def _attend_outputs(self) -> None:
        """Write where something waits; read from the instances only while the outputs keep up."""
        full = False
        for sink in {self.out, self.err}:
            if sink.waiting_bytes:
                self.loop.watch(sink.descriptor, sink.write_some, select.POLLOUT)
            else:
                self.loop.unwatch(sink.descriptor)
            full = full or sink.waiting_bytes > HIGH_WATER_BYTES
            if sink.trouble:
                self.say(f"the instances' output can't be written: {sink.trouble}")
        for child in self.children:
            for stream in child.streams:
                if stream.trouble:
                    self.say(f"the log of instance {child.number} ends here: {stream.trouble}")
                if stream.open:
                    self.loop.pause(stream.descriptor, full)

    def _signalled(self, number: int) -> None:
        if number in ENDING:
            self._end(number, self.conduct.grace_s)

    def _commanded(self) -> None:
        """Signals from the launcher, a byte each; the end of the pipe is the launcher's end."""
        numbers = os.read(self._control, 64)
        if not numbers:
            self.loop.unwatch(self._control)
            self._end(signal.SIGTERM, min(self.conduct.grace_s, ORPHANED_GRACE_S))
        for number in numbers:
            if number in ENDING:
                self._end(number, self.conduct.grace_s)
            else:
                self._send(number)

    # The end

    def _end(self, number: int, grace_s: float) -> None:
        """Forward a signal that asks for the end; a second SIGINT means: now."""
        again = number == signal.SIGINT and self._kill_s is not None
        self._send(number)
        self._send(signal.SIGCONT)
        due = time.monotonic() + (0 if again else grace_s)
        self._kill_s = due if self._kill_s is None else min(self._kill_s, due)

    def _send(self, number: int) -> None:
        """Send a signal to every instance's process group, or to each descendant where the group is the launcher's."""
        running = [child.pid for child in self.children if child.code is None]
        if self.around.group is None:
            for pid in running:
                _to(os.killpg, pid, number)
        else:
            for pid in linux.descendants(os.getpid()) or running:
                _to(os.kill, pid, number)

    def _kill(self) -> None:
        """The grace is over: kill every descendant, and look again until there is none."""
        for pid in linux.descendants(os.getpid()):
            _to(os.kill, pid, signal.SIGKILL)
        self._send(signal.SIGKILL)
        if self._gone():  # only a reader that does not read keeps us
            self.out.drop()
            self.err.drop()
        self._kill_s = time.monotonic() + _AGAIN_S

    def _reap(self) -> None:
        by_pid = {child.pid: child for child in self.children}
        while not self._childless:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._childless = True
                break
            if pid == 0:
                break
            if pid in by_pid:
                self._ended(by_pid[pid], os.waitstatus_to_exitcode(status))
        if not self._childless and not self._cleaning and all(child.code is not None for child in self.children):
            self._clean_up()

    def _ended(self, child: Child, status: int) -> None:
        while child.report >= 0:
            self._hear(child, child.report)
        descriptors = [stream.descriptor for stream in child.streams]
        child.end(status)
        for stream, descriptor in zip(child.streams, descriptors, strict=True):
            if not stream.open:
                self.loop.unwatch(descriptor)
        if self.around.group is None:
            _to(os.killpg, child.pid, signal.SIGTERM)  # what it left in its group
        if child.code and not self.exit_code:
            self.exit_code = child.code
            self._failed(child.number, child.code)

    def _failed(self, number: int, code: int) -> None:
        if len(self.children) == 1 or self._kill_s is not None:
            return
        how = f"was ended by signal {code - 128}" if code > 128 else f"failed with exit code {code}"
        stop = self.conduct.on_failure == "kill" and any(child.code is None for child in self.children)
        self.say(f"instance {number} {how}{'; the others are stopped' if stop else ''}")
        if stop:
            self._end(signal.SIGTERM, self.conduct.grace_s)

    def _clean_up(self) -> None:
        """All instances have ended, but something they started has not."""
        self._cleaning = True
        left = linux.descendants(os.getpid())
        if left and self._kill_s is None:
            what = "a process that an instance left behind is" if len(left) == 1 else f"{len(left)} processes left are"
            self.say(f"{what} ended")
        for pid in left:
            _to(os.kill, pid, signal.SIGTERM)
            _to(os.kill, pid, signal.SIGCONT)
        if self._kill_s is None:
            self._kill_s = time.monotonic() + self.conduct.grace_s

    def say(self, text: str) -> None:
        """Tell the user, once, between whole lines of the instances."""
        if text not in self._said:
            self._said.add(text)
            self.err.put(f"run_cpu: {printable(text)}\n".encode())


def _prefix(number: int, sink: Sink) -> bytes:
    if os.isatty(sink.descriptor) and not os.environ.get("NO_COLOR"):
        return b"\x1b[3%dm[%d]\x1b[0m " % (1 + number % 6, number)
    return b"[%d] " % number


def _sinks() -> tuple[Sink, Sink]:
    """Stdout and stderr; one sink where they are the same file, so that no line of one tears a line of the other."""
    out = Sink(1)
    return out, out if os.path.samestat(os.fstat(1), os.fstat(2)) else Sink(2)


def _to(function: Callable[[int, int], None], target: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        function(target, number)
