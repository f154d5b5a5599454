"""How many threads the libraries use while something is measured."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cpulens.backends import openmp
from cpulens.errors import BackendUnavailable, CpulensError
from cpulens.machine.limits import read_quota
from cpulens.machine.topology import read_topology
from cpulens.native import mkl


def default_threads() -> int:
    """One for each physical core among the allowed CPUs, no more than the CPU quota gives."""
    allowed = os.sched_getaffinity(0)
    try:
        cores = sum(not allowed.isdisjoint(core.cpus) for core in read_topology().cores)
    except CpulensError:
        cores = len(allowed)
    quota = read_quota()
    return max(1, min(cores, math.floor(quota) if quota else cores))


@contextmanager
def threads_set_to(count: int) -> Iterator[None]:
    """`count` threads in every OpenMP runtime here and in oneMKL, put back afterwards."""
    restore: list[Callable[[], object]] = []
    with suppress(BackendUnavailable):
        before = mkl.max_threads()
        mkl.set_num_threads(count)
        restore.append(lambda: mkl.set_num_threads(before))
    with suppress(BackendUnavailable):
        restore.append(openmp.swap_num_threads(count))
    try:
        yield
    finally:
        for put_back in reversed(restore):
            put_back()
