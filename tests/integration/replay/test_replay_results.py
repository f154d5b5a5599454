"""Replayed problems compute what they say: results against numpy, from the lines of real libraries' spelling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cpulens
from cpulens.measure.replay import mkl_call, onednn_call, problem
from cpulens.measure.replay.timing import in_turn
from cpulens.native import onednn
from cpulens.report.benchdnn import Command, command

FWD = "forward_inference"


def columns(
    primitive: str, prop_kind: str, tensors: str, attributes: str, auxiliary: str, sizes: str
) -> dict[str, Any]:
    fields = ("cpu", primitive, "jit", prop_kind, tensors, attributes, auxiliary, sizes, "0.5")
    (found,) = cpulens.load(f"onednn_verbose,v1,primitive,exec,{','.join(fields)}\n".encode()).texts.iter_rows(
        named=True
    )
    return found


def call_of(*fields: str) -> tuple[dict[str, Any], onednn_call.OneDnnCall]:
    found = columns(*fields)
    return found, onednn_call.prepare(problem.read(found), found["implementation"])


def result(call: onednn_call.OneDnnCall) -> dict[str, np.ndarray]:
    """Every tensor as f64, row-major; dst after one execution."""
    before = {}
    for name, memory in call.memories.items():
        if name in ("src", "weights", "bias") or name.startswith("post_op"):
            array = onednn.read(memory)
            before[name] = (onednn.from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)
    call.execute()
    array = onednn.read(call.memories["dst"])
    before["dst"] = (onednn.from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)
    return before


def convolved(src, weights, strides, dilations, before, out):
    """A convolution by its definition, one image dimension after the other; weights (G, O, I, kernel…)."""
    groups, outputs, inputs = weights.shape[:3]
    kernel, spatial = weights.shape[3:], len(strides)
    pad = [(0, 0), (0, 0)] + [(one, 64) for one in before]
    padded = np.pad(src, pad)
    found = np.zeros((src.shape[0], groups * outputs, *out))
    for group in range(groups):
        part = padded[:, group * inputs : (group + 1) * inputs]
        for at in np.ndindex(*kernel):
            window = tuple(
                slice(
                    at[d] * (dilations[d] + 1), at[d] * (dilations[d] + 1) + strides[d] * (out[d] - 1) + 1, strides[d]
                )
                for d in range(spatial)
            )
            piece = part[(slice(None), slice(None), *window)]
            found[:, group * outputs : (group + 1) * outputs] += np.einsum(
                "ni...,oi->no...", piece, weights[(group, slice(None), slice(None), *at)]
            )
    return found


MATMUL = "src:{0}::blocked:{1}::f0 wei:{0}::blocked:{2}::f0 dst:{0}::blocked:ab::f0"


@pytest.mark.parametrize("dt", ["f32", "bf16"])
@pytest.mark.parametrize(("src", "wei"), [("ab", "ab"), ("ba", "ba")])
def test_products(dt: str, src: str, wei: str) -> None:
    _, call = call_of("matmul", "undef", MATMUL.format(dt, src, wei), "", "", "17x33:33x9")
    found = result(call)
    np.testing.assert_allclose(
        found["dst"], found["src"] @ found["weights"], rtol=0.02 if dt == "bf16" else 1e-5, atol=0.05
    )
    assert call.layouts["src"] == src
    assert call.layouts["weights"] == wei


def test_product_with_bias_chain_and_broadcast_batch() -> None:
    tensors = (
        "src:f32::blocked:abc::f0 wei:f32::blocked:abc::f0 bia:f32::blocked:abc::f0_mask4 dst:f32::blocked:abc::f0"
    )
    chain = "attr-post-ops:eltwise_relu+binary_mul:f32:4"
    _, call = call_of("matmul", "undef", tensors, f"attr-scratchpad:user {chain}", "", "3x5x7:1x7x11")
    found = result(call)
    expected = np.maximum(found["src"] @ found["weights"] + found["bias"], 0) * found["post_op_1"]
    assert found["bias"].shape == (1, 1, 11)
    np.testing.assert_allclose(found["dst"], expected, rtol=1e-5, atol=1e-5)


def test_quantized_product() -> None:
    tensors = "src:u8::blocked:ab::f0 wei:s8::blocked:ab::f0 dst:f32::blocked:ab::f0"
    attributes = "attr-scales:src0:0+wei:2 attr-zero-points:src0:0"
    _, call = call_of("matmul", "undef", tensors, attributes, "", "8x64:64x16")
    found = result(call)
    np.testing.assert_allclose(found["dst"], 0.25 * ((found["src"] - 1) @ found["weights"]), rtol=1e-5)


@pytest.mark.parametrize(
    ("tensors", "sizes", "groups", "window"),
    [
        ("acdb:abcd:acdb", "mb2_ic4oc6_ih9oh9kh3sh1dh0ph1_iw8ow8kw3sw1dw0pw1", 1,
         ((1, 1), (0, 0), (1, 1), (9, 8))),
        ("abcd:abcde:abcd", "g2mb1_ic4oc6_ih9oh4kh3sh2dh0ph0_iw9ow4kw3sw2dw0pw0", 2,
         ((2, 2), (0, 0), (0, 0), (4, 4))),
        ("abcd:abcd:abcd", "mb1_ic3oc5_ih12oh8kh3sh1dh1ph0_iw12ow8kw3sw1dw1pw0", 1,
         ((1, 1), (1, 1), (0, 0), (8, 8))),
        ("abc:abc:abc", "mb1_ic3oc5_iw12ow6kw3sw2dw0pw1", 1, ((2,), (0,), (1,), (6,))),
    ],
)  # fmt: skip
def test_convolutions(tensors: str, sizes: str, groups: int, window: Any) -> None:
    src, wei, dst = tensors.split(":")
    described = (
        f"src:f32::blocked:{src}::f0 wei:f32::blocked:{wei}::f0 bia:f32::blocked:a::f0 dst:f32::blocked:{dst}::f0"
    )
    _, call = call_of("convolution", FWD, described, "", "alg:convolution_direct", sizes)
    found = result(call)
    weights = found["weights"] if groups > 1 else found["weights"][np.newaxis]
    strides, dilations, before, out = window
    expected = convolved(found["src"], weights, strides, dilations, before, out)
    expected += found["bias"].reshape(1, -1, *(1,) * len(out))
    np.testing.assert_allclose(found["dst"], expected, rtol=1e-4, atol=1e-4)


def test_inner_product() -> None:
    tensors = "src:f32::blocked:acdb::f0 wei:f32::blocked:abcd::f0 bia:f32::blocked:a::f0 dst:f32::blocked:ab::f0"
    _, call = call_of("inner_product", FWD, tensors, "", "", "mb4ic8ih3iw2oc10")
    found = result(call)
    expected = np.einsum("nchw,ochw->no", found["src"], found["weights"]) + found["bias"]
    np.testing.assert_allclose(found["dst"], expected, rtol=1e-5, atol=1e-5)


def test_reorders_keep_the_values() -> None:
    tensors = "src:f32::blocked:abcd::f0 dst:f32:p:blocked:aBcd16b::f0"
    _, call = call_of("reorder", "undef", tensors, "", "", "2x20x3x5")
    found = result(call)
    np.testing.assert_array_equal(found["dst"], found["src"])
    assert call.layouts["dst"] == "aBcd16b"


@pytest.mark.parametrize(("dt", "tolerance"), [("f32", 1e-5), ("bf16", 1e-2)])
def test_eltwise_and_softmax(dt: str, tolerance: float) -> None:
    tensors = f"data:{dt}::blocked:abc::f0"
    _, call = call_of("eltwise", "forward_training", tensors, "", "alg:eltwise_gelu_erf alpha:0 beta:0", "3x4x50")
    found = result(call)
    expected = found["src"] / 2 * (1 + np.vectorize(math.erf)(found["src"] / math.sqrt(2)))
    np.testing.assert_allclose(found["dst"], expected, rtol=tolerance, atol=tolerance)
    tensors = f"src:{dt}::blocked:abc::f0 dst:{dt}::blocked:abc::f0"
    _, call = call_of("softmax", FWD, tensors, "", "alg:softmax_log axis:1", "3x40x5")
    found = result(call)
    expected = found["src"] - np.log(np.exp(found["src"]).sum(1, keepdims=True))
    np.testing.assert_allclose(found["dst"], expected, rtol=tolerance, atol=tolerance * 5)


def test_a_new_result_is_written_like_the_first() -> None:
    _, call = call_of("matmul", "undef", MATMUL.format("f32", "ab", "ab"), "", "", "200x30:30x300")
    first = result(call)["dst"]
    for untouched in (False, True):
        call.renew(untouched=untouched)
        np.testing.assert_array_equal(result(call)["dst"], first)


def mkl(raw: str) -> mkl_call.MklCall:
    (found,) = cpulens.load(
        f"MKL_VERBOSE {raw} 1.00us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:1\n".encode()
    ).texts.iter_rows(named=True)
    return mkl_call.MklCall(mkl_call.read(found))


def matrix(array: np.ndarray, rows: int, columns: int, ld: int, start: int = 0) -> np.ndarray:
    """Column-major, as lines print it."""
    step = array.itemsize
    return np.lib.stride_tricks.as_strided(array[start:], (rows, columns), (step, ld * step))


@pytest.mark.parametrize(("routine", "tolerance"), [("SGEMM", 1e-5), ("DGEMM", 1e-12), ("ZGEMM", 1e-12)])
def test_mkl_products(routine: str, tolerance: float) -> None:
    call = mkl(f"{routine}(T,N,20,7,33,0x1,0x2,40,0x3,33,0x4,0x5,24)")
    call.execute()
    a, b = matrix(call.arrays["a"], 33, 20, 40), matrix(call.arrays["b"], 33, 7, 33)
    np.testing.assert_allclose(matrix(call.arrays["c"], 20, 7, 24), a.T @ b, rtol=tolerance * 100, atol=tolerance * 10)


@pytest.mark.parametrize(
    "raw",
    [
        "SGEMM_BATCH_STRIDED(N,T,8,6,4,0x1,0x2,8,40,0x3,6,30,0x4,0x5,8,50,3)",
        "SGEMM_BATCH(N,T,8,6,4,0x1,0x2,8,0x3,6,0x4,0x5,8,1,3)",
    ],
)
def test_mkl_batches(raw: str) -> None:
    call = mkl(raw)
    call.execute()
    steps = (40, 30, 50) if "STRIDED" in raw else (32, 24, 48)
    for at in range(3):
        a, b = matrix(call.arrays["a"], 8, 4, 8, at * steps[0]), matrix(call.arrays["b"], 6, 4, 6, at * steps[1])
        np.testing.assert_allclose(matrix(call.arrays["c"], 8, 6, 8, at * steps[2]), a @ b.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("code", "transform", "shape"),
    [
        ("scfi64*3", np.fft.fft, (3, 64)),
        ("dcbo16x8", lambda x: np.fft.ifft2(x) * 128, (16, 8)),
        ("srfo512*5", np.fft.rfft, (5, 512)),
        ("drfo12x10*2", np.fft.rfft2, (2, 12, 10)),
    ],
)
def test_mkl_transforms(code: str, transform: Any, shape: tuple[int, ...]) -> None:
    call = mkl(f"FFT({code},tLim:1,unaligned_output,desc:0x1)")
    for _ in range(2):  # in place, too, each run begins with the same numbers
        call.renew()
        call.execute()
        expected = transform(call.arrays["source"].reshape(shape).astype(complex if code[1] == "c" else float))
        found = call.arrays["target"].reshape(expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
    assert call.arrays["target"].ctypes.data % 64 == (0 if "i" in code[:4] else 16)


@pytest.mark.parametrize(
    "fields",
    [
        ("matmul", "undef", MATMUL.format("f32", "ab", "ba"), "attr-post-ops:eltwise_relu", "", "17x33:33x9"),
        ("reorder", "undef", "src:f32::blocked:abcd::f0 dst:f32::blocked:acdb::f0", "attr-scratchpad:user", "",
         "2x16x3x5"),
        ("softmax", FWD, "src:f32::blocked:ab::f0 dst:f32::blocked:ab::f0", "", "alg:softmax_accurate axis:1", "4x100"),
        ("eltwise", FWD, "data:f32::blocked:ab::f0", "", "alg:eltwise_tanh alpha:0 beta:0", "4x100"),
        ("inner_product", FWD, "src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0", "", "",
         "mb4ic8oc10"),
        ("convolution", FWD, "src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 dst:f32::blocked:abcd::f0", "",
         "alg:convolution_direct", "mb1_ic3oc5_ih12oh12kh3sh1dh0ph1_iw12ow12kw3sw1dw0pw1"),
    ],
    ids=lambda fields: fields[0],
)  # fmt: skip
def test_the_line_of_a_replay_says_the_problem_again(fields: tuple[str, ...]) -> None:
    before, call = call_of(*fields)
    (times,), headers = in_turn([call], 0.01)
    assert times.by_library
    assert times.columns is not None
    assert times.columns["implementation"] == call.implementation
    assert headers[0]["library"] == "onednn"
    made = [command(one, exact=True) for one in (before, times.columns)]
    assert isinstance(made[0], Command)
    assert made[0] == made[1]
    assert problem.read(before).dims == problem.read(times.columns).dims
