"""The small process between the launcher and the instances.

It adopts every orphaned descendant (it is their subreaper), so nothing an instance leaves behind gets away. When the
launcher's end of the control pipe closes, the launcher is dead, and all is ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from run_cpu import linux
from run_cpu.binding import explain_refusal
from run_cpu.relay import HIGH_WATER_BYTES, Sink, Stream
from run_cpu.start import Surroundings, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from run_cpu.job import Conduct, Job, Process
    from run_cpu.logs import Logs

#: Signals that ask for the end; after the grace they are followed by SIGKILL.
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
#: A dead launcher can't wait for long.
ORPHANED_GRACE_S = 2.0
_AGAIN_S = 0.1


class Child:
    """One instance while it runs and after."""

    def __init__(self, process: Process, pid: int, report: int, streams: list[Stream]) -> None:
        self.process = process
        self.pid = pid
        self.report = report
        self.streams = streams
        self.complaints = b""
        self.code: int | None = None
        self.started_s = time.monotonic()
        self.ended_s = self.started_s
        self.remarks: list[str] = []


class Supervisor:
    """Starts the instances of a job and stands by them until nothing of them is left."""

    def __init__(self, job: Job, conduct: Conduct, control: int, around: Surroundings, logs: Logs | None) -> None:
        self.job = job
        self.conduct = conduct
        self.control = control
        self.around = around
        self.logs = logs
        self.children: list[Child] = []
        self.exit_code = 0
        self.childless = False
        self.deadline: float | None = None  #: when SIGKILL follows
        self.cleaning = False
        self.said: set[str] = set()
        self.poll = select.poll()
        self.handlers: dict[int, Callable[[], None]] = {}
        self.out, self.err = _sinks()

    def run(self) -> int:
        """Run the job to its end and return its exit code."""
        linux.set_subreaper(True)
        self._watch(self._wakeup(), self._woken)
        self._watch(self.control, self._commanded)
        for process in self.job.processes:
            self._start(process)
        while not self.childless or self._output_waits():
            self._step()
        if self.logs:
            self.logs.finish(self.exit_code, self.children)
        return self.exit_code

    def _wakeup(self) -> int:
        """Let signals wake the loop through a pipe."""
        read, write = os.pipe()
        os.set_blocking(write, False)
        os.set_blocking(read, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        self.wake = read
        return read

    def _watch(self, descriptor: int, handler: Callable[[], None]) -> None:
        self.handlers[descriptor] = handler
        self.poll.register(descriptor, select.POLLIN)

    def _unwatch(self, descriptor: int) -> None:
        if self.handlers.pop(descriptor, None):
            self.poll.unregister(descriptor)

    # Starting

    def _start(self, process: Process) -> None:
        index = process.instance.number
        log = self.logs.open(index) if self.logs else None
        reads: list[int] = []
        if len(self.job.processes) == 1 and self.logs is None:
            started = start(process, self.job.bind_cpus, self.around, (0, 1, 2))
        else:
            out_read, out_write = os.pipe()
            err_read, err_write = os.pipe()
            single = len(self.job.processes) == 1
            stdin = 0 if single else os.open(os.devnull, os.O_RDONLY)
            started = start(process, self.job.bind_cpus, self.around, (stdin, out_write, err_write))
            for descriptor in {stdin, out_write, err_write} - {0}:
                os.close(descriptor)
            reads = [out_read, err_read]
        streams = [
            Stream(read, sink, self._prefix(index, sink), log)
            for read, sink in zip(reads, (self.out, self.err), strict=False)
        ]
        child = Child(process, started.pid, started.report, streams)
        self.children.append(child)
        self._watch(started.report, lambda: self._reported(child))
        for stream in streams:
            self._watch(stream.descriptor, lambda stream=stream: self._relay(stream))  # type: ignore[misc]

    def _prefix(self, index: int, sink: Sink) -> bytes:
        if len(self.job.processes) == 1:
            return b""
        if os.isatty(sink.descriptor) and not os.environ.get("NO_COLOR"):
            return b"\x1b[3%dm[%d]\x1b[0m " % (1 + index % 6, index)
        return b"[%d] " % index

    def _reported(self, child: Child) -> None:
        """Read what went wrong before the program ran; the end of it means that it runs now, or never will."""
        data = os.read(child.report, 4096)
        child.complaints += data
        if data:
            return
        self._unwatch(child.report)
        os.close(child.report)
        instance = child.process.instance
        failed = False
        for line in child.complaints.decode().splitlines():
            what, number = line.split()
            if what in ("exec", "failed"):
                failed = True
                self.say(f"{child.process.argv[0]} can't be started: {os.strerror(int(number))}")
            else:
                child.remarks.append(explain_refusal(what, int(number), instance))
                self.say(child.remarks[-1])
        if not failed:
            from run_cpu.verify import differences

            refused = {line.split()[0] for line in child.complaints.decode().splitlines()}
            for difference in differences(child.pid, instance, self.job.bind_cpus, refused):
                child.remarks.append(difference)
                self.say(difference)

    # The loop

    def _step(self) -> None:
        self._poll_outputs()
        timeout = None if self.deadline is None else max(0.0, self.deadline - time.monotonic()) * 1000
        for descriptor, _ in self.poll.poll(timeout):
            handler = self.handlers.get(descriptor)
            if handler:
                handler()
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self._kill()
        self._reap()

    def _poll_outputs(self) -> None:
        """Write only where something waits; read from instances only while the outputs keep up."""
        full = False
        for sink in {self.out, self.err}:
            if sink.waiting_bytes:
                self.handlers[sink.descriptor] = sink.write_some
                self.poll.register(sink.descriptor, select.POLLOUT)
            else:
                self._unwatch(sink.descriptor)
            full = full or sink.waiting_bytes > HIGH_WATER_BYTES
        for child in self.children:
            for stream in child.streams:
                if stream.open and stream.descriptor in self.handlers:
                    self.poll.modify(stream.descriptor, 0 if full else select.POLLIN)

    def _output_waits(self) -> bool:
        return any(sink.waiting_bytes for sink in (self.out, self.err))

    def _relay(self, stream: Stream) -> None:
        descriptor = stream.descriptor
        stream.read_some()
        if not stream.open:
            self._unwatch(descriptor)

    def _woken(self) -> None:
        for number in os.read(self.wake, 512):
            if number in ENDING:
                self._end(number, self.conduct.grace_s)

    def _commanded(self) -> None:
        """Signals from the launcher, a byte each; the end of the pipe is the launcher's end."""
        numbers = os.read(self.control, 64)
        if not numbers:
            self._unwatch(self.control)
            self._end(signal.SIGTERM, min(self.conduct.grace_s, ORPHANED_GRACE_S))
        for number in numbers:
            if number in ENDING:
                self._end(number, self.conduct.grace_s)
            else:
                self._signal(number)

    # The end

    def _end(self, number: int, grace_s: float) -> None:
        """Forward a signal that asks for the end; a second SIGINT means: now."""
        again = number == signal.SIGINT and self.deadline is not None
        self._signal(number)
        if number != signal.SIGQUIT:
            self._signal(signal.SIGCONT)
        due = time.monotonic() + (0 if again else grace_s)
        self.deadline = due if self.deadline is None else min(self.deadline, due)

    def _signal(self, number: int) -> None:
        """Send a signal to every instance's process group; an instance in the terminal's group gets it by name."""
        if self.around.group is not None:
            for pid in linux.descendants(os.getpid()):
                _send(os.kill, pid, number)
            return
        for child in self.children:
            if child.code is None:
                _send(os.killpg, child.pid, number)

    def _kill(self) -> None:
        """The grace is over: kill every descendant, and look again until there is none."""
        for pid in linux.descendants(os.getpid()):
            _send(os.kill, pid, signal.SIGKILL)
        for sink in (self.out, self.err):
            if self.childless:
                sink.drop()
        self.deadline = time.monotonic() + _AGAIN_S

    def _reap(self) -> None:
        by_pid = {child.pid: child for child in self.children}
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self.childless = True
                break
            if pid == 0:
                break
            if pid in by_pid:
                self._ended(by_pid[pid], os.waitstatus_to_exitcode(status))
        if not self.childless and not self.cleaning and all(child.code is not None for child in self.children):
            self._clean_up()

    def _ended(self, child: Child, status: int) -> None:
        child.code = status if status >= 0 else 128 - status
        child.ended_s = time.monotonic()
        if child.report in self.handlers:
            while child.report in self.handlers:
                self._reported(child)
        for stream in child.streams:
            while stream.open and stream.read_some():
                pass
            if not stream.open:
                self._unwatch(stream.descriptor)
        if self.around.group is None:
            _send(os.killpg, child.pid, signal.SIGTERM)
        if child.code and not self.exit_code:
            self.exit_code = child.code
            self._failed(child)

    def _failed(self, child: Child) -> None:
        if len(self.children) == 1 or self.deadline is not None:
            return
        code = self.exit_code
        how = f"was ended by signal {code - 128}" if code > 128 else f"failed with exit code {code}"
        others = any(other.code is None for other in self.children)
        stop = others and self.conduct.on_failure == "kill"
        self.say(f"instance {child.process.instance.number} {how}{'; the others are stopped' if stop else ''}")
        if stop:
            self._end(signal.SIGTERM, self.conduct.grace_s)

    def _clean_up(self) -> None:
        """All instances have ended, but something they started has not."""
        self.cleaning = True
        left = linux.descendants(os.getpid())
        if left and self.deadline is None:
            self.say(f"{len(left)} processes that an instance left behind are ended")
        for pid in left:
            _send(os.kill, pid, signal.SIGTERM)
            _send(os.kill, pid, signal.SIGCONT)
        if self.deadline is None:
            self.deadline = time.monotonic() + self.conduct.grace_s

    def say(self, text: str) -> None:
        """Tell the user, once, between whole lines of the instances."""
        if text not in self.said:
            self.said.add(text)
            self.err.put(f"run_cpu: {text}\n".encode(errors="backslashreplace"))


def _sinks() -> tuple[Sink, Sink]:
    """Stdout and stderr; one sink where they are the same file, so that no line of one tears a line of the other."""
    out = Sink(1)
    same = os.path.samestat(os.fstat(1), os.fstat(2))
    return out, out if same else Sink(2)


def _send(function: Callable[[int, int], None], target: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        function(target, number)
