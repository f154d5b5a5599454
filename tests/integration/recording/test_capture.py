"""The capture: what belongs to the program stays its own, byte for byte, and what the libraries print is caught."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests_support import Program

PRELUDE = """
import ctypes, os, sys
import numpy as np
import cpulens
from cpulens.native import onednn
libc = ctypes.CDLL(None)
a = np.ones((16, 16), "float32")
def kernel(times=1):
    for _ in range(times):
        onednn.matmul(a, a)
def native(text):
    libc.printf(b"%s", text)
    libc.fflush(None)
def calls(raw):
    return sum(b",exec," in line for line in raw.splitlines())
kernel()
"""

OWN_OUTPUT = """
def everything():
    print("python, buffered")
    kernel()
    native(b"native line\\n")
    kernel(2)
    native(b"no newline yet ... ")
    kernel()
    native(b"done\\n\\n\\r 50%\\r100%\\x1b[1mbold\\x1b[0m\\0\\n".replace(b"\\0", b""))
    sys.stdout.flush()
    os.write(1, b"straight to descriptor 1\\n")
    native(b"set MKL_VERBOSE =1, see onednn_verbose, or MKL_VERBOSE is great\\n")
    native("grüße\\n".encode() + b"\\xff\\xfe not utf-8\\n")
"""


def successful(result: subprocess.CompletedProcess[bytes]) -> bytes:
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    return result.stdout


def sorted_lines(text: bytes) -> list[bytes]:
    return sorted(text.split(b"\n"))


@pytest.mark.parametrize("capture", ["stdout", "descriptor"])
def test_own_output_is_byte_identical(program: Program, capture: str) -> None:
    plain = successful(program(PRELUDE + OWN_OUTPUT + "everything()"))
    recorded = successful(
        program(
            PRELUDE
            + OWN_OUTPUT
            + f"""
with cpulens.record(capture={capture!r}) as recording:
    everything()
assert calls(recording.raw()) == 4, recording.raw()
"""
        )
    )
    # Native text waits for the end of the block, so lines may stand elsewhere; none may change, vanish or double.
    assert sorted_lines(recorded) == sorted_lines(plain)
    if capture == "descriptor":
        assert recorded == plain


def test_pythons_print_stays_in_place_and_live(program: Program) -> None:
    code = (
        PRELUDE
        + """
print("before", flush=True)
with cpulens.record() as recording:
    print("one", flush=True)
    kernel()
    print("two", end="", flush=True)
    import time
    time.sleep(3)
print("after", flush=True)
"""
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    seen = b""
    started = time.monotonic()
    while b"two" not in seen:
        seen += os.read(process.stdout.fileno(), 4096)
    assert seen == b"before\none\ntwo"
    assert process.poll() is None, "it was seen while the block was still open"
    assert process.communicate()[0] == b"after\n"
    assert time.monotonic() - started < 60


def test_200000_lines_with_the_gil_held(program: Program) -> None:
    code = (
        PRELUDE
        + """
held = ctypes.PyDLL(None)  # its calls keep the GIL
line = b"onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx2,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.01\\n"
with cpulens.record() as recording:
    stream = ctypes.c_void_p.in_dll(libc, "stdout")
    held.fputs.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    held.fputs(line * 200_000, stream)
    kernel(2)
assert recording.raw().count(line) == 200_000
assert calls(recording.raw()) == 200_002
print("own")
"""
    )
    assert successful(program(code)) == b"own\n"


def test_a_thread_blocked_in_a_c_read_does_not_hang_it(program: Program) -> None:
    code = (
        PRELUDE
        + """
import threading, time
reading, writing = os.pipe()
libc.fdopen.restype = ctypes.c_void_p
libc.getc.argtypes = [ctypes.c_void_p]
stream = libc.fdopen(reading, b"r")
blocked = threading.Thread(target=libc.getc, args=(stream,), daemon=True)
blocked.start()
time.sleep(0.3)  # it holds that stream's lock now, in read(2)
with cpulens.record() as recording:
    kernel()
