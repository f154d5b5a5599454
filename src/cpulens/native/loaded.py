"""Which shared objects this process has loaded, and what they export.

The dynamic linker is asked (``dl_iterate_phdr``, ``dlopen`` with ``RTLD_NOLOAD``, ``dlsym``, ``dladdr``), never
``/proc``: it answers in microseconds, and its load counter tells whether anything changed since the last look.
Works on glibc and musl; elsewhere no object is reported.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from typing import Any, Final, NamedTuple

_RTLD_LAZY: Final = 1
_RTLD_NOLOAD: Final = 4


class LoadedObject(NamedTuple):
    """One shared object in this process: its `path` as the linker knows it ("" is the program), and load address."""

    path: str
    base: int

    @property
    def name(self) -> str:
        """File name without folders."""
        return os.path.basename(self.path)


class _PhdrInfo(ctypes.Structure):
    _fields_ = (
        ("addr", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("phdr", ctypes.c_void_p),
        ("phnum", ctypes.c_uint16),
        ("adds", ctypes.c_ulonglong),
        ("subs", ctypes.c_ulonglong),
    )


class _DlInfo(ctypes.Structure):
    _fields_ = (
        ("fname", ctypes.c_char_p),
        ("fbase", ctypes.c_void_p),
        ("sname", ctypes.c_char_p),
        ("saddr", ctypes.c_void_p),
    )


_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_PhdrInfo), ctypes.c_size_t, ctypes.c_void_p)


class _Linker:
    """The functions of the dynamic linker, typed once; its callback is made once too, which costs 20 µs each time."""

    def __init__(self) -> None:
        libc: Any = ctypes.CDLL(None)
        self.sym = libc.dlsym
        self.sym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.sym.restype = ctypes.c_void_p
        self.addr = libc.dladdr
        self.addr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_DlInfo)]
        self.open = libc.dlopen
        self.open.argtypes = [ctypes.c_char_p, ctypes.c_int]
        self.open.restype = ctypes.c_void_p
        self.close = libc.dlclose
        self.close.argtypes = [ctypes.c_void_p]
        self._iterate = libc.dl_iterate_phdr
        self._iterate.argtypes = [_Callback, ctypes.c_void_p]
        self._callback = _Callback(self._visit)
        self._whole = False
        self._seen: list[LoadedObject] = []
        self._count = (0, 0)

    def _visit(self, info: Any, _size: int, _data: Any) -> int:
        one = info.contents
        self._count = (one.adds, one.subs)
        if not self._whole:
            return 1
        self._seen.append(LoadedObject(os.fsdecode(one.name or b""), one.addr))
        return 0

    def walk(self, whole: bool) -> tuple[tuple[int, int], list[LoadedObject]]:
        """The load counters and, if `whole`, every object; the caller holds the lock."""
        self._whole, self._seen = whole, []
        self._iterate(self._callback, None)
        return self._count, self._seen


_linker: _Linker | None = None
_lock = threading.RLock()
_known: tuple[LoadedObject, ...] = ()
_known_at: tuple[int, int] | None = None


def supported() -> bool:
    """Whether the dynamic linker of this platform can be asked."""
    return sys.platform == "linux"


def _the_linker() -> _Linker:
    global _linker
    if _linker is None:
        _linker = _Linker()
    return _linker


def load_count() -> tuple[int, int]:
    """Number of objects ever loaded and unloaded in this process: unchanged means that nothing came or went (3 µs)."""
    if not supported():
        return (0, 0)
    with _lock:
        return _the_linker().walk(whole=False)[0]


def objects() -> tuple[LoadedObject, ...]:
    """Every shared object in this process, in load order, the program itself first; () where it can't be asked."""
    global _known, _known_at
    if not supported():
        return ()
    with _lock:
        if load_count() != _known_at:
            _known_at, found = _the_linker().walk(whole=True)
            _known = tuple(found)
        return _known


def exported(obj: LoadedObject, *names: str) -> dict[str, int]:
    """Addresses of those of the functions `names` that a loaded object itself exports, not one of its dependencies.

    An object in which one is found stays loaded for good, so that its address can't go stale; the others are left
    as they were. Loads nothing.
    """
    linker = _the_linker()
    handle = linker.open(os.fsencode(obj.path) if obj.path else None, _RTLD_LAZY | _RTLD_NOLOAD)
    if not handle:
        return {}
    found = {name: address for name in names if (address := linker.sym(handle, name.encode()))}
    found = {name: address for name, address in found.items() if _lives_in(obj, address)}
    if not found:
        linker.close(handle)
    return found


def _lives_in(obj: LoadedObject, address: int) -> bool:
    info = _DlInfo()
    if not _the_linker().addr(address, ctypes.byref(info)):
        return False
    home = os.fsdecode(info.fname or b"")
    return home == obj.path if obj.path else home not in {other.path for other in objects()}
