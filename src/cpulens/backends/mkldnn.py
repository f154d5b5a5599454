"""oneDNN (called mkldnn in torch.backends): verbose scopes."""

from __future__ import annotations

from cpulens.backends import verbosity
from cpulens.backends.levels import VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION, parse_level
from cpulens.backends.scope import Scope

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "verbose"]


class verbose(Scope):
    """Make oneDNN print what it runs, inside a `with` block or a decorated function.

    `level`: VERBOSE_OFF (0, prints nothing), VERBOSE_ON (1, a line per execution), VERBOSE_ON_CREATION (2, a line per
    creation as well), or one of their names ("OFF", "ON", "ON_CREATION"); anything else raises UsageError. It acts on
    every copy of oneDNN in the process that can be switched; what can't be is said once, as a CpulensWarning. Scopes
    nest and overlap; afterwards the level is again that of the newest scope still open, else the environment's.
    Lines go to the C library's standard output; to catch them use `cpulens.record`.
    """

    def __init__(self, level: int | str) -> None:
        super().__init__()
        self.level = parse_level("onednn", level)

    def _enter(self) -> verbosity.Request:
        request = verbosity.acquire(onednn=self.level)
        verbosity.warn_once(verbosity.notes(("onednn",)))
        return request

    def _leave(self, token: verbosity.Request) -> None:
        verbosity.release(token)
