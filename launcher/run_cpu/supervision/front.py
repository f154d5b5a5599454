"""The launcher's own part once instances run: start the supervisor, hand signals on, return the exit code."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys

from run_cpu import linux
from run_cpu.supervision.start import Surroundings
from run_cpu.supervision.supervisor import Supervisor
from run_cpu.text import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from run_cpu.job import Conduct, Job
    from run_cpu.logs import Logs

#: Signals that the instances get as well.
_FORWARDED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
        signal.SIGCONT,
    }
)
#: si_code of a signal that the terminal sent to the whole process group (asm-generic/siginfo.h).
_SI_KERNEL = 0x80


def supervise(job: Job, conduct: Conduct) -> int:
    """Run the job under a supervisor process and return its exit code."""
    logs = None
    if conduct.log_folder:
        from run_cpu.logs import Logs

        logs = Logs(job, conduct)
    _open_standard()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    # A signal that we were started to ignore (nohup) stays ignored, here and in the instances.
    ignored = frozenset(n for n in _FORWARDED | {signal.SIGPIPE} if signal.getsignal(n) == signal.SIG_IGN)
    watched = (_FORWARDED - ignored) | {signal.SIGCHLD}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    shares_terminal = len(job.processes) == 1 and any(_is_terminal(descriptor) for descriptor in (0, 1, 2))
    around = Surroundings(
        frozenset(mask), ignored - {signal.SIGPIPE}, os.environ, os.getpgrp() if shares_terminal else None, limits
    )
    linux.set_subreaper(True)
    try:
        supervisor, control = _start_supervisor(job, conduct, around, logs)
        return _stand_by(supervisor, control, watched, shares_terminal)
    finally:
        linux.set_subreaper(False)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start_supervisor(job: Job, conduct: Conduct, around: Surroundings, logs: Logs | None) -> tuple[int, int]:
    """Fork the supervisor; it lives in a process group of its own, out of reach of what is sent to ours."""
    read, control = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = None
        try:
            os.close(control)
            os.setpgid(0, 0)
            code = Supervisor(job, conduct, read, around, logs).run()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            sys.stderr.flush()
        finally:
            if code is None:
                os.kill(os.getpid(), signal.SIGKILL)  # the launcher then ends what is left
            os._exit(code or 0)
    os.close(read)
    return pid, control


def _stand_by(supervisor: int, control: int, watched: frozenset[int], shares_terminal: bool) -> int:
    while True:
        info = signal.sigwaitinfo(watched)
        number = info.si_signo
        if number == signal.SIGCHLD:
            status = _reap(supervisor)
            if status is not None:
                os.close(control)
                return status if status >= 0 else _supervisor_was_killed(-status)
        elif not (shares_terminal and info.si_code == _SI_KERNEL):
            _hand_on(control, number)
        if number == signal.SIGTSTP:
            os.kill(os.getpid(), signal.SIGSTOP)


def _hand_on(control: int, number: int) -> None:
    try:
        os.write(control, bytes([number]))
    except BrokenPipeError:
        return  # it has just ended; SIGCHLD follows


def _reap(supervisor: int) -> int | None:
    """Reap whatever has ended (as PID 1 we also get strangers); return the supervisor's status once it has."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == supervisor:
            found = os.waitstatus_to_exitcode(status)


def _supervisor_was_killed(number: int) -> int:
    """Somebody killed the supervisor: its children are ours now, and nobody else will end them."""
    complain(f"the supervising process was ended by signal {number}; its instances are ended too")
    while True:
        for pid in linux.descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not linux.proc_is_ours():
            return 128 + number
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return 128 + number


def _open_standard() -> None:
    """Make sure that stdin, stdout and stderr are open: pipes of ours must not get their numbers."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False
