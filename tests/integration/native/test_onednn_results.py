"""Every oneDNN primitive on real data, against numpy in double precision.

Tolerances are bounds, not guesses. A sum of K products in f32, in any order, is off by at most (K + 2) u Σ|a||b| with
u = 2⁻²⁴; storing the result in a type of p bits adds 2⁻ᵖ of it (f32: 24, f16: 11, bf16: 8). Integers are exact.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cpulens.errors import NativeError
from cpulens.native import onednn

CPU_FLAGS = set(Path("/proc/cpuinfo").read_text().partition("flags")[2].partition("\n")[0].split())
PRECISION_BITS = {"f32": 24, "f16": 11, "bf16": 8}
#: Half of the smallest step, for results too small to have all their bits; f32 and bf16 may be flushed to 0.
TINY = {"f32": 2.0**-126, "f16": 2.0**-25, "bf16": 2.0**-126}
SMALL = st.integers(1, 9)
SEEDS = st.integers(0, 2**32 - 1)
check = settings(max_examples=30, deadline=None)

#: Types of (source, weights, result).
TYPES = [
    ("f32", "f32", "f32"),
    ("bf16", "bf16", "bf16"),
    ("bf16", "bf16", "f32"),
    ("f16", "f16", "f16"),
    ("f16", "f16", "f32"),
    ("u8", "s8", "s32"),
    ("s8", "s8", "s32"),
    ("u8", "s8", "f32"),
]
types = pytest.mark.parametrize("kinds", TYPES, ids="-".join)


def make(dtype: str, shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Any, Any]:
    """Random data of a oneDNN type, and the same values in f64."""
    if dtype in ("u8", "s8"):
        # Without VNNI instructions pairs of products are added in 16 bits: stay where that can't saturate.
        low, high = (0, 255) if dtype == "u8" else (-128, 127)
        if not CPU_FLAGS & {"avx512_vnni", "avx_vnni"}:
            low, high = (0, 63) if dtype == "u8" else (-32, 31)
        data = rng.integers(low, high, shape, endpoint=True).astype(np.uint8 if dtype == "u8" else np.int8)
        return data, data.astype(np.float64)
    values = rng.standard_normal(shape).astype(np.float32)
    if dtype == "bf16":
        bits = onednn.to_bf16(values)
        return bits, onednn.from_bf16(bits).astype(np.float64)
    data = values.astype(np.float16) if dtype == "f16" else values
    return data, data.astype(np.float64)


def supported(*dtypes: str) -> bool:
    """Whether this CPU has what oneDNN needs for the types."""
    needs = {"bf16": {"avx512bw"}, "f16": {"avx512_fp16"}}
    return all(needs.get(dtype, set()) <= CPU_FLAGS for dtype in dtypes)


def values_of(result: Any, dtype: str) -> Any:
    return (onednn.from_bf16(result) if dtype == "bf16" else result).astype(np.float64)


def assert_product(result: Any, exact: Any, magnitude: Any, terms: int, dtype: str) -> None:
    assert result.shape == exact.shape
    found = values_of(result, dtype)
    if dtype == "s32":
        np.testing.assert_array_equal(found, exact)
        return
    bound = (terms + 2) * 2.0**-24 * magnitude + 2.0 ** -PRECISION_BITS[dtype] * np.abs(exact) + TINY[dtype]
    excess = np.abs(found - exact) / bound
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    assert excess[worst] <= 1, f"at {worst}: {found[worst]!r} instead of {exact[worst]!r}, bound {bound[worst]!r}"


def run(call: Any, *dtypes: str) -> Any:
    """The call's result, or None where the CPU lacks the types and the library says so."""
    if supported(*dtypes):
        return call()
    with pytest.raises(NativeError, match="no implementation") as raised:
        call()
    assert raised.value.status == "unimplemented"
    return None


