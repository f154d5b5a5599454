"""The launcher under the name it has in ``torch.backends``; loaded when it is used."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from cpulens.backends.xeon import run_cpu as run_cpu

__all__ = ["run_cpu"]


def __getattr__(name: str) -> ModuleType:
    if name == "run_cpu":
        return importlib.import_module("cpulens.backends.xeon.run_cpu")
    raise AttributeError(f"module 'cpulens.backends.xeon' has no attribute {name!r}")
