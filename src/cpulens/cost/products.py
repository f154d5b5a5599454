"""Matrix products: matmul, inner product, attention, the gated MLP.

Source: oneDNN's developer guide, the page of each primitive; 2 × m × n × k operations as benchdnn counts.
"""

from __future__ import annotations

from cpulens.cost import eltwise
from cpulens.cost.attributes import finish, masked, with_operand
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import shapes


def matmul(problem: Problem) -> Cost:
    """2 × (elements of the destination) × k, and an addition an element for the bias.

    Batch dimensions of size 1 are broadcast, and their operand is moved once. Weights of fewer bits count in their own
    type, with the scales and zero points of their groups; unpacking them is not counted.
    """
    operands = shapes(problem.text)
    if operands is None or len(operands) != 2:
        return UNKNOWN
    src, weights = operands
    if len(src) != len(weights) or len(src) < 2 or src[-1] != weights[-2]:
        return UNKNOWN
    batch = [max(pair) if 0 not in pair else 0 for pair in zip(src[:-2], weights[:-2], strict=True)]
    dst = [*batch, src[-2], weights[-1]]
    bias = problem.tensor("bia", "bias")
    mask = bias.mask if bias else None
    flops = (2 * src[-1] + (1 if bias else 0)) * product(dst)
    bytes_moved = problem.moved(
        [(problem.tensor("src", "src_a"), src), (problem.tensor("wei", "src_b"), weights), (problem.destination, dst)]
    )
    if bias:
        bytes_moved = total(bytes_moved, None if mask is None else bias.size_bytes(masked(dst, mask)))
    return finish(problem, Cost(flops, bytes_moved), dst, {"src0": src, "wei": weights, "dst": dst})


def inner_product(problem: Problem) -> Cost:
    """2 × mb × oc × ic × (pixels), and an addition an output for the bias; the gradients multiply as much."""
    sizes = problem.sizes
    if not {"mb", "ic", "oc"} <= sizes.keys():
        return UNKNOWN
    image = problem.spatial("i")
    src, weights = [sizes["mb"], sizes["ic"], *image], [sizes["oc"], sizes["ic"], *image]
    dst = [sizes["mb"], sizes["oc"]]
    bias = problem.tensor("bia", "bias")
    flops = 2 * sizes["oc"] * product(src)
    if bias and problem.prop_kind != "backward_data":
        flops += product(dst)
    moved = [(problem.tensor("src"), src), (problem.tensor("wei"), weights), (problem.destination, dst)]
    main = Cost(flops, problem.moved([*moved, *with_operand(bias, dst[1:])]))
    return finish(problem, main, dst, {"src0": src, "wei": weights, "dst": dst})


def attention(problem: Problem) -> Cost:
    """softmax(q × k × scale + mask) × v, with query …×S×D, key …×D×T, value …×T×E.

    A score takes 2D operations, the scale 1, a buffer mask 1, its part of the softmax 5 and of the second product 2E.
    A causal mask leaves out the scores beyond the diagonal: they do no work. Keys and values shared by several heads
    are read once.
    """
    found = shapes(problem.text)
    if found is None or len(found) != 3 or not problem.forward or any(len(dims) < 2 for dims in found):
        return UNKNOWN
    query, key, value = found
    if query[-1] != key[-2] or key[-1] != value[-2]:
        return UNKNOWN
    rows, columns, mask = query[-2], key[-1], problem.option("msk") or ""
    scores = product(query[:-2]) * _scores(rows, columns, mask)
    buffer = problem.tensor("msk") if mask.startswith("buffer") else None
    per_score = 2 * query[-1] + 5 + 2 * value[-1]
    per_score += (1 if problem.option("scl") else 0) + (1 if mask.startswith("buffer") else 0)
    moved: float | None = problem.moved(
        [
            (problem.tensor("query"), query),
            (problem.tensor("key"), key),
            (problem.tensor("val"), value),
            (problem.destination, [*query[:-1], value[-1]]),
        ]
    )
    if mask.startswith("buffer"):  # its batch is not printed: at least one row, or one matrix
        shape = [1 if mask.endswith("1d") else rows, columns]
        moved = total(moved, buffer.size_bytes(shape) if buffer else None)
    return Cost(scores * per_score, moved)


def _scores(rows: int, columns: int, mask: str) -> int:
    """Scores of one head that are needed."""
    if mask == "causal_top_left":
        full = min(rows, columns)
        return full * (full + 1) // 2 + (rows - full) * columns
    if mask == "causal_bottom_right":  # row i sees columns up to i + columns - rows
        first = columns - rows + 1
        skipped = max(0, min(rows, -(first - 1))) if first < 1 else 0
        seen, low = rows - skipped, max(first, 1)
        return seen * low + seen * (seen - 1) // 2
    return rows * columns


def gated_mlp(problem: Problem) -> Cost:
    """(f(x × gate) × (x × up)) × down: three products of mb × ic × oc, and f and a multiplication for mb × oc."""
    sizes = problem.sizes
    if not {"mb", "ic", "oc"} <= sizes.keys():
        return UNKNOWN
    mb, ic, oc = (sizes[name] for name in ("mb", "ic", "oc"))
    activation = eltwise.operations((problem.option("alg") or "").removeprefix("eltwise_"))
    flops = None if activation is None else 6 * mb * ic * oc + (activation + 1) * mb * oc
    weights = [("wei_gate", [ic, oc]), ("wei_up", [ic, oc]), ("wei_down", [oc, ic])]
    moved = [(problem.tensor("src"), [mb, ic]), (problem.tensor("dst"), [mb, ic])]
    return Cost(flops, problem.moved([*moved, *((problem.tensor(name), dims) for name, dims in weights)]))
