"""What a recording knows beyond the lines: command, machine, variables in force."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Any, Final

from cpulens._version import __version__

#: Variables that change which kernels run, on how many threads, where, or what is printed.
_PREFIXES: Final = (
    "ATEN_CPU_CAPABILITY",
    "CT2_",
    "DNNL_",
    "GLIBC_TUNABLES",
    "GOMP_",
    "KMP_",
    "LD_PRELOAD",
    "LRU_CACHE_CAPACITY",
    "MALLOC_",
    "MKLDNN_",
    "MKL_",
    "NUMEXPR_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "OV_",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_NUM_",
    "THP_MEM_ALLOC_ENABLE",
)


def environment(environ: dict[str, str]) -> dict[str, str]:
    """Those variables of `environ` that matter for kernels, threads and memory."""
    return {name: environ[name] for name in sorted(environ) if name.startswith(_PREFIXES)}


def machine() -> dict[str, Any]:
    """Processor, CPUs that this process may use, system. What can't be known is null."""
    uname = platform.uname()
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "architecture": uname.machine,
        "system": f"{uname.system} {uname.release}",
        "cpu": _cpu_name(),
        "cpus_online": os.cpu_count(),
        "cpus_allowed": allowed,
    }


def _cpu_name() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() in ("model name", "Processor", "cpu"):
                    return value.strip()
    except OSError:
        pass
    return None


def common(command: list[str], environ: dict[str, str]) -> dict[str, Any]:
    """The facts that every recording has."""
    return {
        "recorded_by": f"cpulens {__version__}",
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": command,
        "python": sys.version.split()[0],
        "machine": machine(),
        "environment": environment(environ),
    }
