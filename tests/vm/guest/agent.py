"""Process 1 of a guest: runs the checks of its machine and tells the host how each went."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import subprocess
import traceback
from pathlib import Path
from types import FrameType

from . import line
from .check import Check, checks_of, nothing_is_left

#: Seconds for one check, of which most take three.
LIMIT_S = 90


def run(check: Check) -> None:
    """Run one check and report it."""
    line.say(f"begin {check.__name__}")
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT_S)
    try:
        check()
        nothing_is_left()
    except BaseException:  # whatever it is, the host must hear of it and the next check must run
        line.say(f"fail {check.__name__} {json.dumps(traceback.format_exc())}")
    else:
        line.say(f"ok {check.__name__}")
    signal.alarm(0)
    _clear()


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"the check took more than {LIMIT_S} s")


def _clear() -> None:
    """Nothing of one check may disturb the next."""
    with contextlib.suppress(AssertionError):
        nothing_is_left()
    for path in Path("/tmp").iterdir():
        shutil.rmtree(path, ignore_errors=True)


def main() -> None:
    module = importlib.import_module(f"guest.on_{os.environ['MACHINE']}")
    line.open_port()
    try:
        for check in checks_of(module):
            if check is not getattr(module, "AS_INIT", None):
                run(check)
        if hasattr(module, "AS_INIT"):
            module.AS_INIT()
    except BaseException:
        line.say(f"fail agent {json.dumps(traceback.format_exc())}")
    line.say("end")
    subprocess.run(["poweroff", "-f"])


if __name__ == "__main__":
    main()
