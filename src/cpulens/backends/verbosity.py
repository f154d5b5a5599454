"""Who asks for which verbose level of which library now; the only place that changes one.

oneDNN and oneMKL have a setter and no getter, so whoever wants to put a level back must know who else asked. This
registry holds the active requests: the level of a library is that of the newest active request, in whatever order
they leave; when the last one leaves, the level that the environment gives returns (its number, else 0). Where the
environment holds more than a number (`dispatch`, `filter=…`), one call of the setter would lose it for good: such a
copy is left alone, and that is said.

A process may hold several copies of a library. Each is found by the setter that it exports, so a program's own build
is found like a wheel's; PyTorch hides oneDNN's setter and has a door of its own. Copies loaded later are found at the
next scope, marker or recording boundary.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from cpulens.backends.levels import EnvironmentLevel, environment_level
from cpulens.errors import CpulensWarning
from cpulens.native import loaded
from cpulens.native.embedded import HiddenCopy, hidden_copies

LIBRARIES: Final = ("onednn", "mkl")

#: Setters by library, newest name first. Lower-case `mkl_verbose` is the Fortran entry and crashes by value.
SETTERS: Final = {
    "onednn": ("dnnl_set_verbose", "mkldnn_set_verbose", "mkldnn_verbose_set"),
    "mkl": ("MKL_Verbose",),
}


class Copy(NamedTuple):
    """One copy of a library in this process, and how its level is set."""

    library: str
    path: str
    door: str
    version: tuple[int, int] | None
    environment: EnvironmentLevel
    set_level: Callable[[int], bool]

    @property
    def left_alone(self) -> bool:
        """Whether the environment holds a setting that a change of level would lose."""
        return self.environment.level is None


class Request:
    """Levels that somebody wants now: a number per library, None where they have no wish."""

    def __init__(self, onednn: int | None, mkl: int | None) -> None:
        self.levels: dict[str, int | None] = {"onednn": onednn, "mkl": mkl}
        self.libraries = tuple(library for library, level in self.levels.items() if level is not None)


_lock = threading.RLock()
_requests: list[Request] = []
_copies: list[Copy] = []
_seen: set[loaded.LoadedObject] = set()
_addresses: set[int] = set()
_seen_at: tuple[int, int] | None = None
_torch_found = False
_hidden: list[HiddenCopy] = []
_hidden_at: object = None
_said: set[str] = set()


def acquire(onednn: int | None = None, mkl: int | None = None) -> Request:
    """Ask for levels; they hold until `release`, unless a newer request asks for others."""
    request = Request(onednn, mkl)
    with _lock:
        _requests.append(request)
        _settle(request.libraries)
    return request


def release(request: Request) -> None:
    """Take a request back; a second time does nothing. The newest remaining request holds, else the environment."""
    with _lock:
        if request in _requests:
            _requests.remove(request)
            _settle(request.libraries)


def refresh() -> list[Copy]:
    """Give every copy the level that is asked for now; returns the copies that were not known before."""
    with _lock:
        known = len(_copies)
        _settle(tuple(library for library in LIBRARIES if _wanted(library) is not None))
        return _copies[known:]


def copies() -> list[Copy]:
    """The copies of oneDNN and oneMKL in this process whose level can be set."""
    with _lock:
        _discover()
        return list(_copies)


def level(library: str) -> int | None:
    """The level that holds now: the newest request's, else the environment's; None where that is more than a number."""
    with _lock:
        wanted = _wanted(library)
        return environment_level(library, dict(os.environ), None).level if wanted is None else wanted


def notes(libraries: tuple[str, ...] = LIBRARIES) -> list[str]:
    """One sentence for each copy of `libraries` in this process whose level can't be changed, and why."""
    found = [
        f"{copy.environment.setting} holds more than a number: the level of {_name(copy)} was left as it is"
        for copy in copies()
        if copy.left_alone and copy.library in libraries
    ]
    return found + [hidden.sentence for hidden in _hidden_copies() if hidden.library in libraries]


