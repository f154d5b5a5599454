"""Every error that cpulens raises on purpose.

::

    CpulensError                 exit code 1
    ├── BackendUnavailable       a library, symbol or package that is needed is not there
    ├── NativeError              a call into oneDNN or oneMKL failed
    ├── CaptureError             the native output can't be caught (no spill, descriptor gone, …)
    ├── LogError                 a log can't be read, or holds nothing that could be
    ├── TraceFileError           a run file is damaged, or of a newer schema
    ├── PlacementError           exit code 2: a plan that can't be
    └── UsageError               exit code 2: options or arguments that can't go together

A message says what was seen, why it can't go on, and what to do next. They are caught once, in ``main``.
"""

from __future__ import annotations


class CpulensError(Exception):
    """The root of all errors raised on purpose; `exit_code` is what a command returns for it."""

    exit_code = 1


class BackendUnavailable(CpulensError):
    """A library, symbol or package that is needed is not there."""


class NativeError(CpulensError):
    """A call into oneDNN or oneMKL failed: `call` is the C function, `status` what it answered, in the API's words."""

    def __init__(self, message: str, *, call: str = "", status: str = "") -> None:
        super().__init__(message)
        self.call = call
        self.status = status


class CaptureError(CpulensError):
    """What native code prints can't be caught here."""


class LogError(CpulensError):
    """A log can't be read, or holds nothing that could be."""


class TraceFileError(CpulensError):
    """A run file is damaged, or was written by a newer schema."""


class PlacementError(CpulensError):
    """No plan satisfies the request on this host."""

    exit_code = 2


class UsageError(CpulensError):
    """Options or arguments that can't go together."""

    exit_code = 2


class CpulensWarning(UserWarning):
    """Something could not be done as asked, and the work goes on without it; said once."""
