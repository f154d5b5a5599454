"""NNPACK, kernels for convolution inside PyTorch."""

from __future__ import annotations

from typing import Any

from cpulens.backends import pytorch
from cpulens.backends.scope import Scope
from cpulens.machine.isa import read_processor

__all__ = ["details", "flags", "is_available", "set_flags", "version", "why_not"]


def is_available() -> bool:
    """Return whether PyTorch is built with NNPACK, when it is loaded; else False: NNPACK comes inside PyTorch only."""
    torch = pytorch.loaded()
    return torch is not None and bool(torch._nnpack_available())


def version() -> None:
    """Return None: NNPACK has no version."""
    return


def set_flags(_enabled: bool) -> tuple[bool]:
    """Switch NNPACK for the whole process; returns what was set before, in a tuple as PyTorch does.

    Raises `BackendUnavailable` without PyTorch.
    """
    found: tuple[bool] = pytorch.lookup("backends.nnpack.set_flags")(_enabled)
    return found


class flags(Scope):
    """A scope, or decorator, in which NNPACK is switched; afterwards it is as it was found."""

    def __init__(self, enabled: bool = False) -> None:
        super().__init__()
        self.enabled = enabled

    def _enter(self) -> bool:
        return set_flags(self.enabled)[0]

    def _leave(self, token: bool) -> None:
        set_flags(token)


def why_not() -> str:
    """One sentence: why NNPACK can't be used, or what speaks for it."""
    if pytorch.loaded() is None:
        return f"NNPACK comes inside PyTorch only: {pytorch.absence()}"
    if not is_available():
        return f"PyTorch {pytorch.version()} is built without NNPACK"
    lacking = read_processor().why_not("avx2")
    if lacking and read_processor().architecture == "x86_64":
        return f"PyTorch {pytorch.version()} is built with NNPACK, but it needs AVX2, and {lacking}"
    return f"PyTorch {pytorch.version()} is built with NNPACK"


def details() -> dict[str, Any]:
    """Return availability, reason, and whether it is switched on (None without PyTorch)."""
    torch = pytorch.loaded()
    enabled = None if torch is None else bool(torch._C._get_nnpack_enabled())
    return {"available": is_available(), "reason": why_not(), "enabled": enabled}