def _hidden_copies() -> list[HiddenCopy]:
    """Looked for again only when something was loaded: the look costs more than a scope may."""
    global _hidden, _hidden_at
    with _lock:
        if _hidden_at != (_seen_at, len(_copies)):
            _hidden = hidden_copies(frozenset((copy.library, copy.path) for copy in _copies))
            _hidden_at = (_seen_at, len(_copies))
        return _hidden


def warn_once(sentences: list[str]) -> None:
    """Say each sentence once in this process, as a CpulensWarning."""
    for sentence in sentences:
        if sentence not in _said:
            _said.add(sentence)
            warnings.warn(sentence, CpulensWarning, stacklevel=4)


def _name(copy: Copy) -> str:
    return f"{copy.library} in {os.path.basename(copy.path) or 'the program'}"


def _wanted(library: str) -> int | None:
    for request in reversed(_requests):
        level = request.levels[library]
        if level is not None:
            return level
    return None


def _settle(libraries: tuple[str, ...]) -> None:
    """Give the copies of `libraries` the level of the newest request, or the environment's when there is none."""
    _discover()
    for copy in _copies:
        if copy.library in libraries and copy.environment.level is not None:
            wanted = _wanted(copy.library)
            level = copy.environment.level if wanted is None else wanted
            if not copy.set_level(level):
                warn_once([f"{copy.door} of {_name(copy)} refused verbose level {level}: its lines may be missing"])


def _discover() -> None:
    """Look for setters in the objects that were loaded since the last look, and for PyTorch's own door."""
    global _seen_at
    count = loaded.load_count()
    if count != _seen_at:
        _seen_at = count
        for obj in loaded.objects():
            if obj not in _seen:
                _seen.add(obj)
                _copies.extend(_exported_copies(obj))
    _knock_at_torch()


def _exported_copies(obj: loaded.LoadedObject) -> list[Copy]:
    names = [name for setters in SETTERS.values() for name in setters]
    found = loaded.exported(obj, *names, "dnnl_version")
    copies = []
    for library, setters in SETTERS.items():
        door = next((name for name in setters if name in found), None)
        if door is None:
            continue
        address = found[door]
        if address in _addresses:
            continue  # an object that only hands on another one's function
        _addresses.add(address)
        version = _onednn_version(found.get("dnnl_version")) if library == "onednn" else None
        copies.append(_copy(library, obj.path, door, version, _Setter(library, address)))
    return copies


class _Setter:
    """A library's C setter, `int f(int)`; oneDNN returns 0 for success, MKL the level or -1."""

    def __init__(self, library: str, address: int) -> None:
        self.function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)
        self._failed: Callable[[int], bool] = (lambda status: status != 0) if library == "onednn" else (lambda s: s < 0)

    def __call__(self, level: int) -> bool:
        return not self._failed(self.function(level))


def _onednn_version(address: int | None) -> tuple[int, int] | None:
    if address is None:
        return None
    numbers = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_int * 3))(address)()
    return (numbers.contents[0], numbers.contents[1]) if numbers else None


def _copy(
    library: str, path: str, door: str, version: tuple[int, int] | None, set_level: Callable[[int], bool]
) -> Copy:
    environment = environment_level(library, dict(os.environ), version)
    return Copy(library, path, door, version, environment, set_level)


def _knock_at_torch() -> None:
    """PyTorch hides its oneDNN's setter; its own binding reaches it. Found once torch's import is complete."""
    global _torch_found
    if _torch_found:
        return
    torch: Any = sys.modules.get("torch")
    door = getattr(getattr(getattr(torch, "_C", None), "_verbose", None), "mkldnn_set_verbose", None)
    if door is None:
        return
    _torch_found = True
    path = next((obj.path for obj in loaded.objects() if obj.name.startswith("libtorch_cpu.")), "libtorch_cpu")
    if not any(copy.library == "onednn" and copy.path == path for copy in _copies):
        _copies.append(_copy("onednn", path, "torch._C._verbose.mkldnn_set_verbose", None, lambda n: bool(door(n))))


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
