"""RNN cells over layers, directions and time steps.

Source of the formulas: oneDNN's developer guide, "RNN", the section of each cell. A logistic function is 3 operations,
tanh 1. The two products of a cell are summed by accumulation, not by an addition of their own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cpulens.cost import eltwise
from cpulens.cost.attributes import quantization_bytes
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, total


class Cell(NamedTuple):
    """Gates, biases, and operations per hidden unit and step after the products and without the bias."""

    gates: int
    biases: int
    per_unit: int


#: LSTM: three logistic, two tanh, f × c + i × g, o × tanh. GRU: two logistic, tanh, r × h, u × h + (1 - u) × o. The
#: linear-before-reset GRU multiplies r with the product instead of h. AUGRU: u × (1 - a) before.
_CELLS: Final = {
    "vanilla_lstm": Cell(4, 4, 3 * 3 + 2 + 3 + 1),
    "vanilla_gru": Cell(3, 3, 2 * 3 + 1 + 1 + 4),
    "lbr_gru": Cell(3, 4, 2 * 3 + 1 + 1 + 4),
    "vanilla_augru": Cell(3, 3, 2 * 3 + 1 + 1 + 4 + 2),
    "lbr_augru": Cell(3, 4, 2 * 3 + 1 + 1 + 4 + 2),
}
_NEEDED: Final = {"l", "t", "mb", "sic", "slc", "dhc", "dic"}


def rnn(problem: Problem) -> Cost:
    """Operations: 2 × gates × dhc × (slc + sic) for each layer, direction, step and image, and the cell's own.

    The bias is an addition each, peepholes 6 for a unit, a projection 2 × dhc × dic. Weights are moved once, however
    many the steps. Gradients, and the workspace of training, have sizes that no line says: their bytes are unknown.
    """
    sizes, cell = problem.sizes, _cell(problem)
    if not sizes.keys() >= _NEEDED or not problem.forward:
        return UNKNOWN
    layers, steps, mb, sic, slc, dhc, dic = (sizes[name] for name in ("l", "t", "mb", "sic", "slc", "dhc", "dic"))
    direction = problem.option("direction") or ""
    directions = 2 if direction.startswith("bidirectional") else 1
    flops = None
    if cell is not None:
        per_unit = 2 * cell.gates * (slc + sic) + cell.per_unit
        per_unit += cell.biases if problem.tensor("bias") else 0
        per_unit += 6 if problem.tensor("wei_peephole") else 0
        per_unit += 2 * dic if problem.tensor("wei_proj") else 0
        flops = layers * directions * steps * mb * dhc * per_unit
    return Cost(flops, _bytes(problem, cell, directions) if cell else None)


def _cell(problem: Problem) -> Cell | None:
    algorithm = problem.option("alg") or ""
    if algorithm == "vanilla_rnn":
        activation = eltwise.operations((problem.option("activation") or "").removeprefix("eltwise_"))
        return None if activation is None else Cell(1, 1, activation)
    return _CELLS.get(algorithm)


def _bytes(problem: Problem, cell: Cell, directions: int) -> float | None:
    sizes = problem.sizes
    layers, steps, mb, sic, slc, dhc, dic = (sizes[name] for name in ("l", "t", "mb", "sic", "slc", "dhc", "dic"))
    stack = [layers, directions]
    wide = 2 if "concat" in (problem.option("direction") or "") else 1
    dims = {
        "src_layer": [steps, mb, slc],
        "src_iter": [*stack, mb, sic],
        "wei_layer": [*stack, slc, cell.gates, dhc],
        "wei_iter": [*stack, sic, cell.gates, dhc],
        "wei_peephole": [*stack, 3, dhc],
        "wei_proj": [*stack, dhc, dic],
        "bias": [*stack, cell.biases, dhc],
        "dst_layer": [steps, mb, dic * wide],
        "dst_iter": [*stack, mb, dic],
    }
    parts = [one.size_bytes(dims[name]) if name in dims else None for name, one in problem.described]
    if not {"src_layer", "wei_layer", "wei_iter", "dst_layer"} <= {name for name, _ in problem.described}:
        return None
    if (problem.option("alg") or "") == "vanilla_lstm":  # the cell state goes with the hidden one; f32 where not f16
        parts += [4.0 * layers * directions * mb * dhc for name in ("src_iter", "dst_iter") if problem.tensor(name)]
    parts.append(quantization_bytes(problem, {}))
    if problem.prop_kind == "forward_training":
        parts.append(None)
    return total(*parts)
