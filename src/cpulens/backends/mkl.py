"""oneMKL: is it here, which, and verbose scopes."""

from __future__ import annotations

from typing import Any

from cpulens.backends import presence
from cpulens.backends.levels import VERBOSE_OFF, VERBOSE_ON
from cpulens.backends.verbose_scope import VerboseScope

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "details", "is_available", "verbose", "version", "why_not"]


class verbose(VerboseScope):
    """Make oneMKL print a line for every call, inside a `with` block or a decorated function.

    `enable`: VERBOSE_OFF (0) or VERBOSE_ON (1), a bool, or a name ("OFF", "ON"); anything else raises UsageError. It
    acts on every copy of oneMKL in the process that can be switched; what can't be is said once, as a CpulensWarning.
    Like any first call of MKL, the setter fixes the threading layer of a `libmkl_rt` that was not used before.
    """

    library = "mkl"

    def __init__(self, enable: int | str) -> None:
        super().__init__(enable)
        self.enable = self._level


def is_available() -> bool:
    """Return whether PyTorch is built with oneMKL, when it is loaded.

    Without PyTorch: whether this process has a copy; with none loaded, whether this environment has one that loads,
    which is tried in a child process, once (about 0.1 s). `why_not` has the evidence.
    """
    return presence.presence("mkl").available


def version() -> str | None:
    """Return the version: PyTorch's copy, else the loaded one, else the installed one; None where none is known."""
    return presence.presence("mkl").version


def why_not() -> str:
    """One sentence with the evidence for `is_available`: built without, loaded as, installed, broken, or absent."""
    return presence.presence("mkl").reason


def details() -> dict[str, Any]:
    """Return answer, evidence, version, and each copy in this process with how its verbose level is switched."""
    return presence.details("mkl")
