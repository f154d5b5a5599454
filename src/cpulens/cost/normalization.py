"""Normalizations over a batch, a layer, groups, and local responses.

Source of the formulas: oneDNN's developer guide, the page of each primitive. For every element x: (x - mean) × scale
takes 2 operations, a given scale 1, a given shift 1, a fused ReLU 1, a fused addition 1; statistics that are not given
cost 1 addition for the mean and 3 (difference, square, sum) for the variance. For every pair of statistics:
1 / √(variance + eps) takes 3, and the two divisions by the count 2 more where they are worked out.
"""

from __future__ import annotations

from cpulens.cost.attributes import finish, with_operand
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import Tensor, shape

_F32 = Tensor("f32", "", "", "", "")


def batch_normalization(problem: Problem) -> Cost:
    """Statistics of each channel; they are read where they are given (flag G), written in training."""
    dims = _image(problem)
    return UNKNOWN if dims is None else _normalized(problem, dims, rows=dims[1], channels=dims[1])


def layer_normalization(problem: Problem) -> Cost:
    """Statistics over the last dimension; moved where the line prints them."""
    dims = shape(problem.text)
    if not dims:
        return UNKNOWN
    return _normalized(problem, dims, rows=product(dims[:-1]), channels=dims[-1])


def group_normalization(problem: Problem) -> Cost:
    """Statistics of each group of channels of each image."""
    dims, groups = _image(problem), problem.sizes.get("g")
    if dims is None or groups is None:
        return UNKNOWN
    return _normalized(problem, dims, rows=dims[0] * groups, channels=dims[1])


def _image(problem: Problem) -> tuple[int, ...] | None:
    """Dimensions from ``mb2ic8ih7iw7``, or from ``2x3x4x5x2x2`` where there are too many for names."""
    sizes = problem.sizes
    if {"mb", "ic"} <= sizes.keys():
        return (sizes["mb"], sizes["ic"], *problem.spatial("i"))
    dims = shape(problem.text)
    return dims if dims and len(dims) > 1 else None


def _normalized(problem: Problem, dims: tuple[int, ...], rows: int, channels: int) -> Cost:
    flags = problem.option("flags") or ""
    if not problem.forward:
        return UNKNOWN
    per_element, per_row = (2, 3) if "G" in flags else (6, 5)
    per_element += sum(flag in flags for flag in "CHR") + (2 if "A" in flags else 0)
    flops = per_element * product(dims) + per_row * rows
    moved = problem.moved([(problem.source, dims), (problem.destination, dims)])
    for flag, name in (("C", "scale"), ("H", "shift")):
        if flag in flags:
            moved = total(moved, (problem.tensor(name) or _F32).size_bytes([channels]))
    stats = problem.tensor("stats")
    if stats or (
        problem.primitive != "layer_normalization" and ("G" in flags or problem.prop_kind.endswith("training"))
    ):
        pair = (stats or _F32)._replace(kind="", tag="")
        moved = total(moved, pair.size_bytes([rows]), pair.size_bytes([rows]))
    if "A" in flags and problem.source:
        moved = total(moved, problem.source.size_bytes(dims))
    return finish(problem, Cost(flops, moved), dims, {"src0": dims, "dst": dims})


def local_response(problem: Problem) -> Cost:
    """A square and a sum for each neighbour; × alpha / n, + k, power, quotient for each element.

    Neighbours outside the tensor are none. Across channels the window has `ls` channels, within a channel `ls` in
    every direction of the image.
    """
    sizes, dims = problem.sizes, _image(problem)
    if dims is None or "ls" not in sizes or not problem.forward:
        return UNKNOWN
    if problem.algorithm == "across_channels":
        neighbours = _window_hits(dims[1], sizes["ls"]) * dims[0] * product(dims[2:])
    else:
        neighbours = product(dims[:2]) * product(_window_hits(size, sizes["ls"]) for size in dims[2:])
    moved = [(problem.source, dims), (problem.destination, dims), *with_operand(problem.tensor("ws"), dims)]
    return finish(problem, Cost(2 * neighbours + 4 * product(dims), problem.moved(moved)), dims, {})


def _window_hits(size: int, window: int) -> int:
    """Pairs (element, neighbour) along one axis, the window centred: (window - 1) // 2 to the left, the rest right."""
    left = (window - 1) // 2
    right = window - 1 - left
    return size * window - _clipped(size, left) - _clipped(size, right)


def _clipped(size: int, reach: int) -> int:
    """Neighbours beyond one end: reach at the first element, one less at each further one."""
    full = min(size, reach)
    return full * reach - full * (full - 1) // 2
