"""The tap on this process's C `stdout`: one stream that every open recording shares, each with its own slice of it.

While at least one recording is open, `stdout` points at a stand-in that appends to a spill file (a *session*). Text
that is not a library's line is the program's own and is handed on, in order, when a recording closes; what arrives
later (a forked child that prints on) is handed on at the next occasion, at the latest when the process ends.

A forked child inherits the tap. It goes on writing into the same spill, and its lines belong to the parent's
recordings; when it leaves an inherited block its `stdout` is put back and nothing else happens.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import Final

from cpulens.capture.cstdout import CStdout, can_swap, write_all
from cpulens.capture.own_text import header_lines, own_text
from cpulens.capture.spill import Spill, above_standard_streams
from cpulens.errors import CaptureError

#: Set by `cpulens record`: somebody outside records this process too, and wants the lines as well.
RECORDED_FROM_OUTSIDE: Final = "CPULENS_RECORD"

STDOUT: Final = "stdout"
DESCRIPTOR: Final = "descriptor"


#: A spill is used for the next session too until it has grown to this, so that a scope need not make a file.
_REUSED_UP_TO_BYTES: Final = 64 << 20


class Session:
    """One stretch of a spill, from the first recording that opens to the last that closes."""

    def __init__(self, mode: str, spill: Spill) -> None:
        self.mode = mode
        self.pid = os.getpid()
        self.spill = spill
        self.handed_on = spill.size()
        self.incomplete = False
        self.open_recordings = 0

    def new_text(self) -> bytes:
        """What was written since the last look."""
        end = self.spill.size()
        text = self.spill.read(self.handed_on, end)
        self.handed_on = end
        return text


class Tap:
    """See the module; there is one in a process, `tap()`."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.headers: list[bytes] = []
        self._session: Session | None = None
        self._past: Session | None = None
        self._stdout = CStdout()
        self._stand_in = 0
        self._stand_in_fd = self._stand_in_target = -1
        self._real_stream = 0
        self._real_fd = -1
        atexit.register(self._at_exit)
        os.register_at_fork(
            before=self._before_fork, after_in_parent=self._after_fork_here, after_in_child=self._after_fork_there
        )

    @property
    def is_open(self) -> bool:
        """Whether a recording is open."""
        return self._session is not None

    def open(self, mode: str) -> tuple[Session, int]:
        """Join the open session, or begin one; returns it and the offset at which the caller's slice begins."""
        with self.lock:
            session = self._session
            if session is None or session.pid != os.getpid():
                session = self._begin(mode)
            session.open_recordings += 1
            self.flush()
            self._hand_on(session)
            return session, session.handed_on

    def close(self, session: Session) -> int:
        """Leave a session; returns the offset at which the caller's slice ends. The last one out puts all back."""
        with self.lock:
            if session.pid != os.getpid():
                self._leave_inherited(session)
                return session.spill.size()
            self.flush()
            end = session.spill.size()
            session.open_recordings -= 1
            if session.open_recordings == 0:
                self._put_back()
                self._session, self._past = None, session
            self._hand_on(session)
            return end

    def flush(self) -> None:
        """Bring what native code has printed into the spill."""
        session = self._session
        if session is None:
            return
        if session.mode == DESCRIPTOR:
            _flush_python()
            self._stdout.flush()
        elif not self._stdout.flush_stream(self._stand_in):
            session.incomplete = True

    def write_line(self, line: bytes) -> None:
        """Print a line through the stream that the libraries print through, in order with theirs."""
        self._stdout.write_line(line)

    def write_mark(self, line: bytes) -> None:
        """As `write_line`, at a sixth of its cost: for markers printed at every call of a layer.

        The libraries' lines are written when they end, so a line written to the spill itself stands in order too.
        """
        session = self._session
        if session is None:
            self._stdout.flush()
            with contextlib.suppress(BrokenPipeError):
                write_all(1, line)
        elif session.mode == DESCRIPTOR:
            self._stdout.write_line(line)
        else:
            try:
                os.write(session.spill.fd, line)
            except OSError:
                session.incomplete = True

    def _begin(self, mode: str) -> Session:
        session = Session(_available(mode), self._spill())
        if session.mode == DESCRIPTOR:
            _flush_python()
            self._stdout.flush()
            self._real_fd = _duplicate_of_stdout()
            os.dup2(session.spill.fd, 1)
        else:
            self._retarget(session.spill.fd)
            before = self._stdout.point_at(self._stand_in)
            if before != self._stand_in:
                self._real_stream = before
        self._session = session
        return session

    def _spill(self) -> Spill:
        """The last session's spill while it is small and ours, else a new one."""
        past = self._past
        if past is None or past.pid != os.getpid():
            return Spill()
        self._hand_on(past)
        return past.spill if past.spill.size() < _REUSED_UP_TO_BYTES else Spill()

    def _retarget(self, fd: int) -> None:
        """Let the stand-in append to `fd`; the stream itself is made once and never closed."""
        if not self._stand_in:
            self._stand_in_fd = above_standard_streams(fd)
            self._stand_in = self._stdout.open_stand_in(self._stand_in_fd)
        elif fd != self._stand_in_target:
            os.dup2(fd, self._stand_in_fd, inheritable=False)
        self._stand_in_target = fd

    def _put_back(self) -> None:
        session = self._session
        assert session is not None
        if session.mode == DESCRIPTOR:
            _flush_python()
            self._stdout.flush()
            if self._real_fd < 0:
                os.close(1)
            else:
                os.dup2(self._real_fd, 1)
                os.close(self._real_fd)
                self._real_fd = -1
        else:
            self._stdout.point_at(self._real_stream)

    def _hand_on(self, session: Session) -> None:
        text = session.new_text()
        if not text:
            return
        self.headers += [line for line in header_lines(text) if line not in self.headers]
        passed = text if RECORDED_FROM_OUTSIDE in os.environ else own_text(text)
        if not passed:
            return
        if self._session is None:
            self._stdout.flush()
        with contextlib.suppress(BrokenPipeError):
            write_all(self._stdout_descriptor(), passed)

    def _stdout_descriptor(self) -> int:
        if self._session is not None and self._session.mode == DESCRIPTOR:
            return self._real_fd
        return self._stdout.descriptor(self._real_stream) if self._real_stream else 1

    def _leave_inherited(self, session: Session) -> None:
        session.open_recordings -= 1
        if session is self._session and session.open_recordings == 0:
            self.flush()
            self._put_back()
            self._session = None

    def _before_fork(self) -> None:
        self.lock.acquire()
        self.flush()

    def _after_fork_here(self) -> None:
        self.lock.release()

    def _after_fork_there(self) -> None:
        self.lock = threading.RLock()
        self._past = None

    def _at_exit(self) -> None:
        with self.lock:
            session = self._session or self._past
            if session is not None and session.pid == os.getpid():
                self.flush()
                self._hand_on(session)


def _available(mode: str) -> str:
    if mode not in ("auto", STDOUT, DESCRIPTOR):
        raise CaptureError(f"capture {mode!r} is not known; it is auto, {STDOUT} or {DESCRIPTOR}")
    if mode == STDOUT and not can_swap():
        raise CaptureError(f"this C library's stdout can't be pointed elsewhere; use capture={DESCRIPTOR!r}")
    if mode == "auto":
        return STDOUT if can_swap() else DESCRIPTOR
    return mode


def _duplicate_of_stdout() -> int:
    try:
        os.fstat(1)
    except OSError:
        return -1
    return above_standard_streams(1)


def _flush_python() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            stream.flush()


_tap: Tap | None = None
_made = threading.Lock()


def tap() -> Tap:
    """The tap of this process."""
    global _tap
    if sys.platform != "linux":
        raise CaptureError(
            f"native output can be captured on Linux only, this is {sys.platform}; logs are read anywhere"
        )
    with _made:
        if _tap is None:
            _tap = Tap()
        return _tap


def open_tap() -> Tap | None:
    """The tap, while a recording of this process is open."""
    return _tap if _tap is not None and _tap.is_open else None
