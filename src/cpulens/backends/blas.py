"""Which BLAS this process really uses, and who brought it: OpenBLAS, oneMKL, BLIS, … by what is loaded."""

from __future__ import annotations

import itertools
import os
from typing import Any, Final, NamedTuple

from cpulens.native import loaded

#: A function that only this library exports → its name. Tried in this order: one library may imitate another.
_MARKS: Final = {
    "flexiblas_current_backend": "FlexiBLAS",
    "MKL_Get_Version_String": "oneMKL",
    "openblas_get_config": "OpenBLAS",
    "openblas_get_config64_": "OpenBLAS",
    "scipy_openblas_get_config": "OpenBLAS",
    "scipy_openblas_get_config64_": "OpenBLAS",
    "bli_info_get_version_str": "BLIS",
    "armplversion": "Arm Performance Libraries",
    "nvpl_blas_get_version": "NVPL BLAS",
    "ATL_buildinfo": "ATLAS",
}
#: Start of a name under which a BLAS without a mark of its own is loaded.
_PLAIN: Final = ("libblas.", "libcblas.", "liblapack.")
#: threadpoolctl sets it at its import; left in place it would hide the conflict of two Intel runtimes.
_ITS_VARIABLE: Final = "KMP_DUPLICATE_LIB_OK"
#: What is printed of each call, by library; OpenBLAS and the others have no such mode.
SPEAKS: Final = frozenset({"oneMKL"})


class Blas(NamedTuple):
    """One BLAS in this process. `owner`: the package whose copy it is, "" for one that several share."""

    name: str
    path: str
    owner: str
    version: str | None
    threads: int | None
    kernels: str | None  #: processor that its kernels were chosen for, where it tells


def libraries(extra: bool = True) -> list[Blas]:
    """Return the BLAS libraries in this process, in load order.

    With `extra`, threadpoolctl adds version, threads and kernels where it is installed; without it those are None.
    """
    named = [(name, obj.path) for obj in loaded.objects() if (name := _name(obj))]
    told = _threadpoolctl() if extra and named else {}
    found = []
    for name, path in named:
        more = told.get(os.path.realpath(path), {})
        about = (more.get("version"), more.get("num_threads"), more.get("architecture"))
        found.append(Blas(name, os.path.normpath(path), owner(path), *about))
    return found


def _name(obj: loaded.LoadedObject) -> str:
    if obj.name.startswith(("libmkl_", "libc.", "libm.", "libpython")) and not obj.name.startswith("libmkl_rt"):
        return ""  # the layers below libmkl_rt, and what can't be one
    marks = loaded.exported(obj, *_MARKS)
    name = next((title for mark, title in _MARKS.items() if mark in marks), "")
    if not name and obj.name.startswith(_PLAIN):
        real = os.path.basename(os.path.dirname(os.path.realpath(obj.path)))
        return f"reference BLAS ({real})"
    return name


def owner(path: str) -> str:
    """Return the package that brought a library: wheels keep theirs in `<package>.libs` or in the package itself."""
    parts = path.split(os.sep)
    for above, part in itertools.pairwise(parts):
        if above in ("site-packages", "dist-packages"):
            return part.removesuffix(".libs")
    return ""


def _threadpoolctl() -> dict[str, dict[str, Any]]:
    before = os.environ.get(_ITS_VARIABLE)
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return {}
    finally:
        if before is None:
            os.environ.pop(_ITS_VARIABLE, None)
    try:
        return {os.path.realpath(entry["filepath"]): entry for entry in threadpool_info()}
    except Exception:  # it calls into the libraries that it finds, which may be of any kind
        return {}
