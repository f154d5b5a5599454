"""The environment variables that decide about kernels, threads and memory: what is set, and who set it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

#: Start of a name → what such variables do.
PREFIXES: Final = {
    "ATEN_CPU_CAPABILITY": "PyTorch's own kernels",
    "BLIS_": "BLIS",
    "CT2_": "CTranslate2",
    "DNNL_": "oneDNN, older name",
    "FLAGS_use_mkldnn": "PaddlePaddle",
    "FLAGS_use_onednn": "PaddlePaddle",
    "GLIBC_TUNABLES": "the C library, its allocator",
    "GOMP_": "GNU's OpenMP",
    "KMP_": "Intel's and LLVM's OpenMP",
    "LD_LIBRARY_PATH": "every program: where libraries are looked for first",
    "LD_PRELOAD": "every program: libraries loaded before all others",
    "LRU_CACHE_CAPACITY": "PyTorch's cache of oneDNN primitives",
    "MALLOC_": "the allocator",
    "MKLDNN_": "oneDNN, oldest name",
    "MKL_": "oneMKL",
    "NUMEXPR_": "numexpr",
    "OMP_": "every OpenMP runtime",
    "ONEDNN_": "oneDNN",
    "OPENBLAS_": "OpenBLAS",
    "OV_": "OpenVINO",
    "TBB_": "TBB",
    "TCMALLOC_": "tcmalloc",
    "TF_ENABLE_ONEDNN_OPTS": "TensorFlow",
    "TF_NUM_": "TensorFlow",
    "THP_MEM_ALLOC_ENABLE": "PyTorch's use of huge pages",
    "TORCH_": "PyTorch",
    "VECLIB_": "Apple's BLAS",
}
_STARTS: Final = tuple(PREFIXES)
_MOST_ANCESTORS: Final = 32


class Variable(NamedTuple):
    """One variable that is set. `origin`: who set it, as far as can be told."""

    name: str
    value: str
    used_by: str
    origin: str


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """Return those variables that matter here, sorted by name."""
    return {name: environ[name] for name in sorted(environ) if name.startswith(_STARTS)}


def variables(environ: Mapping[str, str] | None = None, root: str = "/") -> list[Variable]:
    """Return the variables that are set and matter, each with its origin.

    The kernel keeps what each process was started with; going up from this one, the first that was started without
    the value set it.
    """
    now = os.environ if environ is None else environ
    chain = list(_ancestors(root))
    return [Variable(name, value, _used_by(name), _origin(name, value, chain)) for name, value in relevant(now).items()]


def _used_by(name: str) -> str:
    longest = max((start for start in PREFIXES if name.startswith(start)), key=len)
    return PREFIXES[longest]


def _origin(name: str, value: str, chain: list[tuple[str, dict[str, str] | None]]) -> str:
    if not chain or chain[0][1] is None:
        return "not known: /proc can't be read"
    if chain[0][1].get(name) != value:
        return "set in this process"
    for (child, _), (who, started_with) in itertools.pairwise(chain):
        if started_with is None:
            return f"inherited, from {who} or above"
        if started_with.get(name) != value:
            return f"set by {who}" if child == chain[0][0] else f"set by {who}, inherited"
    return f"inherited, at least from {chain[-1][0]}"


def _ancestors(root: str) -> Iterator[tuple[str, dict[str, str] | None]]:
    """Give the process and those above it: name with number, and the environment that it was started with."""
    pid = "self"
    for _ in range(_MOST_ANCESTORS):
        folder = os.path.join(root, "proc", pid)
        stat = _read(f"{folder}/stat")
        if stat is None:
            return
        command = stat[stat.find(b"(") + 1 : stat.rfind(b")")].decode("utf-8", "replace")
        yield f"{command} ({stat.split(b' ', 1)[0].decode()})", _environment(f"{folder}/environ")
        pid = stat[stat.rfind(b")") + 1 :].split()[1].decode()
        if pid == "0":
            return


def _environment(path: str) -> dict[str, str] | None:
    content = _read(path)
    if content is None:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in content.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def preload_file(root: str = "/") -> str:
    """Return the content of ``/etc/ld.so.preload``, which acts like LD_PRELOAD on every program; "" without one."""
    return " ".join((_read(os.path.join(root, "etc/ld.so.preload")) or b"").decode("utf-8", "replace").split())


def as_values(found: list[Variable]) -> list[dict[str, Any]]:
    """The same as plain values."""
    return [variable._asdict() for variable in found]
