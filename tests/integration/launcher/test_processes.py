"""Real processes under the launcher: exit codes, signals, what is left behind, terminals and lines."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LAUNCHER = [sys.executable, "-m", "run_cpu"]
CPUS = sorted(os.sched_getaffinity(0))
PYTHON = [sys.executable, "-u", "-c"]

needs_two_cpus = pytest.mark.skipif(len(CPUS) < 2, reason="two instances need two CPUs")


def run(*words: str | bytes, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LAUNCHER, *words], capture_output=True, text=True, timeout=60, **more)  # type: ignore[call-overload, no-any-return]


def until(condition: Callable[[], object], what: str, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


class Family:
    """Everything that a launcher starts, found again by a variable in its environment."""

    def __init__(self) -> None:
        self.mark = f"FAMILY={uuid.uuid4()}"
        self.environ = {**os.environ, "FAMILY": self.mark.partition("=")[2]}
        self.launchers: list[subprocess.Popen[str]] = []

    def launch(self, *words: str, **more: object) -> subprocess.Popen[str]:
        launcher = subprocess.Popen(
            [*LAUNCHER, *words],
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            **more,  # type: ignore[call-overload]
        )
        self.launchers.append(launcher)
        return launcher

    def members(self) -> list[int]:
        found = []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if self.mark.encode() in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
        return found


@pytest.fixture
def family() -> Iterator[Family]:
    family = Family()
    yield family
    for pid in family.members():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for launcher in family.launchers:
        launcher.communicate()


def sleeper(tmp_path: Path, name: str = "up", before: str = "") -> str:
    """A program that says it is up (a file named after its pid), then sleeps."""
    return f"""
import os, signal, sys, time
{before}
open(os.path.join({str(tmp_path)!r}, "{name}" + str(os.getpid())), "w").close()
time.sleep(300)
"""


def count(tmp_path: Path, name: str = "up") -> Callable[[int], bool]:
    return lambda number: len(list(tmp_path.glob(f"{name}*"))) == number


# Exit codes


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_the_exit_code_of_the_program(code: int) -> None:
    assert run(*PYTHON, f"raise SystemExit({code})").returncode == code


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_the_signal_that_ended_the_program(number: int) -> None:
    assert run("sh", "-c", f"kill -{int(number)} $$").returncode == 128 + number


def test_a_program_that_is_not_there() -> None:
    result = run("no-such-program-anywhere")
    assert result.returncode == 127
    assert result.stderr == "run_cpu: no-such-program-anywhere can't be started: there is no such command in PATH\n"


def test_a_program_that_can_not_be_executed(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("no program")
    result = run(str(tmp_path / "data.txt"))
    assert result.returncode == 126
    assert "Permission denied" in result.stderr


@needs_two_cpus
@pytest.mark.parametrize("policy", ["kill", "wait"])
def test_one_failure_among_several(policy: str, tmp_path: Path) -> None:
    """Instance 0 fails at once; the other one is stopped, or allowed to end."""
    program = f"""
import os, time
if os.sched_getaffinity(0) == {{{CPUS[0]}}}:
    raise SystemExit(7)
time.sleep(1.5)
print("ended well")
"""
    result = run("--ninstances", "2", "--on-failure", policy, *PYTHON, program)
    assert result.returncode == 7
    assert "instance 0 failed with exit code 7" in result.stderr
    assert ("ended well" in result.stdout) == (policy == "wait")


@needs_two_cpus
def test_the_code_of_the_first_that_failed_in_time() -> None:
    program = f"""
import os, time
if os.sched_getaffinity(0) == {{{CPUS[0]}}}:
    time.sleep(1)
    raise SystemExit(3)
