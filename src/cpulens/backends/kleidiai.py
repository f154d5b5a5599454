"""KleidiAI, Arm's kernels for 4-bit and 8-bit products inside PyTorch."""

from __future__ import annotations

from typing import Any

from cpulens.backends import pytorch
from cpulens.machine.isa import read_processor

__all__ = ["details", "is_available", "version", "why_not"]


def is_available() -> bool:
    """Return whether PyTorch is built with KleidiAI, when it is loaded; else False: it comes inside PyTorch only."""
    return bool(pytorch.built_with("_has_kleidiai"))


def version() -> None:
    """Return None: PyTorch does not say which KleidiAI it holds."""
    return


def why_not() -> str:
    """One sentence: why KleidiAI can't be used, or what speaks for it."""
    processor = read_processor()
    if processor.architecture != "aarch64":
        return f"KleidiAI is for Arm processors; this one is {processor.architecture}"
    if pytorch.loaded() is None:
        return f"KleidiAI comes inside PyTorch only: {pytorch.absence()}"
    if not is_available():
        return f"PyTorch {pytorch.version()} is built without KleidiAI"
    lacking = processor.why_not("dotprod")
    reservation = f", but it needs more: {lacking}" if lacking else ""
    return f"PyTorch {pytorch.version()} is built with KleidiAI{reservation}"


def details() -> dict[str, Any]:
    """Return availability and reason."""
    return {"available": is_available(), "reason": why_not()}
