"""Real cgroups, where this machine lets us make some: cpusets and quotas of version 1 or 2."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

MOUNT = Path("/sys/fs/cgroup")
NAME = f"cpulens-test-{uuid.uuid4().hex[:8]}"
CPUS = sorted(os.sched_getaffinity(0))


def write(path: Path, text: str) -> None:
    path.write_text(text)


def make(folder: Path, **settings: str) -> Path:
    """A cgroup with settings; the test is skipped where it can't be made."""
    try:
        folder.mkdir()
        for name, value in settings.items():
            write(folder / name.replace("__", "."), value)
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        pytest.skip(f"no cgroup can be made here: {error}")
    return folder


@pytest.fixture
def cgroup() -> Iterator[Callable[..., Path]]:
    made: list[Path] = []

    def one(folder: Path, **settings: str) -> Path:
        made.append(make(folder, **settings))
        return made[-1]

    yield one
    for folder in reversed(made):
        folder.rmdir()


def plan_in(groups: list[Path], *options: str) -> dict[str, object]:
    """The plan that the launcher makes inside these cgroups."""

    def enter() -> None:
        for group in groups:
            write(group / "cgroup.procs", str(os.getpid()))

    command = [sys.executable, "-m", "run_cpu", "--dry-run", "--json", *options, "--", "prog"]
    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=enter, timeout=60)
    assert result.returncode == 0, result.stderr
    document: dict[str, object] = json.loads(result.stdout)
    return document


def instance(document: dict[str, object]) -> dict[str, object]:
    instances = document["instances"]
    assert isinstance(instances, list)
    first: dict[str, object] = instances[0]
    return first


def test_quota_v1(cgroup: Callable[..., Path]) -> None:
    if len(CPUS) < 2:
        pytest.skip("one CPU can't be limited to less")
    outer = cgroup(MOUNT / "cpu" / NAME, cpu__cfs_quota_us="150000")
    inner = cgroup(outer / "inner")
    one = instance(plan_in([inner]))
    assert (one["cpus"], one["threads"]) == (CPUS, 1)


def test_quota_v2(cgroup: Callable[..., Path]) -> None:
    controllers = MOUNT / "cgroup.controllers"
    if not controllers.exists() or "cpu" not in controllers.read_text().split():
        pytest.skip("the cpu controller is not in version 2 here")
    if len(CPUS) < 2:
        pytest.skip("one CPU can't be limited to less")
    group = cgroup(MOUNT / NAME, cpu__max="150000 100000")
    one = instance(plan_in([group]))
    assert (one["cpus"], one["threads"]) == (CPUS, 1)


def test_cpuset_v1(cgroup: Callable[..., Path]) -> None:
    mems = (MOUNT / "cpuset/cpuset.mems").read_text().strip() if (MOUNT / "cpuset/cpuset.mems").exists() else "0"
    group = cgroup(MOUNT / "cpuset" / NAME, cpuset__cpus=str(CPUS[-1]), cpuset__mems=mems)
    one = instance(plan_in([group]))
    assert (one["cpus"], one["threads"]) == (CPUS[-1:], 1)