raise SystemExit(4)
"""
    assert run("--ninstances", "2", "--on-failure", "wait", *PYTHON, program).returncode == 4


# What the program gets


def test_arguments_arrive_byte_for_byte(tmp_path: Path) -> None:
    show = tmp_path / "show.py"
    show.write_text("import os, sys\nprint([os.fsencode(a) for a in sys.argv[1:]])")
    words = [b"a b", b"--", b"--ninstances", b"2", b"$HOME;*'\"", b"", b"\xff\xfe", b"-m", "ü\n".encode()]
    result = run("--ninstances", "1", os.fsencode(show), *words)
    assert result.stdout == f"{words}\n"
    result = run("--", os.fsencode(show), b"--", *words)
    assert result.stdout == f"{[b'--', *words]}\n"


def test_a_module_runs(tmp_path: Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "mod.py").write_text("import sys\nprint(__name__, sys.argv[1:])")
    assert run("-m", "pkg.mod", "-x", cwd=tmp_path).stdout == "__main__ ['-x']\n"
    assert run("--module", "pkg.nothing", cwd=tmp_path).returncode == 1


def test_python_files_run_unbuffered_with_or_without_no_python(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.executable, sys.stdout.write_through)")
    expected = f"{sys.executable} True\n"
    assert run(str(script)).stdout == expected
    assert run("--no-python", str(script)).stdout == expected
    script.write_text("#!/bin/sh\necho shell $1\n")
    script.chmod(0o755)
    assert run("--no-python", str(script), "one").stdout == "shell one\n"


def test_never_outside_the_callers_affinity() -> None:
    program = "import os; print(sorted(os.sched_getaffinity(0)))"
    last = CPUS[-1]
    result = run("--ncores-per-instance", "1", *PYTHON, program, preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    assert (result.returncode, result.stdout) == (0, f"[{last}]\n")
    result = run("--ninstances", "2", *PYTHON, program, preexec_fn=lambda: os.sched_setaffinity(0, {last}))
    assert (result.returncode, result.stdout) == (2, "")


def test_cpus_threads_and_memory_are_really_set() -> None:
    program = (
        "import json, os\n"
        "maps = '/proc/self/numa_maps'\n"
        "policy = open(maps).readline().split()[1] if os.path.exists(maps) else ''\n"
        "print(json.dumps([sorted(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'], policy]))"
    )
    plan = json.loads(run("--dry-run", "--json", "prog").stdout)["instances"][0]
    result = run("--use-default-allocator", "--disable-iomp", *PYTHON, program)
    cpus, threads, policy = json.loads(result.stdout)
    assert cpus == plan["cpus"]
    assert threads == str(plan["threads"])
    if plan["memory_policy"] == "preferred" and policy:
        assert policy == f"prefer:{plan['memory_nodes'][0]}"
    assert result.stderr == ""


@pytest.mark.parametrize("before", [[], ["nohup"]], ids=["plain", "nohup"])
def test_signals_are_as_the_launcher_found_them(before: list[str]) -> None:
    """Mask, handlers and what is ignored: the same as without the launcher."""
    program = "print([l for l in open('/proc/self/status') if l.startswith(('SigBlk', 'SigIgn', 'SigCgt'))])"
    alone, launched = (
        subprocess.run([*before, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        for command in ([*PYTHON, program], [*LAUNCHER, *PYTHON, program])
    )
    assert alone.stdout
    assert launched.stdout == alone.stdout


def test_stdin_of_a_single_instance() -> None:
    assert run("cat", input="hello\n").stdout == "hello\n"


@needs_two_cpus
def test_stdin_of_several_instances_is_empty() -> None:
    result = run("--ninstances", "2", "cat", input="hello\n")
    assert (result.returncode, result.stdout) == (0, "")


def test_a_single_instance_keeps_the_terminal() -> None:
    """Under a terminal the program is in its foreground, and Ctrl-C reaches it once, not twice."""
    program = """
