"""Binding on the real kernel: what a container's filter forbids, local ranks, OpenMP runtimes, saved plans."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LAUNCHER = [sys.executable, "-m", "run_cpu"]
CPUS = sorted(os.sched_getaffinity(0))
PYTHON = [sys.executable, "-u", "-c"]
SHOW = "import os; print(sorted(os.sched_getaffinity(0)))"

needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="a share of one CPU is that CPU")


def run(*words: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAUNCHER, *words], capture_output=True, text=True, timeout=120, **more)  # type: ignore[call-overload, no-any-return]


# Seccomp, as container engines use it


def forbid(*numbers: int) -> Callable[[], None]:
    """For a child before exec: these system calls fail with EPERM, by a filter such as Docker installs (seccomp(2))."""
    load_number, return_errno, allow = 0x20, 0x00050000 | 1, 0x7FFF0000
    code = [struct.pack("HBBI", load_number, 0, 0, 0)]
    for number in numbers:
        code += [struct.pack("HBBI", 0x15, 0, 1, number), struct.pack("HBBI", 0x06, 0, 0, return_errno)]
    code.append(struct.pack("HBBI", 0x06, 0, 0, allow))
    program = ctypes.create_string_buffer(b"".join(code))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(program)))
    libc = ctypes.CDLL(None)

    def install(alive: object = program) -> None:
        assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
        assert libc.prctl(22, 2, ctypes.c_ulong(ctypes.addressof(header)), 0, 0) == 0  # PR_SET_SECCOMP, filter

    return install


x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="the filter names system calls of x86-64")


def has_numa() -> bool:
    return Path("/sys/devices/system/node/online").exists()


@x86_64
def test_forbidden_memory_policy_leaves_cpus_bound() -> None:
    if not has_numa():
        pytest.skip("without NUMA no policy is set")
    result = run("--ncores-per-instance", "1", "--ninstances", "1", *PYTHON, SHOW, preexec_fn=forbid(238))
    assert (result.returncode, result.stdout) == (0, f"[{CPUS[0]}]\n")
    notes = [line for line in result.stderr.splitlines() if "memory" in line]
    assert notes == [
        "run_cpu: instance 0: its memory could not be placed (set_mempolicy: Operation not permitted), "
        "the kernel's own policy stays; in a container --cap-add SYS_NICE allows it"
    ]


@x86_64
@needs_two_cpus
def test_forbidden_affinity_leaves_memory_placed(tmp_path: Path) -> None:
    policy = "m = '/proc/self/numa_maps'; print(open(m).readline().split()[1] if os.path.exists(m) else '')"
    program = f"{SHOW}; {policy}"
    options = ("--ncores-per-instance", "1", "--ninstances", "1", "--log-path", str(tmp_path))
    result = run(*options, *PYTHON, program, preexec_fn=forbid(203))
    assert result.returncode == 0
    cpus, policy = result.stdout.splitlines()
    assert cpus == str(CPUS)
    if has_numa() and policy:
        assert policy.startswith("prefer:")
    sentence = "instance 0 could not be bound to its CPUs (Operation not permitted) and runs on all CPUs allowed"
    assert f"run_cpu: {sentence}\n" in result.stderr
    assert json.loads((tmp_path / "result.json").read_text())["instances"][0]["differences"] == [sentence]


def set_interleave() -> None:
    """For a child before exec: what numactl --interleave=0 does."""
    nodes = ctypes.c_ulong(1)
    assert ctypes.CDLL(None).syscall(ctypes.c_long(238), 3, ctypes.byref(nodes), ctypes.c_ulong(65)) == 0


@x86_64
def test_a_memory_policy_of_the_caller_stays() -> None:
    if not Path("/proc/self/numa_maps").exists():
        pytest.skip("no memory policies here")
    program = "print(open('/proc/self/numa_maps').readline().split()[1])"
    result = run(*PYTHON, program, preexec_fn=set_interleave)
    assert result.stdout == "interleave:0\n"
    assert "the memory policy that run_cpu was started under, interleave:0, stays" in result.stderr
    assert run("--membind", *PYTHON, program, preexec_fn=set_interleave).stdout == "bind:0\n"


# Local ranks


@needs_two_cpus
def test_ranks_that_their_starter_has_bound_are_not_divided_again() -> None:
    """srun and mpirun give each rank its CPUs; torchrun does not. The starter's own mask tells them apart."""
    rank = {**os.environ, "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
    last = CPUS[-1:]
    shared = run(*PYTHON, SHOW, env=rank)
    assert shared.stdout == f"{last}\n"
    bound = run(*PYTHON, SHOW, env=rank, preexec_fn=lambda: os.sched_setaffinity(0, last))
    assert bound.stdout == f"{last}\n"
    # A shell of the rank's own between the starter and us changes nothing.
    command = " ".join([*LAUNCHER, "--", *PYTHON, f"'{SHOW}'"])
    shell = subprocess.run(
        ["sh", "-c", f"{command}; true"],
        env=rank,
        preexec_fn=lambda: os.sched_setaffinity(0, last),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert shell.stdout == f"{last}\n"


@needs_two_cpus
@pytest.mark.torch
def test_inside_torchrun_each_rank_has_its_share_of_cpus_and_threads(tmp_path: Path) -> None:
    script = tmp_path / "rank.py"
    script.write_text(SHOW.replace("print(", "print(os.environ['LOCAL_RANK'], os.environ['OMP_NUM_THREADS'], "))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
    environ = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    result = subprocess.run(
        [*command, *LAUNCHER, "--disable-iomp", str(script)], capture_output=True, text=True, timeout=120, env=environ
    )
    assert result.returncode == 0, result.stderr
    half = len(CPUS) // 2
    shares = [CPUS[:half], CPUS[half : 2 * half]]
    lines = sorted(line for line in result.stdout.splitlines() if line[:1] in "01")
    assert lines == [f"{rank} {half} {share}" for rank, share in enumerate(shares)]


# OpenMP: nothing that the launcher sets shrinks the mask of the main thread or of its children


@needs_two_cpus
@pytest.mark.torch
@pytest.mark.parametrize("options", [(), ("--disable-iomp",)], ids=["libiomp5", "libgomp"])
def test_threads_and_children_keep_the_instances_cpus(options: tuple[str, ...]) -> None:
    program = (
        "import os, subprocess, sys, torch\n"
        "(torch.randn(2000, 2000) @ torch.randn(2000, 2000)).sum()\n"
        "torch.randn(4000000).exp().sum()\n"
        "print(torch.get_num_threads(), sorted(os.sched_getaffinity(0)))\n"
        f"print(subprocess.run([sys.executable, '-c', {SHOW!r}], capture_output=True, text=True).stdout, end='')\n"
    )
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "KMP_", "GOMP_"))}
    result = run(*options, *PYTHON, program, env=environ)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [f"{len(CPUS)} {CPUS}", str(CPUS)]


