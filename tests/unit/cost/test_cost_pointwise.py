"""Element-wise primitives, softmax, reductions, normalizations and copies against loops that count."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_counting import Machine, call, indices, larger, row, spell
from cpulens.cost import cost_of

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def text(dims):
    return "x".join(map(str, dims))


#: Formulas as oneDNN's developer guide gives them. Constants are plain numbers: what is done among them is free.
ALPHA, BETA = 0.3, 0.7
ELTWISE = {
    "abs": abs,
    "clip": lambda s: larger(larger(s, ALPHA), BETA),
    "elu": lambda s: larger(s, (call(s) - 1) * ALPHA),
    "exp": call,
    "gelu_erf": lambda s: s * 0.5 * (call(s * (1 / math.sqrt(2))) + 1),
    "gelu_tanh": lambda s: s * 0.5 * (call((s + s * s * s * 0.044715) * math.sqrt(2 / math.pi)) + 1),
    "hardsigmoid": lambda s: larger(0.0, larger(1.0, s * ALPHA + BETA)),
    "hardswish": lambda s: s * larger(0.0, larger(1.0, s * ALPHA + BETA)),
    "linear": lambda s: s * ALPHA + BETA,
    "log": call,
    "logistic": lambda s: 1 / (call(-s) + 1),
    "mish": lambda s: s * call(call(call(s) + 1)),
    "pow": lambda s: call(s) * ALPHA,
    "relu": lambda s: larger(s, 0.0),
    "round": call,
    "soft_relu": lambda s: call(call(s * ALPHA) + 1) * (1 / ALPHA),
    "sqrt": call,
    "square": lambda s: s * s,
    "swish": lambda s: s / (call(s * -ALPHA) + 1),
    "tanh": call,
}


@pytest.mark.parametrize("algorithm", ELTWISE)
def test_eltwise(algorithm):
    machine = Machine()
    src, dst = machine.tensor((2, 3, 5), 4), machine.tensor((2, 3, 5), 4)
    for at in indices(src.dims):
        dst[at] = ELTWISE[algorithm](src[at])
    auxiliary = f"alg:eltwise_{algorithm} alpha:0 beta:0"
    assert cost_of(row("eltwise", "2x3x5", [spell("data", "f32", 3)], auxiliary=auxiliary)) == (
        machine.operations,
        machine.bytes,
    )


def test_relu_with_a_slope_compares_and_multiplies():
    found = cost_of(row("eltwise", "10", [spell("data", "f32", 1)], auxiliary="alg:eltwise_relu alpha:0.1 beta:0"))
    assert found.flops == 2 * 10


@given(dims=SHAPES, ones=st.lists(st.booleans(), min_size=4, max_size=4))
def test_binary_broadcasts(dims, ones):
    second = tuple(1 if one else size for one, size in zip(ones, dims, strict=False))
    machine = Machine()
    a, b, dst = machine.tensor(dims, 4), machine.tensor(second, 2), machine.tensor(dims, 1)
    for at in indices(dims):
        dst[at] = a[at] + b[tuple(min(x, size - 1) for x, size in zip(at, second, strict=True))]
    n = len(dims)
    tensors = [spell("src", "f32", n), spell("src", "bf16", n), spell("dst", "u8", n)]
    found = cost_of(row("binary", f"{text(dims)}:{text(second)}", tensors, auxiliary="alg:binary_add"))
    assert found == (machine.operations, machine.bytes)


@given(dims=SHAPES, sources=st.integers(1, 5))
def test_sum(dims, sources):
    machine = Machine()
    given_sources = [machine.tensor(dims, 4) for _ in range(sources)]
    dst = machine.tensor(dims, 4)
    for at in indices(dims):
        scaled = [one[at] * 0.5 for one in given_sources]
        total = scaled[0]
        for value in scaled[1:]:
            total = total + value
        dst[at] = total
    tensors = [*[spell("src", "f32", len(dims))] * sources, spell("dst", "f32", len(dims))]
    assert cost_of(row("sum", text(dims), tensors)) == (machine.operations, machine.bytes)


def test_prelu():
    machine = Machine()
    src, wei, dst = machine.tensor((2, 3, 4), 4), machine.tensor((1, 3, 1), 4), machine.tensor((2, 3, 4), 4)
    for n, c, x in indices(src.dims):
        value = src[n, c, x]
        dst[n, c, x] = larger(value, value * wei[0, c, 0])
    tensors = [spell("data", "f32", 3), spell("wei", "f32", 3)]
    assert cost_of(row("prelu", "2x3x4:1x3x1", tensors)) == (machine.operations, machine.bytes)


@pytest.mark.parametrize("algorithm", ["accurate", "log"])
@given(dims=SHAPES, data=st.data())
def test_softmax(algorithm, dims, data):
    axis = data.draw(st.integers(0, len(dims) - 1))
    machine = Machine()
    src, dst = machine.tensor(dims, 4), machine.tensor(dims, 4)
    others = [size for at, size in enumerate(dims) if at != axis]
    for rest in indices(others):
        line = [(*rest[:axis], x, *rest[axis:]) for x in range(dims[axis])]
        top, total = machine.number(), machine.number()
        for at in line:
            top = larger(top, src[at])
        shifted = [machine.number() - top for _ in line]
        powers = [call(value) for value in shifted]
        for value in powers:
            total = total + value
        if algorithm == "log":
            logarithm = call(total)
            for at, value in zip(line, shifted, strict=True):
                dst[at] = value - logarithm
        else:
            for at, value in zip(line, powers, strict=True):
                dst[at] = value / total
    tensors = [spell("src", "f32", len(dims)), spell("dst", "f32", len(dims))]
    found = cost_of(row("softmax", text(dims), tensors, auxiliary=f"alg:softmax_{algorithm} axis:{axis}"))
    assert found == (machine.operations, machine.bytes)


REDUCTIONS = {
    "sum": (lambda so_far, x: so_far + x, lambda y: y),
    "max": (larger, lambda y: y),
    "min": (larger, lambda y: y),
    "mul": (lambda so_far, x: so_far * x, lambda y: y),
    "mean": (lambda so_far, x: so_far + x, lambda y: y / 7),
    "norm_lp_max": (lambda so_far, x: so_far + call(abs(x)), lambda y: call(larger(y, 0.001))),
    "norm_lp_sum": (lambda so_far, x: so_far + call(abs(x)), lambda y: call(y + 0.001)),
    "norm_lp_power_p_max": (lambda so_far, x: so_far + call(abs(x)), lambda y: larger(y, 0.001)),
    "norm_lp_power_p_sum": (lambda so_far, x: so_far + call(abs(x)), lambda y: y + 0.001),
}


@pytest.mark.parametrize("algorithm", REDUCTIONS)
def test_reduction(algorithm):
    step, last = REDUCTIONS[algorithm]
    machine = Machine()
    src, dst = machine.tensor((2, 3, 4), 4), machine.tensor((2, 1, 4), 4)
    for n, _, x in indices(dst.dims):
        so_far = machine.number()
        for c in range(3):
            so_far = step(so_far, src[n, c, x])
        dst[n, 0, x] = last(so_far)
    tensors = [spell("src", "f32", 3), spell("dst", "f32", 3)]
    found = cost_of(row("reduction", "2x3x4:2x1x4", tensors, auxiliary=f"alg:reduction_{algorithm} p:2 eps:0.001"))
    assert found == (machine.operations, machine.bytes)


def normalize(machine, src, dst, rows, channel_of, flags, statistics, scale, shift):
    """Each row is a list of indices that share a mean and a variance."""
    for number, line in enumerate(rows):
        if "G" in flags:
            mean, variance = statistics[0][(number,)], statistics[1][(number,)]
        else:
            mean = machine.number()
            for at in line:
                mean = mean + src[at]
            mean = mean / len(line)
            variance = machine.number()
            for _ in line:
                difference = machine.number() - mean
                variance = variance + difference * difference
            variance = variance / len(line)
        inverse = 1 / call(variance + 1e-5)
        for at in line:
            value = (src[at] - mean) * inverse
            if "C" in flags:
                value = value * scale[(channel_of(at),)]
            if "H" in flags:
                value = value + shift[(channel_of(at),)]
            if "R" in flags:
                value = larger(value, 0.0)
            dst[at] = value


@pytest.mark.parametrize("flags", ["", "G", "GCH", "GCHR", "CH", "CHR", "C"])
@pytest.mark.parametrize("kind", ["batch", "layer", "group"])
def test_normalizations(kind, flags):
    if kind != "batch" and "R" in flags:
        flags = flags.replace("R", "")
    machine = Machine()
    dims = (2, 6, 3, 3)
    src, dst = machine.tensor(dims, 4), machine.tensor(dims, 4)
    everything = list(indices(dims))
    if kind == "batch":
        rows = [[at for at in everything if at[1] == c] for c in range(6)]
        channels, channel_of, problem = 6, lambda at: at[1], "mb2ic6ih3iw3"
    elif kind == "group":
        rows = [[at for at in everything if at[0] == n and at[1] // 2 == g] for n in range(2) for g in range(3)]
        channels, channel_of, problem = 6, lambda at: at[1], "g3mb2ic6ih3iw3"
    else:
        rows = [[(*outer, x) for x in range(3)] for outer in indices(dims[:3])]
        channels, channel_of, problem = 3, lambda at: at[3], "2x6x3x3"
    statistics = [machine.tensor((len(rows),), 4) for _ in range(2)]
    scale, shift = machine.tensor((channels,), 4), machine.tensor((channels,), 4)
    normalize(machine, src, dst, rows, channel_of, flags, statistics, scale, shift)
    tensors = [spell("src", "f32", 4), spell("dst", "f32", 4)]
    if kind == "layer":
        tensors.append(spell("stats", "f32", 3) if "G" in flags else "stats:undef::undef:::")
    found = cost_of(row(f"{kind}_normalization", problem, tensors, auxiliary=f"flags:{flags}"))
    assert found == (machine.operations, machine.bytes)


@pytest.mark.parametrize("window", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("algorithm", ["across_channels", "within_channel"])
def test_local_response(algorithm, window):
    machine = Machine()
    dims = (2, 5, 4, 6)
    src, dst = machine.tensor(dims, 4), machine.tensor(dims, 4)
    reach = range(-((window - 1) // 2), window - (window - 1) // 2)
    for at in indices(dims):
        total = machine.number()
        if algorithm == "across_channels":
            near = [(at[0], at[1] + step, at[2], at[3]) for step in reach]
        else:
            near = [(at[0], at[1], at[2] + y, at[3] + x) for y, x in itertools.product(reach, reach)]
        for one in near:
            if all(0 <= x < size for x, size in zip(one, dims, strict=True)):
                value = src[one]
                total = total + value * value
        dst[at] = src[at] / call(total * 0.25 + 1)
    problem = f"mb2ic5ih4iw6ls{window}beta0.75"
    found = cost_of(row("lrn", problem, [spell("data", "f32", 4)], auxiliary=f"alg:lrn_{algorithm}"))
    assert found == (machine.operations, machine.bytes)


def test_copies_do_no_arithmetic():
    tensors = [spell("src", "f32", 4), spell("dst", "bf16", 4, "aBcd16b")]
    assert cost_of(row("reorder", "2x3x4x5", tensors)) == (0, 4 * 2 * 3 * 4 * 5 + 2 * 2 * 16 * 4 * 5)
    assert cost_of(row("shuffle", "2x8x4", [spell("data", "f32", 3)], auxiliary="axis:1 group:4")) == (0, 2 * 4 * 64)
    tensors = [spell("src", "f32", 2), spell("src", "f32", 2), spell("dst", "f32", 2)]
    assert cost_of(row("concat", "2x3:2x5", tensors, auxiliary="axis:1")) == (0, 4 * (6 + 10 + 16))
    # Version 1 prints the destination too.
    assert cost_of(row("concat", "2x3:2x5:2x8", tensors, auxiliary="axis:1")) == (0, 4 * (6 + 10 + 16))


def test_a_reorder_that_adds_reads_its_destination():
    tensors = [spell("src", "f32", 2), spell("dst", "f32", 2)]
    found = cost_of(row("reorder", "8x4", tensors, attributes="attr-post-ops:sum:0.5"))
    assert found == (2 * 32, 3 * 4 * 32)


def test_quantizing_moves_its_scales():
    tensors = [spell("src", "f32", 2), spell("dst", "u8", 2)]
    attributes = "attr-scales:dst:2:f32 attr-zero-points:dst:0:s32"
    assert cost_of(row("reorder", "8x64", tensors, attributes=attributes)) == (0, 5 * 512 + 64 * 4 + 4)
