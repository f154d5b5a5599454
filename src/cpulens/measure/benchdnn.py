"""Run problems by a benchdnn that somebody has built."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Sequence
from typing import Final, NamedTuple

from cpulens.errors import UsageError

_MARK: Final = "cpulens"
#: Implementation, shortest and mean time in milliseconds; see knobs_perf_report.md of oneDNN.
_TEMPLATE: Final = f"--perf-template={_MARK},%impl%,%-time%,%0time%"
_RESULT: Final = re.compile(rf"^{_MARK},(.*),([\d.e+-]+),([\d.e+-]+)\s*$", re.MULTILINE)
_COUNTS: Final = re.compile(r"(\w+):(\d+)")
_STATES: Final = ("failed", "unimplemented", "invalid_arguments", "skipped", "mistrusted")
TIMEOUT_S: Final = 120.0


class Ran(NamedTuple):
    """What a run gave: times in milliseconds and the implementation, or the `trouble` in words."""

    implementation: str | None
    best_ms: float | None
    mean_ms: float | None
    trouble: str | None

    @property
    def sentence(self) -> str:
        """For a person."""
        if self.trouble is not None:
            return self.trouble
        return f"best {self.best_ms:.4g} ms, mean {self.mean_ms:.4g} ms, {self.implementation}"


def run(program: str, options: Sequence[str], arguments: Sequence[str], timeout_s: float = TIMEOUT_S) -> Ran:
    """Run one problem. Raises UsageError when the program can't be started."""
    # The template belongs to a driver: it stands after the driver's name, which is the first argument.
    command = [program, *options, arguments[0], _TEMPLATE, *arguments[1:]]
    environment = {**os.environ, "ONEDNN_VERBOSE": "0", "DNNL_VERBOSE": "0"}
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=timeout_s, env=environment, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Ran(None, None, None, f"not done after {timeout_s:g} s")
    except OSError as error:
        raise UsageError(
            f"{program} can't be run ({error.strerror}); --benchdnn takes the path of the program"
        ) from None
    return _read(done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"), done.returncode)


def _read(output: str, errors: str, code: int) -> Ran:
    counts = {name: int(number) for line in output.splitlines()[-8:] for name, number in _COUNTS.findall(line)}
    bad = [name for name in _STATES if counts.get(name)]
    found = _RESULT.search(output)
    if found is not None and not bad:
        return Ran(found[1], float(found[2]), float(found[3]), None)
    said = next((line for line in (*errors.splitlines(), *output.splitlines()) if "rror" in line), "").strip()
    return Ran(None, None, None, f"{bad[0] if bad else _ended(code)}{': ' + said if said else ''}")


def _ended(code: int) -> str:
    return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
