"""The pytest plugin in pytest processes of its own, on real kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

import cpulens
from tests_support import Program

Run = Callable[..., subprocess.CompletedProcess[str]]

#: The library is loaded before the first test: what is loaded inside of a recording is switched on too late.
START = """
import numpy as np
import pytest
from cpulens.native import onednn

def product(size):
    a = np.ones((size, size), "float32")
    onednn.matmul(a, a)

product(3)
"""


@pytest.fixture
def run_pytest(tmp_path: Path) -> Run:
    """Run pytest on this code with the plugin and xdist, no others, and warnings as errors."""

    def run(code: str, *options: str, start: str = START, **environ: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_kernels.py").write_text(start + code)
        command = [sys.executable, "-m", "pytest", "-p", "cpulens.pytest_plugin", "-p", "xdist.plugin", "-W", "error"]
        # Where CI is set, pytest repeats whole messages in its summary.
        dropped = ("CI", "BUILD_NUMBER")
        clean = {name: value for name, value in os.environ.items() if "VERBOSE" not in name and name not in dropped}
        clean |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200", "OMP_WAIT_POLICY": "passive", **environ}
        return subprocess.run(
            [*command, "-p", "no:cacheprovider", "--strict-markers", *options],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def outcomes(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    last = done.stdout.strip().splitlines()[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|errors?)", last)}


def test_marks_hold_and_fail(run_pytest: Run) -> None:
    done = run_pytest("""
@pytest.mark.kernels(require="matmul", forbid="ref*|convolution", max_reorder_share=0.1, max_ms=60_000)
def test_holds():
    product(32)

@pytest.mark.kernels(forbid="matmul")
@pytest.mark.kernels(require="*nothing_is_called_so*")
def test_breaks_two():
    product(48)
""")
    assert done.returncode == 1 and outcomes(done) == {"passed": 1, "failed": 1}
    assert "forbid='matmul': it ran matmul " in done.stdout
    assert "require='*nothing_is_called_so*': nothing that ran matches it" in done.stdout
    what_ran = done.stdout.partition("What ran:")[2]
    assert re.search(r"^onednn +matmul +\S+ +\d", what_ran, re.MULTILINE), what_ran
    assert "Traceback" not in done.stdout and "direct cause" not in done.stdout


def test_nothing_recorded_fails_a_marked_test_with_the_reason(run_pytest: Run) -> None:
    done = run_pytest("""
@pytest.mark.kernels(forbid="ref*")
def test_runs_nothing():
    pass
""")
    assert done.returncode == 1
    assert "nothing was recorded; the oneDNN in libdnnl" in done.stdout
    assert "exception" not in done.stdout


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('forbidden="ref*"', "it was given forbidden"),
        ("max_ms=-1", "max_ms=-1 is not a time in milliseconds"),
        ('"ref*"', "takes its words by name"),
    ],
)
def test_a_mark_that_can_not_be_read_fails_its_test_only(run_pytest: Run, words: str, told: str) -> None:
    done = run_pytest(f"""
@pytest.mark.kernels({words})
def test_marked():
    product(8)

def test_other():
    pass
""")
    assert outcomes(done) == {"passed": 1, "failed": 1}
    assert f"@pytest.mark.kernels: {told}" in done.stdout or told in done.stdout
    assert "Traceback" not in done.stdout


def test_a_test_keeps_its_own_outcome(run_pytest: Run) -> None:
    done = run_pytest("""
@pytest.mark.kernels(forbid="matmul")
def test_own_failure():
    product(8)
    assert False, "its own words"

@pytest.mark.kernels(require="matmul")
def test_skipped():
    pytest.skip("not here")

@pytest.mark.xfail(strict=True)
@pytest.mark.kernels(forbid="matmul")
def test_expected_to_fail():
    product(8)
""")
    assert outcomes(done) == {"failed": 1, "skipped": 1, "xfailed": 1}
    assert "its own words" in done.stdout


def test_the_fixture_is_the_test_s_own_recording(run_pytest: Run) -> None:
    done = run_pytest("""
@pytest.fixture
def prepared():
    product(16)

def test_so_far(kernel_trace, prepared):
    product(32)
    assert kernel_trace.trace.texts["problem"].drop_nulls().to_list() == ["32x32:32x32"]
    product(48)
    assert kernel_trace.trace.frame.collect()["problem"].drop_nulls().to_list() == ["32x32:32x32", "48x48:48x48"]

def test_what_ran_is_shown_with_a_failure(kernel_trace):
    product(32)
    assert not kernel_trace.summary().rows

def test_capture_is_left_alone(kernel_trace, capfd):
    print("python")
    product(8)
    out, err = capfd.readouterr()
    assert (out, err) == ("python\\n", "")
