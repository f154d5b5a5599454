"""Replaying whole runs: which problems, beside which times of the run, what could not run and why."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cpulens
from analyze_support import header, run, sgemm, tensors
from cpulens.errors import UsageError
from cpulens.measure.replay import replay
from cpulens.native import onednn

DEMO = Path(__file__).parents[3] / "examples" / "demo.py"
QUICK = 0.005


@pytest.fixture(scope="module")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "demo.cpulens"
    subprocess.run([sys.executable, str(DEMO), str(path)], check=True, capture_output=True, timeout=120)
    return path


def test_every_kernel_of_the_demo_runs_again_as_itself(demo_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trace = cpulens.Trace.open(demo_run)
    result = replay(trace, top=None, kinds=(), budget_s=QUICK)
    assert not result.refused
    assert not result.left_out
    assert {one.primitive for one in result.replayed} == {"fft", "sgemm", "reorder", "convolution", "matmul", "softmax"}
    for one in result.replayed:
        assert one.implementation == one.run_implementation
        assert one.same_problem
        assert one.by_library
        assert one.layouts == {}
        assert one.best_ms <= min(one.hot_ms, one.median_ms)
        assert one.verdict in ("kernel", "caches", "pages", "program", "first", "faster", "unknown")
    assert sum(one.share for one in result.replayed) == pytest.approx(1)
    assert [one.total_ms for one in result.replayed] == sorted((one.total_ms for one in result.replayed), reverse=True)
    versions = [{one["library"]: one["version"] for one in side} for side in (result.run_libraries, result.libraries)]
    assert versions[0] == versions[1]
    assert capfd.readouterr() == ("", "")


def test_variants(demo_run: Path) -> None:
    trace = cpulens.Trace.open(demo_run)
    result = replay(trace, top=None, threads=1, budget_s=QUICK)
    by_kind = {one.primitive: {(other.kind, other.name): other for other in one.variants} for one in result.replayed}
    assert ("layout", "any") in by_kind["matmul"]
    assert {("type", "bf16"), ("type", "f16"), ("type", "int8")} <= set(by_kind["convolution"])
    assert {("type", "bf16")} <= set(by_kind["softmax"])
    assert all(kind != "type" for kind, _ in by_kind["reorder"])
    for variants in by_kind.values():
        for one in variants.values():
            assert (one.trouble is None) == (one.median_ms is not None)
    assert all(one.threads == 1 for one in result.replayed)


def test_problems_come_with_the_times_of_the_run() -> None:
    log = (
        header() + "".join(run(time, problem="48x32:32x16") for time in (9.0, 2.0, 4.0)) + run(50.0, problem="8x4:4x2")
    )
    result = replay(cpulens.load(log.encode()), top=1, kinds=(), budget_s=QUICK)
    (one,) = result.replayed
    assert (one.problem, one.calls, one.total_ms, one.run_median_ms) == ("8x4:4x2", 1, 50.0, 50.0)
    assert one.verdict == "first"
    assert result.left_out == 1
    (one, other) = replay(cpulens.load(log.encode()), kinds=(), budget_s=QUICK).replayed
    assert (other.calls, other.total_ms, other.run_median_ms) == (3, 15.0, 3.0)
    assert other.ratio == pytest.approx(3.0 / other.median_ms)


def test_what_can_not_run_is_listed_with_a_reason() -> None:
    odd = tensors(src="f32:ab", wei="f32:ab", dst="f32:ab")
    lines = {
        run(1.0, "pooling", descriptors=tensors(src="f32:abcd", dst="f32:abcd")): "not a kind",
        run(1.0, problem="*x4:4x4"): "at run time",
        run(1.0, descriptors=tensors(src="f32:ab", dst="f32:ab")): "no weights",
        run(1.0, descriptors=odd).replace(",cpu,", ",gpu,"): "ran on gpu",
        run(1.0, descriptors=odd.replace("src:f32", "src:f4_e2m1")): "f4_e2m1",
        run(1.0, descriptors=odd.replace(",", "")).replace(",,,", ",attr-acc-mode:f16,,"): "acc-mode",
        run(1.0).replace(",,,", ",attr-post-ops:prelu:2,,"): "prelu",
        run(1.0).replace(",,,", ",attr-scales:wei:3:f16:32x1,,"): "no groups",
        run(1.0, problem="100000x100000:100000x100000"): "are free",
        run(1.0, problem="4x8:9x4"): "no matrix product",
        run(1.0, descriptors=tensors(src="f32:ab", wei="f32:Zz9", dst="f32:ab")): "Zz9",
        run(1.0).replace(",undef,", ",backward_data,"): "forward only",
        "MKL_VERBOSE DGETRF(64,64,0x1,64,0x2,0) 10.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2\n": "not a routine",
        "MKL_VERBOSE SGEMM_BATCH(N,N,0x1,0x1,0x1,0x1,0x1,0x1) 10.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2\n": "sizes",
        sgemm(1.0).replace("0x2,64", "0x2,3"): "below",
        sgemm(1.0).replace("0x2,64", "0x2,-64"): "no positive number",
        sgemm(1.0, size=400_000): "are free",
        "MKL_VERBOSE FFT(scfo99999999999,desc:0x1) 9.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2\n": "are free",
        run(
            1.0,
            "eltwise",
            descriptors=tensors(src="f32:ab", dst="f32:ab"),
            problem="2x2",
            auxiliary="alg:eltwise_relu alpha:x beta:0",
        ): "its numbers",
        run(1.0, descriptors=odd.replace("ab::f0", "ab:*x1:f0")): "its numbers",
        run(
            1.0,
            "convolution",
            descriptors=tensors(src="f32:abcd", wei="f32:abcd", dst="f32:abcd"),
            problem="mb1_ic1oc1_ih9oh9kh1sh0dh0ph0_iw9ow9kw1sw0dw0pw0",
        ).replace("undef", "forward_training"): "of 0",
    }
    for line, reason in lines.items():
        result = replay(cpulens.load((header() + line).encode()), kinds=(), budget_s=QUICK)
        assert not result.replayed, line
        (refused,) = result.refused
        assert reason in refused.reason, (line, refused.reason)
        assert "\n" not in refused.reason


def test_several_versions_of_the_same_spelling_are_the_same_problem() -> None:
    descriptors = tensors(src="u8:ab", wei="s8:ab", dst="f32:ab")
    line = run(1.0, descriptors=descriptors, problem="8x64:64x16")
    line = line.replace(",,,8x", ",attr-scales:src0:0:f32+wei:0:f32 attr-zero-points:src0:0:s32,,8x")
    (one,) = replay(cpulens.load((header() + line).encode()), kinds=(), budget_s=QUICK).replayed
    assert one.same_problem


def test_impossible_requests() -> None:
    trace = cpulens.load((header() + run(1.0)).encode())
    for options in ({"threads": 0}, {"kinds": ("colour",)}):
        with pytest.raises(UsageError):
            replay(trace, **options)


def test_levels_and_threads_are_put_back() -> None:
    from cpulens.backends import openmp, verbosity

    before = openmp.get_num_threads(), verbosity.level("onednn")
    replay(cpulens.load((header() + run(1.0)).encode()), threads=1, kinds=("threads",), budget_s=QUICK)
    assert (openmp.get_num_threads(), verbosity.level("onednn")) == before


def command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cpulens", "replay", *words], capture_output=True, text=True, cwd=folder, timeout=120
    )


def test_text_and_json(tmp_path: Path) -> None:
    evil = run(1.0, "pool\x1b[2J")
    (tmp_path / "run.log").write_text(header(version="3.99.0") + run(2.0) + sgemm(3.0) + evil)
    text = command("run.log", "--threads", "1", folder=tmp_path)
    assert text.returncode == 0, text.stderr
    assert text.stderr == ""
    assert "\x1b" not in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 120
    assert f"here: {onednn.version()}" in text.stdout
    assert "run:  3.99.0" in text.stdout
    found = json.loads(command("run.log", "--threads", "1", "--variants", "none", "--json", folder=tmp_path).stdout)
    assert found["schema"] == 1
    assert [one["primitive"] for one in found["replayed"]] == ["sgemm", "matmul"]
    assert all(one["verdict"] in text.stdout for one in found["replayed"] if one["verdict"] == "program")
    assert [one["calls"] for one in found["refused"]] == [1]


def test_nothing_to_replay(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(header() + run(1.0, "sum"))
    done = command("run.log", folder=tmp_path)
    assert done.returncode == 1
    assert "not a kind that replay runs" in done.stdout
    assert command("run.log", "--threads", "0", folder=tmp_path).returncode == 2
    assert command("run.log", "--variants", "colour", folder=tmp_path).returncode == 2


def test_own_numbers_are_filled_in_every_type() -> None:
    from cpulens.measure.replay import filling
    from cpulens.native.onednn.types import DataType

    for dtype in (DataType.f32, DataType.bf16, DataType.f16, DataType.u8, DataType.s8, DataType.s32):
        values = filling.numbers((700, 700), dtype, 1)
        assert len(np.unique(values)) > 5
        assert values.shape == (700, 700)
