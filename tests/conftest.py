"""What every test may use, and what must hold after each: global state is as it was."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from tests_support import Program, run_program

# No test asserts on a stopwatch, hypothesis's own included (with CI set it has a profile for that already).
with contextlib.suppress(ModuleNotFoundError):  # the emulated machines' environment has none
    import hypothesis

    if not os.environ.get("CI"):
        hypothesis.settings.register_profile("no stopwatch", deadline=None)
        hypothesis.settings.load_profile("no stopwatch")

# Tests started with nohup ignore SIGHUP, and so would every program under test.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Barriers that spin take milliseconds on a machine whose cores are shared; what is tested here is not their speed.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _global_state() -> dict[str, object]:
    state: dict[str, object] = {"environment": dict(os.environ)}
    if sys.platform == "linux":
        state["stdout"] = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout").value
        state["affinity"] = os.sched_getaffinity(0)
        state["descriptor 1"] = os.fstat(1)[:3]
    verbosity = sys.modules.get("cpulens.backends.verbosity")
    state["requests"] = len(verbosity._requests) if verbosity else 0
    return state


@pytest.fixture(autouse=True)
def global_state_is_put_back() -> Iterator[None]:
    before = _global_state()
    yield
    after = _global_state()
    # pytest names the running test in the environment itself, and polars sets up its allocator when it is imported.
    for state in (before, after):
        for name in ("PYTEST_CURRENT_TEST", "_RJEM_MALLOC_CONF"):
            state["environment"].pop(name, None)  # type: ignore[attr-defined]
    assert after == before


@pytest.fixture
def program() -> Program:
    """Run Python code in a process of its own: `program(code, NAME="value")` → CompletedProcess with bytes.

    Variables that switch levels are taken out of its environment first.
    """

    return run_program
