"""Every example runs, and shows what it says it shows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*command: str, cwd: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if "VERBOSE" not in name}
    environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environ['PATH']}"
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environ, timeout=180)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("example", "words"),
    [
        ("pytorch_inference.py", ["oneDNN", "oneMKL", "convolution", "sgemm", "the slowest: "]),
        ("native_inference.py", ["feed forward", "matmul", "softmax", "projection", "sgemm"]),
        ("read_log.py", ["onednn, 3.12.0", "'read': 96", "convolution created 3 times (miss)"]),
    ],
)
def test_each_example_runs(tmp_path: Path, example: str, words: list[str]) -> None:
    output = run(sys.executable, str(EXAMPLES / example), cwd=tmp_path)
    for word in words:
        assert word in output


def test_the_launch_example_pins_both_instances(tmp_path: Path) -> None:
    output = run("sh", str(EXAMPLES / "launch.sh"), cwd=tmp_path)
    assert "package 0" in output
    for instance in (0, 1):
        assert any(line.startswith(f"[{instance}] ") and "sgemm" in line for line in output.splitlines())


def test_the_demo(tmp_path: Path) -> None:
    """The whole way: launched by run_cpu, recorded, printed, saved, read again, and equal to the lines themselves."""
    demo = tmp_path / "demo.py"
    # What the process has loaded at its end tells how many OpenMP runtimes it has.
    demo.write_text(
        f"import runpy, sys\nsys.argv[0] = {str(EXAMPLES / 'demo.py')!r}\n"
        f"recording = runpy.run_path(sys.argv[0], run_name='demo')['main']()\n"
        "from cpulens.native import loaded\n"
        "print('runtimes', {one.name.partition('.')[0] for one in loaded.objects() if 'omp' in one.name})\n"
    )
    output = run("run_cpu", "--disable-iomp", "--ninstances", "1", str(demo), "demo.cpulens", cwd=tmp_path)
    for word in ("convolution", "matmul", "reorder", "softmax", "sgemm", "fft", "wall time"):
        assert word in output
    assert "runtimes {'libgomp'}" in output
    found = json.loads(run(sys.executable, "-m", "cpulens", "top", "demo.cpulens", "--json", cwd=tmp_path))
    assert {row["primitive"] for row in found["rows"]} == {
        "convolution", "matmul", "reorder", "softmax", "sgemm", "fft",
    }  # fmt: skip
    assert 0 < found["total_ms"] <= found["facts"]["wall_ms"]
    lines = found["lines"]
    assert lines["read"] == lines["records"] + lines["own"] + lines["unknown"]
    assert lines["unknown"] == 0