assert calls(recording.raw()) == 1
print("through", flush=True)
os.write(writing, b"x")
blocked.join(5)
"""
    )
    assert successful(program(code, timeout=60)) == b"through\n"


def test_fork_and_subprocess_inside_neither_double_nor_swallow(program: Program) -> None:
    code = (
        PRELUDE
        + """
import subprocess
native(b"first\\n")
with cpulens.record() as recording:
    libc.printf(b"%s", b"unflushed before fork;")
    kernel()
    pid = os.fork()
    if pid == 0:
        native(b"child native\\n")
        os.write(1, b"child descriptor\\n")
        kernel(3)
        os._exit(0)
    os.waitpid(pid, 0)
    native(b"parent native\\n")
    kernel()
    subprocess.run(["echo", "subprocess"])
    subprocess.run([sys.executable, "-c", "print('python subprocess')"])
assert calls(recording.raw()) == 5, recording.raw()
native(b"last\\n")
"""
    )
    output = successful(program(code))
    assert sorted_lines(output) == sorted_lines(
        b"first\nunflushed before fork;child native\nchild descriptor\nparent native\nsubprocess\npython subprocess\n"
        b"last\n"
    )
    assert output.startswith(b"first\n")
    assert output.endswith(b"last\n")


def test_a_forked_child_that_leaves_the_block_prints_on_and_the_parent_hands_on_what_it_printed(
    program: Program,
) -> None:
    code = (
        PRELUDE
        + """
recording = cpulens.record()
with recording:
    kernel()
    pid = os.fork()
    if pid == 0:
        native(b"child inside\\n")
if pid == 0:
    native(b"child after the block\\n")
    kernel()                 # its level is the environment's again: no line
    os._exit(0)
os.waitpid(pid, 0)
assert calls(recording.raw()) == 1
native(b"parent after\\n")
"""
    )
    output = successful(program(code))
    assert sorted_lines(output) == sorted_lines(b"child inside\nchild after the block\nparent after\n")


def test_a_child_that_outlives_the_block_is_not_swallowed(program: Program) -> None:
    code = (
        PRELUDE
        + """
ready, go = os.pipe()
with cpulens.record() as recording:
    pid = os.fork()
    if pid == 0:
        os.read(ready, 1)
        native(b"late child\\n")
        os._exit(0)
os.write(go, b"x")
os.waitpid(pid, 0)
"""
    )
    assert successful(program(code)) == b"late child\n"


def test_a_forked_child_can_record_for_itself(program: Program) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as outer:
    kernel()
    pid = os.fork()
    if pid == 0:
        with cpulens.record() as inner:
            kernel(2)
            native(b"child text\\n")
        os._exit(0 if calls(inner.raw()) == 2 else 1)
    status = os.waitpid(pid, 0)[1]
assert status == 0
assert calls(outer.raw()) == 1, outer.raw()
"""
    )
    assert successful(program(code)) == b"child text\n"


def test_a_crash_inside_leaves_a_readable_spill(program: Program, tmp_path: Path) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as recording:
    kernel(5)
    ctypes.string_at(0)  # a real segmentation fault
"""
    )
    result = program(code, TMPDIR=str(tmp_path))
    assert result.returncode == -11
    (spill,) = tmp_path.iterdir()
    assert spill.stat().st_mode & 0o777 == 0o600
    assert spill.read_bytes().count(b",exec,") == 5
    top = subprocess.run([sys.executable, "-m", "cpulens", "top", str(spill)], capture_output=True, text=True)
    assert top.returncode == 0, top.stderr
    assert "matmul" in top.stdout


def test_a_good_end_leaves_nothing_behind(program: Program, tmp_path: Path) -> None:
    code = (
        PRELUDE
        + """
with cpulens.record() as recording:
    kernel()
"""
    )
    successful(program(code, TMPDIR=str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("capture", ["stdout", "descriptor"])
def test_a_closed_descriptor_1(tmp_path: Path, capture: str) -> None:
    code = (
        PRELUDE
        + f"""
