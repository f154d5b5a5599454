"""Types that tests share."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable

Program = Callable[..., subprocess.CompletedProcess[bytes]]


def run_program(
    code: str, *arguments: str, timeout: float = 120, prefix: tuple[str, ...] = (), **environ: str
) -> subprocess.CompletedProcess[bytes]:
    """Run Python code in a process of its own; see the fixture `program`."""
    clean = {name: value for name, value in os.environ.items() if "VERBOSE" not in name}
    command = [*prefix, sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.run(
        command, env={**clean, **environ}, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL
    )