import os, signal, sys, time
hits = []
signal.signal(signal.SIGINT, lambda *_: hits.append(1))
print("tty", [os.isatty(n) for n in (0, 1, 2)], os.tcgetpgrp(0) == os.getpgrp(), flush=True)
line = sys.stdin.readline()
print("line", line.strip(), flush=True)
time.sleep(1)
print("hits", len(hits), flush=True)
raise SystemExit(5)
"""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [*LAUNCHER, *PYTHON, program])
    seen = b""

    def read_until(text: bytes) -> None:
        nonlocal seen
        while text not in seen:
            assert select.select([master], [], [], 20)[0], seen
            try:
                seen += os.read(master, 4096)
            except OSError as error:
                assert error.errno == errno.EIO
                break

    read_until(b"tty [True, True, True] True")
    os.write(master, b"typed\n")
    read_until(b"line typed")
    os.write(master, b"\x03")
    read_until(b"hits 1")
    _, status = os.waitpid(pid, 0)
    os.close(master)
    assert os.waitstatus_to_exitcode(status) == 5


# Signals, and nothing left behind


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=needs_two_cpus)])
def test_a_signal_ends_all(number: int, instances: int, family: Family, tmp_path: Path) -> None:
    launcher = family.launch(
        "--ninstances", str(instances), *PYTHON, sleeper(tmp_path, before="signal.signal(2, signal.SIG_DFL)")
    )
    until(lambda: count(tmp_path)(instances), "all instances are up")
    launcher.send_signal(number)
    assert launcher.wait(20) == 128 + number
    assert family.members() == []


def test_a_program_may_end_well_on_a_signal(family: Family, tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    launcher = family.launch(*PYTHON, sleeper(tmp_path, before=before))
    until(lambda: count(tmp_path)(1), "it is up")
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) == 0


@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=needs_two_cpus)])
def test_a_program_that_ignores_sigterm_is_killed(instances: int, family: Family, tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    launcher = family.launch(
        "--grace", "0.3", "--ninstances", str(instances), *PYTHON, sleeper(tmp_path, before=before)
    )
    until(lambda: count(tmp_path)(instances), "all are up")
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) == 128 + signal.SIGKILL
    assert family.members() == []


def test_other_signals_are_handed_on(family: Family, tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(9))"
    launcher = family.launch(*PYTHON, sleeper(tmp_path, before=before))
    until(lambda: count(tmp_path)(1), "it is up")
    launcher.send_signal(signal.SIGUSR1)
    assert launcher.wait(20) == 9


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@needs_two_cpus
def test_stop_and_continue_reach_all(family: Family, tmp_path: Path) -> None:
    """Ctrl-Z and fg, as a shell sends them: the instances stop and go on with the launcher."""
    launcher = family.launch("--ninstances", "2", *PYTHON, sleeper(tmp_path))
    until(lambda: count(tmp_path)(2), "both are up")
    pids = [launcher.pid, *(int(path.name.removeprefix("up")) for path in tmp_path.glob("up*"))]
    launcher.send_signal(signal.SIGTSTP)
    until(lambda: [state(pid) for pid in pids] == ["T"] * 3, "all have stopped")
    launcher.send_signal(signal.SIGCONT)
    until(lambda: "T" not in [state(pid) for pid in pids], "all go on")
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) == 128 + signal.SIGTERM


@needs_two_cpus
def test_a_second_interrupt_ends_at_once(family: Family, tmp_path: Path) -> None:
    before = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    launcher = family.launch("--ninstances", "2", "--grace", "100", *PYTHON, sleeper(tmp_path, before=before))
    until(lambda: count(tmp_path)(2), "both are up")
    launcher.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert launcher.poll() is None
    launcher.send_signal(signal.SIGINT)
    assert launcher.wait(20) == 128 + signal.SIGKILL


@needs_two_cpus
def test_one_failure_stops_an_instance_that_ignores_it(family: Family) -> None:
    """The failing one's exit code stays, whatever it takes to end the other."""
    program = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.sched_getaffinity(0) == {{{CPUS[0]}}}:
    time.sleep(0.5)
    raise SystemExit(3)
time.sleep(300)
"""
    launcher = family.launch("--ninstances", "2", "--grace", "0.3", *PYTHON, program)
    assert launcher.wait(20) == 3
    assert family.members() == []


#: A program with a child, a grandchild in a session of its own (a daemon), and a child that ignores SIGTERM.
TREE = """
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif os.fork() == 0:
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=needs_two_cpus)])
@pytest.mark.parametrize("victim", ["launcher", "supervisor", "group"])
def test_nothing_survives_sigkill(victim: str, instances: int, family: Family, tmp_path: Path) -> None:
    launcher = family.launch(
        "--grace",
        "0.5",
        "--ninstances",
        str(instances),
        *PYTHON,
        sleeper(tmp_path, before=TREE),
        start_new_session=True,
    )
    until(lambda: count(tmp_path)(3 * instances), "all processes are up")
    if victim == "launcher":
        launcher.kill()
    elif victim == "group":
        os.killpg(launcher.pid, signal.SIGKILL)
    else:
        supervisor = int(Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()[0])
        os.kill(supervisor, signal.SIGKILL)
    assert launcher.wait(20) == (137 if victim == "supervisor" else -signal.SIGKILL)
    until(lambda: family.members() == [], "nothing is left")