with cpulens.record(capture={capture!r}) as recording:
    native(b"to nowhere\\n")
    kernel(2)
assert calls(recording.raw()) == 2, recording.raw()
try:
    os.fstat(1)
except OSError:
    pass
else:
    sys.exit("descriptor 1 was taken")
sys.stderr.write("ok")
"""
    )
    script = tmp_path / "closed.py"
    script.write_text(code)
    result = subprocess.run(["sh", "-c", f'exec "{sys.executable}" "{script}" >&-'], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "ok")


def test_nested_and_overlapping_recordings_get_their_slices(program: Program) -> None:
    code = (
        PRELUDE
        + """
outer, left, right = cpulens.record(), cpulens.record("ON_CREATION"), cpulens.record()
with outer:
    kernel(1)
    left.__enter__(); kernel(2)
    right.__enter__(); kernel(4)
    left.__exit__(None, None, None); native(b"text\\n"); kernel(8)
    right.__exit__(None, None, None)
kernel(16)
print(calls(outer.raw()), calls(left.raw()), calls(right.raw()), flush=True)
print(left.raw().count(b",create:") >= 2, right.raw().count(b",create:"), flush=True)
"""
    )
    assert successful(program(code)) == b"text\n15 6 12\nTrue 0\n"


def test_recordings_in_threads(program: Program) -> None:
    code = (
        PRELUDE
        + """
import threading
def work():
    for _ in range(50):
        with cpulens.record() as recording:
            kernel()
        assert calls(recording.raw()) >= 1
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
kernel()
print("quiet")
"""
    )
    assert successful(program(code)) == b"quiet\n"


def test_a_size_limit_stops_with_a_clear_word(program: Program) -> None:
    code = (
        PRELUDE
        + """
import time
with cpulens.record(max_bytes=5000) as recording:
    while recording.is_open:
        kernel()
    say = "still inside"
    kernel()
raw = recording.raw()
assert 0 < len(raw) <= 5000 and raw.endswith(b"\\n")
print(recording.notes)
"""
    )
    assert b"5,000 bytes" in successful(program(code, timeout=60))


def test_a_full_disk_is_said(program: Program, tmp_path: Path) -> None:
    code = (
        PRELUDE
        + """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with cpulens.record() as recording:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))  # fails like a full disk
    kernel(50)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(recording.notes)
"""
    )
    assert b"is the disk full?" in successful(program(code))


def test_no_folder_for_the_spill_is_one_sentence(program: Program) -> None:
    code = """
import tempfile, cpulens
tempfile.tempdir = "/nowhere"
with cpulens.record():
    pass
"""
    result = program(code)
    assert result.returncode == 1
    assert b"CaptureError: no spill file can be made" in result.stderr.splitlines()[-1]


def test_it_works_under_pytest_itself(program: Program, tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(
        PRELUDE
        + """
def test_inner(capfd):
    with cpulens.record() as recording:
        kernel()
        native(b"native text\\n")
    assert calls(recording.raw()) == 1
    assert capfd.readouterr().out == "native text\\n"
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stdout


def test_importing_the_package_loads_no_third_party_module(program: Program) -> None:
    code = """
import sys
before = set(sys.modules)
import cpulens
print(sorted(name for name in set(sys.modules) - before
             if name.partition(".")[0] not in sys.stdlib_module_names and not name.startswith("cpulens")))
"""
    assert successful(program(code)) == b"[]\n"


def test_recording_and_its_raw_text_need_the_standard_library_alone(program: Program, tmp_path: Path) -> None:
    """The slim install: no polars, no numpy, no rich."""
    code = f"""
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("polars", "numpy", "rich"):
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Blocker())
import cpulens
with cpulens.record() as recording:
    with cpulens.region("a"):
        cpulens.iteration()
recording.save({str(tmp_path / "raw.log")!r})
print(open({str(tmp_path / "raw.log")!r}).read().count("cpulens,v1,"))
"""
    assert successful(program(code)) == b"3\n"
