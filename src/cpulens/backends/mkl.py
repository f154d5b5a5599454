"""oneMKL: verbose scopes."""

from __future__ import annotations

from cpulens.backends import verbosity
from cpulens.backends.levels import VERBOSE_OFF, VERBOSE_ON, parse_level
from cpulens.backends.scope import Scope

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "verbose"]


class verbose(Scope):
    """Make oneMKL print a line for every call, inside a `with` block or a decorated function.

    `enable`: VERBOSE_OFF (0) or VERBOSE_ON (1), a bool, or a name ("OFF", "ON"); anything else raises UsageError. It
    acts on every copy of oneMKL in the process that can be switched; what can't be is said once, as a CpulensWarning.
    Like any first call of MKL, the setter fixes the threading layer of a `libmkl_rt` that was not used before.
    """

    def __init__(self, enable: int | str) -> None:
        super().__init__()
        self.enable = parse_level("mkl", enable)

    def _enter(self) -> verbosity.Request:
        request = verbosity.acquire(mkl=self.enable)
        verbosity.warn_once(verbosity.notes(("mkl",)))
        return request

    def _leave(self, token: verbosity.Request) -> None:
        verbosity.release(token)
