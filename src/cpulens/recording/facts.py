"""What a recording knows beyond the lines: command, machine, variables in force."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
from collections.abc import Iterable
from typing import Any, Final

from cpulens._version import __version__
from cpulens.backends import doctor
from cpulens.backends.variables import relevant
from cpulens.errors import CpulensError
from cpulens.machine import peaks
from cpulens.machine.isa import read_processor
from cpulens.machine.limits import read_quota
from cpulens.machine.topology import read_topology

#: libgomp.so.1, libgomp-a34b3233.so.1 (a wheel's copy), libiomp5.so, libomp.so, libomp-1b2c.so
_OPENMP: Final = re.compile(r"lib(?:gomp|iomp5|omp)\d*(?:-\w+)?\.(?:so|dylib)")


def machine() -> dict[str, Any]:
    """Processor, CPUs and CPU time that this process may use, system. What can't be known is null."""
    uname = platform.uname()
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return {
        "architecture": uname.machine,
        "system": f"{uname.system} {uname.release}",
        "cpu": _cpu_name(),
        "cpus_online": os.cpu_count(),
        "cpus_allowed": allowed,
        "cores_allowed": _cores(allowed),
        "quota_cpus": read_quota(),
        "isa": list(read_processor().usable) or None,
    }


def _cores(allowed: list[int] | None) -> int | None:
    """How many physical cores the allowed CPUs belong to."""
    if allowed is None:
        return None
    try:
        return sum(not set(core.cpus).isdisjoint(allowed) for core in read_topology().cores)
    except CpulensError:
        return None


def openmp_runtimes(paths: Iterable[str]) -> list[str]:
    """The OpenMP runtimes among loaded shared objects: each brings threads of its own."""
    found = {os.path.realpath(path) for path in paths if _OPENMP.match(os.path.basename(path))}
    return sorted(found)


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


def common(command: list[str], environ: dict[str, str], *, child: bool = False) -> dict[str, Any]:
    """The facts that every recording has; `child`: they are about another process, started with `environ`.

    `peaks`: what this host was measured to do, where that is known (`cpulens peak`).
    """
    known = peaks.carried()
    return {
        "recorded_by": f"cpulens {__version__}",
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": command,
        "python": sys.version.split()[0],
        "machine": machine(),
        "environment": relevant(environ),
        "host": doctor.snapshot(environ if child else None),
        **({"peaks": known} if known else {}),
    }
