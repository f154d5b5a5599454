"""`cpulens doctor` as a person and as a script use it, also where the host or a module is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests_support import Program

MAIN = "import sys; from cpulens.cli import main; sys.exit(main(sys.argv[1:]))"
SOURCES = str(Path(__file__).parents[3] / "src")

#: /proc and /sys as a locked-down sandbox shows them: there, and unreadable.
LOCKED = """
import builtins, os
def _barred(path):
    return isinstance(path, (str, bytes)) and os.fsdecode(path).startswith(("/proc", "/sys"))
def _refusing(call):
    def guarded(path, *rest, **named):
        if _barred(path):
            raise PermissionError(13, "Permission denied", path)
        return call(path, *rest, **named)
    return guarded
builtins.open, os.open = _refusing(builtins.open), _refusing(os.open)
os.listdir, os.stat = _refusing(os.listdir), _refusing(os.stat)
"""


def doctor(program: Program, *arguments: str, before: str = "", **environ: str) -> subprocess.CompletedProcess[bytes]:
    return program(before + MAIN, "doctor", *arguments, **environ)


def facts(done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["schema"] == 1
    return found


def test_the_page(program: Program) -> None:
    done = doctor(program, COLUMNS="200")
    assert done.returncode == 0 and done.stderr == b""
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    for title in ("machine", "processor", "backends", "in this process", "variables"):
        assert title in lines
    assert b"\x1b" not in done.stdout


def test_json_has_every_part(program: Program) -> None:
    found = facts(doctor(program, "--json"))
    assert found["failures"] == {} and found["requirements"] == [] == found["imports"]
    assert found["machine"]["cpus_online"] and found["machine"]["groups"]
    assert set(found["backends"]) == {
        *("mkldnn", "mkl", "openmp", "nnpack", "kleidiai", "opt_einsum", "python_native"),
    }
    assert set(found["devices"]) == {"cuda", "cudnn", "cusparselt", "miopen", "mps"}
    for details in (*found["backends"].values(), *found["devices"].values()):
        assert isinstance(details["available"], bool) and details["reason"]
    # Looking at a host loads none of it.
    assert found["runtimes"] == found["blas"] == found["frameworks"] == []
    assert {"severity", "code", "sentence", "remedy"} >= {key for one in found["findings"] for key in one}


def test_allowed_cpus_are_this_process_own(program: Program) -> None:
    """A mask of one CPU, set by ourselves before: what the doctor says, and its word on it."""
    (first, *others) = sorted(os.sched_getaffinity(0))
    before = f"import os; os.sched_setaffinity(0, {{{first}}})\n"
    found = facts(doctor(program, "--json", before=before))
    assert found["machine"]["cpus_allowed"] == str(first)
    assert ("one-cpu" in {one["code"] for one in found["findings"]}) == bool(others)


def test_variables_and_their_origin(program: Program) -> None:
    before = "import os; os.environ['MKL_NUM_THREADS'] = '1'\n"
    found = facts(doctor(program, "--json", before=before, OMP_NUM_THREADS="4096"))
    origins = {one["name"]: one["origin"] for one in found["variables"]}
    assert origins["MKL_NUM_THREADS"] == "set in this process"
    # The test's own process started it with the variable, and had none itself.
    assert origins["OMP_NUM_THREADS"].startswith("set by ") and f"({os.getpid()})" in origins["OMP_NUM_THREADS"]
    assert "oversubscription" in {one["code"] for one in found["findings"]}


def test_requirements(program: Program) -> None:
    met = doctor(program, "--require", "openmp,mkldnn")
    assert met.returncode == 0
    assert [line.split(":")[0] for line in met.stdout.decode().splitlines()] == ["openmp", "mkldnn"]
    other = "sve" if os.uname().machine == "x86_64" else "avx512"
    failed = doctor(program, "--require", f"openmp,{other}")
    assert failed.returncode == 1
    assert failed.stderr.decode().startswith(f"cpulens doctor: {other} is required and can't be used: {other} is an")
    both = doctor(program, "--json", "--require", f"mkl,{other},kleidiai,cuda,acl")
    assert both.returncode == 1
    answers = {one["name"]: one["met"] for one in facts(both)["requirements"]}
    assert answers[other] is answers["cuda"] is False and len(answers) == 5
    unknown = doctor(program, "--require", "mkldn")
    assert unknown.returncode == 2
    assert unknown.stderr.decode().strip() == (
        "cpulens doctor: nothing is known by the name 'mkldn'; did you mean mkldnn?"
    )
    assert unknown.stdout == b""


def test_required_amx_is_the_kernels_word(program: Program) -> None:
    done = doctor(program, "--require", "amx")
    has = os.uname().machine == "x86_64" and "amx_tile" in Path("/proc/cpuinfo").read_text()
    if not has:
        assert done.returncode == 1 and b"amx" in done.stderr
    else:
        granted = facts(doctor(program, "--json"))["processor"]["amx"] == "granted"
        assert (done.returncode == 0) == granted


def test_modules_that_misbehave_at_import(program: Program, tmp_path: Path) -> None:
    (tmp_path / "noisy.py").write_text("import os\nprint('hello')\nos.write(1, b'from C')\n__version__ = '1.2'")
    (tmp_path / "broken.py").write_text("raise RuntimeError('two\\nlines \\x1b[31m')")
    (tmp_path / "leaving.py").write_text("import sys; sys.exit(3)")
    (tmp_path / "speechless.py").write_text("raise ValueError")
    names = "noisy,broken,leaving,speechless,missing"
    done = doctor(program, "--json", "--import", names, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    imports = {one["module"]: (one["version"], one["error"]) for one in facts(done)["imports"]}
    assert imports["noisy"] == ("1.2", None)
    assert imports["broken"] == (None, "RuntimeError: two lines \x1b[31m")
    assert imports["leaving"] == (None, "SystemExit: 3")
    assert imports["speechless"] == (None, "ValueError: no message")
    assert imports["missing"] == (None, "ModuleNotFoundError: No module named 'missing'")
    said = done.stderr.decode()
    assert "hello" in said and "from C" in said
    assert "cpulens doctor: leaving can't be imported: SystemExit: 3" in said
    assert "\x1b" not in said
    page = doctor(program, "--import", names, PYTHONPATH=str(tmp_path))
    assert page.returncode == 1 and b"\x1b" not in page.stdout and b"can't be imported" in page.stdout


def test_unreadable_proc_and_sys(program: Program) -> None:
    done = doctor(program, "--json", before=LOCKED)
    assert done.returncode == 0, done.stderr.decode()
    found = facts(done)
    assert found["machine"]["cpus_online"] is None and "lists no CPU" in found["machine"]["notes"][0]
    assert found["machine"]["cpus_allowed"], "the kernel still says so by a call"
    assert found["processor"]["capability"] and found["processor"]["notes"]
    assert set(found["tuning"].values()) == {None}
    page = doctor(program, before=LOCKED)
    assert page.returncode == 0 and b"Traceback" not in page.stderr
    text = " ".join(page.stdout.decode().split())
    assert "/sys/devices/system/cpu/online lists no CPU" in text and "/proc/cpuinfo can't be read" in text


def test_backends_answer_with_proc_and_sys_unreadable(program: Program) -> None:
    """Loaded objects are the dynamic linker's to tell, so /proc/self/maps is not missed."""
    done = program(
        LOCKED
        + """
import ctypes
ctypes.CDLL("libgomp.so.1")
from cpulens.backends import cpu, mkl, mkldnn, openmp, settings
assert [r.family for r in openmp.runtimes()] == ["GNU"]
assert isinstance(mkl.is_available(), bool) and mkldnn.why_not() and cpu.get_cpu_capability()
assert cpu.processor().notes == ("/proc/cpuinfo can't be read",)
assert cpu.microarchitecture().reason == "/proc/cpuinfo can't be read"
assert cpu.features() and cpu.why_not("nonsense")
assert settings.read("openmp.num_threads")
"""
    )
    assert done.returncode == 0, done.stderr.decode()


