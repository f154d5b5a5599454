"""Where oneDNN and oneMKL are in this environment, and loading them; no binary is shipped with cpulens.

Looked for in this order, the first that loads wins:

1. the path in ``CPULENS_LIBDNNL`` or ``CPULENS_LIBMKL``: when it is set, nothing else is tried;
2. a copy that this process has loaded already, so that there is one copy and one verbose level to switch;
3. the files of the installed distributions (``onednn-cpu-gomp`` and its siblings, ``mkl``);
4. ``lib`` of this Python's prefix, of an active conda environment, and of ``DNNLROOT`` or ``MKLROOT``;
5. the dynamic linker's own search (``LD_LIBRARY_PATH``, the system's folders).

A framework's private copy inside another file (PyTorch's, OpenVINO's) exports no C API and is never used here.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cpulens.errors import BackendUnavailable
from cpulens.native import loaded


@dataclass(frozen=True)
class NativeLibrary:
    """How one library is recognised, and what brings it.

    `sonames` are tried newest first. `other_platforms` says what to do where PyPI has no wheel.
    """

    title: str
    sonames: tuple[str, ...]
    distributions: tuple[str, ...]
    variable: str
    roots: tuple[str, ...]
    package: str
    other_platforms: str


ONEDNN: Final = NativeLibrary(
    title="oneDNN",
    sonames=("libdnnl.so.3",),
    distributions=("onednn-cpu-gomp", "onednn-cpu-iomp", "onednn-cpu-tbb", "onednn"),
    variable="CPULENS_LIBDNNL",
    roots=("DNNLROOT",),
    package="onednn-cpu-gomp",
    other_platforms=(
        "PyPI has no oneDNN wheel for {machine}: install oneDNN 3.x from conda-forge (package onednn), from a "
        "distribution that has 3.x, or build it as a shared library; then set {variable} to its libdnnl.so.3"
    ),
)

ONEMKL: Final = NativeLibrary(
    title="oneMKL",
    sonames=("libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so.1", "libmkl_rt.so"),
    distributions=("mkl",),
    variable="CPULENS_LIBMKL",
    roots=("MKLROOT",),
    package="mkl",
    other_platforms="oneMKL exists for x86-64 only: on {machine} there is none to install",
)


def load(library: NativeLibrary, *, share_symbols: bool = False) -> ctypes.CDLL:
    """Load `library` from this environment (see the order at the top of this module).

    With `share_symbols` its symbols become visible to libraries loaded later (``RTLD_GLOBAL``).
    Raises `BackendUnavailable`, with the package to install when there is no copy, or with the dynamic linker's own
    words when there is one that does not load.
    """
    mode = ctypes.RTLD_GLOBAL if share_symbols else ctypes.RTLD_LOCAL
    refusals = []
    for path in _candidates(library):
        try:
            return _open(path, mode)
        except OSError as error:
            refusals.append(_in_words(path, error))
    raise BackendUnavailable(_why_not(library, [words for words in refusals if words]))


def _open(path: str, mode: int) -> ctypes.CDLL:
    """Load the file; what it depends on may lie beside it, where wheels put it and the linker does not look."""
    helped: set[str] = set()
    while True:
        try:
            return ctypes.CDLL(path, mode=mode)
        except OSError as error:
            missing = re.match(r"([^\s/]+): cannot open shared object file", str(error))
            if "/" not in path or missing is None or missing[1] in helped:
                raise
            beside = os.path.join(os.path.dirname(path), missing[1])
            if not os.path.exists(beside) or os.path.samefile(beside, path):
                raise
            helped.add(missing[1])
            _open(beside, ctypes.RTLD_LOCAL)


def _candidates(library: NativeLibrary) -> Iterator[str]:
    chosen = os.environ.get(library.variable)
    if chosen:
        yield chosen
        return
    seen: set[str] = set()
    for path in _paths(library):
        if path not in seen:
            seen.add(path)
            yield path


def _paths(library: NativeLibrary) -> Iterator[str]:
    yield from _loaded(library)
    for distribution in library.distributions:
        yield from _installed_files(distribution, library.sonames)
    for folder in _folders(library):
        yield from (str(folder / name) for name in library.sonames if (folder / name).exists())
    yield from library.sonames


def _loaded(library: NativeLibrary) -> Iterator[str]:
    # A full version may follow the soname in the file's name (libdnnl.so.3.2).
    names = re.compile("|".join(re.escape(name) + r"(\.[0-9]+)*$" for name in library.sonames))
    yield from (obj.path for obj in loaded.objects() if names.match(obj.name))


def _installed_files(distribution: str, sonames: tuple[str, ...]) -> list[str]:
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    found = {file.name: file for file in files if file.name in sonames}
    paths = [Path(str(found[name].locate())).resolve() for name in sonames if name in found]
    return [str(path) for path in paths if path.exists()]


def _folders(library: NativeLibrary) -> Iterator[Path]:
    yield Path(sys.prefix) / "lib"
    for variable in ("CONDA_PREFIX", *library.roots):
        root = os.environ.get(variable)
        if root:
            yield from (Path(root) / "lib", Path(root) / "lib" / "intel64")


def _in_words(path: str, error: OSError) -> str:
    """The linker's message, or "" where it only says that a bare name was not found: that is no news."""
    text = str(error)
    if "/" not in path and text.startswith(path + ":") and "No such file" in text:
        return ""
    return text if path in text else f"{path}: {text}"


def _why_not(library: NativeLibrary, refusals: list[str]) -> str:
    if refusals:
        return f"{library.title} is here but does not load: {refusals[0]}{_missing_dependency(refusals[0])}"
    machine = platform.machine()
    if sys.platform == "linux" and machine in ("x86_64", "AMD64"):
        advice = f"install it with: pip install {library.package}   (or set {library.variable} to its path)"
    else:
        advice = library.other_platforms.format(machine=machine, variable=library.variable)
    return f"{library.title} ({library.sonames[0]}) was not found in this environment; {advice}"


def _missing_dependency(refusal: str) -> str:
    if "libgomp.so" in refusal:
        return "; install GNU's OpenMP runtime (Debian and Ubuntu: apt install libgomp1)"
    if "wrong ELF class" in refusal or "invalid ELF header" in refusal:
        return f"; this Python is {platform.machine()}, {platform.architecture()[0]}"
    return ""
