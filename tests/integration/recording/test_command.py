"""`cpulens record -- COMMAND`: the command behaves as it would alone, and its kernels are in the run file."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
CPULENS = [sys.executable, "-m", "cpulens"]


def clean(**environ: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if "VERBOSE" not in name} | environ


def record(run: Path, *command: str, flags: tuple[str, ...] = (), **environ: str) -> subprocess.CompletedProcess[bytes]:
    line = [*CPULENS, "record", "-o", str(run), *flags, "--", *command]
    return subprocess.run(line, capture_output=True, env=clean(**environ), timeout=180)


def top(run: Path, *flags: str) -> dict[str, object]:
    result = subprocess.run([*CPULENS, "top", str(run), "--json", *flags], capture_output=True, timeout=60)
    assert result.returncode == 0, result.stderr
    found: dict[str, object] = json.loads(result.stdout)
    lines = found["lines"]
    assert isinstance(lines, dict)
    assert lines["read"] == lines["records"] + lines["own"] + lines["unknown"]
    return found


def rows(found: dict[str, object]) -> list[dict[str, object]]:
    listed = found["rows"]
    assert isinstance(listed, list)
    return listed


def test_openvino(tmp_path: Path) -> None:
    result = record(tmp_path / "run.cpulens", sys.executable, str(PROGRAMS / "openvino_client.py"))
    assert (result.returncode, result.stdout) == (0, b"(1, 10)\n"), result.stderr
    kinds = {row["primitive"] for row in rows(top(tmp_path / "run.cpulens"))}
    assert "convolution" in kinds


@pytest.mark.parametrize(("use_mkl", "library", "kernel"), [("0", "onednn", "gemm_api"), ("1", "mkl", "sgemm_compute")])
def test_ctranslate2(tmp_path: Path, use_mkl: str, library: str, kernel: str) -> None:
    command = (sys.executable, str(PROGRAMS / "ctranslate2_client.py"), str(tmp_path / "model"))
    (tmp_path / "model").mkdir()
    result = record(tmp_path / "run.cpulens", *command, CT2_USE_MKL=use_mkl)
    assert (result.returncode, result.stdout) == (0, b"1\n"), result.stderr
    assert (library, kernel) in {(row["library"], row["primitive"]) for row in rows(top(tmp_path / "run.cpulens"))}


def test_torch_with_regions_and_iterations(tmp_path: Path) -> None:
    run = tmp_path / "run.cpulens"
    result = record(run, sys.executable, str(PROGRAMS / "torch_client.py"), flags=("--onednn", "ON_CREATION,dispatch"))
    assert (result.returncode, result.stdout) == (0, b"(4, 10)\n" * 3), result.stderr
    by = rows(top(run, "--by", "library,primitive,region,iteration"))
    assert {row["region"] for row in by} == {"model"}
    for iteration in range(3):
        kernels = {(row["library"], row["primitive"]) for row in by if row["iteration"] == iteration}
        assert {("onednn", "convolution"), ("mkl", "sgemm")} <= kernels
    events = {row["event"] for row in rows(top(run, "--by", "event"))}
    assert {"exec", "create", "dispatch"} <= events
    facts = top(run)["facts"]
    assert isinstance(facts, dict)
    assert {one["library"] for one in facts["libraries"]} == {"onednn", "mkl"}
    assert facts["exit_code"] == 0


OWN = r"""
import os, sys
sys.stdout.write("text without an end ... ")
sys.stdout.flush()
os.write(1, b"onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n")
os.write(1, b"\xff\xfe\x00 bytes, \r progress\r\n\n")
os.write(1, b"prose on onednn_verbose, and MKL_VERBOSE is great, MKL_VERBOSE=1 too; o")
os.write(1, b"n a line\nonednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,")
os.write(1, b"src:f32::blocked:ab::f0,,,8x8:8x8,0.25\nthe last line has no end: onednn_verb")
"""


def test_own_output_passes_byte_for_byte(tmp_path: Path) -> None:
    result = record(tmp_path / "run.cpulens", sys.executable, "-c", OWN)
    assert result.stdout == (
        b"text without an end ... \xff\xfe\x00 bytes, \r progress\r\n\n"
        b"prose on onednn_verbose, and MKL_VERBOSE is great, MKL_VERBOSE=1 too; on a line\n"
        b"the last line has no end: onednn_verb"
    )
    found = top(tmp_path / "run.cpulens")
    assert found["total_ms"] == 0.75
    assert rows(found)[0]["calls"] == 2


def test_own_output_passes_live(tmp_path: Path) -> None:
    code = "import time; print('prompt o', end='', flush=True); time.sleep(60)"
    line = [*CPULENS, "record", "-o", str(tmp_path / "x.log"), "--", sys.executable, "-c", code]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    seen = b""
    while len(seen) < len(b"prompt o"):  # its last letter could begin a marker
        seen += os.read(process.stdout.fileno(), 100)
    assert seen == b"prompt o"
    process.terminate()
    assert process.wait(30) == 128 + signal.SIGTERM
    process.communicate()


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143), ("exec /nonexistent", 127)],
)
def test_exit_codes_are_passed_on(tmp_path: Path, script: str, code: int) -> None:
    assert record(tmp_path / "run.cpulens", "sh", "-c", script).returncode == code


def test_a_command_that_cannot_start(tmp_path: Path) -> None:
    missing = record(tmp_path / "run.cpulens", "no-such-command-anywhere")
    assert missing.returncode == 127
    assert b"no-such-command-anywhere: no such command" in missing.stderr
    text = tmp_path / "text"
    text.write_text("not a program")
    refused = record(tmp_path / "run.cpulens", str(text))
    assert refused.returncode == 126
    assert b"can't be started" in refused.stderr
    assert not (tmp_path / "run.cpulens").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import signal, sys\n"
        f"signal.signal({int(number)}, lambda *_: (print('got it', flush=True), sys.exit(42)))\n"
        "print('ready', flush=True)\nsignal.pause()"
    )
    line = [*CPULENS, "record", "-o", str(tmp_path / "x.log"), "--", sys.executable, "-c", code]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert process.stdout.readline() == b"got it\n"
    assert process.wait(30) == 42
    process.communicate()


def test_a_terminal_stays_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    code = "import os; print(os.isatty(1), tuple(os.get_terminal_size(1))); os.write(1, b'a\\r\\tb\\n')"
    line = [*CPULENS, "record", "-o", str(tmp_path / "x.log"), "--", sys.executable, "-c", code]
    process = subprocess.Popen(line, stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 1000)
        except OSError:
            break
    process.wait(30)
    os.close(ours)
    assert seen == b"True (99, 33)\r\na\r\tb\r\n"


def test_a_reader_that_leaves_ends_the_command_as_it_would_alone(tmp_path: Path) -> None:
    line = f"{' '.join(CPULENS)} record -o {tmp_path / 'x.log'} -- yes | head -1"
    result = subprocess.run(["sh", "-c", line], capture_output=True, timeout=60)
    assert result.stdout == b"y\n"


def test_a_process_left_behind_does_not_keep_us(tmp_path: Path) -> None:
    # The whole record must end within its timeout, though the sleep holds the command's output for longer.
    result = record(tmp_path / "x.log", "sh", "-c", "sleep 600 2>/dev/null & echo done")
    assert result.stdout == b"done\n"
    assert b"left behind" in result.stderr


def test_children_of_the_command_are_recorded_too(tmp_path: Path) -> None:
    code = (
        "import numpy as np; from cpulens.native import onednn; onednn.matmul(np.ones((4,4),'f'), np.ones((4,4),'f'))"
    )
    nested = f"import subprocess, sys; [subprocess.run([sys.executable, '-c', {code!r}]) for _ in range(2)]"
    record(tmp_path / "run.cpulens", sys.executable, "-c", nested)
    assert [row["calls"] for row in rows(top(tmp_path / "run.cpulens"))] == [2]


def test_a_recording_inside_a_recorded_command_keeps_its_lines_from_nobody(tmp_path: Path) -> None:
    code = (
        "import numpy as np, cpulens\nfrom cpulens.native import onednn\n"
        "run = lambda: onednn.matmul(np.ones((4,4),'f'), np.ones((4,4),'f'))\n"
        "run()\nwith cpulens.record() as inner:\n    run(); run()\nprint(inner.raw().count(b',exec,'))"
    )
    result = record(tmp_path / "run.cpulens", sys.executable, "-c", code)
    assert result.stdout == b"2\n"
    assert [row["calls"] for row in rows(top(tmp_path / "run.cpulens"))] == [3]


def test_nothing_recorded_says_why(tmp_path: Path) -> None:
    quiet = record(tmp_path / "run.cpulens", sys.executable, "-c", "import numpy, time; print(7); time.sleep(0.3)")
    assert (quiet.returncode, quiet.stdout) == (0, b"7\n")
    message = quiet.stderr.decode()
    assert "nothing was recorded; oneDNN is not loaded in the process" in message
    assert "OpenBLAS" in message
    assert not (tmp_path / "run.cpulens").exists()


def test_a_finer_setting_of_the_environment_stays(tmp_path: Path) -> None:
    code = "import os; print(os.environ['ONEDNN_VERBOSE'], os.environ['MKL_VERBOSE'])"
    result = record(tmp_path / "x.log", sys.executable, "-c", code, ONEDNN_VERBOSE="profile_exec,dispatch")
    assert result.stdout == b"profile_exec,dispatch 1\n"
    assert b"holds more than a number" in result.stderr
    asked = record(
        tmp_path / "x.log",
        sys.executable,
        "-c",
        code,
        flags=("--onednn", "ON_CREATION,check"),
        ONEDNN_VERBOSE="profile_exec,dispatch",
    )
    assert asked.stdout == b"2,check 1\n"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--onednn", "LOUD"), "LOUD"),
        (("--onednn", "ON,dispach"), "did you mean dispatch?"),
        (("--mkl", "ON_CREATION"), "OFF (0), ON (1)"),
        (("--onednn", ""), "empty"),
    ],
)
def test_wrong_levels_are_refused_before_anything_starts(tmp_path: Path, flags: tuple[str, ...], words: str) -> None:
    result = record(tmp_path / "x.log", "touch", str(tmp_path / "started"), flags=flags)
    assert result.returncode == 2
    assert words in result.stderr.decode()
    assert result.stderr.count(b"\n") == 1
    assert not (tmp_path / "started").exists()


def test_a_run_file_is_not_overwritten_by_chance(tmp_path: Path) -> None:
    run = tmp_path / "run.cpulens"
    run.write_text("precious")
    result = record(run, "touch", str(tmp_path / "started"))
    assert result.returncode == 1
    assert b"exists" in result.stderr
    assert run.read_text() == "precious"
    assert not (tmp_path / "started").exists()


def test_without_a_command_it_is_a_usage_error() -> None:
    result = subprocess.run([*CPULENS, "record", "-o", "x.cpulens"], capture_output=True)
    assert result.returncode == 2
    assert b"no command" in result.stderr


def test_the_installed_command_is_the_module(tmp_path: Path) -> None:
    command = shutil.which("cpulens", path=str(Path(sys.executable).parent))
    assert command is not None
    versions = [
        subprocess.run([*way, "--version"], capture_output=True, text=True).stdout for way in ([command], CPULENS)
    ]
    assert versions[0] == versions[1] != ""
