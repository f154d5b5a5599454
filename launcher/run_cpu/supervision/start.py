"""Start one instance: fork, bind, and become the program."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
from typing import NamedTuple

from run_cpu import linux
from run_cpu.binding import bind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from run_cpu.job import Process


#: Signals whose handling is changed by the supervisor, or by Python itself.
CHANGED_SIGNALS = (
    *(signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGTTOU, signal.SIGPIPE, signal.SIGXFSZ),
)


class Surroundings(NamedTuple):
    """What the launcher found when it started, and its instances shall find again."""

    signal_mask: frozenset[int]
    ignored_signals: frozenset[int]
    environ: Mapping[str, str]
    group: int | None  #: process group to join; None: one of its own
    open_files: tuple[int, int]  #: soft and hard limit


class Started(NamedTuple):
    """A forked instance. `report` ends when the program has replaced us, and says before that what went wrong."""

    pid: int
    report: int


def start(process: Process, bind_cpus: bool, around: Surroundings, descriptors: tuple[int, int, int]) -> Started:
    """Fork an instance with these descriptors as its stdin, stdout and stderr."""
    report, written = os.pipe()
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(process, bind_cpus, around, descriptors, written, supervisor)
        except BaseException as error:
            os.write(written, f"failed {getattr(error, 'errno', 0) or 0}\n".encode())
        finally:
            os._exit(126)
    os.close(written)
    with contextlib.suppress(OSError):
        os.setpgid(pid, around.group or pid)  # the child does so too; whoever comes first
    return Started(pid, report)


def _become(
    process: Process,
    bind_cpus: bool,
    around: Surroundings,
    descriptors: tuple[int, int, int],
    report: int,
    supervisor: int,
) -> None:
    """Turn this forked process into the program; only returns by an exception or an exit."""
    signal.set_wakeup_fd(-1)
    os.setpgid(0, around.group or 0)
    linux.die_with_parent(signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(126)
    for name in CHANGED_SIGNALS:
        signal.signal(name, signal.SIG_IGN if name in around.ignored_signals else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, around.signal_mask)
    # Above 2 first: a descriptor still to be copied must not be overwritten.
    copies = [os.dup(descriptor) for descriptor in descriptors]
    for target, copy in enumerate(copies):
        os.dup2(copy, target, inheritable=True)
    for what, number in bind(process.instance, bind_cpus):
        os.write(report, f"{what} {number}\n".encode())
    resource.setrlimit(resource.RLIMIT_NOFILE, around.open_files)
    try:
        os.execvpe(process.argv[0], process.argv, {**around.environ, **process.environment})
    except OSError as error:
        number = error.errno or errno.ENOENT
        os.write(report, f"exec {number}\n".encode())
        os._exit(127 if number in (errno.ENOENT, errno.ENOTDIR) else 126)
