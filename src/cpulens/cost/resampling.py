"""Resampling: nearest neighbour or linear interpolation.

Source: oneDNN's developer guide, "Resampling": output o lies at (o + 0.5) × input / output - 0.5 of the input.
Coordinates and weights are the same for all channels and not counted.
"""

from __future__ import annotations

from cpulens.cost.attributes import finish
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product

_MOST_STEPS = 1 << 18


def resampling(problem: Problem) -> Cost:
    """Nearest: a copy. Linear over s axes: 2^s - 1 interpolations of 3 operations for each output.

    Only the pixels that an output takes are read.
    """
    sizes, inputs, outputs = problem.sizes, problem.spatial("i"), problem.spatial("o")
    if not {"mb", "ic"} <= sizes.keys() or not inputs or len(inputs) != len(outputs):
        return UNKNOWN
    channels = [sizes["mb"], sizes["ic"]]
    linear = problem.algorithm == "linear"
    dst = [*channels, *outputs]
    if not problem.forward:
        return Cost(None, problem.moved([(problem.source, [*channels, *inputs]), (problem.destination, dst)]))
    flops = 3 * (2 ** len(inputs) - 1) * product(dst) if linear else 0
    src = [*channels, *(_touched(size, out, linear) for size, out in zip(inputs, outputs, strict=True))]
    main = Cost(flops, problem.moved([(problem.source, src), (problem.destination, dst)]))
    return finish(problem, main, dst, {"dst": dst})


def _touched(size: int, outputs: int, linear: bool) -> int:
    """Positions of one axis that an output takes."""
    if outputs >= size or outputs > _MOST_STEPS:  # all of them; beyond all measure the source counts as read whole
        return size
    taken: set[int] = set()
    for o in range(outputs):
        doubled = (2 * o + 1) * size  # 2 × outputs × (position + 0.5), in whole numbers
        if linear:
            left = (doubled - outputs) // (2 * outputs)
            taken.update((max(left, 0), min(left + 1, size - 1)))
        else:
            taken.add(min(doubled // (2 * outputs), size - 1))
    return len(taken)
