"""Frameworks that carry their own copy of oneDNN or oneMKL and hide its functions.

Such a copy can't be switched while it runs; the environment before the process starts can do it. A row of the table
says where a copy may be, the file itself whether it is there: the text that every verbose build must hold.
"""

from __future__ import annotations

import mmap
import os
from functools import lru_cache
from typing import Final, NamedTuple

from cpulens.native import loaded

#: Start of a file name → (framework, libraries that it may carry).
CARRIERS: Final = {
    "libctranslate2": ("CTranslate2", ("onednn", "mkl")),
    "libmxnet": ("MXNet", ("onednn", "mkl")),
    "libonnxruntime": ("ONNX Runtime", ("onednn", "mkl")),
    "libopenvino_intel_cpu_plugin": ("OpenVINO's CPU plugin", ("onednn",)),
    "libpaddle": ("PaddlePaddle", ("onednn", "mkl")),
    "libtensorflow_cc": ("TensorFlow", ("onednn", "mkl")),
    "libtensorflow_framework": ("TensorFlow", ("onednn", "mkl")),
    "libtorch_cpu": ("PyTorch", ("onednn", "mkl")),
    "libintel-ext-pt-cpu": ("Intel Extension for PyTorch", ("onednn", "mkl")),
    "_pywrap_tensorflow_internal": ("TensorFlow", ("onednn", "mkl")),
}

#: What only a build that can print verbose lines holds.
EVIDENCE: Final = {"onednn": (b"onednn_verbose,", b"dnnl_verbose,", b"mkldnn_verbose,"), "mkl": (b"MKL_VERBOSE ",)}
VARIABLE: Final = {"onednn": "ONEDNN_VERBOSE", "mkl": "MKL_VERBOSE"}


class HiddenCopy(NamedTuple):
    """A copy of `library` inside a framework's file, that exports no setter."""

    library: str
    framework: str
    path: str

    @property
    def sentence(self) -> str:
        """What this means for a person who wants its lines."""
        name = os.path.basename(self.path)
        return (
            f"{self.framework} ({name}) carries its own {self.library} and hides its verbose setter: "
            f"only {VARIABLE[self.library]} before the process starts can switch it (cpulens record -- COMMAND)"
        )


def holds_verbose(path: str, library: str) -> bool:
    """Whether the file holds the text that a build of `library` able to print verbose lines must hold."""
    return holds(path, *EVIDENCE[library])


@lru_cache(maxsize=256)
def holds(path: str, *texts: bytes) -> bool:
    """Whether the file holds one of these texts; an unreadable one holds none. The answer is kept."""
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return any(content.find(text) >= 0 for text in texts)
    except (OSError, ValueError):
        return False


def hidden_copies(reachable: frozenset[tuple[str, str]]) -> list[HiddenCopy]:
    """The copies in frameworks' files of this process, but for the `reachable` ones: pairs of library and path.

    The first look at a file reads it through (100 MB: 50 ms).
    """
    return [
        HiddenCopy(library, framework, obj.path)
        for obj in loaded.objects()
        for start, (framework, libraries) in CARRIERS.items()
        if obj.name.startswith(start)
        for library in libraries
        if (library, obj.path) not in reachable and holds_verbose(obj.path, library)
    ]