@types
@given(
    st.data(),
    st.lists(SMALL, min_size=0, max_size=2),
    SMALL,
    SMALL,
    SMALL,
    st.sampled_from(["plain", "any", {"weights": "any"}]),
    SEEDS,
)
@check
def test_matmul(
    kinds: tuple[str, str, str],
    data: st.DataObject,
    batch: list[int],
    m: int,
    k: int,
    n: int,
    formats: Any,
    seed: int,
) -> None:
    src, wei, dst = kinds
    rng = np.random.default_rng(seed)
    # A batch dimension may be broadcast on either side.
    left = tuple(1 if data.draw(st.integers(0, 3)) == 0 else size for size in batch)
    right = tuple(size if one == 1 or data.draw(st.booleans()) else 1 for size, one in zip(batch, left, strict=True))
    a, a64 = make(src, (*left, m, k), rng)
    b, b64 = make(wei, (*right, k, n), rng)
    if data.draw(st.booleans()):  # column-major operands, in place
        a, b = (np.ascontiguousarray(one.swapaxes(-1, -2)).swapaxes(-1, -2) for one in (a, b))
    bias, bias64 = make("f32", (n,), rng) if data.draw(st.booleans()) and dst != "s32" else (None, np.zeros(n))
    result = run(lambda: onednn.matmul(a, b, bias, dtype=dst, formats=formats), src, wei)
    if result is not None:
        magnitude = np.abs(a64) @ np.abs(b64) + np.abs(bias64)
        assert_product(result, a64 @ b64 + bias64, magnitude, k + 1, dst)


def convolve(x: Any, w: Any, strides: Any, dilation: Any, padding: Any, groups: int) -> Any:
    """Convolution as a sum over the kernel's points, in f64."""
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    kernel = w.shape[2:]
    sizes = [
        (size - (points - 1) * hole - 1) // step + 1
        for size, points, hole, step in zip(x.shape[2:], kernel, dilation, strides, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *sizes))
    channels, outputs = w.shape[1], w.shape[0] // groups
    for point in itertools.product(*(range(points) for points in kernel)):
        window = tuple(
            slice(at * hole, at * hole + (size - 1) * step + 1, step)
            for at, hole, size, step in zip(point, dilation, sizes, strides, strict=True)
        )
        for group in range(groups):
            ins, outs = slice(group * channels, (group + 1) * channels), slice(group * outputs, (group + 1) * outputs)
            seen = x[(slice(None), ins, *window)]
            result[:, outs] += np.einsum("oc,nc...->no...", w[(outs, slice(None), *point)], seen)
    return result


@types
@pytest.mark.parametrize("spatial", [1, 2, 3])
@given(st.data(), st.sampled_from(["plain", "any", {"weights": "any"}]), st.booleans(), SEEDS)
@settings(max_examples=15, deadline=None)
def test_convolution(
    kinds: tuple[str, str, str], spatial: int, data: st.DataObject, formats: Any, channels_last: bool, seed: int
) -> None:
    src, wei, dst = kinds
    rng = np.random.default_rng(seed)
    groups = data.draw(st.sampled_from([1, 1, 2, 4]))
    depthwise = data.draw(st.booleans())
    inputs, outputs = (1, 1) if depthwise else (data.draw(SMALL), data.draw(SMALL))
    size, kernel = (data.draw(st.lists(st.integers(1, high), min_size=spatial, max_size=spatial)) for high in (7, 3))
    strides, dilation = (
        data.draw(st.lists(st.integers(1, high), min_size=spatial, max_size=spatial)) for high in (3, 2)
    )
    spans = [(points - 1) * hole + 1 for points, hole in zip(kernel, dilation, strict=True)]
    # oneDNN 3.2 with AMX crashes, from C too, where a dilated kernel is longer than the data.
    size = [max(length, span) if hole > 1 else length for length, span, hole in zip(size, spans, dilation, strict=True)]
    # Enough padding for the kernel to fit once; before and after may differ.
    padding = [
        (data.draw(st.integers(0, span - 1)), max(0, span - length) if length < span else 0)
        for span, length in zip(spans, size, strict=True)
    ]
    x, x64 = make(src, (data.draw(st.integers(1, 3)), groups * inputs, *size), rng)
    w, w64 = make(wei, (groups * outputs, inputs, *kernel), rng)
    if channels_last:
        x = np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    bias, bias64 = make("f32", (groups * outputs,), rng) if dst != "s32" else (None, np.zeros(groups * outputs))
    how = {"strides": strides, "dilation": dilation, "padding": padding, "groups": groups}
    result = run(lambda: onednn.convolution(x, w, bias, dtype=dst, formats=formats, **how), src, wei)
    if result is not None:
        bias64 = bias64.reshape(-1, *[1] * spatial)
        exact = convolve(x64, w64, strides, dilation, padding, groups) + bias64
        magnitude = convolve(np.abs(x64), np.abs(w64), strides, dilation, padding, groups) + np.abs(bias64)
        assert_product(result, exact, magnitude, inputs * int(np.prod(kernel)) + 1, dst)


