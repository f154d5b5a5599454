"""`cpulens repro`: the script, JSON, exit codes, and running a benchdnn."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from analyze_support import header, run, sgemm

#: What benchdnn 3.13 printed for one problem, with the perf template that is asked for.
PASSED = """cpulens,brg:avx512_core,0.000488281,0.00251746
tests:1 passed:1 skipped:0 mistrusted:0 unimplemented:0 invalid_arguments:0 failed:0 listed:0
total perf: min(ms):0.000488281 avg(ms):0.00251746
"""
UNIMPLEMENTED = """0:UNIMPLEMENTED (0 ms) __REPRO: --mode=P --matmul 8x8:8x8
tests:1 passed:0 skipped:0 mistrusted:0 unimplemented:1 invalid_arguments:0 failed:0 listed:0
"""


def repro(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cpulens", "repro", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)


def test_script_and_json_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(header() + run(2.0) + run(1.0, problem="8x8:8x8") + sgemm(3.0))
    text = repro("run.log", folder=tmp_path)
    assert text.returncode == 0, text.stderr
    assert subprocess.run(["sh", "-n"], input=text.stdout, text=True).returncode == 0
    found = json.loads(repro("run.log", "--json", folder=tmp_path).stdout)
    assert found["schema"] == 1
    assert [one["arguments"][-1] for one in found["problems"]] == ["64x64:64x64", "8x8:8x8"]
    assert all(one["command"] in text.stdout.splitlines() for one in found["problems"])
    (refused,) = found["not_expressed"]
    assert "oneMKL" in refused["reason"]
    assert refused["reason"] in text.stdout


def test_a_benchdnn_is_run_for_each_problem(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(header() + run(2.0) + run(1.0, problem="8x8:8x8") + run(0.5, problem="4x4:4x4"))
    stand_in = tmp_path / "benchdnn"
    stand_in.write_text(
        f"#!/bin/sh\necho \"$@\" >> asked\ncase \"$*\" in *' 8x8:8x8') cat <<'E'\n{UNIMPLEMENTED}E\nexit 1;; "
        f"*' 4x4:4x4') kill -SEGV $$;; esac\ncat <<'E'\n{PASSED}E\n"
    )
    stand_in.chmod(0o755)
    done = repro("run.log", "--benchdnn", str(stand_in), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "# benchdnn: best 0.0004883 ms, mean 0.002517 ms, brg:avx512_core" in done.stdout
    assert "# benchdnn: unimplemented" in done.stdout
    assert "# benchdnn: ended by SIGSEGV" in done.stdout
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 3
    assert all("--mode=P" in line and "--matmul" in line and "--perf-template=" in line for line in asked)


def test_nothing_to_express_and_bad_programs(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(sgemm(3.0))
    assert repro("run.log", folder=tmp_path).returncode == 1
    (tmp_path / "run.log").write_text(run(3.0))
    missing = repro("run.log", "--benchdnn", "./none", folder=tmp_path)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert "--benchdnn takes the path" in missing.stderr