@needs_two_cpus
@pytest.mark.torch
def test_thread_binding_of_the_user_is_reported() -> None:
    environ = {**os.environ, "OMP_PROC_BIND": "close"}
    environ.pop("OMP_NUM_THREADS", None)
    result = run(*PYTHON, "import torch; print(torch.get_num_threads())", env=environ)
    assert "OMP_PROC_BIND=close is yours and stays" in result.stderr
    # libiomp5 beside it would have collapsed to one thread.
    assert result.stdout == f"{len(CPUS)}\n"


# Plans


def test_a_dry_run_starts_nothing(tmp_path: Path) -> None:
    result = run("--dry-run", "touch", str(tmp_path / "made"))
    assert result.returncode == 0
    assert not (tmp_path / "made").exists()
    for part in ("package 0", "one sign a core", "OMP_NUM_THREADS=", "by hand:", f"touch {tmp_path}/made"):
        assert part in result.stdout


def test_the_line_to_paste_does_the_same() -> None:
    """With taskset in place of a missing numactl: the part before it is what a shell must understand."""
    result = run(
        "--dry-run",
        "--disable-numactl",
        "--use-default-allocator",
        "--disable-iomp",
        "printf",
        "%s|",
        "a b",
        "$HOME'\n",
    )
    line = next(line for line in result.stdout.splitlines() if "taskset" in line)
    shell = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert shell.stdout == "a b|$HOME'\n|"


def test_a_saved_plan_runs_and_its_command_can_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(run("--ncores-per-instance", "1", "--ninstances", "1", "--dry-run", "--json", *PYTHON, SHOW).stdout)
    assert run("--plan-from", str(path)).stdout == f"[{CPUS[0]}]\n"
    assert run("--plan-from", str(path), "--", "echo", "other").stdout == "other\n"
    assert run("--plan-from", "-", input=path.read_text()).stdout == f"[{CPUS[0]}]\n"
    again = json.loads(run("--plan-from", str(path), "--dry-run", "--json").stdout)
    assert again["instances"] == json.loads(path.read_text())["instances"]


def test_a_plan_of_another_host(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    document = json.loads(run("--dry-run", "--json", *PYTHON, SHOW).stdout)
    first = document["instances"][0]
    first["argv"][0] = "/another/host/bin/python3.9"
    first["environment"]["LD_PRELOAD"] = "/another/host/libtcmalloc.so.4"
    first["environment"]["OMP_NUM_THREADS"] = "17"
    path.write_text(json.dumps(document))
    result = run("--plan-from", str(path), env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (result.returncode, result.stdout) == (0, f"{first['cpus']}\n")
    for part in ("python3.9 is not here", "libtcmalloc.so.4, which is not here", "OMP_NUM_THREADS=1 is yours"):
        assert part in result.stderr
    first["cpus"] = [4000]
    path.write_text(json.dumps(document))
    result = run("--plan-from", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    assert "the plan uses CPUs 4000" in result.stderr
    first["cpus"], first["memory_nodes"], first["memory_policy"] = CPUS, [900], "preferred"
    path.write_text(json.dumps(document))
    assert "the plan uses memory of NUMA nodes 900" in run("--plan-from", str(path)).stderr


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"schema": 2, "instances": []}',
        '{"schema": 1, "instances": []}',
        '{"schema": 1, "instances": [{}]}',
        '{"schema": 1, "instances": 7}',
        '{"schema": 1, "instances": [{"index": 0, "cpus": [], "threads": 1, "memory_nodes": [],'
        ' "memory_policy": "default", "environment": {}, "argv": ["true"]}]}',
        '{"schema": 1, "instances": [{"index": 0, "cpus": [0], "threads": 1, "memory_nodes": [],'
        ' "memory_policy": "wild", "environment": {}, "argv": ["true"]}]}',
        '{"schema": 1, "instances": [{"index": 0, "cpus": [0], "threads": 1, "memory_nodes": [],'
        ' "memory_policy": "default", "environment": {}, "argv": []}]}',
    ],
)
def test_a_damaged_plan_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    result = run("--plan-from", str(path))
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith(f"run_cpu: --plan-from {path}: ")
    assert result.stderr.count("\n") == 1
