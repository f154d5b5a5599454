"""Each rule on logs written by hand: when it speaks, what it says, and when it is silent."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyze_support import F32, found_in, header, lines_named, mark, moved, run, sgemm, tensors, trace_of
from cpulens.analyze.findings import SEVERITIES, Finding, Thresholds, find
from cpulens.analyze.findings.refusals import in_plain_words
from cpulens.errors import UsageError

BF16 = tensors(src="bf16:ab", wei="bf16:ab", dst="bf16:ab")
ONE_CPU = {"machine": {"cpus_allowed": [0], "cores_allowed": 1, "quota_cpus": None, "isa": ["avx2"]}}


def test_a_clean_trace_gives_no_finding() -> None:
    lines = [run(1.0), run(0.5, "softmax", "jit:avx2", "64x64", tensors(src="f32:ab", dst="f32:ab"))] * 30
    machine = {"cpus_allowed": [0, 1], "cores_allowed": 2, "quota_cpus": None, "isa": ["avx2"]}
    assert find(trace_of(header(), *lines, machine=machine, openmp=["/lib/libgomp.so.1"], wall_ms=50.0)) == ()


def test_reference_kernels_with_their_refusals() -> None:
    refusal = (
        f"onednn_verbose,v1,primitive,create:dispatch,matmul,cpu,matmul,brg_matmul:avx2,undef,{F32},,,8x8:8x8,"
        "unsupported post-ops,src/cpu/x64/matmul/brgemm_matmul.cpp:12\n"
    )
    short = "onednn_verbose,v1,primitive,create:dispatch,gemm,weird reason nobody knows,src/cpu/gemm.cpp:7\n"
    creation = run(0.1, implementation="ref:any", problem="8x8:8x8", operation="create:cache_miss")
    slow = [run(3.0, implementation="ref:any", problem="8x8:8x8")] * 2
    found = found_in(trace_of(run(4.0), refusal, short, creation, *slow))["reference-kernel"]
    assert found.cost_ms == pytest.approx(6.0)
    assert found.numbers["share"] == pytest.approx(0.6)
    sentences = [piece.sentence for piece in found.evidence]
    assert "can't fuse these post-operations" in sentences[1]
    assert "brgemm_matmul.cpp:12" in sentences[1]
    assert sentences[2] == 'refused: gemm: "weird reason nobody knows", src/cpu/gemm.cpp:7'
    assert lines_named(found) == {2, 3, 5}
    assert "reference-kernel" not in found_in(trace_of(run(200.0), *slow))


def test_a_composite_with_ref_in_its_name_is_no_reference() -> None:
    name = "ref_fused_convolution:any:brgconv_1x1:avx512_core:brdgmm_dw:avx512_core"
    problem = "mb1_ic8oc8_ih8oh8kh1sh1dh0ph0_iw8ow8kw1sw1dw0pw0"
    assert "reference-kernel" not in found_in(trace_of(run(5.0, "convolution", name, problem)))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("unsupported isa", "instruction set is missing"),
        ("datatype configuration not supported on this isa", "no kernel for these data types"),
        ("tensors o_d and dst have inconsistent datatypes", "don't go together"),
        ("unsupported datatype", "doesn't compute in these data types"),
        ("unsupported format tag", "these layouts"),
        ("memory formats for src and dst tensors do not match", "these layouts"),
        ("unsupported memory stride", "other strides"),
        ("unsupported feature for padding: f,t,l padding not supported", "can't pad"),
        ("unsupported attribute", "one of the attributes"),
        ("scratchpad memory limit exceeded", "work space"),
        ("src has a bad number of dimensions 4", "another number of dimensions"),
        ("small shapes fall back", "too small"),
    ],
)
def test_refusals_in_plain_words(message: str, words: str) -> None:
    assert words in (in_plain_words(message) or "")


def test_weights_reordered_in_each_pass() -> None:
    problem = "mb1_ic64oc64_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1"
    layouts = tensors(src="f32:aBcd8b", wei="f32:ABcd8b8a", dst="f32:aBcd8b")
    packing = moved(1.0, "64x64x3x3", "f32:abcd", "f32:ABcd8b8a")
    convolution = run(2.0, "convolution", "jit:avx2", problem, layouts)
    found = found_in(trace_of(*[packing, convolution] * 4))["weights-reordered"]
    assert found.cost_ms == pytest.approx(3.0)  # four times 1 ms, of which the first is needed
    assert found.numbers["passes"] == 4
    assert "as convolution jit:avx2 takes them" in found.evidence[0].sentence
    # Packed once, before: fine. Another tensor in the same layout that no kernel takes as weights: not weights.
    assert "weights-reordered" not in found_in(trace_of(packing, *[convolution] * 4))
    other = moved(1.0, "32x64x3x3", "f32:abcd", "f32:ABcd8b8a")
    assert "weights-reordered" not in found_in(trace_of(*[other, convolution] * 4))


def test_weights_of_several_equal_layers_in_one_pass_are_no_repetition() -> None:
    problem = "mb1_ic64oc64_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1"
    layouts = tensors(src="f32:aBcd8b", wei="f32:ABcd8b8a", dst="f32:aBcd8b")
    layer = [moved(1.0, "64x64x3x3", "f32:abcd", "f32:ABcd8b8a"), run(2.0, "convolution", "jit:avx2", problem, layouts)]
    one_pass = [mark("iteration"), *layer * 4]
    assert "weights-reordered" not in found_in(trace_of(*one_pass))
    found = found_in(trace_of(*one_pass * 3))["weights-reordered"]
    assert found.cost_ms == pytest.approx(12 * 2 / 3)


def test_an_activation_that_a_product_takes_as_its_second_matrix_is_no_weights() -> None:
    layouts = tensors(src="f32:abc", wei="f32:acb", dst="f32:abc")
    lines = [moved(1.0, "4x8x8", "f32:abc", "f32:acb"), run(1.0, problem="4x8x8:4x8x8", descriptors=layouts)] * 4
    assert "weights-reordered" not in found_in(trace_of(*lines))


def test_layout_ping_pong_counts_no_reorder_twice() -> None:
    there, back = moved(1.0, "1x8x8x8", "f32:abcd", "f32:aBcd8b"), moved(2.0, "1x8x8x8", "f32:aBcd8b", "f32:abcd")
    work = run(5.0)
    found = found_in(trace_of(there, work, back, there, work, back, there))["layout-ping-pong"]
    assert found.numbers["pairs"] == 2  # there and back, twice; the last one is left over
    assert found.cost_ms == pytest.approx(6.0)


def test_layout_ping_pong_reaches_only_so_far_and_names_who_forces_it() -> None:
    there, back = moved(1.0, "1x8x8x8", "f32:abcd", "f32:aBcd8b"), moved(1.0, "1x8x8x8", "f32:aBcd8b", "f32:abcd")
    binary = run(0.5, "binary", "jit:uni", "1x8x8x8:1x8x8x8", tensors(src="f32:abcd", dst="f32:abcd"))
    found = found_in(trace_of(run(5.0), back, binary, there))["layout-ping-pong"]
    assert "between: binary jit:uni" in found.evidence[0].sentence
    assert found.evidence[0].lines == (2, 4)
    assert "layout-ping-pong" not in found_in(trace_of(there, *[run(1.0)] * 9, back))
    other = moved(1.0, "1x8x9x9", "f32:aBcd8b", "f32:abcd")
    assert "layout-ping-pong" not in found_in(trace_of(there, run(1.0), other))


def test_type_ping_pong_is_told_from_layout() -> None:
    there, back = moved(1.0, "8x8", "f32:ab", "bf16:ab"), moved(1.0, "8x8", "bf16:ab", "f32:ab")
    found = found_in(trace_of(there, run(1.0), back))
    assert "type-ping-pong" in found and "layout-ping-pong" not in found


def test_reorder_share_splits_by_purpose() -> None:
    problem = "mb1_ic64oc64_ih8oh8kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1"
    layouts = tensors(src="f32:aBcd8b", wei="f32:ABcd8b8a", dst="f32:aBcd8b")
    lines = [
        moved(1.0, "64x64x3x3", "f32:abcd", "f32:ABcd8b8a"),
        moved(2.0, "1x64x8x8", "f32:abcd", "f32:aBcd8b"),
        moved(3.0, "8x8", "f32:ab", "bf16:ab"),
        run(4.0, "convolution", "jit:avx2", problem, layouts),
    ]
    found = found_in(trace_of(*lines))["reorder-share"]
    numbers = (found.numbers["weights_ms"], found.numbers["layouts_ms"], found.numbers["data_types_ms"])
    assert numbers == pytest.approx((1.0, 2.0, 3.0))
    assert found.numbers["share"] == pytest.approx(0.6)


def creation(size: int, time_ms: float = 0.5, state: str = "cache_miss") -> str:
    return run(time_ms, problem=f"{size}x8:8x8", operation=f"create:{state}")


def test_creations_that_miss_again() -> None:
    lines = [creation(size) for size in range(1, 13)] * 3
    found = found_in(trace_of(*lines, run(4.0), environment={"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8"}))["cache-misses"]
    assert found.cost_ms == pytest.approx(24 * 0.5)
    assert "12 distinct problems pass through a cache of 8" in found.evidence[0].sentence
    assert "CAPACITY=16" in found.next_step
    off = found_in(trace_of(*lines, run(4.0), environment={"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "0"}))["cache-misses"]
    assert "the cache is off" in off.evidence[0].sentence
    once = [creation(size) for size in range(1, 37)]
    assert "cache-misses" not in found_in(trace_of(*once, run(4.0)))


def test_new_shapes_in_the_later_half() -> None:
    growing = [line for size in range(1, 41) for line in (creation(size, 0.3), run(1.0, problem=f"{size}x8:8x8"))]
    found = found_in(trace_of(*growing))["new-shapes"]
    assert found.numbers["primitives"] == 19  # the half lies at the execution of size 21: 22 to 40 come after
    settled = [creation(size, 0.3) for size in range(1, 21)] + [
        run(1.0, problem=f"{size % 20 + 1}x8:8x8") for size in range(40)
    ]
    assert "new-shapes" not in found_in(trace_of(*settled))


def test_cold_first_calls() -> None:
    found = found_in(trace_of(run(9.0), *[run(1.0)] * 9))["cold-start"]
    assert found.cost_ms == pytest.approx(8.0)
    assert found.numbers["share"] == pytest.approx(8 / 18)
    assert "cold-start" not in found_in(trace_of(run(9.0), *[run(1.0)] * 90))
    assert "cold-start" not in found_in(trace_of(run(9.0), run(1.0)))  # two calls tell nothing


def test_first_call_of_mkl() -> None:
    found = found_in(trace_of(sgemm(400.0), *[sgemm(1.0)] * 20))["mkl-first-call"]
    assert found.cost_ms == pytest.approx(399.0)
    assert found.severity == "warning"
    assert "mkl-first-call" not in found_in(trace_of(*[sgemm(30.0)] * 20))
    once = found_in(trace_of(sgemm(400.0), *[sgemm(1.0, size=128)] * 20))["mkl-first-call"]
    assert once.cost_ms == pytest.approx(400.0)


AMX = "Intel AVX-512 with Intel DL Boost and bfloat16 support and Intel AMX with bfloat16 and 8-bit integer support"


def test_bf16_is_possible_and_float32_is_used() -> None:
    found = found_in(trace_of(header(isa=AMX), run(4.0), sgemm(2.0), run(4.0, "softmax", "jit:avx2", "8x8")))
    assert found["bf16-unused"].cost_ms == pytest.approx(3.0)  # half of both products
    assert "AMX" in found["bf16-unused"].title
    assert "bf16-unused" not in found_in(trace_of(header(isa="Intel AVX2"), run(4.0)))
    assert "bf16-unused" not in found_in(
        trace_of(header(isa=AMX), run(4.0, descriptors=BF16, implementation="brg:avx512_core_amx"))
    )
    relaxed = run(4.0).replace(f"{F32},,", f"{F32},attr-fpmath:bf16:true,")
    assert "bf16-unused" not in found_in(trace_of(header(isa=AMX), relaxed))


def test_amx_goes_unused_by_implementation() -> None:
    slow = run(4.0, implementation="brg_matmul:avx512_core_bf16", descriptors=BF16)
    assert "amx-unused" in found_in(trace_of(header(isa=AMX), slow))
    fast = run(4.0, implementation="brg_matmul:avx512_core_amx", descriptors=BF16)
    assert "amx-unused" not in found_in(trace_of(header(isa=AMX), fast))
    # A name with amx proves nothing for float32, and its absence is no fault there.
    assert "amx-unused" not in found_in(trace_of(header(isa=AMX), run(4.0)))
    no_amx = "Intel AVX-512 with Intel DL Boost and bfloat16 support"
    assert "amx-unused" not in found_in(trace_of(header(isa=no_amx), slow))


def test_vnni_goes_unused() -> None:
    int8 = tensors(src="u8:ab", wei="s8:ab", dst="f32:ab")
    isa = "Intel AVX-512 with Intel DL Boost"
    assert "vnni-unused" in found_in(
        trace_of(header(isa=isa), run(4.0, implementation="jit:avx512_core", descriptors=int8))
    )
    fast = run(4.0, implementation="brg_matmul:avx512_core_vnni", descriptors=int8)
    assert "vnni-unused" not in found_in(trace_of(header(isa=isa), fast))


def test_an_instruction_set_that_was_shut_off() -> None:
    machine = {"machine": {"isa": ["avx2", "avx512_core", "avx512_vnni", "amx_bf16"]}}
    variables = {"environment": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}
    found = found_in(trace_of(header(isa="Intel AVX2"), run(4.0), **machine, **variables))["isa-limited"]
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in found.next_step
    assert "AMX" in found.title
    assert "isa-limited" not in found_in(trace_of(header(isa=AMX), run(4.0), **machine))
    assert "isa-limited" not in found_in(trace_of(run(4.0), **machine))  # no header, no claim


def cpus(count: int, cores: int | None = None, quota: float | None = None) -> dict[str, object]:
    return {"machine": {"cpus_allowed": list(range(count)), "cores_allowed": cores or count, "quota_cpus": quota}}


def test_more_threads_than_cpus_or_quota() -> None:
    found = found_in(trace_of(header(threads=8), run(1.0), **cpus(2)))["too-many-threads"]
    assert (found.numbers["threads"], found.numbers["cpus"]) == (8, 2)
    assert "OMP_NUM_THREADS=2" in found.next_step
    by_quota = found_in(trace_of(header(threads=4), run(1.0), **cpus(8, quota=2.0)))["too-many-threads"]
    assert "a quota of 2 CPUs" in by_quota.title
    assert "too-many-threads" in found_in(trace_of(sgemm(1.0, threads=8), **cpus(2)))
    assert "too-many-threads" not in found_in(trace_of(header(threads=2), run(1.0), **cpus(2)))
    assert "too-many-threads" not in found_in(trace_of(header(threads=8), run(1.0)))  # unknown machine


def test_threads_on_siblings() -> None:
    found = found_in(trace_of(header(threads=8), run(1.0), **cpus(8, cores=4)))["smt-siblings"]
    assert "OMP_NUM_THREADS=4" in found.next_step
    assert "smt-siblings" not in found_in(trace_of(header(threads=4), run(1.0), **cpus(8, cores=4)))
    assert "smt-siblings" not in found_in(trace_of(header(threads=9), run(1.0), **cpus(8, cores=4)))  # too many anyway


def test_one_thread_where_more_cpus_are_allowed() -> None:
    found = found_in(trace_of(header(threads=1), run(8.0), **cpus(4)))["one-thread"]
    assert found.cost_ms == pytest.approx(6.0)
    assert "one-thread" in found_in(trace_of(sgemm(8.0, threads=1), **cpus(4)))
    # A program that calls from several threads of its own fills the CPUs by itself; one CPU is one thread.
    assert "one-thread" not in found_in(trace_of(sgemm(8.0, threads=1), sgemm(8.0, threads=1, caller=1), **cpus(4)))
    assert "one-thread" not in found_in(trace_of(header(threads=1), run(8.0), **cpus(1)))
    assert "one-thread" not in found_in(trace_of(header(threads=1), run(8.0), **cpus(4, quota=1.0)))


def test_two_openmp_runtimes() -> None:
    found = found_in(trace_of(run(1.0), openmp=["/a/libgomp.so.1", "/b/libiomp5.so"]))["two-openmp-runtimes"]
    assert "libgomp.so.1, libiomp5.so" in found.title
    assert "two-openmp-runtimes" not in found_in(trace_of(run(1.0), openmp=["/a/libgomp.so.1"]))


def test_tiny_kernels_on_many_threads() -> None:
    tiny = [run(0.005)] * 150
    found = found_in(trace_of(header(threads=2), *tiny))["tiny-kernels"]
    assert found.numbers["calls"] == 150
    assert "tiny-kernels" not in found_in(trace_of(header(threads=1), *tiny))
    assert "tiny-kernels" not in found_in(trace_of(header(threads=2), *tiny, run(50.0, problem="9x9:9x9")))


def test_a_heavy_tail() -> None:
    calls = [run(8.0) if number % 5 == 4 else run(1.0) for number in range(50)]
    found = found_in(trace_of(*calls))["heavy-tail"]
    assert found.cost_ms == pytest.approx(70.0)
    assert found.numbers["slow_calls"] == 10
    assert lines_named(found) <= {number + 1 for number in range(50) if number % 5 == 4}
    assert "heavy-tail" not in found_in(trace_of(*[run(1.0 + number % 3 / 10) for number in range(50)]))
    assert "heavy-tail" not in found_in(trace_of(*[run(1.0)] * 49, run(9.0)))  # one outlier is no tail
    assert "heavy-tail" not in found_in(trace_of(run(90.0), *[run(1.0)] * 49))  # a cold start is none either


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGILL", "SIGABRT", "SIGBUS", "SIGKILL"])
def test_a_crash_comes_first_and_names_the_last_kernel(name: str) -> None:
    code = 128 + signal.Signals[name].value
    found = find(trace_of(run(1.0, implementation="ref:any"), run(2.0, problem="7x7:7x7"), exit_code=code))
    assert found[0].code == "crash"
    assert name in found[0].title
    assert "7x7:7x7" in found[0].evidence[1].sentence
    assert found[0].evidence[1].lines == (2,)


@pytest.mark.parametrize("code", [0, 1, 2, 130, 141, 143])
def test_other_ends_are_no_crash(code: int) -> None:
    assert "crash" not in found_in(trace_of(run(1.0), exit_code=code))


def test_failed_calls() -> None:
    harmless = (
        "onednn_verbose,v1,primitive,exec:check,primitive,unused primitive execution argument (80),"
        "src/common/primitive_exec_types.cpp:136\n"
    )
    assert "failed-call" not in found_in(trace_of(harmless, run(1.0)))
    bad = (
        "onednn_verbose,v1,primitive,create:check,matmul,dimension src:1 is inconsistent with weights:0,"
        "src/common/matmul.cpp:69\n"
    )
    found = found_in(trace_of(harmless, run(1.0), bad))["failed-call"]
    assert "dimension src:1 is inconsistent with weights:0" in found.evidence[0].sentence
    assert found.evidence[0].lines == (3,)
    assert found.severity == "error"
    mkl = "\nIntel MKL ERROR: Parameter 9 was incorrect on entry to cblas_sgemm.\n"
    assert "Parameter 9" in found_in(trace_of(sgemm(1.0), mkl))["failed-call"].evidence[0].sentence


def test_lapack_info() -> None:
    def call(info: int) -> str:
        return f"MKL_VERBOSE SPOTRF(L,64,0x1,64,{info}) 12.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2\n"

    assert "lapack-info" not in found_in(trace_of(call(0)))
    found = found_in(trace_of(call(0), call(5)))["lapack-info"]
    assert "minor of order 5 is not positive definite" in found.evidence[0].sentence
    assert (found.severity, found.evidence[0].lines) == ("warning", (2,))
    assert found_in(trace_of(call(-4)))["lapack-info"].severity == "error"


def test_noise() -> None:
    refusal = (
        "onednn_verbose,v1,primitive,create:dispatch,matmul,unsupported isa,src/cpu/x64/matmul/brgemm_matmul.cpp:12\n"
    )
    assert "verbose-noise" in found_in(trace_of(*[refusal] * 1500, *[run(1.0)] * 100))
    assert "verbose-noise" not in found_in(trace_of(*[refusal] * 999, *[run(1.0)] * 100))
    assert "verbose-noise" not in found_in(trace_of(*[refusal] * 1500, *[run(1.0)] * 1600))


def test_cost_of_printing() -> None:
    # 1,000 lines at 4 µs each are 4 ms of 20.
    found = found_in(trace_of(*[run(0.01)] * 1000, wall_ms=20.0))["verbose-cost"]
    assert found.cost_ms == pytest.approx(4.0)
    assert "verbose-cost" not in found_in(trace_of(*[run(0.01)] * 1000, wall_ms=200.0))


def test_only_mkl_ran_though_onednn_was_asked() -> None:
    levels = {"levels": {"onednn": 1, "mkl": 1}}
    assert "mkl-only" in found_in(trace_of(*[sgemm(1.0)] * 5, **levels))
    assert "mkl-only" not in found_in(trace_of(*[sgemm(1.0)] * 5, run(1.0), **levels))
    assert "mkl-only" not in found_in(trace_of(*[sgemm(1.0)] * 5, levels={"onednn": 0, "mkl": 1}))
    assert "mkl-only" not in found_in(trace_of(*[sgemm(1.0)] * 5))  # a raw log doesn't tell what was asked


def test_low_efficiency_needs_the_peaks() -> None:
    peaks = {
        "schema": 1, "threads": 2, "conditions": {}, "measured": "2026-01-01T00:00:00+0000", "notes": [],
        "gemm": {"f32": {"gflops_per_s": 100.0, "library": "onednn", "implementation": None, "n": 2048}},
        "stream": [{"kernel": "copy", "size_bytes": 1 << 20, "gbytes_per_s": 10.0, "library": "onednn"}],
    }  # fmt: skip
    # 2 · 512³ operations at 100 GFLOP/s take 2.684 ms; 10 ms is 27 % of that.
    slow = [header(threads=2), *[run(10.0, problem="512x512:512x512")] * 3]
    found = found_in(trace_of(*slow, peaks=[peaks]))["low-efficiency"]
    assert found.cost_ms == pytest.approx(3 * (10.0 - 2 * 512**3 / 100e9 * 1e3), rel=1e-6)
    assert "low-efficiency" not in found_in(trace_of(*slow))
    assert "low-efficiency" not in found_in(
        trace_of(header(threads=2), *[run(4.0, problem="512x512:512x512")] * 3, peaks=[peaks])
    )


def test_errors_come_first_then_causes_then_costs() -> None:
    order = [("error", 1.0), ("warning", None), ("warning", 9.0), ("warning", 2.0), ("advice", None), ("advice", 99.0)]
    made = [Finding("x", severity, "", (), cost, "") for severity, cost in order]
    shuffled = [made[at] for at in (3, 0, 5, 2, 4, 1)]
    assert sorted(shuffled, key=lambda finding: finding.rank) == made


LINE = st.sampled_from(
    [
        run(1.0), run(0.0), run(5.0, implementation="ref:any"), sgemm(2.0), mark("iteration", at_ms=1.0),
        mark("layer", "a"),
        moved(1.0, "8x8", "f32:ab", "bf16:ab"), moved(1.0, "8x8", "bf16:ab", "f32:ab"), creation(3), header(),
        "onednn_verbose,v1,primitive,exec,cpu,matmul\n", "own text\n", run(1.0).replace(",1\n", ",nan\n"),
        "onednn_verbose,v1,graph,exec,cpu,100002,matmul_post_ops,mm,,in0_f32:1:strided:undef:8x8:8s1 "
        "out0_f32:2:strided:undef:8x8:8s1,fpm:strict,larger_partition_kernel_t,dnnl_backend,0.5\n",
        run(2.0, "convolution", "jit:avx2", "nonsense"), run(2.0, "reorder", "jit:uni", "", ""),
    ]
)  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(lines=st.lists(LINE, max_size=40), instances=st.booleans(), exit_code=st.sampled_from([None, 0, 139]))
def test_any_log_gives_findings_in_order_and_never_an_error(
    lines: list[str], instances: bool, exit_code: int | None
) -> None:
    if instances:
        lines = [f"[{number % 2}] {line}" for number, line in enumerate(lines)]
    facts = {} if exit_code is None else {"exit_code": exit_code, "wall_ms": 10.0}
    found = find(trace_of(run(1.0), *lines, **facts))
    assert [finding.rank for finding in found] == sorted(finding.rank for finding in found)
    for finding in found:
        assert finding.severity in SEVERITIES and finding.evidence and finding.next_step and finding.title


def test_thresholds_move_and_switch_off_rules() -> None:
    slow = trace_of(run(4.0), run(6.0, implementation="ref:any"))
    assert "reference-kernel" in found_in(slow)
    assert "reference-kernel" not in found_in(slow, reference_share=0.7)
    assert "reference-kernel" not in found_in(slow, disable=("reference-kernel",))
    assert "reference-kernel" not in found_in(slow, least_ms=7.0)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ({"reference-shares": 0.1}, "no threshold"),
        ({"reference-share": "much"}, "is a number"),
        ({"reference-share": 1.5}, "from 0 to 1"),
        ({"reference-share": True}, "is a number"),
        ({"tail-calls": 1.5}, "whole number"),
        ({"least-ms": -1}, "0 or more"),
        ({"disable": "cold-start"}, "list of codes"),
    ],
)
def test_settings_that_are_none_are_refused(table: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Thresholds.of(table)


def test_settings_are_read() -> None:
    limits = Thresholds.of({"least-ms": 2, "tail_calls": 30, "disable": ["cold-start"]})
    assert (limits.least_ms, limits.tail_calls, limits.disable) == (2.0, 30, ("cold-start",))