@types
@given(
    st.lists(st.integers(1, 5), min_size=0, max_size=3),
    SMALL,
    SMALL,
    SMALL,
    st.sampled_from(["plain", "any"]),
    SEEDS,
)
@check
def test_inner_product(
    kinds: tuple[str, str, str], space: list[int], n: int, channels: int, outputs: int, formats: Any, seed: int
) -> None:
    src, wei, dst = kinds
    rng = np.random.default_rng(seed)
    x, x64 = make(src, (n, channels, *space), rng)
    w, w64 = make(wei, (outputs, channels, *space), rng)
    bias, bias64 = make("f32", (outputs,), rng) if dst != "s32" else (None, np.zeros(outputs))
    result = run(lambda: onednn.inner_product(x, w, bias, dtype=dst, formats=formats), src, wei)
    if result is not None:
        x64, w64 = x64.reshape(n, -1), w64.reshape(outputs, -1)
        magnitude = np.abs(x64) @ np.abs(w64).T + np.abs(bias64)
        assert_product(result, x64 @ w64.T + bias64, magnitude, x64.shape[1] + 1, dst)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


#: Algorithm → (the documented function of x, alpha and beta; alpha; beta).
ELTWISE = {
    "relu": (lambda x, a, b: np.where(x > 0, x, a * x), 0.25, 0.0),
    "tanh": (lambda x, a, b: np.tanh(x), 0.0, 0.0),
    "elu": (lambda x, a, b: np.where(x > 0, x, a * np.expm1(x)), 0.5, 0.0),
    "square": (lambda x, a, b: x * x, 0.0, 0.0),
    "abs": (lambda x, a, b: np.abs(x), 0.0, 0.0),
    "sqrt": (lambda x, a, b: np.sqrt(x), 0.0, 0.0),
    "linear": (lambda x, a, b: a * x + b, 1.5, -0.5),
    "soft_relu": (lambda x, a, b: np.log1p(np.exp(a * x)) / a, 2.0, 0.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "logistic": (lambda x, a, b: sigmoid(x), 0.0, 0.0),
    "exp": (lambda x, a, b: np.exp(x), 0.0, 0.0),
    "gelu_tanh": (lambda x, a, b: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), 0.0, 0.0),
    "swish": (lambda x, a, b: x * sigmoid(a * x), 1.5, 0.0),
    "log": (lambda x, a, b: np.log(x), 0.0, 0.0),
    "clip": (np.clip, -0.5, 0.75),
    "clip_v2": (np.clip, -0.5, 0.75),
    "pow": (lambda x, a, b: a * x**b, 2.0, 1.5),
    "gelu_erf": (lambda x, a, b: x / 2 * (1 + erf(x / np.sqrt(2))), 0.0, 0.0),
    "round": (lambda x, a, b: np.rint(x), 0.0, 0.0),
    "mish": (lambda x, a, b: x * np.tanh(np.log1p(np.exp(x))), 0.0, 0.0),
    "hardswish": (lambda x, a, b: x * np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "relu_use_dst_for_bwd": (lambda x, a, b: np.where(x > 0, x, a * x), 0.25, 0.0),
    "tanh_use_dst_for_bwd": (lambda x, a, b: np.tanh(x), 0.0, 0.0),
    "elu_use_dst_for_bwd": (lambda x, a, b: np.where(x > 0, x, a * np.expm1(x)), 0.5, 0.0),
    "sqrt_use_dst_for_bwd": (lambda x, a, b: np.sqrt(x), 0.0, 0.0),
    "logistic_use_dst_for_bwd": (lambda x, a, b: sigmoid(x), 0.0, 0.0),
    "exp_use_dst_for_bwd": (lambda x, a, b: np.exp(x), 0.0, 0.0),
    "clip_v2_use_dst_for_bwd": (np.clip, -0.5, 0.75),
}
POSITIVE = {"sqrt", "log", "pow", "sqrt_use_dst_for_bwd"}


@pytest.mark.parametrize(
    ("name", "dtype"),
    # oneDNN documents round for f32 only.
    [(name, dtype) for name in ELTWISE for dtype in PRECISION_BITS if name != "round" or dtype == "f32"],
)
def test_eltwise(name: str, dtype: str) -> None:
    function, alpha, beta = ELTWISE[name]
    x, x64 = make(dtype, (5, 7, 11), np.random.default_rng(7))
    if name in POSITIVE:
        x, x64 = (x & 0x7FFF if dtype == "bf16" else np.abs(x)), np.abs(x64)
    result = run(lambda: onednn.eltwise(f"eltwise_{name}", x, alpha, beta), dtype)
    if result is None:
        return
    exact = function(x64, alpha, beta)
    # The library's polynomials: 1e-5 of the larger of the function and its argument; then the result's own rounding.
    bound = 1e-5 * np.maximum(np.abs(exact), np.abs(x64)) + 2.0 ** -PRECISION_BITS[dtype] * np.abs(exact) + 1e-7
    assert np.all(np.abs(values_of(result, dtype) - exact) <= bound)


@pytest.mark.parametrize("dtype", ["s32", "s8", "u8"])
def test_eltwise_on_integers_is_exact(dtype: str) -> None:
    numpy = {"s32": np.int32, "s8": np.int8, "u8": np.uint8}[dtype]
    x = np.random.default_rng(3).integers(0 if dtype == "u8" else -100, 100, (4, 33)).astype(numpy)
    np.testing.assert_array_equal(onednn.eltwise("eltwise_relu", x), np.maximum(x, 0))


@given(st.permutations(range(3)), st.tuples(*[st.slices(6)] * 3))
@settings(max_examples=50, deadline=None)
def test_eltwise_and_softmax_take_arrays_of_any_strides(order: list[int], cut: tuple[slice, ...]) -> None:
    x = np.random.default_rng(1).standard_normal((6, 6, 6)).astype(np.float32).transpose(order)[cut]
    np.testing.assert_array_equal(onednn.eltwise("eltwise_abs", x), np.abs(x))
    if x.size:
        total = np.exp(x.astype(np.float64)).sum(-1, keepdims=True)
        np.testing.assert_allclose(onednn.softmax(x), np.exp(x) / total, rtol=1e-5)


def test_every_eltwise_algorithm_is_tested() -> None:
    from cpulens.native.onednn.types import Algorithm

    names = {name.removeprefix("eltwise_") for name in Algorithm.__members__ if name.startswith("eltwise_")}
    assert names == set(ELTWISE)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@given(st.lists(SMALL, min_size=1, max_size=4), st.data(), st.booleans(), st.sampled_from(["plain", "any"]), SEEDS)
@check
def test_softmax(dtype: str, shape: list[int], data: st.DataObject, log: bool, formats: str, seed: int) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x, x64 = make(dtype, tuple(shape), np.random.default_rng(seed))
    order = data.draw(st.permutations(range(len(shape))))
    x = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))  # the same values in another order
    options = {} if formats == "plain" else {"formats": {"dst": "any"}}
    result = run(lambda: onednn.softmax(x, axis, log=log, **options), dtype)
    if result is None:
        return
    shifted = x64 - x64.max(axis, keepdims=True)
    total = np.exp(shifted).sum(axis, keepdims=True)
    exact = shifted - np.log(total) if log else np.exp(shifted) / total
    # 1e-5 for the library's exp and log; two roundings, as the first step is kept in the result's memory and type.
    bound = 1e-5 * (1 + np.abs(exact)) + 2 * 2.0 ** -PRECISION_BITS[dtype] * np.abs(exact)
    assert np.all(np.abs(values_of(result, dtype) - exact) <= bound)