""")
    assert outcomes(done) == {"passed": 2, "failed": 1}, done.stdout
    assert re.search(r"Captured kernels call -+\n.*onednn +matmul", done.stdout, re.DOTALL)


def test_every_test_is_recorded_on_request_and_apart(run_pytest: Run, tmp_path: Path) -> None:
    code = """
@pytest.mark.parametrize("size", [16, 32, 48, 64])
def test_product(size):
    product(size)

def test_silent():
    pass
"""
    done = run_pytest(code, "-n", "2", "--kernel-trace-dir", "runs", "--junitxml=result.xml")
    assert done.returncode == 0, done.stdout + done.stderr
    runs = {
        path.name: cpulens.load(path).texts["problem"].drop_nulls().to_list()
        for path in Path(tmp_path, "runs").iterdir()
    }
    assert {name.partition("-test_product-")[2][:2]: found for name, found in runs.items()} == {
        str(size): [f"{size}x{size}:{size}x{size}"] for size in (16, 32, 48, 64)
    }
    table = done.stdout.partition("kernels of oneDNN and oneMKL")[2]
    assert {int(size) for size in re.findall(r"test_product\[(\d+)\], matmul ", table)} == {16, 32, 48, 64}
    assert "nothing was recorded of 1 of 5 tests" in table
    cases = {case.get("name"): case for case in ET.parse(tmp_path / "result.xml").getroot().iter("testcase")}
    properties = {one.get("name"): one.get("value") for one in cases["test_product[16]"].iter("property")}
    assert properties["kernels_calls"] == "1" and float(properties["kernels_ms"] or -1) >= 0
    assert not list(cases["test_silent"].iter("property"))


def test_marks_under_xdist(run_pytest: Run) -> None:
    code = """
@pytest.mark.kernels(forbid="matmul")
@pytest.mark.parametrize("size", [16, 32, 48])
def test_product(size):
    product(size)
"""
    done = run_pytest(code, "-n", "2")
    assert outcomes(done) == {"failed": 3}
    assert len(re.findall(r"^onednn +matmul ", done.stdout, re.MULTILINE)) == 3


@pytest.mark.torch
def test_pytorch(run_pytest: Run) -> None:
    done = run_pytest(
        """
@pytest.mark.kernels(require="convolution", forbid="ref*")
def test_holds():
    convolve()

@pytest.mark.kernels(forbid="convolution")
def test_breaks():
    convolve()
""",
        start="""
import pytest
import torch

def convolve():
    with torch.inference_mode():
        torch.nn.functional.conv2d(torch.ones(4, 64, 56, 56), torch.ones(64, 64, 3, 3))
""",
    )
    assert outcomes(done) == {"passed": 1, "failed": 1}, done.stdout
    assert re.search(r"forbid='convolution': it ran convolution \S+ \(\d+ call", done.stdout), done.stdout


def test_without_polars_it_is_one_sentence(run_pytest: Run, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import sys\nsys.modules['polars'] = None\n")
    code = """
@pytest.mark.kernels(forbid="ref*")
def test_marked():
    product(8)

def test_lines_only(kernel_trace):
    product(8)
    assert b"matmul" in kernel_trace.raw()
"""
    done = run_pytest(code)
    assert outcomes(done) == {"passed": 1, "failed": 1}
    assert "@pytest.mark.kernels: Tables need polars" in done.stdout and "Traceback" not in done.stdout
    refused = run_pytest(code, "--kernel-trace")
    assert refused.returncode == 4
    assert "--kernel-trace needs polars, which is not installed" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_folder_that_can_not_be_made(run_pytest: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = run_pytest("", "--kernel-trace-dir", "file/runs")
    assert refused.returncode == 4 and "--kernel-trace-dir file/runs can't be made" in refused.stderr


def test_it_costs_next_to_nothing_where_nobody_asks(program: Program) -> None:
    done = program("""
        import sys
        import pytest
        before = set(sys.modules)
        import cpulens.pytest_plugin
        print(*sorted(set(sys.modules) - before))
    """)
    assert done.stdout.decode().split() == ["cpulens", "cpulens._version", "cpulens.pytest_plugin"], done.stderr


def test_an_untouched_session_loads_nothing_of_it(run_pytest: Run) -> None:
    code = """
def test_modules():
    import sys
    assert {name for name in sys.modules if name.startswith("cpulens.")} == {
        "cpulens._version", "cpulens.pytest_plugin"
    }
    assert "polars" not in sys.modules and "numpy" not in sys.modules
"""
    done = run_pytest(code, start="")
    assert outcomes(done) == {"passed": 1}, done.stdout
    assert "oneMKL" not in done.stdout


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"cpulens": "cpulens.pytest_plugin"}
