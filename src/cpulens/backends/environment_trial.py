"""Whether a native library of this environment loads, tried in a child, so that this process stays as it is."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
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


_Environment = tuple[str, ...]
_tried: dict[tuple[str, _Environment], Trial] = {}
_running: dict[tuple[str, _Environment], _Child] = {}


def trial(library: str) -> Trial:
    """Try to load "onednn", "mkl" or "openmp" in a child (about 0.1 s, once for each environment)."""
    key = (library, _environment())
    if key not in _tried:
        prepare((library,))
        for name, result in _running[key].results().items():
            _tried[name, key[1]] = result
            _running.pop((name, key[1]), None)
    return _tried[key]


def prepare(libraries: tuple[str, ...] = LIBRARIES) -> None:
    """Start trying several in one child; `trial` waits for it, so that other work can be done meanwhile."""
    now = _environment()
    wanted = [name for name in libraries if (name, now) not in _tried and (name, now) not in _running]
    if wanted:
        child = _Child(wanted)
        _running.update({(name, now): child for name in wanted})


def _environment() -> _Environment:
    roots = ("CONDA_PREFIX", *find.ONEDNN.roots, *find.ONEMKL.roots, find.ONEDNN.variable, find.ONEMKL.variable)
    return tuple(os.environ.get(name, "") for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", *roots))


class _Child:
    """One process that tries the libraries one after the other, and says a line about each."""

    def __init__(self, libraries: list[str]) -> None:
        self._libraries = libraries
        self._failure = ""
        # Without `site` it starts in half the time; our own search path stands in for it.
        code = (
            f"import sys; sys.path[:] = {sys.path!r}; sys.prefix = {sys.prefix!r}\n"
            "from cpulens.backends import environment_trial as t; t.main()"
        )
        self._process: subprocess.Popen[bytes] | None = None
        if not re.match(r"(?:python|pypy)", os.path.basename(sys.executable or "")):
            # In a program that embeds Python, `sys.executable` may be that program.
            self._failure = f"{sys.executable or 'this program'} is no Python interpreter that a child could run"
            return
        quiet = {name: value for name, value in os.environ.items() if not name.endswith("_VERBOSE")}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-S", "-E", "-c", code, *libraries],
                env={**quiet, "MKL_THREADING_LAYER": "sequential"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            self._failure = f"no child can be started to try it ({error.strerror})"

    def results(self) -> dict[str, Trial]:
        """Wait, and return what came of each; one that ended the child has the others tried in another."""
        if self._process is None:
            return {
                name: Trial("", "", f"whether {name} loads is not known: {self._failure}") for name in self._libraries
            }
        out, err, end = self._wait(self._process)
        found = dict(filter(None, map(_told, out.splitlines())))
        missing = [name for name in self._libraries if name not in found]
        if missing:
            last = (err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
            found[missing[0]] = Trial("", "", f"loading {missing[0]} ended its process ({end}): {last}")
            if missing[1:]:
                found.update(_Child(missing[1:]).results())
        return found

    @staticmethod
    def _wait(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes, str]:
        try:
            out, err = process.communicate(timeout=_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            return out, err, f"after more than {_TIMEOUT_S} s it was given up"
        code = process.returncode
        return out, err, f"signal {-code}" if code < 0 else f"exit code {code}"


def _told(line: bytes) -> tuple[str, Trial] | None:
    """One line of the child; None for what a library printed."""
    try:
        name, values = json.loads(line)
        return name, Trial(**values)
    except (ValueError, TypeError):
        return None


def main() -> None:
    """Run the child: load each library named, and print what came of it as a line of JSON."""
    for library in sys.argv[1:]:
        print(json.dumps([library, _load(library)._asdict()]), flush=True)
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
