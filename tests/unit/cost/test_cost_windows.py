"""Convolution, deconvolution, pooling, resampling against loops that count."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_counting import Machine, indices, larger, row, spell
from cpulens.cost import cost_of


def problem_text(mb, groups, ic, oc, axes):
    """`axes`: (name, input, output, kernel, stride, dilation, padding) each."""
    head = (f"g{groups}" if groups > 1 else "") + f"mb{mb}_ic{ic}oc{oc}"
    return "_".join([head, *(f"i{a}{i}o{a}{o}k{a}{k}s{a}{s}d{a}{d}p{a}{p}" for a, i, o, k, s, d, p in axes)])


def naive_convolution(mb, groups, ic, oc, axes, *, bias, blocks=None, transposed=False):
    """The textbook loops, forward; a tap outside the image does nothing."""
    machine = Machine()
    blocks = blocks or {}
    src = machine.tensor((mb, ic, *(axis[1] for axis in axes)), 4, blocks)
    wei = machine.tensor((groups, oc // groups, ic // groups, *(axis[3] for axis in axes)), 4)
    bia = machine.tensor((oc,), 4)
    dst = machine.tensor((mb, oc, *(axis[2] for axis in axes)), 4, blocks)
    for n, o in itertools.product(range(mb), range(oc)):
        group = o // (oc // groups)
        for at in indices(dst.dims[2:]):
            dst[n, o, *at] = machine.number()
            if bias:
                machine.number() + bia[(o,)]
        for i in range(ic // groups):
            for k in indices(wei.dims[3:]):
                for slid in indices(src.dims[2:] if transposed else dst.dims[2:]):
                    other = tuple(
                        x * s - p + tap * (d + 1) for x, tap, (_, _, _, _, s, d, p) in zip(slid, k, axes, strict=True)
                    )
                    image, out = (slid, other) if transposed else (other, slid)
                    inside = zip(image, src.dims[2:], strict=True), zip(out, dst.dims[2:], strict=True)
                    if all(0 <= x < size for pairs in inside for x, size in pairs):
                        product = (
                            src[n, group * (ic // groups) + i, *image] * wei[group, o - group * (oc // groups), i, *k]
                        )
                        machine.number() + product
    return machine


def outputs(size, kernel, stride, dilation, padding):
    return (size + 2 * padding - ((kernel - 1) * (dilation + 1) + 1)) // stride + 1


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("groups", "ic", "oc", "shape"),
    [
        (1, 3, 4, [("h", 6, 3, 1, 0, 1), ("w", 5, 3, 1, 0, 1)]),
        (1, 2, 3, [("h", 7, 3, 2, 0, 1), ("w", 7, 3, 2, 0, 0)]),
        (2, 4, 6, [("h", 5, 2, 1, 1, 1), ("w", 6, 2, 1, 2, 0)]),  # groups, dilation
        (4, 4, 4, [("h", 5, 3, 1, 0, 1), ("w", 5, 3, 1, 0, 1)]),  # depthwise
        (1, 3, 2, [("h", 8, 1, 2, 0, 0), ("w", 8, 1, 3, 0, 0)]),  # pixels are skipped
        (1, 2, 2, [("w", 9, 3, 2, 1, 2)]),  # 1-D
        (1, 2, 2, [("d", 4, 3, 1, 0, 1), ("h", 5, 2, 2, 0, 0), ("w", 4, 3, 1, 0, 1)]),  # 3-D
    ],
)
def test_convolution_of_any_shape(groups, ic, oc, shape, bias):
    axes = [(name, size, outputs(size, k, s, d, p), k, s, d, p) for name, size, k, s, d, p in shape]
    machine = naive_convolution(2, groups, ic, oc, axes, bias=bias)
    n = 2 + len(axes)
    tensors = [spell("src", "f32", n), spell("wei", "f32", n + (groups > 1)), spell("dst", "f32", n)]
    tensors.insert(2, spell("bia", "f32", 1) if bias else "bia:undef::undef:::")
    text = problem_text(2, groups, ic, oc, axes)
    found = cost_of(row("convolution", text, tensors, auxiliary="alg:convolution_direct"))
    assert found == (machine.operations, machine.bytes)


axis = st.tuples(
    st.integers(1, 8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(0, 3)
)  # size, kernel, stride, dilation, padding


@given(shape=st.lists(axis, min_size=1, max_size=2), groups=st.integers(1, 2), transposed=st.booleans())
def test_any_window_against_the_loop(shape, groups, transposed):
    axes = []
    for name, (size, k, s, d, p) in zip("hw"[-len(shape) :], shape, strict=True):
        out = (size - 1) * s - 2 * p + (k - 1) * (d + 1) + 1 if transposed else outputs(size, k, s, d, p)
        if out < 1:
            return
        axes.append((name, size, out, k, s, d, p))
    machine = naive_convolution(1, groups, 2, 2, axes, bias=False, transposed=transposed)
    n = 2 + len(axes)
    tensors = [spell("src", "f32", n), spell("wei", "f32", n + (groups > 1)), spell("dst", "f32", n)]
    primitive = "deconvolution" if transposed else "convolution"
    text = problem_text(1, groups, 2, 2, axes)
    found = cost_of(row(primitive, text, tensors, auxiliary=f"alg:{primitive}_direct"))
    assert found.flops == machine.operations
    untouched_taps = machine.tensors[1].bytes < 4 * math.prod(machine.tensors[1].dims)
    if not untouched_taps and not transposed:  # weights that only meet padding are counted all the same
        assert found.bytes == machine.bytes


def test_blocks_of_a_layout_are_moved_whole():
    axes = [("h", 5, 5, 3, 1, 0, 1), ("w", 5, 5, 3, 1, 0, 1)]
    machine = naive_convolution(1, 1, 3, 5, axes, bias=False, blocks={1: 8})
    tensors = [spell("src", "f32", 4, "aBcd8b"), spell("wei", "f32", 4), spell("dst", "f32", 4, "aBcd8b")]
    found = cost_of(row("convolution", problem_text(1, 1, 3, 5, axes), tensors, auxiliary="alg:convolution_direct"))
    assert found == (machine.operations, machine.bytes)


def test_weights_in_nested_blocks():
    # 19 output and 23 input channels in ABcd16b16a: 32 × 32 stored; f32 src and dst plain.
    tensors = [spell("src", "f32", 4), spell("wei", "f32", 4, "ABcd16b16a"), spell("dst", "f32", 4)]
    found = cost_of(
        row("convolution", "mb1_ic23oc19_ih1oh1kh1sh1dh0ph0_iw1ow1kw1sw1dw0pw0", tensors, auxiliary="alg:x")
    )
    assert found.bytes == 4 * (23 + 32 * 32 + 19)


def test_a_flat_problem_of_one_dimension():
    text = "mb2_ic3oc4_ih1oh1kh1sh1dh0ph0_iw9ow7kw3sw1dw0pw0"
    tensors = [spell("src", "f32", 3, "aBc8b"), spell("wei", "f32", 3), spell("dst", "f32", 3)]
    found = cost_of(row("convolution", text, tensors, auxiliary="alg:convolution_direct"))
    assert found == (2 * 2 * 4 * 3 * 7 * 3, 4 * (2 * 8 * 9 + 4 * 3 * 3 + 2 * 4 * 7))


@pytest.mark.parametrize("prop_kind", ["backward_data", "backward_weights"])
def test_gradients_of_a_convolution(prop_kind):
    axes = [("h", 6, 6, 3, 1, 0, 1), ("w", 6, 6, 3, 1, 0, 1)]
    machine = naive_convolution(2, 1, 3, 4, axes, bias=prop_kind == "backward_weights")
    tensors = [spell(name, "f32", 4) for name in ("src", "wei", "dst")]
    if prop_kind == "backward_weights":
        tensors.append(spell("bia", "f32", 1))
    text = problem_text(2, 1, 3, 4, axes)
    found = cost_of(row("convolution", text, tensors, auxiliary="alg:convolution_direct", prop_kind=prop_kind))
    assert found == (machine.operations, machine.bytes)


def test_a_fused_depthwise_convolution():
    """1×1 convolution, ReLU, then 3×3 depthwise with stride 2, ReLU: the tensor between is not moved."""
    mb, ic, oc, size = 1, 3, 4, 6
    first = naive_convolution(mb, 1, ic, oc, [("h", size, size, 1, 1, 0, 0), ("w", size, size, 1, 1, 0, 0)], bias=False)
    axes = [("h", size, 3, 3, 2, 0, 1), ("w", size, 3, 3, 2, 0, 1)]
    second = naive_convolution(mb, oc, oc, oc, axes, bias=False)
    relu = mb * oc * (size * size + 3 * 3)
    src, wei, _, _ = first.tensors
    _, wei_fused, _, dst = second.tensors
    tensors = [spell("src", "f32", 4), spell("wei", "f32", 4), "bia:undef::undef:::", spell("src_fused", "f32", 4)]
    tensors += [spell("wei_fused", "f32", 5), "bia_fused:undef::undef:::", spell("dst", "f32", 4)]
    found = cost_of(
        row(
            "convolution",
            problem_text(mb, 1, ic, oc, [("h", size, size, 1, 1, 0, 0), ("w", size, size, 1, 1, 0, 0)]),
            tensors,
            auxiliary="alg:convolution_direct",
            attributes="attr-post-ops:eltwise_relu+dw:k3s2p1+eltwise_relu",
        )
    )
    assert found.flops == first.operations + second.operations + relu
    assert found.bytes == src.bytes + wei.bytes + wei_fused.bytes + dst.bytes


def test_a_fused_window_larger_than_its_image_is_unknown():
    tensors = [spell(name, "f32", 4) for name in ("src", "wei", "wei_fused", "dst")]
    text = problem_text(1, 1, 2, 2, [("h", 2, 2, 1, 1, 0, 0), ("w", 2, 2, 1, 1, 0, 0)])
    found = cost_of(row("convolution", text, tensors, auxiliary="alg:x", attributes="attr-post-ops:dw:k7s1p0"))
    assert found == (None, None)


@pytest.mark.parametrize("algorithm", ["max", "avg_include_padding", "avg_exclude_padding"])
@given(shape=st.lists(axis, min_size=1, max_size=3))
def test_pooling(algorithm, shape):
    axes = []
    for name, (size, k, s, d, p) in zip("dhw"[-len(shape) :], shape, strict=True):
        size, p = min(size, 5), min(p, k - 1)  # padding is smaller than the window
        if outputs(size, k, s, d, p) < 1:
            return
        axes.append((name, size, outputs(size, k, s, d, p), k, s, d, p))
    machine = Machine()
    src = machine.tensor((2, 3, *(one[1] for one in axes)), 2)
    dst = machine.tensor((2, 3, *(one[2] for one in axes)), 2)
    for n, c, *out in indices(dst.dims):
        so_far = machine.number()
        for k in indices(tuple(one[3] for one in axes)):
            at = tuple(o * s - p + tap * (d + 1) for o, tap, (*_, s, d, p) in zip(out, k, axes, strict=True))
            if all(0 <= x < size for x, size in zip(at, src.dims[2:], strict=True)):
                value = src[n, c, *at]
                so_far = larger(so_far, value) if algorithm == "max" else so_far + value
        dst[n, c, *out] = so_far if algorithm == "max" else so_far / 9
    n = 2 + len(axes)
    text = problem_text(2, 1, 3, 0, axes).replace("_ic3oc0", "ic3")
    tensors = [spell("src", "bf16", n), spell("dst", "bf16", n)]
    found = cost_of(row("pooling", text, tensors, auxiliary=f"alg:pooling_{algorithm}"))
    assert found == (machine.operations, machine.bytes)


def test_pooling_in_training_writes_its_workspace():
    text = "mb1ic2_ih4oh2kh2sh2dh0ph0_iw4ow2kw2sw2dw0pw0"
    tensors = [spell("src", "f32", 4), spell("dst", "f32", 4), spell("ws", "u8", 4)]
    found = cost_of(row("pooling", text, tensors, auxiliary="alg:pooling_max", prop_kind="forward_training"))
    assert found == (2 * 16, 4 * 2 * 16 + 4 * 2 * 4 + 2 * 4)


@pytest.mark.parametrize("algorithm", ["nearest", "linear"])
@given(shape=st.lists(st.tuples(st.integers(1, 7), st.integers(1, 7)), min_size=1, max_size=2))
def test_resampling(algorithm, shape):
    machine = Machine()
    src = machine.tensor((2, 3, *(one for one, _ in shape)), 4)
    dst = machine.tensor((2, 3, *(one for _, one in shape)), 4)

    def interpolated(n, c, at, axis):
        """One axis after the other: the value at the left, at the right, and between."""
        if axis == len(shape):
            return src[n, c, *at]
        size, out = shape[axis]
        position = (at[axis] + 0.5) * size / out - 0.5
        if algorithm == "nearest":
            return interpolated(
                n, c, (*at[:axis], min(math.floor(position + 0.5), size - 1), *at[axis + 1 :]), axis + 1
            )
        left, right = max(math.floor(position), 0), min(math.floor(position) + 1, size - 1)
        ends = [interpolated(n, c, (*at[:axis], x, *at[axis + 1 :]), axis + 1) for x in (left, right)]
        return ends[0] * 0.25 + ends[1] * 0.75

    for n, c, *out in indices(dst.dims):
        dst[n, c, *out] = interpolated(n, c, tuple(out), 0)
    axes = "_".join(f"i{a}{i}o{a}{o}" for a, (i, o) in zip("hw"[-len(shape) :], shape, strict=True))
    tensors = [spell("src", "f32", 2 + len(shape)), spell("dst", "f32", 2 + len(shape))]
    found = cost_of(row("resampling", f"mb2ic3_{axes}", tensors, auxiliary=f"alg:resampling_{algorithm}"))
    assert found == (machine.operations, machine.bytes)