@pytest.mark.parametrize("instances", [1, pytest.param(2, marks=needs_two_cpus)])
def test_what_an_instance_leaves_behind_is_ended(instances: int, family: Family, tmp_path: Path) -> None:
    """The program ends at once, with its own exit code; its daemon and its stubborn child go too."""
    program = f"""
import os, signal, sys, time
main = os.getpid()
{TREE}
if os.getpid() != main:
    open(os.path.join({str(tmp_path)!r}, "up" + str(os.getpid())), "w").close()
    time.sleep(300)
while len(os.listdir({str(tmp_path)!r})) < 2:
    time.sleep(0.01)
raise SystemExit(6)
"""
    launcher = family.launch("--grace", "0.5", "--ninstances", str(instances), "--on-failure", "wait", *PYTHON, program)
    assert launcher.wait(20) == 6
    assert family.members() == []
    assert "left" in launcher.communicate()[1]


@pytest.mark.parametrize("proc", ["--mount-proc", ""])
def test_as_process_1_of_a_container(proc: str, family: Family, tmp_path: Path) -> None:
    """In a PID namespace of its own the launcher is process 1: it still gets signals, reaps, and passes the code on.

    Without a /proc of that namespace it can't find what instances leave behind, and must not look for it.
    """
    unshare = ["unshare", "--pid", "--fork", "--kill-child", *filter(None, [proc])]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here")
    program = "import os, sys; print(os.getppid() < 10, os.getpid() < 20); os.fork() or os._exit(0); sys.exit(4)"
    result = subprocess.run([*unshare, *LAUNCHER, *PYTHON, program], capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout.splitlines()[0]) == (4, "True True")
    # unshare's child is process 1; the signal goes there, as a container engine sends it.
    command = [*unshare, *LAUNCHER, "--grace", "1", *PYTHON, sleeper(tmp_path, before=TREE)]
    outer = subprocess.Popen(command, env=family.environ, start_new_session=True)
    try:
        until(lambda: count(tmp_path)(3), "all are up")
        first = int(Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
        os.kill(first, signal.SIGTERM)
        assert outer.wait(20) == 128 + signal.SIGTERM
    finally:
        outer.kill()
        outer.wait()
    until(lambda: family.members() == [], "the namespace is empty")


# Lines


@needs_two_cpus
def test_lines_of_several_instances_are_prefixed_and_whole() -> None:
    program = "import sys\nprint('one\\ntwo')\nprint('err', file=sys.stderr)\nsys.stdout.write('no end')"
    result = run("--ninstances", "2", *PYTHON, program)
    assert sorted(result.stdout.splitlines()) == [f"[{i}] {word}" for i in (0, 1) for word in ("no end", "one", "two")]
    assert sorted(result.stderr.splitlines()) == ["[0] err", "[1] err"]


def test_a_line_arrives_when_it_is_printed(family: Family, tmp_path: Path) -> None:
    script = tmp_path / "live.py"
    script.write_text("import time\nprint('first')\ntime.sleep(300)")
    launcher = family.launch(str(script))
    assert launcher.stdout is not None
    assert launcher.stdout.readline() == "first\n"
    launcher.terminate()


def test_a_hundred_instances_of_ten_thousand_lines(tmp_path: Path) -> None:
    """Every line arrives whole, once, and in its instance's order; a plan file holds more instances than CPUs."""
    lines, instances = 10_000, 100
    awk = f'BEGIN {{ for (i = 0; i < {lines}; i++) print ENVIRON["ME"], i, "some text that makes the line longer" }}'
    plan = {
        "schema": 1,
        "instances": [
            {
                "index": number,
                "cpus": [CPUS[number % len(CPUS)]],
                "threads": 1,
                "memory_nodes": [],
                "memory_policy": "default",
                "environment": {"ME": f"m{number}"},
                "argv": ["awk", awk],
            }
            for number in range(instances)
        ],
    }
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan))
    result = run("--plan-from", str(path), "--log-path", str(tmp_path / "logs"))
    assert (result.returncode, result.stderr) == (0, "")
    following = [0] * instances
    for line in result.stdout.splitlines():
        prefix, name, index, text = line.split(" ", 3)
        number = int(name[1:])
        assert prefix == f"[{number}]"
        assert int(index) == following[number]
        assert text == "some text that makes the line longer"
        following[number] += 1
    assert following == [lines] * instances
    logs = [(tmp_path / f"logs/run_instance_{number}.log").read_text().count("\n") for number in range(instances)]
    assert logs == [lines] * instances


@needs_two_cpus
def test_a_reader_that_goes_away_ends_the_writers() -> None:
    """As in a pipeline without us: who writes to `head` gets SIGPIPE."""
    reader, writer = os.pipe()
    launcher = subprocess.Popen([*LAUNCHER, "--ninstances", "2", "yes"], stdout=writer, stderr=subprocess.DEVNULL)
    os.close(writer)
    assert b"y" in os.read(reader, 100)
    os.close(reader)
    assert launcher.wait(20) == 128 + signal.SIGPIPE


