"""Frameworks in this process that carry oneDNN, oneMKL or a BLAS of their own, and what of each can be switched.

Three classes: at run time, by the environment before the process starts, and not at all. What is said of PyTorch,
OpenVINO and CTranslate2 was tried on the real ones; the rows of the others (TensorFlow, PaddlePaddle, ONNX Runtime, the
Intel extension) are common knowledge and were not tried.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from cpulens.backends import blas, verbosity
from cpulens.backends.presence import TITLES, hidden_of
from cpulens.native import loaded
from cpulens.native.embedded import VARIABLE, holds

#: A message of oneDNN's that every build holds, whether it can print verbose lines or not.
_ONEDNN_TEXT: Final = b"could not create a primitive"


class Framework(NamedTuple):
    """One row: how it is recognised, and its switches."""

    title: str
    module: str  #: its name in `sys.modules`
    files: tuple[str, ...]  #: starts of the names of its own shared objects
    at_run_time: tuple[str, ...]
    by_environment: tuple[str, ...]
    never: tuple[str, ...] = ()


class Found(NamedTuple):
    """A framework in this process. `libraries`: what it carries or uses, each with how its lines are switched."""

    title: str
    version: str | None
    path: str | None
    libraries: tuple[str, ...]
    at_run_time: tuple[str, ...]
    by_environment: tuple[str, ...]
    never: tuple[str, ...]


TABLE: Final = (
    Framework(
        "PyTorch",
        "torch",
        ("libtorch_cpu.",),
        ("threads: torch.set_num_threads", "oneDNN on or off: mkldnn.enabled", "precision: mkldnn.fp32_precision"),
        ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "OMP_NUM_THREADS", "LRU_CACHE_CAPACITY"),
    ),
    Framework(
        "Intel Extension for PyTorch",
        "intel_extension_for_pytorch",
        ("libintel-ext-pt-cpu",),
        ("verbose: ipex.verbose", "precision: ipex.set_fp32_math_mode"),
        ("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"),
    ),
    Framework(
        "OpenVINO",
        "openvino",
        ("libopenvino.", "libopenvino_intel_cpu_plugin"),
        ("threads: INFERENCE_NUM_THREADS", "streams: NUM_STREAMS", "precision: INFERENCE_PRECISION_HINT"),
        ("OV_CPU_VERBOSE, in debug builds", "ONEDNN_MAX_CPU_ISA"),
        ("OpenMP variables: it runs on TBB, unless built otherwise",),
    ),
    Framework(
        "CTranslate2",
        "ctranslate2",
        ("libctranslate2",),
        ("threads: intra_threads and inter_threads of a model", "log level: ctranslate2.set_log_level"),
        ("CT2_VERBOSE", "CT2_USE_MKL", "CT2_FORCE_CPU_ISA", "OMP_NUM_THREADS"),
    ),
    Framework(
        "TensorFlow",
        "tensorflow",
        ("libtensorflow_cc", "libtensorflow_framework", "_pywrap_tensorflow_internal"),
        ("threads: tf.config.threading, before the first operation",),
        ("TF_ENABLE_ONEDNN_OPTS", "TF_NUM_INTRAOP_THREADS"),
    ),
    Framework(
        "PaddlePaddle",
        "paddle",
        ("libpaddle",),
        ("oneDNN on or off: Config.enable_onednn", "threads: Config.set_cpu_math_library_num_threads"),
        ("FLAGS_use_onednn", "OMP_NUM_THREADS"),
    ),
    Framework(
        "ONNX Runtime",
        "onnxruntime",
        ("libonnxruntime", "onnxruntime_pybind11_state"),
        ("threads: SessionOptions.intra_op_num_threads",),
        ("OMP_NUM_THREADS, in builds with OpenMP",),
        ("lines of single kernels: its own (MLAS) print none; use its profiling",),
    ),
    Framework("numpy", "numpy", (), ("threads: threadpoolctl.threadpool_limits",), (), ()),
    Framework("scipy", "scipy", (), ("threads: threadpoolctl.threadpool_limits",), (), ()),
)
#: What the environment switches in a BLAS before the process starts.
_BLAS_VARIABLES: Final = {
    "OpenBLAS": ("OPENBLAS_NUM_THREADS", "OPENBLAS_CORETYPE"),
    "oneMKL": ("MKL_VERBOSE", "MKL_NUM_THREADS", "MKL_ENABLE_INSTRUCTIONS"),
    "BLIS": ("BLIS_NUM_THREADS", "BLIS_ARCH_TYPE"),
}


def frameworks() -> list[Found]:
    """Return the frameworks of the table that this process has loaded, by module or by shared object."""
    return [found for row in TABLE if (found := _look(row)) is not None]


def _look(row: Framework) -> Found | None:
    module = sys.modules.get(row.module)
    own = [obj.path for obj in loaded.objects() if row.files and obj.name.startswith(row.files)]
    if module is None and not own:
        return None
    parts = [part for path in own for part in _native(path)] + _blas_of(row.module)
    version = getattr(module, "__version__", None)
    return Found(
        row.title,
        None if version is None else str(version),
        own[0] if own else getattr(module, "__file__", None),
        _distinct(part.library for part in parts),
        _distinct([*row.at_run_time, *(way for part in parts for way in part.at_run_time)]),
        _distinct([*row.by_environment, *(way for part in parts for way in part.by_environment)]),
        _distinct([*(way for part in parts for way in part.never), *row.never]),
    )


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))


class _Part(NamedTuple):
    library: str
    at_run_time: tuple[str, ...] = ()
    by_environment: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def _native(path: str) -> list[_Part]:
    """The copies of oneDNN and oneMKL in one file of a framework."""
    name, parts, seen = os.path.basename(path), [], set()
    for copy in verbosity.copies():
        if copy.path == path:
            title = TITLES[copy.library]
            seen.add(copy.library)
            how = "left as the environment set it" if copy.left_alone else f"switched by {copy.door}"
            parts.append(_Part(f"{title} in {name}", (f"verbose lines of {title}: {how}",)))
    for library, title in TITLES.items():
        if any(hidden.path == path for hidden in hidden_of(library)):
            seen.add(library)
            never = f"verbose lines of {title} at run time: its setter is hidden"
            parts.append(_Part(f"{title} inside {name}, hidden", (), (VARIABLE[library],), (never,)))
    if "onednn" not in seen and holds(path, _ONEDNN_TEXT):
        never = "verbose lines of oneDNN: this build holds none (ONEDNN_VERBOSE=OFF when it was built)"
        parts.append(_Part(f"oneDNN inside {name}, without verbose output", (), (), (never,)))
    return parts


def _blas_of(module: str) -> list[_Part]:
    """The BLAS that numpy or scipy brought; where theirs is shared (conda, a distribution), the shared ones."""
    if module not in ("numpy", "scipy"):
        return []
    found = blas.libraries()
    used = [one for one in found if one.owner == module] or [one for one in found if not one.owner]
    return [
        _Part(
            f"{' '.join(filter(None, (one.name, one.version)))} ({os.path.basename(one.path)})",
            (),
            _BLAS_VARIABLES.get(one.name, ()),
            () if one.name in blas.SPEAKS else (f"lines of single calls: {one.name} prints none",),
        )
        for one in used
    ]


def as_values() -> list[dict[str, Any]]:
    """The same as plain values."""
    return [found._asdict() for found in frameworks()]
