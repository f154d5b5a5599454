"""cpulens: see which oneDNN and oneMKL kernels a CPU inference ran, how long, and why those.

The names below are loaded when they are first used, so ``import cpulens`` brings in no third-party module.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cpulens._version import __version__

if TYPE_CHECKING:
    from cpulens import backends as backends
    from cpulens.recording import Recording as Recording
    from cpulens.recording import Schedule as Schedule
    from cpulens.recording import iteration as iteration
    from cpulens.recording import record as record
    from cpulens.recording import region as region
    from cpulens.recording import watch as watch
    from cpulens.trace import Trace as Trace
    from cpulens.verbose import load as load

_HOMES = {
    "Recording": "cpulens.recording",
    "Schedule": "cpulens.recording",
    "Trace": "cpulens.trace",
    "iteration": "cpulens.recording",
    "load": "cpulens.verbose",
    "record": "cpulens.recording",
    "region": "cpulens.recording",
    "watch": "cpulens.recording",
}
_MODULES = ("backends", "errors", "native")

__all__ = [
    "Recording",
    "Schedule",
    "Trace",
    "__version__",
    "backends",
    "errors",
    "iteration",
    "load",
    "native",
    "record",
    "region",
    "watch",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext cpulens` in IPython or Jupyter: the magic `%%kernels`."""
    from cpulens import notebook

    notebook.load_ipython_extension(shell)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"cpulens.{name}")
    raise AttributeError(f"module 'cpulens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
