"""A scope that asks for the verbose level of one library: what `mkl.verbose` and `mkldnn.verbose` share."""

from __future__ import annotations

from typing import ClassVar

from cpulens.backends import verbosity
from cpulens.backends.levels import parse_level
from cpulens.backends.scope import Scope


class VerboseScope(Scope):
    """Between entering and leaving, `library` has the level asked for, unless a newer scope asks for another.

    Raises UsageError for a level that `library` doesn't have. What can't be switched is said once, as a
    CpulensWarning, before anything is changed: a warning made an error leaves no level behind.
    """

    library: ClassVar[str]

    def __init__(self, level: int | str) -> None:
        super().__init__()
        self._level = parse_level(self.library, level)

    def _enter(self) -> verbosity.Request:
        verbosity.warn_once(verbosity.notes((self.library,)))
        return verbosity.acquire(**{self.library: self._level})

    def _leave(self, token: verbosity.Request) -> None:
        verbosity.release(token)
