"""NVIDIA's cuDNN, as PyTorch sees it; the names are in `cpulens.backends.accelerators`."""

from __future__ import annotations

import sys
from typing import Any

from cpulens.backends import accelerators

accelerators.setup(__name__)
_this: Any = sys.modules[__name__]


def why_not() -> str:
    """One sentence: why PyTorch can't use it here, or that PyTorch is built with it."""
    return accelerators.why_not("cudnn")


def details() -> dict[str, Any]:
    """Return whether PyTorch is built with it, and why not."""
    return {"available": accelerators.built("cudnn"), "reason": accelerators.why_not("cudnn")}


def __getattr__(name: str) -> Any:
    return _this.read(name)
