"""Whether a native library of this environment loads, tried in a child, so that this process stays as it is."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from cpulens.errors import BackendUnavailable
from cpulens.native import find, loaded

#: OpenMP runtimes by the names that the dynamic linker knows.
_OPENMP: Final = ("libgomp.so.1", "libiomp5.so", "libomp.so.5", "libomp.so")
_TIMEOUT_S: Final = 20
LIBRARIES: Final = ("onednn", "mkl", "openmp")


class Trial(NamedTuple):
    """What loading gave: the file and its version ("" unknown), or the `reason` why there is none."""

    path: str
    version: str
    reason: str

    @property
    def loads(self) -> bool:
        """Whether there is a library, and it loads."""
        return bool(self.path)


def trial(library: str) -> Trial:
    """Try to load "onednn", "mkl" or "openmp" in a child (60 to 150 ms, once for each environment)."""
    return _trial(library, _environment())


def trials(libraries: tuple[str, ...] = LIBRARIES) -> dict[str, Trial]:
    """Try several at the same time."""
    children = {library: _start(library) for library in libraries}
    return {library: _finish(library, child) for library, child in children.items()}


def _environment() -> tuple[str, ...]:
    names = (
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "CONDA_PREFIX",
        "DNNLROOT",
        "MKLROOT",
        "CPULENS_LIBDNNL",
        "CPULENS_LIBMKL",
    )
    return tuple(os.environ.get(name, "") for name in names)


@lru_cache(maxsize=32)
def _trial(library: str, _environment_then: tuple[str, ...]) -> Trial:
    return _finish(library, _start(library))


def _start(library: str) -> subprocess.Popen[bytes] | OSError:
    root = str(Path(__file__).parents[2])
    code = f"import sys; sys.path.insert(0, {root!r}); from cpulens.backends import environment_trial as t; t.main()"
    quiet = {name: value for name, value in os.environ.items() if not name.endswith("_VERBOSE")}
    try:
        return subprocess.Popen(
            [sys.executable, "-c", code, library],
            env={**quiet, "MKL_THREADING_LAYER": "sequential"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        return error


def _finish(library: str, child: subprocess.Popen[bytes] | OSError) -> Trial:
    if isinstance(child, OSError):
        return Trial("", "", f"whether {library} loads can't be tried: no child can be started ({child.strerror})")
    try:
        out, err = child.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        return Trial("", "", f"loading {library} took more than {_TIMEOUT_S} s and was given up")
    try:
        return Trial(**json.loads(out.splitlines()[-1]))
    except (ValueError, IndexError, TypeError):
        last = (err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
        end = f"signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        return Trial("", "", f"loading {library} ended its process ({end}): {last}")


def main() -> None:
    """Run the child: load, and print what came of it as one line of JSON."""
    print(json.dumps(_load(sys.argv[1])._asdict()), flush=True)
    os._exit(0)  # a library's own end may crash, and says nothing about its use


def _load(library: str) -> Trial:
    if library == "openmp":
        return _load_openmp()
    try:
        dll = find.load(find.ONEDNN if library == "onednn" else find.ONEMKL)
    except BackendUnavailable as error:
        return Trial("", "", str(error))
    return Trial(dll._name, onednn_version(dll) if library == "onednn" else mkl_version(dll), "")


def _load_openmp() -> Trial:
    folders = (os.path.join(sys.prefix, "lib"), os.path.join(os.environ.get("CONDA_PREFIX", sys.prefix), "lib"))
    for name in _OPENMP:
        for path in (name, *(os.path.join(folder, name) for folder in folders)):
            try:
                ctypes.CDLL(path)
            except OSError:
                continue
            found = next((obj.path for obj in loaded.objects() if obj.name.startswith(name)), path)
            return Trial(found, "", "")
    return Trial("", "", f"no OpenMP runtime was found in this environment ({', '.join(_OPENMP[:3])})")


def onednn_version(dll: ctypes.CDLL) -> str:
    """Return a loaded oneDNN's version, such as "3.2.0"; "" where it has none to give."""
    try:
        ask = dll.dnnl_version
    except AttributeError:
        return ""
    ask.argtypes, ask.restype = [], ctypes.POINTER(ctypes.c_int * 3)
    answer = ask()
    return ".".join(map(str, answer.contents)) if answer else ""


def mkl_version(dll: ctypes.CDLL) -> str:
    """Return a loaded oneMKL's version, such as "2026.2.0"; makes libmkl_rt load its layers."""
    try:
        ask = dll["MKL_Get_Version_String"]
    except AttributeError:
        return ""
    text = ctypes.create_string_buffer(512)
    ask.argtypes, ask.restype = [ctypes.c_char_p, ctypes.c_int], None
    ask(text, len(text))
    return short_mkl_version(text.value.decode("utf-8", "replace"))


def short_mkl_version(text: str) -> str:
    """Return "2024.2" of MKL's long sentence about itself; "" where there is none."""
    words = text.partition("Version ")[2].replace("-", " ").split()
    return words[0] if words else ""
