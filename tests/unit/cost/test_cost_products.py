"""Matrix products, attention and RNN cells against loops that count."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cost_counting import Machine, call, indices, larger, row, spell
from cpulens.cost import cost_of

SIZE = st.integers(1, 4)


@given(m=SIZE, n=SIZE, k=SIZE, batch=st.lists(SIZE, max_size=2), ones=st.lists(st.booleans(), min_size=2, max_size=2))
def test_matmul_with_broadcast_batches(m, n, k, batch, ones):
    left = [1 if one else size for one, size in zip(ones, batch, strict=False)]
    machine = Machine()
    src, wei, dst = (
        machine.tensor((*left, m, k), 1),
        machine.tensor((*batch, k, n), 1),
        machine.tensor((*batch, m, n), 4),
    )
    bia = machine.tensor((n,), 4)
    for *b, i, j in indices(dst.dims):
        total = machine.number()
        for x in range(k):
            of_src = tuple(min(at, size - 1) for at, size in zip(b, left, strict=True))
            total = total + src[*of_src, i, x] * wei[*b, x, j]
        dst[*b, i, j] = total + bia[(j,)]
    ndims = 2 + len(batch)
    mask = 1 << (ndims - 1)
    tensors = [
        spell("src", "u8", ndims),
        spell("wei", "s8", ndims),
        spell("bia", "f32", ndims, flags=f"f0_mask{mask}"),
        spell("dst", "f32", ndims),
    ]
    problem = ":".join("x".join(map(str, one.dims)) for one in (src, wei))
    assert cost_of(row("matmul", problem, tensors, prop_kind="undef")) == (machine.operations, machine.bytes)


def test_matmul_with_compressed_weights():
    """4-bit weights, f16 scales and 8-bit zero points for groups of 32 along k."""
    tensors = [spell("src", "bf16", 2), spell("wei", "u4", 2), spell("dst", "bf16", 2)]
    attributes = "attr-fpmath:bf16:true attr-scales:wei:3:f16:32x1 attr-zero-points:wei:3:u8:32x1"
    found = cost_of(row("matmul", "1x128:128x64", tensors, attributes=attributes))
    assert found.flops == 2 * 128 * 64
    assert found.bytes == 2 * 128 + 128 * 64 / 2 + 2 * 64 + (128 // 32) * 64 * (2 + 1)


def test_post_operations_are_counted_with_their_operands():
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    attributes = "attr-post-ops:sum:0.5+eltwise_gelu_erf+binary_add:f32:2+prelu:2"
    found = cost_of(row("matmul", "8x4:4x6", tensors, attributes=attributes))
    assert found.flops == 48 * (2 * 4) + 48 * (2 + 5 + 1 + 2)
    assert found.bytes == 4 * (32 + 24 + 48) + 4 * 48 + 4 * 6 + 4 * 6


def test_a_column_that_repeats_moves_once():
    tensors = [spell("src", "f32", 2, strides="0x1"), spell("wei", "f32", 2), spell("dst", "f32", 2)]
    assert cost_of(row("matmul", "8x4:4x6", tensors)).bytes == 4 * (4 + 24 + 48)


def test_gemm_api_is_a_matmul():
    tensors = [spell("src", "f32", 2), spell("wei", "f32", 2, "ba"), spell("dst", "f32", 2)]
    assert cost_of(row("gemm_api", "8x4:4x6", tensors, attributes="lda:16 ldb:16")) == (384, 4 * (32 + 24 + 48))


@pytest.mark.parametrize("image", [(), (3,), (2, 3), (2, 2, 2)])
def test_inner_product(image):
    machine = Machine()
    src, wei = machine.tensor((2, 3, *image), 2), machine.tensor((4, 3, *image), 2)
    bia, dst = machine.tensor((4,), 4), machine.tensor((2, 4), 4)
    for n, o in indices(dst.dims):
        total = machine.number()
        for at in indices(src.dims[1:]):
            total = total + src[n, *at] * wei[o, *at]
        dst[n, o] = total + bia[(o,)]
    names = "dhw"[-len(image) :] if image else ""
    problem = "mb2ic3" + "".join(f"i{name}{size}" for name, size in zip(names, image, strict=True)) + "oc4"
    n = 2 + len(image)
    tensors = [spell("src", "bf16", n), spell("wei", "bf16", n), spell("bia", "f32", 1), spell("dst", "f32", 2)]
    assert cost_of(row("inner_product", problem, tensors)) == (machine.operations, machine.bytes)


@pytest.mark.parametrize("mask", ["", "buffer_2d", "causal_top_left", "causal_bottom_right"])
@pytest.mark.parametrize(("rows", "columns"), [(4, 4), (3, 5), (5, 3), (1, 6)])
def test_attention(mask, rows, columns):
    head, out = 2, 3
    machine = Machine()
    query, key = machine.tensor((2, 2, rows, head), 2), machine.tensor((2, 1, head, columns), 2)
    value, dst = machine.tensor((2, 1, columns, out), 2), machine.tensor((2, 2, rows, out), 2)
    masks = machine.tensor((rows, columns), 2)
    for b, h, i in indices((2, 2, rows)):
        last = {"causal_top_left": i, "causal_bottom_right": i + columns - rows}.get(mask, columns - 1)
        seen = [j for j in range(columns) if j <= last]
        scores = []
        for j in seen:
            score = machine.number()
            for x in range(head):
                score = score + query[b, h, i, x] * key[b, 0, x, j]
            score = score * 0.5
            scores.append(score + masks[i, j] if mask == "buffer_2d" else score)
        top, total = machine.number(), machine.number()
        for score in scores:
            top = larger(top, score)
        powers = [call(score - top) for score in scores]
        for power in powers:
            total = total + power
        weights = [power / total for power in powers]
        for e in range(out):
            result = machine.number()
            for j, weight in zip(seen, weights, strict=True):
                result = result + weight * value[b, 0, j, e]
            dst[b, h, i, e] = result
    tensors = [spell("query", "bf16", 4), spell("key", "bf16", 4), spell("val", "bf16", 4), spell("dst", "bf16", 4)]
    if mask == "buffer_2d":
        tensors.insert(3, spell("msk", "bf16", 4))
    problem = f"2x2x{rows}x{head}:2x1x{head}x{columns}:2x1x{columns}x{out}"
    auxiliary = "alg:softmax_accurate" + (f" msk:{mask}" if mask else "") + " scl:mul:f16:host"
    found = cost_of(row("sdpa", problem, tensors, auxiliary=auxiliary))
    assert found.flops == machine.operations
    if not mask.startswith("causal"):  # with more columns than rows a causal mask leaves keys unread
        assert found.bytes == machine.bytes


def test_gated_mlp():
    machine = Machine()
    mb, ic, oc = 2, 3, 4
    src, dst = machine.tensor((mb, ic), 4), machine.tensor((mb, ic), 4)
    gate, up, down = machine.tensor((ic, oc), 4), machine.tensor((ic, oc), 4), machine.tensor((oc, ic), 4)
    for n in range(mb):
        hidden = []
        for o in range(oc):
            a, b = machine.number(), machine.number()
            for i in range(ic):
                a = a + src[n, i] * gate[i, o]
                b = b + src[n, i] * up[i, o]
            hidden.append(a / (call(a * -1.0) + 1) * b)  # swish(a) × b
        for i in range(ic):
            total = machine.number()
            for o, value in enumerate(hidden):
                total = total + value * down[o, i]
            dst[n, i] = total
    tensors = [spell(name, "f32", 2) for name in ("src", "wei_gate", "wei_up", "wei_down", "dst")]
    found = cost_of(row("gated_mlp", f"mb{mb}ic{ic}oc{oc}", tensors, auxiliary="alg:eltwise_swish"))
    assert found == (machine.operations, machine.bytes)


def logistic(x):
    return 1 / (call(-x) + 1)


def lstm(gates, state, _h, _machine):
    i, f, g, o = gates
    cell = logistic(f) * state + logistic(i) * call(g)
    return logistic(o) * call(cell)


def gru(gates, _state, h, machine):
    u, r, o = gates
    update = logistic(u)
    logistic(r) * h  # reset: goes into the product of the third gate
    return update * h + (1 - update) * call(o)


def augru(gates, _state, h, machine):
    u, r, o = gates
    update = (1 - machine.number()) * logistic(u)
    logistic(r) * h
    return update * h + (1 - update) * call(o)


CELLS = {
    "vanilla_rnn": (1, 1, lambda gates, *_: call(gates[0])),
    "vanilla_lstm": (4, 4, lstm),
    "vanilla_gru": (3, 3, gru),
    "lbr_gru": (3, 4, gru),
    "vanilla_augru": (3, 3, augru),
}


@pytest.mark.parametrize("direction", ["unidirectional_left2right", "bidirectional_concat", "bidirectional_sum"])
@pytest.mark.parametrize("cell", CELLS)
def test_rnn(cell, direction):
    gates, biases, step = CELLS[cell]
    layers, steps, mb, slc, hidden = 1, 3, 2, 4, 5
    machine = Machine()
    directions = 2 if direction.startswith("bi") else 1
    src = machine.tensor((steps, mb, slc), 4)
    wei_layer = machine.tensor((layers, directions, slc, gates, hidden), 4)
    wei_iter = machine.tensor((layers, directions, hidden, gates, hidden), 4)
    bias = machine.tensor((layers, directions, biases, hidden), 4)
    dst = machine.tensor((steps, mb, hidden * (2 if "concat" in direction else 1)), 4)
    for layer, d, t, n, h in itertools.product(*map(range, (layers, directions, steps, mb, hidden))):
        sums = []
        for g in range(gates):
            total = machine.number()
            for x in range(slc):
                total = total + src[t, n, x] * wei_layer[layer, d, x, g, h]
            for x in range(hidden):
                total = total + machine.number() * wei_iter[layer, d, x, g, h]
            sums.append(total + bias[layer, d, g, h])
        if biases > gates:
            machine.number() + bias[layer, d, biases - 1, h]
        step(sums, machine.number(), machine.number(), machine)
        dst[t, n, h + (hidden if "concat" in direction and d else 0)] = machine.number()
    tensors = [spell("src_layer", "f32", 3), spell("wei_layer", "f32", 5), spell("wei_iter", "f32", 5)]
    tensors += [spell("bias", "f32", 4), spell("dst_layer", "f32", 3)]
    activation = "eltwise_tanh" if cell == "vanilla_rnn" else "undef"
    auxiliary = f"alg:{cell} direction:{direction} activation:{activation} flags:"
    problem = f"l{layers}t{steps}mb{mb}sic{hidden}slc{slc}dhc{hidden}dic{hidden}"
    assert cost_of(row("rnn", problem, tensors, auxiliary=auxiliary)) == (machine.operations, machine.bytes)


def test_rnn_states_move_in_and_out():
    """With initial and final states: hidden states in their own type, LSTM's cell states in f32."""
    tensors = [spell("src_layer", "bf16", 3), spell("src_iter", "bf16", 4), spell("wei_layer", "bf16", 5)]
    tensors += [spell("wei_iter", "bf16", 5), spell("dst_layer", "bf16", 3), spell("dst_iter", "bf16", 4)]
    auxiliary = "alg:vanilla_lstm direction:unidirectional_left2right activation:undef flags:"
    found = cost_of(row("rnn", "l1t2mb3sic4slc4dhc4dic4", tensors, auxiliary=auxiliary))
    weights, layers, states = 2 * (2 * 4 * 4 * 4), 2 * (2 * 2 * 3 * 4), 2 * (2 * 3 * 4) + 2 * (4 * 3 * 4)
    assert found.bytes == weights + layers + states
