"""Run a command and take the libraries' lines out of its standard output.

The command gets a pseudo-terminal for its standard output when ours is a terminal, else a pipe; input, errors and the
controlling terminal stay as they are. Its own output passes at once, byte for byte. Signals sent to us are sent on;
those that the terminal sends reach the command by themselves.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import termios
import threading
import time
from collections.abc import Callable
from typing import Final

from cpulens.capture.cstdout import write_all
from cpulens.capture.own_text import Parted, Stream
from cpulens.capture.spill import Spill

_FORWARDED: Final = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
_FROM_THE_KERNEL: Final = 0x80  # SI_KERNEL: the terminal's Ctrl-C reaches the whole process group by itself
_SILENCE_S: Final = 0.02
#: How long to read on for processes that the command left behind with its output open.
_LEFT_BEHIND_S: Final = 2.0


class Child:
    """One command being recorded: `run()` returns its exit code; then `own_pieces`, `wall_ms`, `left_behind`."""

    def __init__(self, command: list[str], environment: dict[str, str], spill: Spill, max_bytes: int) -> None:
        self.command, self.environment = command, environment
        self.spill, self.max_bytes = spill, max_bytes
        self.pid = 0
        self.own_pieces = 0
        self.wall_ms = 0.0
        self.left_behind = False
        self.truncated = False
        self._stream = Stream()
        self._stored = 0

    def run(self, look: Callable[[int], None]) -> int:
        """Run to the end. `look(pid)` is called now and then while it runs.

        Raises FileNotFoundError or PermissionError when the command can't be started. Returns its exit code, or
        128 + n when signal n ended it.
        """
        is_terminal = os.isatty(1)
        ours, theirs = _terminal_pair() if is_terminal else os.pipe()
        old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
        started = time.perf_counter()
        try:
            self.pid = self._spawn(theirs, old_mask)
            forwarder = threading.Thread(target=self._forward, args=(ours if is_terminal else -1,), daemon=True)
            forwarder.start()
            os.close(theirs)
            theirs = -1
            status = self._pump(ours, look)
            self.wall_ms = (time.perf_counter() - started) * 1e3
        finally:
            os.close(ours)
            if theirs >= 0:
                os.close(theirs)
            # Only now: a signal that arrived after the end must not end us before the run is saved.
            self.pid = 0
        return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)

    def _spawn(self, stdout: int, mask: set[signal.Signals] | set[int]) -> int:
        return os.posix_spawnp(
            self.command[0],
            self.command,
            self.environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, stdout, 1)],
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )

    def _forward(self, terminal: int) -> None:
        while True:
            info = signal.sigwaitinfo(_FORWARDED)
            if info.si_signo == signal.SIGWINCH and terminal >= 0:
                with contextlib.suppress(OSError):
                    _copy_window_size(terminal)
            if info.si_code != _FROM_THE_KERNEL and self.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, info.si_signo)

    def _pump(self, ours: int, look: Callable[[int], None]) -> int:
        status: int | None = None
        ended_at, next_look, pause = 0.0, 0.0, 0.05
        while True:
            now = time.monotonic()
            if status is None:
                if now >= next_look:
                    look(self.pid)
                    next_look, pause = now + pause, min(pause * 2, 5.0)
                status, ended_at = self._ended(), now
            chunk = self._read(ours, 0.05 if status is None else 0.0 if now == ended_at else 0.1)
            if chunk == b"":
                break
            if chunk is None and status is not None and now - ended_at > _LEFT_BEHIND_S:
                self.left_behind = True
                break
            if chunk and not self._pass(self._stream.feed(chunk)):
                return self._reader_left(ours)
        self._pass(self._stream.finish())
        return status if status is not None else os.waitpid(self.pid, 0)[1]

    def _ended(self) -> int | None:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return status if pid else None

    def _read(self, fd: int, patience_s: float) -> bytes | None:
        """The next bytes, b"" at the end of the stream, None when nothing came."""
        wait = _SILENCE_S if self._stream.may_be_text else patience_s
        if not select.select([fd], [], [], wait)[0]:
            if self._stream.may_be_text:
                self._pass(self._stream.finish())
            return None
        try:
            return os.read(fd, 1 << 16)
        except OSError:  # a pseudo-terminal whose other end is closed says EIO
            return b""

    def _reader_left(self, ours: int) -> int:
        """Whoever read our output has gone (`| head`): the command meets the same at its next line."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, ours)
        os.close(nothing)
        return os.waitpid(self.pid, 0)[1]

    def _pass(self, parted: Parted) -> bool:
        """Hand own text on and store the rest; False when nobody reads our output any more."""
        try:
            write_all(1, parted.own)
        except BrokenPipeError:
            return False
        self.own_pieces += parted.own_pieces
        if parted.verbose and not self.truncated:
            self._stored += len(parted.verbose)
            self.truncated = self._stored > self.max_bytes
            if not self.truncated:
                write_all(self.spill.fd, parted.verbose)
        return True


def _terminal_pair() -> tuple[int, int]:
    """A pseudo-terminal of our terminal's size, whose output passes untouched (no newline translation)."""
    ours, theirs = os.openpty()
    settings = termios.tcgetattr(theirs)
    settings[1] &= ~termios.OPOST
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    _copy_window_size(ours)
    return ours, theirs


def _copy_window_size(terminal: int) -> None:
    size = fcntl.ioctl(1, termios.TIOCGWINSZ, struct.pack("HHHH", 0, 0, 0, 0))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
