"""What holds for every cost: it scales with the problem, nothing raises, and what is not said is unknown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_counting import call_row, row, spell
from cpulens.cost import UNKNOWN, cost_of

SIZE, FACTOR = st.integers(1, 64), st.integers(2, 9)


def matmul(m, k, n):
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    return cost_of(row("matmul", f"{m}x{k}:{k}x{n}", tensors))


@given(m=SIZE, k=SIZE, n=SIZE, factor=FACTOR)
def test_a_product_scales_with_each_dimension(m, k, n, factor):
    base = matmul(m, k, n)
    for scaled in (matmul(m * factor, k, n), matmul(m, k * factor, n), matmul(m, k, n * factor)):
        assert scaled.flops == factor * base.flops
        assert base.bytes < scaled.bytes < factor * base.bytes  # one operand stays
    assert matmul(m * factor, k * factor, n * factor).flops == factor**3 * base.flops


def convolution(mb=2, ic=4, oc=6, size=9, kernel=3, groups=1):
    tensors = [spell("src", "f32", 4), spell("wei", "f32", 4 + (groups > 1)), spell("dst", "f32", 4)]
    out = size - kernel + 1
    axes = "_".join(f"i{a}{size}o{a}{out}k{a}{kernel}s{a}1d{a}0p{a}0" for a in "hw")
    head = (f"g{groups}" if groups > 1 else "") + f"mb{mb}_ic{ic}oc{oc}"
    return cost_of(row("convolution", f"{head}_{axes}", tensors, auxiliary="alg:convolution_direct"))


@given(mb=SIZE, ic=SIZE, oc=SIZE, factor=FACTOR)
def test_a_convolution_scales_with_its_images_and_channels(mb, ic, oc, factor):
    base = convolution(mb, ic, oc)
    assert convolution(mb * factor, ic, oc).flops == factor * base.flops
    assert convolution(mb, ic * factor, oc).flops == factor * base.flops
    assert convolution(mb, ic, oc * factor).flops == factor * base.flops
    weights = 4 * oc * ic * 9
    assert convolution(mb * factor, ic, oc).bytes - weights == factor * (base.bytes - weights)
    assert convolution(mb, ic * factor, oc * factor, groups=factor).flops == factor * base.flops


@given(dims=st.lists(SIZE, min_size=1, max_size=5), factor=FACTOR)
def test_elementwise_costs_scale_with_their_elements(dims, factor):
    def cost(shape):
        text = "x".join(map(str, shape))
        return cost_of(row("eltwise", text, [spell("data", "f32", len(dims))], auxiliary="alg:eltwise_tanh"))

    base, scaled = cost(dims), cost([dims[0] * factor, *dims[1:]])
    assert scaled == (factor * base.flops, factor * base.bytes)


@given(dims=st.lists(SIZE, min_size=1, max_size=4))
@pytest.mark.parametrize(
    ("dt", "element"), [("f64", 8), ("f32", 4), ("bf16", 2), ("s8", 1), ("f8_e4m3", 1), ("u4", 0.5)]
)
def test_bytes_follow_the_data_type(dims, dt, element):
    tensors = [spell("src", dt, len(dims)), spell("dst", "f32", len(dims))]
    elements = 1
    for size in dims:
        elements *= size
    assert cost_of(row("reorder", "x".join(map(str, dims)), tensors)).bytes == elements * (element + 4)


@given(n=SIZE, c=SIZE, h=SIZE, block=st.sampled_from([4, 8, 16, 32]))
def test_a_blocked_layout_stores_whole_blocks(n, c, h, block):
    tensors = [spell("src", "f32", 3, f"aBc{block}b"), spell("dst", "f32", 3)]
    found = cost_of(row("reorder", f"{n}x{c}x{h}", tensors))
    assert found.bytes == 4 * n * h * (c + (c + block - 1) // block * block)


@given(lengths=st.lists(st.sampled_from([1, 2, 4, 16, 100]), min_size=1, max_size=3), batch=FACTOR)
def test_transforms_scale_with_their_batch(lengths, batch):
    text = "x".join(map(str, lengths))
    one = cost_of(call_row("fft", "fft", text, "cf32", auxiliary="domain:complex"))
    many = cost_of(call_row("fft", "fft", f"{text}*{batch}", "cf32", auxiliary="domain:complex"))
    assert many == (pytest.approx(batch * one.flops), batch * one.bytes)


@given(m=SIZE, n=SIZE, k=SIZE, factor=FACTOR)
def test_blas_scales(m, n, k, factor):
    def gemm(*sizes):
        return cost_of(call_row("blas", "dgemm", "m{}n{}k{}".format(*sizes), "f64", wei_dt="f64"))

    assert gemm(m * factor, n, k).flops == gemm(m, n * factor, k).flops == gemm(m, n, k * factor).flops
    assert gemm(m * factor, n, k).flops == factor * gemm(m, n, k).flops
    complexity = cost_of(call_row("blas", "zgemm", f"m{m}n{n}k{k}", "cf64", wei_dt="cf64"))
    assert complexity == (4 * gemm(m, n, k).flops, 2 * gemm(m, n, k).bytes)


def test_what_a_line_does_not_say_is_unknown():
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    assert cost_of(row("matmul", "*x32:32x64", tensors)) == UNKNOWN  # known at run time only
    assert cost_of(row("zero_pad", "", [])) == UNKNOWN
    assert cost_of(row("matmul", "8x4:4x6", [])) == (384, None)
    assert cost_of(row("matmul", "8x4:4x6", ["src:::blocked:ab::", *tensors[1:]])) == (384, None)  # mkldnn 0.x
    sparse = ["src:f32::sparse:csr::f0", *tensors[1:]]
    assert cost_of(row("matmul", "8x4:4x6", sparse)).bytes is None
    unknown = "attr-post-ops:something_new:3"
    assert cost_of(row("matmul", "8x4:4x6", tensors, attributes=unknown)) == UNKNOWN
    assert cost_of(row("eltwise", "8", [spell("data", "f32", 1)], auxiliary="alg:eltwise_new")) == (None, 64)


@pytest.mark.parametrize("event", ["create", "dispatch", "query", "begin", "unknown", None])
def test_only_executions_cost(event):
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    assert cost_of(row("matmul", "8x4:4x6", tensors) | {"event": event}) == UNKNOWN


def test_nothing_is_a_known_zero():
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    assert cost_of(row("matmul", "0x16:16x8", tensors)) == (0, 4 * 16 * 8)


def test_a_partition_of_a_graph_moves_its_ends():
    tensors = (
        "in0_f32:0:strided:undef:4x64:64s1 in1_bf16:1:strided:constant:64x32:32s1 out0_f32:3:strided:undef:4x32:32s1"
    )
    text = {"library": "onednn", "component": "graph", "event": "exec", "tensors": tensors}
    assert cost_of(text) == (None, 4 * 256 + 2 * 2048 + 4 * 128)
    assert cost_of(text | {"tensors": tensors.replace("4x32:", "any:")}) == UNKNOWN


PRIMITIVES = [
    "convolution", "deconvolution", "pooling", "matmul", "gemm_api", "inner_product", "sdpa", "gated_mlp", "rnn",
    "eltwise", "binary", "sum", "prelu", "softmax", "reduction", "reorder", "shuffle", "concat", "resampling",
    "batch_normalization", "layer_normalization", "group_normalization", "lrn",
]  # fmt: skip
ROUTINES = [
    "sgemm",
    "dgemm_batch",
    "strsm",
    "dgbmv",
    "dtbsv",
    "dgesv",
    "dormqr",
    "fft",
    "mkl_sparse_d_mm",
    "vdRngUniform",
]
LETTERS = "mb ic oc ih oh kh sh dh ph iw ow kw sw g l t m n k b nnz x : _ * - 0 1 2 3 16 a é ."
HUGE = [str(10**18 - 1), str(10**23)]
PIECES = st.lists(st.sampled_from([*LETTERS.split(), *HUGE, " "]), max_size=24).map("".join)
WORDS = st.lists(
    st.sampled_from(
        [
            "src:f32::blocked:ab::f0",
            "dst:f32::blocked:aBcd16b::f0",
            "wei:s4::blocked:ab:0x1:f0",
            "bia:f32::blocked:ab::f0_mask2",
            "data:f32::blocked:zz99z::f0",
            "src:f32::blocked:99999999999b::f0",
            "::::::",
            "query:f32::any:any::",
            "alg:x",
            "axis:1",
            "axis:-1",
            "flags:L,U",
            "flags:",
            "alg:vanilla_lstm",
            "msk:causal_bottom_right",
            "attr-post-ops:sum+eltwise_relu:nan+dw:k3s0p1",
            "attr-scales:wei:3:f16:0x0+src0:99999999999999",
            "attr-zero-points::",
            "format:csr",
            "direction:bidirectional_concat",
            "domain:real",
        ]
    ),
    max_size=5,
).map(" ".join)


@given(name=st.sampled_from(PRIMITIVES), problem=PIECES, tensors=WORDS, attributes=WORDS, auxiliary=WORDS, prop=WORDS)
def test_no_line_of_onednn_raises(name, problem, tensors, attributes, auxiliary, prop):
    check(row(name, problem, [tensors], attributes=attributes, auxiliary=auxiliary, prop_kind=prop))


@given(
    component=st.sampled_from(["blas", "lapack", "fft", "sparse", "rng", "new"]),
    routine=st.sampled_from(ROUTINES),
    problem=PIECES,
    dt=st.sampled_from(["f32", "cf64", "s8", "?", None]),
    auxiliary=WORDS,
)
def test_no_line_of_mkl_raises(component, routine, problem, dt, auxiliary):
    check(call_row(component, routine, problem, dt, auxiliary=auxiliary))


def check(text):
    found = cost_of(text)
    for value in found:
        assert value is None or (isinstance(value, float) and 0 <= value < float("inf"))


@pytest.mark.parametrize("size", [10**17, 10**18 - 1])
def test_sizes_beyond_all_measure_take_no_time(size):
    tensors = [spell("src", "f32", 4), spell("wei", "f32", 4), spell("dst", "f32", 4)]
    axes = "_".join(f"i{a}{size}o{a}{size}k{a}{size}s{a}1d{a}3p{a}0" for a in "hw")
    assert cost_of(row("convolution", f"mb1_ic1oc1_{axes}", tensors, auxiliary="alg:convolution_direct")) == UNKNOWN
    dims = "x".join([str(size)] * 12)
    assert cost_of(row("reorder", ":".join([dims]), [spell("src", "f32", 12), spell("dst", "f32", 12)])).flops == 0
