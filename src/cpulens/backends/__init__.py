"""The namespace of torch.backends, with reasons: the same names, also without PyTorch where it can be."""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = (
    *("cpu", "mkl", "mkldnn", "openmp", "nnpack", "kleidiai", "opt_einsum", "mha", "python_native", "xeon"),
    *("cuda", "cudnn", "cusparselt", "miopen", "mps"),
    *("doctor", "frameworks", "settings"),
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"cpulens.backends.{name}")
    raise AttributeError(f"module 'cpulens.backends' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
