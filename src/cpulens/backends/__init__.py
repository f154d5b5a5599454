"""The namespace of torch.backends, with reasons."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = ("mkl", "mkldnn")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"cpulens.backends.{name}")
    raise AttributeError(f"module 'cpulens.backends' has no attribute {name!r}")
