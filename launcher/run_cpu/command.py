"""The command of an instance: the program's own, or this Python in front of it."""

from __future__ import annotations

import os
import sys

from cpulens.errors import UsageError


def build_command(program: str | None, arguments: list[str], module: bool, no_python: bool) -> list[str]:
    """Return the argv of the program.

    A module, and a file whose name ends in ``.py``, get this Python, unbuffered so that several instances' lines
    arrive when they are printed. With `no_python` a ``.py`` file that is executable and has a ``#!`` line is started
    itself. Raises UsageError without a program.
    """
    if not program:
        raise UsageError("nothing to run: name a program after the options, such as run_cpu --ninstances 2 script.py")
    python = [sys.executable or "python3", "-u"]
    if module:
        return [*python, "-m", program, *arguments]
    if program.endswith(".py") and not (no_python and _is_script(program)):
        return [*python, program, *arguments]
    return [program, *arguments]


def _is_script(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return os.access(path, os.X_OK) and file.read(2) == b"#!"
    except OSError:
        return False