PLAIN_AND_BLOCKED = ["abcd", "acdb", "bcda", "dcba", "nchw", "nhwc", "aBcd16b", "nChw8c", "ABcd16b16a", "Acdb16a", None]


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16", "s32", "s8", "u8"])
@given(
    st.tuples(*[st.integers(1, 20)] * 2, *[st.integers(1, 5)] * 2),
    st.sampled_from([tag for tag in PLAIN_AND_BLOCKED if tag != "dcba"]),
    st.sampled_from([tag for tag in PLAIN_AND_BLOCKED if tag != "dcba"]),
    SEEDS,
)
@check
def test_reorder_there_and_back(
    dtype: str, shape: tuple[int, ...], first: str | None, second: str | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(-1000, 1000, shape).astype(np.int32) if dtype == "s32" else make(dtype, shape, rng)[0]
    there = onednn.reorder(data, first)
    again = onednn.reorder(there, second)
    np.testing.assert_array_equal(onednn.read(again), data)
    assert again.descriptor.dims == shape


def test_reorder_quantizes_rounds_and_saturates() -> None:
    values = np.array([[-1000.0, -1.26, -0.75, 0.0, 0.74, 1.26, 1000.0]], np.float32)
    # Scaled by 2, rounded to the nearest even integer, kept within the type's range: worked out by hand.
    assert onednn.read(onednn.reorder(values, dtype="s8", scale=2.0)).tolist() == [[-128, -3, -2, 0, 1, 3, 127]]
    assert onednn.read(onednn.reorder(values, dtype="u8", scale=2.0)).tolist() == [[0, 0, 0, 0, 1, 3, 255]]


@given(SEEDS)
@check
def test_reorder_to_bf16_rounds_as_to_bf16_does(seed: int) -> None:
    bits = np.random.default_rng(seed).integers(0, 2**32, 257, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values) & (np.abs(values) > 1e-37)]
    np.testing.assert_array_equal(onednn.read(onednn.reorder(values, dtype="bf16")), onednn.to_bf16(values))


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=50))
def test_to_bf16_gives_a_nearest_value(patterns: list[int]) -> None:
    values = np.array(patterns, np.uint32).view(np.float32)
    rounded = onednn.from_bf16(onednn.to_bf16(values))
    for value, found in zip(values.tolist(), rounded.tolist(), strict=True):
        if np.isnan(value):
            assert np.isnan(found)
        elif abs(value) < 3.38e38:  # below the largest bfloat16 and its half step
            step = max(2.0 ** (np.frexp(value)[1] - 8), 2.0**-133)
            assert abs(value - found) <= step / 2
        else:
            assert np.sign(found) == np.sign(value)