def test_a_part_that_fails_is_told_and_the_others_stay(program: Program) -> None:
    before = (
        "from cpulens.backends import blas, host\n"
        "def fail(*a): raise ZeroDivisionError('on purpose')\n"
        "blas.libraries = host.tuning = fail\n"
    )
    found = facts(doctor(program, "--json", before=before))
    assert found["failures"] == {
        "tuning": "ZeroDivisionError: on purpose",
        "BLAS": "ZeroDivisionError: on purpose",
    }
    assert found["machine"]["groups"]
    page = doctor(program, before=before).stdout.decode()
    assert "could not be looked at" in page and "ZeroDivisionError: on purpose" in page


def test_standard_library_alone() -> None:
    """The slim install: no package besides our sources, and the report is whole."""
    base = getattr(sys, "_base_executable", sys.executable)
    done = subprocess.run(
        [base, "-S", "-c", f"import sys; sys.path.insert(0, {SOURCES!r})\n{MAIN}", "doctor", "--json"],
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    found = facts(done)
    assert found["failures"] == {}
    assert found["processor"]["microarchitecture"]["reason"] == (
        "the package archspec is not installed: pip install archspec"
    )
    assert found["backends"]["mkl"]["available"] is False


def test_the_snapshot_is_quick_by_what_it_leaves_alone(program: Program) -> None:
    """No child, no third-party package, no library, and no change of the environment."""
    done = program(
        """
        import os, subprocess, sys
        from cpulens.backends import doctor
        from cpulens.native import loaded
        def refuse(*a, **k):
            raise AssertionError("a child was started")
        subprocess.Popen = refuse
        before, environ = loaded.load_count(), dict(os.environ)
        started_with = set(sys.modules) & {"_distutils_hack"}      # site-packages may run code at start
        found = doctor.snapshot()
        assert loaded.load_count() == before and dict(os.environ) == environ
        third = {name.partition(".")[0] for name, module in sys.modules.items()
                 if "site-packages" in (getattr(module, "__file__", None) or "")}
        assert third <= {"cpulens", *started_with}, third
        assert set(found) == {"machine", "processor", "tuning", "runtimes", "runtime_conflict", "allocators",
                              "variables", "pytorch"}
        import json
        assert len(json.dumps(found)) < 100_000
        other = doctor.snapshot({"OMP_NUM_THREADS": "7", "PATH": "/bin"})
        assert other["variables"] == {"OMP_NUM_THREADS": "7"} and "runtimes" not in other
        """
    )
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.torch
def test_with_pytorch_and_openvino_loaded_first(program: Program) -> None:
    done = doctor(program, "--json", "--import", "torch,openvino", "--require", "mkl,mkldnn,openmp,nnpack")
    assert done.returncode == 0, done.stderr.decode()
    found = facts(done)
    assert all(one["met"] for one in found["requirements"])
    assert "PyTorch 2." in found["backends"]["nnpack"]["reason"]
    assert {"PyTorch", "OpenVINO"} <= {one["title"] for one in found["frameworks"]}
    assert found["runtimes"][0]["family"] == "GNU"


@pytest.mark.torch
def test_a_binding_variable_caught_in_the_act(program: Program) -> None:
    """GNU's OpenMP binds the main thread when PyTorch is imported: real, and told with its cause."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.fail("two CPUs are needed to see a binding")
    found = facts(doctor(program, "--json", "--import", "torch", OMP_PROC_BIND="close"))
    codes = {one["code"]: one["sentence"] for one in found["findings"]}
    assert "loading torch changed the CPUs of this process" in codes["affinity-changed"]
    assert "bind-main-thread" in codes and "oversubscription" not in codes
    quiet = facts(doctor(program, "--json", "--import", "torch", OMP_PROC_BIND="false"))
    assert not {"affinity-changed", "bind-main-thread"} & {one["code"] for one in quiet["findings"]}


@pytest.mark.torch
def test_a_preloaded_runtime_starved_by_a_binding_variable(program: Program) -> None:
    """GNU's OpenMP, which comes with PyTorch, binds the main thread; the preloaded one then sees one CPU."""
    intel = os.path.join(sys.prefix, "lib", "libiomp5.so")
    found = facts(
        doctor(program, "--json", "--import", "torch", LD_PRELOAD=f"{intel}:/nonexistent.so", OMP_PROC_BIND="close")
    )
    threads = {one["family"]: one["threads"] for one in found["runtimes"]}
    codes = {one["code"]: one["severity"] for one in found["findings"]}
    assert threads["Intel"] == 1 and threads["GNU"] == len(os.sched_getaffinity(0))
    assert codes["bind-two-runtimes"] == codes["affinity-changed"] == codes["preload"] == "problem"
    assert codes["openmp-preloaded"] == "advice"
    assert found["allocators"]["preload_failed"] == ["/nonexistent.so"]


@pytest.mark.torch
def test_pytorch_installed_but_not_loaded_is_said(program: Program) -> None:
    page = " ".join(doctor(program).stdout.decode().split())
    assert "is installed but not loaded; --import torch looks into it" in page


def test_the_snapshot_is_in_every_trace(program: Program, tmp_path: Path) -> None:
    done = program(
        """
        import sys
        import numpy as np
        import cpulens
        from cpulens.native import onednn
        a = np.ones((16, 16), "float32")
        onednn.matmul(a, a)
        with cpulens.record() as recording:
            onednn.matmul(a, a)
        recording.trace.save(sys.argv[1])
        host = cpulens.load(sys.argv[1]).facts["host"]
        assert host["processor"]["usable"] and host["machine"]["groups"]
        assert [one["family"] for one in host["runtimes"]] == ["GNU"]
        assert host["variables"]["OMP_NUM_THREADS"] == "2"
        """,
        str(tmp_path / "own.cpulens"),
        OMP_NUM_THREADS="2",
    )
    assert done.returncode == 0, done.stderr.decode()
    child = "import numpy as np; from cpulens.native import onednn; a = np.ones((8, 8), 'float32'); onednn.matmul(a, a)"
    run = str(tmp_path / "child.cpulens")
    command = ["record", "-o", run, "--", sys.executable, "-c", child]
    assert program(MAIN, *command, OMP_NUM_THREADS="3").returncode == 0
    asked = program("import sys, cpulens; print(cpulens.load(sys.argv[1]).facts['host']['variables'])", run)
    assert b"'OMP_NUM_THREADS': '3'" in asked.stdout
