"""oneMKL through ``libmkl_rt`` and ctypes: matrix products and Fourier transforms on real data, and its switches.

With numpy arrays: ``gemm``, ``sgemm``, ``dgemm``, ``fft``, ``rfft``, ``irfft``. Prepared, without numpy: ``Gemm``,
``Fft``. Where the library comes from is told in `cpulens.native.find`. Choose the threading layer
(``set_threading_layer("gnu")``) before the first of these when the process has, or will have, another OpenMP runtime.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cpulens.native.mkl.api import (
    library,
    max_threads,
    set_num_threads,
    set_threading_layer,
    set_verbose,
    threading_layer,
    version,
)

if TYPE_CHECKING:
    from cpulens.native.mkl.blas import Gemm as Gemm
    from cpulens.native.mkl.calls import dgemm as dgemm
    from cpulens.native.mkl.calls import fft as fft
    from cpulens.native.mkl.calls import gemm as gemm
    from cpulens.native.mkl.calls import irfft as irfft
    from cpulens.native.mkl.calls import rfft as rfft
    from cpulens.native.mkl.calls import sgemm as sgemm
    from cpulens.native.mkl.dfti import Fft as Fft

_HOMES = {
    "Fft": "dfti",
    "Gemm": "blas",
    "dgemm": "calls",
    "fft": "calls",
    "gemm": "calls",
    "irfft": "calls",
    "rfft": "calls",
    "sgemm": "calls",
}

__all__ = [
    "Fft",
    "Gemm",
    "dgemm",
    "fft",
    "gemm",
    "irfft",
    "library",
    "max_threads",
    "rfft",
    "set_num_threads",
    "set_threading_layer",
    "set_verbose",
    "sgemm",
    "threading_layer",
    "version",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
