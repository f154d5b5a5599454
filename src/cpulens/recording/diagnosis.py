"""Why nothing was recorded, and what to try: an empty table helps nobody."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from cpulens.native.embedded import CARRIERS, EVIDENCE, holds_verbose

#: Start of a file name → what it is. A wheel's copy carries a prefix or a hash in its name.
_ONEDNN: Final = ("libdnnl.", "libdnnl-", "libmkldnn.", "libonednn.")
_MKL: Final = ("libmkl_rt.", "libmkl_core.", "libmkl_intel_lp64.", "libmkl_intel_ilp64.", "libmkl_gf_lp64.")
_OTHER_BLAS: Final = {
    "libopenblas": "OpenBLAS",
    "libscipy_openblas": "OpenBLAS",
    "libblis": "BLIS",
    "libarmpl": "Arm Performance Libraries",
    "libnvpl_blas": "NVPL BLAS",
    "libflexiblas": "FlexiBLAS",
    "libatlas": "ATLAS",
    "libRblas": "R's BLAS",
}


def why_nothing(paths: Iterable[str] | None, levels: dict[str, int | None]) -> list[str]:
    """Sentences that say why no line came, from the shared objects of the process (None: they could not be seen).

    `levels`: what was asked for, by library; 0 or None is nothing.
    """
    asked = [library for library, level in levels.items() if level]
    if not asked:
        return ["no level was asked for: both libraries were OFF"]
    if paths is None:
        return ["the process ended before its libraries could be looked at; was it the program itself that ran?"]
    files = {os.path.basename(path): path for path in paths}
    sentences = [sentence for library in asked for sentence in _about(library, files)]
    other = sorted({name for file in files for start, name in _OTHER_BLAS.items() if file.startswith(start)})
    if other and "mkl" in asked and not _homes("mkl", files):
        sentences.append(f"matrix products went to {' and '.join(other)} instead, which print no verbose lines")
    return sentences


def _about(library: str, files: dict[str, str]) -> list[str]:
    title = {"onednn": "oneDNN", "mkl": "oneMKL"}[library]
    homes = _homes(library, files)
    if not homes:
        hint = "" if library == "onednn" else " (numpy and scipy from PyPI bring OpenBLAS instead)"
        return [f"{title} is not loaded in the process{hint}"]
    return [_about_home(library, title, path) for path in homes]


def _about_home(library: str, title: str, path: str) -> str:
    name = os.path.basename(path)
    if library == "onednn" and not holds_verbose(path, library):
        return f"the {title} in {name} was built without verbose output (ONEDNN_VERBOSE=OFF at build time)"
    return (
        f"the {title} in {name} was asked and printed nothing: none of its kernels ran there "
        "(the framework used its own kernels), or its output went elsewhere (a log file variable, a closed stdout)"
    )


def _homes(library: str, files: dict[str, str]) -> list[str]:
    own = _ONEDNN if library == "onednn" else _MKL
    found = [path for name, path in files.items() if name.startswith(own)]
    carried = [
        path
        for name, path in files.items()
        for start, (_, libraries) in CARRIERS.items()
        if name.startswith(start) and library in libraries and (library in EVIDENCE and _may_hold(path, library))
    ]
    return found[:1] + carried


def _may_hold(path: str, library: str) -> bool:
    """A framework's file counts when it holds the library's text; OpenVINO's always carries oneDNN, verbose or not."""
    return holds_verbose(path, library) or (library == "onednn" and "openvino_intel_cpu" in path)
