"""The fast path of PyTorch's TransformerEncoder and MultiHeadAttention."""

from __future__ import annotations

from typing import Any

from cpulens.backends import pytorch

__all__ = ["details", "get_fastpath_enabled", "set_fastpath_enabled", "why_not"]


def get_fastpath_enabled() -> bool:
    """Return whether the fast path may be taken; it is only when the inputs allow it too.

    Raises `BackendUnavailable` without PyTorch.
    """
    answer: bool = pytorch.lookup("backends.mha.get_fastpath_enabled")()
    return answer


def set_fastpath_enabled(value: bool) -> None:
    """Allow the fast path or not, for the whole process. Raises `BackendUnavailable` without PyTorch."""
    pytorch.lookup("backends.mha.set_fastpath_enabled")(value)


def why_not() -> str:
    """One sentence: where the switch is, or why there is none."""
    return f"a switch of PyTorch {pytorch.version()}" if pytorch.loaded() is not None else pytorch.absence()


def details() -> dict[str, Any]:
    """Return whether there is a switch, why, and its value (None without PyTorch)."""
    there = pytorch.loaded() is not None
    return {"available": there, "reason": why_not(), "enabled": get_fastpath_enabled() if there else None}
