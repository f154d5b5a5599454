"""What a check is, and what it may ask: launch ``run_cpu``, read what its instances report, compare."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

Check = Callable[[], None]

#: What the instance of the last check, with run_cpu as process 1, ends with.
EXIT_CODE_AS_INIT = 7

#: Starts of Python under emulation take a second each; nothing here takes this long.
PATIENCE_S = 40.0

_checks: list[Check] = []


def check(function: Check) -> Check:
    """Mark a function as a check; they run in the order of their file."""
    _checks.append(function)
    return function


def checks_of(module: ModuleType) -> list[Check]:
    """Return the checks of a module, in order."""
    return [function for function in _checks if function.__module__ == module.__name__]


class Launch:
    """One run of ``run_cpu`` whose instances are probes; the reports come sorted by their CPUs.

    `options` are the launcher's, `words` the probe's (see ``probe.py``), `before` a command in front of ``run_cpu``.
    """

    def __init__(
        self, *options: str, words: str = "", before: tuple[str, ...] = (), program: str = "probe", **environ: str
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="check-"))
        command = [*before, "run_cpu", *options, "--", program, str(self.folder), *words.split()]
        with (self.folder / "stdout").open("wb") as out, (self.folder / "stderr").open("wb") as err:
            self.process = subprocess.Popen(
                command, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    def reports(self, count: int) -> list[dict[str, Any]]:
        """Return the reports of that many instances as soon as they are there."""

        def all_there() -> bool:
            return len(list(self.folder.glob("[0-9]*"))) >= count or self.process.poll() is not None

        wait_for(all_there, f"{count} reports")
        found = [ast.literal_eval(path.read_text()) for path in self.folder.glob("[0-9]*")]
        assert len(found) == count, f"{count} instances should report, {len(found)} did; {self.said()}"
        return sorted(found, key=lambda report: (sorted(report["cpus"]), report["pid"]))

    def ended(self, expected: int) -> None:
        """Wait for the launcher and compare its exit code, as a shell would tell it."""
        code = self.process.wait(PATIENCE_S)
        code = code if code >= 0 else 128 - code
        assert code == expected, f"run_cpu ended with {code}, not {expected}; {self.said()}"

    def finished(self, count: int) -> list[dict[str, Any]]:
        """Wait for a run that must end well, and return the reports of its instances."""
        self.ended(0)
        return self.reports(count)

    def refused(self, *words: str) -> None:
        """Wait for a run that must not start anything, and find the words in what it says."""
        self.ended(2)
        assert not list(self.folder.glob("[0-9]*")), "an instance was started"
        for word in words:
            assert word in self.stderr(), f"{word!r} is not in: {self.stderr()}"

    def stderr(self) -> str:
        """Return what came on the launcher's standard error so far."""
        return (self.folder / "stderr").read_text(errors="replace")

    def stdout(self) -> str:
        """Return what came on its standard output so far."""
        return (self.folder / "stdout").read_text(errors="replace")

    def said(self) -> str:
        """Return both outputs, for a failure's reason."""
        return f"stdout: {self.stdout()[-1500:]!r}, stderr: {self.stderr()[-3000:]}"


def wait_for(condition: Callable[[], object], what: str, limit_s: float = PATIENCE_S) -> None:
    """Return as soon as the condition holds; fail after `limit_s`."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"{what} did not come within {limit_s:g} s"
        time.sleep(0.05)


def placed(report: dict[str, Any], cpus: set[int], policy: str, nodes: set[int], threads: int | None = None) -> None:
    """Compare one instance with what it must have got.

    All its threads (default: one on each CPU) are bound to exactly `cpus`; its memory has that policy in the kernel's
    words, and every page that it touched lies on `nodes`, evenly when they are interleaved.
    """
    what = f"instance {report['pid']} on CPUs {sorted(report['cpus'])}"
    assert report["cpus"] == cpus, f"{what} should be on {sorted(cpus)}"
    assert len(report["threads"]) == (len(cpus) if threads is None else threads), (
        f"{what}: {len(report['threads'])} threads"
    )
    for thread in report["threads"]:
        assert thread["cpus"] == cpus and thread["ran_on"] in cpus, f"{what}: a thread has {thread}"
    assert report["policy"] == policy, f"{what}: its memory has policy {report['policy']!r}, not {policy!r}"
    pages = report["pages"]
    assert set(pages) == nodes, f"{what}: pages by node are {pages}, not on nodes {sorted(nodes)} only"
    assert sum(pages.values()) >= report["touched_pages"], f"{what}: only {pages} of {report['touched_pages']} pages"
    if policy.startswith("interleave"):
        assert max(pages.values()) - min(pages.values()) <= 16, f"{what}: pages by node are {pages}, not even"


def memory_mib(node: int, field: str) -> int:
    """Return a field of a node's ``meminfo`` in MiB."""
    for line in Path(f"/sys/devices/system/node/node{node}/meminfo").read_text().splitlines():
        words = line.split()
        if words[2] == f"{field}:":
            return int(words[3]) >> 10
    raise AssertionError(f"node {node} has no {field}")


def processes() -> dict[int, str]:
    """Return all user processes but process 1, as pid → command line; zombies that are ours to reap are reaped."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) not in (1, 2):
            try:
                stat = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                line = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if stat[1] != "2":
                found[int(name)] = f"{line or name} (state {stat[0]}, parent {stat[1]})"
    return found


def nothing_is_left() -> None:
    """Fail when a process or a file of a run is still there; what is found is taken away."""
    left = processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    files = [path.name for path in Path("/tmp").iterdir() if not path.name.startswith("check-")]
    files += [path.name for path in Path("/dev/shm").iterdir()] if Path("/dev/shm").exists() else []
    assert not left, f"processes are left behind: {left}"
    assert not files, f"files are left behind: {files}"
