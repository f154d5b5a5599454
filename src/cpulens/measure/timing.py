"""How fast something can run: the shortest of many times, as what disturbs a run only makes it longer."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from typing import Final, NamedTuple

#: A shortest time counts as found when another run came as near to it as this.
_REPEATED: Final = 1.05
#: Where the times don't settle, as beside other busy programs, this many times the budget is spent.
_PATIENCE: Final = 5


class Timing(NamedTuple):
    """The shortest time; `settled`: no other program interrupted that run, and another came within 5 % of it."""

    seconds: float
    settled: bool


def shortest(execute: Callable[[], object], budget_s: float, least: int = 4) -> Timing:
    """The shortest of at least `least` runs, as many as fit into `budget_s`, after one that warms up.

    Runs go on, up to five times the budget, until the shortest was not interrupted and another run comes near to it.
    The call itself is in it: a few microseconds of Python.
    """
    execute()
    best, second, runs, alone = float("inf"), float("inf"), 0, False
    began = time.perf_counter()
    while True:
        interruptions = _interruptions()
        started = time.perf_counter_ns()
        execute()
        taken = (time.perf_counter_ns() - started) * 1e-9
        runs += 1
        if taken < best:
            best, second, alone = taken, best, _interruptions() == interruptions
        else:
            second = min(second, taken)
        settled, spent = alone and second <= best * _REPEATED, time.perf_counter() - began
        if runs >= least and spent >= budget_s and (settled or spent >= _PATIENCE * budget_s):
            return Timing(best, settled)


def _interruptions() -> int:
    """How often the kernel has taken a processor from a thread of this process that was not done."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