@needs_two_cpus
def test_a_reader_that_does_not_read_does_not_hold_up_the_end(family: Family) -> None:
    launcher = family.launch("--ninstances", "2", "--grace", "0.2", "yes")
    until(lambda: len(family.members()) >= 4, "all are up")
    time.sleep(0.5)  # the pipe to us is full long since
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(20) == 128 + signal.SIGTERM


def test_a_full_disk_is_said_and_nothing_else_is_lost(tmp_path: Path) -> None:
    """/dev/full takes the place of the disk, for the log and for our own output."""
    (tmp_path / "run_instance_0.log").symlink_to("/dev/full")
    result = run("--log-path", str(tmp_path), "echo", "hello")
    assert (result.returncode, result.stdout) == (0, "hello\n")
    assert "the log of instance 0 ends here: No space left on device" in result.stderr
    with open("/dev/full", "w") as full:
        command = [*LAUNCHER, "--log-path", str(tmp_path / "two"), "echo", "hello"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert result.returncode == 0
    assert "output can't be written: No space left on device" in result.stderr
    assert (tmp_path / "two/run_instance_0.log").read_text() == "hello\n"


def test_more_instances_than_files_may_be_open(tmp_path: Path) -> None:
    """The supervisor gives itself room; the instances have the limit that they would have had."""
    entry = {"cpus": CPUS[:1], "threads": 1, "memory_nodes": [], "memory_policy": "default", "environment": {}}
    entries = [{**entry, "index": index, "argv": ["sh", "-c", "ulimit -n"]} for index in range(40)]
    (tmp_path / "plan.json").write_text(json.dumps({"schema": 1, "instances": entries}))
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    result = run(
        "--plan-from",
        str(tmp_path / "plan.json"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, hard)),
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert sorted(result.stdout.splitlines()) == sorted(f"[{index}] 50" for index in range(40))


def test_closed_outputs_do_not_matter() -> None:
    command = " ".join([*LAUNCHER, "true"])
    assert subprocess.run(["sh", "-c", f"{command} >&- 2>&- <&-"], timeout=60).returncode == 0


# Logs and plans


@needs_two_cpus
def test_the_folder_of_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "deep/logs"
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(2)"
    options = ("--ninstances", "2", "--on-failure", "wait", "--log-path", str(folder), "--log-file-prefix", "job")
    assert run(*options, *PYTHON, program).returncode == 2
    assert sorted(p.name for p in folder.iterdir()) == [
        "job_instance_0.log",
        "job_instance_1.log",
        "plan.json",
        "result.json",
    ]
    assert sorted((folder / "job_instance_1.log").read_text().splitlines()) == ["err", "out"]
    result = json.loads((folder / "result.json").read_text())
    assert (result["schema"], result["exit_code"]) == (1, 2)
    assert [(i["index"], i["exit_code"], i["differences"]) for i in result["instances"]] == [(0, 2, []), (1, 2, [])]
    # A second run overwrites nothing, and the saved plan runs again.
    again = run("--plan-from", str(folder / "plan.json"), "--log-path", str(folder), "--log-file-prefix", "job")
    assert again.returncode == 2
    assert (folder / "job-2/result.json").exists()
    assert (folder / "job_instance_1.log").read_text().count("\n") == 2


def test_a_single_instance_with_logs_still_shows_its_output(tmp_path: Path) -> None:
    result = run("--log-path", str(tmp_path), "cat", input="hello\n")
    assert (result.stdout, (tmp_path / "run_instance_0.log").read_text()) == ("hello\n", "hello\n")


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("--log-path", str(tmp_path / "file"), "true")
    assert result.returncode == 2
    assert "--log-path" in result.stderr


# What happens to differ from the plan is said


def test_a_program_that_crowds_its_threads_is_reported() -> None:
    """The threads of this program pin themselves to one CPU, as OMP_PROC_BIND does with a shrunken mask."""
    if len(CPUS) < 2:
        pytest.skip("one CPU can't be crowded")
    program = f"""
import os, threading, time
def work():
    os.sched_setaffinity(0, {{{CPUS[0]}}})
    time.sleep(5)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    result = run(*PYTHON, program)
    assert result.returncode == 0
    assert f"instance 0: 3 threads are pinned to CPUs {CPUS[0]} alone" in result.stderr
