"""The roofline on logs whose figures are worked out by hand, and the rates that the summary shows."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cpulens
from cpulens.analyze.attainable import choose, data_type, threads
from cpulens.analyze.roofline import roofline
from cpulens.analyze.summary import summarize
from cpulens.cli import main
from cpulens.errors import LogError
from cpulens.machine import peaks as known
from cpulens.machine.peaks import Peaks, Product, Stream
from cpulens.report.json_text import summary_object
from cpulens.report.roofline import roofline_text
from cpulens.report.terminal import summary_text

CONDITIONS = {"cpu": "A processor", "architecture": "x86_64", "cpus_allowed": [0, 1]}
#: 100 GFLOP/s in f32, 400 in bf16; 200 GB/s up to 1 MB, 50 to 100 MB, 10 beyond.
PEAKS = Peaks(
    2,
    {
        "f32": Product(100.0, "onednn", "brg:avx512_core", 1024),
        "bf16": Product(400.0, "mkl", "gemm_bf16bf16f32", 1024),
        "int8": Product(800.0, "onednn", "brg:avx512_core_amx", 1024),
    },
    (
        Stream("copy", 1_000_000, 150.0, "mkl"),
        Stream("read", 1_000_000, 200.0, "mkl"),
        Stream("triad", 100_000_000, 50.0, "mkl"),
        Stream("copy", 1_000_000_000, 10.0, "onednn"),
    ),
    CONDITIONS,
    "2026-01-01T00:00:00+0000",
)

HEADER = """\
onednn_verbose,v1,info,oneDNN v3.6.0 (commit 1111111111111111111111111111111111111111)
onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2
"""
MATMUL = (
    "onednn_verbose,v1,primitive,exec,cpu,matmul,brg:avx512_core,undef,"
    "src:{dt}::blocked:ab::f0 wei:{dt}::blocked:ab::f0 dst:{dt}::blocked:ab::f0,{attributes},,{m}x{k}:{k}x{n},{ms}\n"
)
REORDER = (
    "onednn_verbose,v1,primitive,exec,cpu,reorder,jit:uni,undef,"
    "src:f32::blocked:ab::f0 dst:f32::blocked:ba::f0,,,{m}x{n},{ms}\n"
)
#: A primitive that no formula is known for.
UNKNOWN = "onednn_verbose,v1,primitive,exec,cpu,novel,jit:uni,undef,src:f32::blocked:ab::f0,,,8x8,{ms}\n"


def matmul(m, k, n, ms, dt="f32", attributes=""):
    return MATMUL.format(m=m, k=k, n=n, ms=ms, dt=dt, attributes=attributes)


@pytest.fixture
def trace(tmp_path):
    def load(*lines):
        path = tmp_path / "run.log"
        path.write_text(HEADER + "".join(lines))
        return cpulens.load(path)

    return load


def test_a_kernel_that_computes_and_one_that_moves(trace):
    # 1000³: 2 GFLOP, 12 MB. At 100 GFLOP/s 20 ms; the bytes at 200 GB/s take 0.06 ms.
    # A reorder of 1000 × 1000: 8 MB at 200 GB/s: 0.04 ms.
    result = roofline(
        trace(matmul(1000, 1000, 1000, 40), matmul(1000, 1000, 1000, 60), REORDER.format(m=1000, n=1000, ms=0.1)),
        PEAKS,
        by="primitive",
    )
    product, copy = result.kernels
    assert product.key == ("matmul",)
    assert (product.calls, product.total_ms, product.bound) == (2, 100, "compute")
    assert product.perfect_ms == pytest.approx(40)
    assert product.lost_ms == pytest.approx(60)
    assert product.efficiency == pytest.approx(0.4)
    assert product.gflops_per_s == pytest.approx(40)
    assert product.attainable_gflops_per_s == pytest.approx(100)
    assert product.gbytes_per_s == pytest.approx(0.24)
    assert product.intensity == pytest.approx(2e9 / 12e6)
    assert (copy.key, copy.bound, copy.intensity) == (("reorder",), "memory", 0)
    assert copy.perfect_ms == pytest.approx(0.04)
    assert copy.efficiency == pytest.approx(0.4)
    assert result.perfect_ms == pytest.approx(40.04)
    assert result.known_ms == result.total_ms == pytest.approx(100.1)
    assert result.efficiency == pytest.approx(40.04 / 100.1)
    assert result.lost_ms == pytest.approx(60.06)
    assert result.unknown == ()


def test_the_peak_is_that_of_the_data_type(trace):
    lines = [matmul(1000, 1000, 1000, 10, "bf16"), matmul(1000, 1000, 1000, 10, "f32", "attr-fpmath:bf16")]
    for one in roofline(trace(*lines), PEAKS, by="src_dt").kernels:
        assert one.perfect_ms == pytest.approx(5)  # both at the peak of bf16


def test_small_products_are_limited_by_memory(trace):
    # One row of 5000 by 5000 × 5000: 50 MFLOP take 0.5 ms, 100.04 MB at 50 GB/s 2 ms: two operations for each weight.
    (one,) = roofline(trace(matmul(1, 5000, 5000, 4)), PEAKS).kernels
    assert one.bound == "memory"
    assert one.perfect_ms == pytest.approx(4e3 * (5000 + 25e6 + 5000) / 1e9 / 50)
    assert one.attainable_gflops_per_s == pytest.approx(one.intensity * 50)


@pytest.mark.parametrize(
    ("size", "expected"), [(1, 200), (1_000_000, 200), (99e6, 200), (100e6, 50), (1e9 - 1, 50), (1e9, 10), (1e12, 10)]
)
def test_bandwidth_is_that_of_the_memory_that_holds_the_data(size, expected):
    assert PEAKS.bandwidth(size) == expected


def test_bandwidth_never_grows_with_size():
    # A larger size that was measured faster (noise) shows what the smaller one could have been, too.
    noisy = PEAKS._replace(streams=(*PEAKS.streams, Stream("copy", 10_000_000, 300.0, "mkl")))
    assert noisy.bandwidth(10) == 300
    assert PEAKS._replace(streams=()).bandwidth(10) is None


@given(st.floats(1, 1e12), st.floats(1, 1e12))
def test_bandwidth_is_monotone(one, other):
    assert (PEAKS.bandwidth(min(one, other)) or 0) >= (PEAKS.bandwidth(max(one, other)) or 0)


def test_what_has_no_cost_or_no_peak_is_told_apart(trace):
    result = roofline(
        trace(matmul(100, 100, 100, 1), UNKNOWN.format(ms=2), matmul(100, 100, 100, 3, "f16")), PEAKS, by="primitive"
    )
    assert [one.key for one in result.kernels] == [("matmul",)]
    assert result.known_ms == pytest.approx(1)
    assert result.total_ms == pytest.approx(6)
    assert dict(result.unknown) == {"matmul": pytest.approx(3), "novel": pytest.approx(2)}
    only = roofline(trace(UNKNOWN.format(ms=2)), PEAKS)
    assert (only.kernels, only.efficiency, only.perfect_ms) == ((), None, 0)
    assert "no kernel has both a cost and a peak" in roofline_text(only)


def test_a_partition_counts_once(trace):
    """A partition's time holds its primitives': what it adds to them has no model."""
    partition = (
        "onednn_verbose,v1,graph,exec,cpu,100003,matmul_post_ops,mm,,in0_f32:0:strided:undef:100x100:100s1 "
        "in1_f32:1:strided:undef:100x100:100s1 out0_f32:3:strided:undef:100x100:100s1,fpm:strict,"
        "larger_partition_kernel_t,dnnl_backend,{ms}\n"
    )
    result = roofline(trace(matmul(100, 100, 100, 1), partition.format(ms=1.5)), PEAKS, by="primitive")
    assert result.total_ms == pytest.approx(1.5)
    assert result.known_ms == pytest.approx(1)
    assert dict(result.unknown) == {"graph partitions": pytest.approx(0.5)}


def test_types_that_decide_the_peak():
    def onednn(primitive, src, wei=None, **more):
        return data_type({"library": "onednn", "primitive": primitive, "src_dt": src, "wei_dt": wei, **more})

    assert onednn("matmul", "u8", "s8") == "int8"
    assert onednn("convolution", "bf16", "bf16") == "bf16"
    assert onednn("matmul", "bf16", "u4", attributes="attr-fpmath:bf16:true") == "bf16"
    assert onednn("eltwise", "bf16") == "f32"  # no matrix unit helps an eltwise
    assert onednn("matmul", "f8_e4m3", "f8_e4m3") is None
    assert data_type({"library": "mkl", "primitive": "zgemm", "src_dt": "cf64", "wei_dt": "cf64"}) == "f64"
    assert data_type({"library": "mkl", "primitive": "gemm_s8u8s32", "src_dt": "s8", "wei_dt": "u8"}) == "int8"
    assert data_type({"library": "mkl", "primitive": "mkl_sparse_c_mm", "src_dt": None}) == "f32"


def test_which_peaks_fit_a_run(trace):
    run = trace(matmul(10, 10, 10, 1))
    assert threads(run.facts, run.texts) == 2
    other = PEAKS._replace(threads=8)
    with pytest.raises(LogError, match=r"used 2 threads.*none are known.*cpulens peak --threads 2"):
        choose(run, [PEAKS])  # a raw log doesn't say on which host it was made
    run.facts["machine"] = dict(CONDITIONS)
    assert choose(run, [other, PEAKS]) == (PEAKS, "this host, which has the same processor and CPUs")
    with pytest.raises(LogError, match=r"those that are known are for 8 threads"):
        choose(run, [other])
    run.facts["machine"]["cpu"] = "Another processor"
    with pytest.raises(LogError):
        choose(run, [PEAKS])
    run.facts["peaks"] = [{"schema": 99}, "?", other.record(), PEAKS.record()]
    assert choose(run, [])[0] == PEAKS


def test_peaks_survive_their_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = PEAKS._replace(conditions={**known.host(), "libraries": {"onednn": "3.6.0"}})
    assert known.known() == []
    path = known.store(here)
    assert known.load(path) == here
    elsewhere = here._replace(conditions={**here.conditions, "host": "another"})
    known.store(elsewhere)
    (tmp_path / "cpulens" / "peaks" / "damaged.json").write_text("{")
    assert known.known() == [here]
    (carried,) = known.carried()
    assert "host" not in carried["conditions"]
    assert known.from_record(json.loads(json.dumps(carried)))._replace(conditions={}) == here._replace(conditions={})
    newer = here._replace(
        measured="2027-01-01T00:00:00+0000", conditions={**here.conditions, "environment": {"A": "1"}}
    )
    known.store(newer)
    assert known.known() == [newer, here]
    assert len(known.carried()) == 1


def test_the_better_of_two_measurements():
    disturbed = PEAKS._replace(
        products={"f32": Product(10.0, "mkl", "sgemm", 512, False), "f64": Product(50.0, "mkl", "dgemm", 512, False)},
        streams=(Stream("copy", 1_000_000, 160.0, "mkl", False), Stream("triad", 100_000_000, 5.0, "mkl", False)),
    )
    for both in (PEAKS.better(disturbed), disturbed.better(PEAKS)):
        assert both.products["f32"].gflops_per_s == 100
        assert both.products["f64"].gflops_per_s == 50
        assert both.bandwidth(50e6) == 200
        assert {one.gbytes_per_s for one in both.streams} == {160, 200, 50, 10}
        assert both.unsettled == ["f64", "copy"]


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_rates_that_can_not_be_are_refused(rate):
    record = PEAKS.record()
    record["gemm"]["f32"]["gflops_per_s"] = rate
    assert known.from_record(record) is None


def test_the_command(trace, tmp_path, capsys):
    trace(matmul(1000, 1000, 1000, 40), REORDER.format(m=1000, n=1000, ms=0.1), UNKNOWN.format(ms=1))
    path = tmp_path / "peaks.json"
    path.write_text(json.dumps(PEAKS.record()))
    assert main(["roofline", str(tmp_path / "run.log"), "--peaks", str(path)]) == 0
    text = capsys.readouterr().out
    assert "20.0 ms would be enough for 40.1 ms of it (50.0 %)" in text
    assert "1.00 ms in novel" in text
    assert main(["roofline", str(tmp_path / "run.log"), "--peaks", str(path), "--json", "--by", "primitive"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == 1
    assert [one["primitive"] for one in found["kernels"]] == ["matmul", "reorder"]
    assert found["kernels"][0]["efficiency"] == pytest.approx(0.5)
    assert found["unknown"] == [{"primitive": "novel", "total_ms": 1.0}]
    assert main(["roofline", str(tmp_path / "run.log"), "--peaks", str(tmp_path / "run.log")]) == 2
    assert "holds no peaks" in capsys.readouterr().err
    assert main(["roofline", str(tmp_path / "run.log")]) == 1


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_terminal_of_any_width(trace, width):
    result = roofline(trace(*(matmul(1000 + n, 1000, 1000, 40 + n) for n in range(5))), PEAKS, origin="\x1b[31m")
    text = roofline_text(result, limit=2, width=width)
    assert "\x1b" not in text
    assert "3 more rows" in text
    if width >= 80:
        assert all(len(line) <= width for line in text.splitlines())


def test_the_summary_shows_what_was_achieved(trace):
    run = trace(matmul(1000, 1000, 1000, 40), matmul(1000, 1000, 1000, 10), UNKNOWN.format(ms=1))
    summary = summarize(run, "primitive")
    product, other = summary.rows
    assert product.gflops_per_s == pytest.approx(2 * 2e9 / 50e-3 / 1e9)
    assert product.gbytes_per_s == pytest.approx(2 * 12e6 / 50e-3 / 1e9)
    assert (other.gflops_per_s, other.gbytes_per_s) == (None, None)
    assert summary_object(summary)["rows"][0]["gflops_per_s"] == product.gflops_per_s
    wide, narrow = summary_text(summary, width=120), summary_text(summary, width=52)
    assert "GFLOP/s" in wide and "80.0" in wide and "GB/s" in wide
    assert "GFLOP/s" not in narrow
    only = summarize(trace(UNKNOWN.format(ms=1)), "primitive")
    assert "GFLOP/s" not in summary_text(only, width=120)


def test_a_row_of_known_and_unknown_costs_counts_the_known_time(trace):
    summary = summarize(trace(matmul(1000, 1000, 1000, 20), UNKNOWN.format(ms=80)), "library")
    (row,) = summary.rows
    assert row.total_ms == pytest.approx(100)
    assert row.gflops_per_s == pytest.approx(100)