def test_scales_zero_points_and_post_operations() -> None:
    rng = np.random.default_rng(11)
    a, a64 = make("u8", (6, 8), rng)
    b, b64 = make("s8", (8, 5), rng)
    weights_scale = np.array([0.5, 0.25, 2.0, 1.0, 0.125], np.float32)
    addend, before = rng.standard_normal((6, 5)).astype(np.float32), rng.standard_normal((6, 5)).astype(np.float32)
    result = onednn.matmul(
        a,
        b,
        dtype="f32",
        scales={"src": 0.5, "weights": weights_scale},
        zero_points={"src": 3},
        post_ops=[
            onednn.SumPostOp(scale=2.0),
            onednn.BinaryPostOp("binary_add", onednn.MemoryDescriptor((6, 5), "f32")),
            onednn.EltwisePostOp("eltwise_relu"),
        ],
        post_op_sources={1: addend},
        initial=before,
    )
    product = 0.5 * (a64 - 3) @ b64 * weights_scale
    np.testing.assert_allclose(result, np.maximum(product + 2 * before + addend, 0), rtol=1e-5, atol=1e-3)


def test_scale_for_each_output_channel_of_a_grouped_convolution() -> None:
    rng = np.random.default_rng(12)
    x, x64 = make("u8", (2, 4, 6, 6), rng)
    w, w64 = make("s8", (6, 2, 3, 3), rng)
    scale = (1 / np.arange(1, 7)).astype(np.float32)
    for formats in ("plain", "any"):
        result = onednn.convolution(x, w, groups=2, dtype="f32", scales={"weights": scale}, formats=formats)
        exact = convolve(x64, w64, (1, 1), (1, 1), [(0, 0), (0, 0)], 2) * scale.astype(np.float64).reshape(-1, 1, 1)
        np.testing.assert_allclose(result, exact, rtol=1e-6, atol=1e-3)


def test_weights_can_be_reordered_once_and_used_again() -> None:
    rng = np.random.default_rng(13)
    x, x64 = make("f32", (2, 16, 8, 8), rng)
    w, w64 = make("f32", (32, 16, 3, 3), rng)
    blocked = onednn.reorder(w, "Acdb16a")
    exact = convolve(x64, w64, (1, 1), (1, 1), [(0, 0), (0, 0)], 1)
    for _ in range(2):
        np.testing.assert_allclose(onednn.convolution(x, blocked, formats={"src": "any"}), exact, atol=1e-4)


def test_fpmath_bf16_changes_f32_results_within_its_precision() -> None:
    if "amx_bf16" not in CPU_FLAGS and "avx512_bf16" not in CPU_FLAGS:
        return  # the mode only allows it: without the instructions nothing changes
    rng = np.random.default_rng(14)
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
    exact, strict = a.astype(np.float64) @ b, onednn.matmul(a, b)
    relaxed = onednn.matmul(a, b, fpmath="bf16", formats={"weights": "any"})
    bound = 2 * 2.0**-8 * (np.abs(a) @ np.abs(b))
    assert np.abs(strict - exact).max() < 1e-4 < np.abs(relaxed - exact).max()
    assert np.all(np.abs(relaxed - exact) <= bound)
