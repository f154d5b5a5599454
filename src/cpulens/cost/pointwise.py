"""Primitives that treat every element alike: eltwise, binary, sum, prelu, softmax, reduction; and copies.

Formulas: oneDNN's developer guide, the page of each primitive. Gradients have known bytes only where all their tensors
have the same dimensions, and no operations.
"""

from __future__ import annotations

from cpulens.cost import eltwise
from cpulens.cost.attributes import finish
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import shape, shapes


def elementwise(problem: Problem) -> Cost:
    """Give f(x) for every element: operations by `cpulens.cost.eltwise`; read and written once."""
    dims = shape(problem.text)
    if dims is None:
        return UNKNOWN
    if not problem.forward:
        return _gradient(problem, dims)
    per_element = eltwise.operations(problem.algorithm, _float(problem.option("alpha")))
    flops = None if per_element is None else per_element * product(dims)
    main = Cost(flops, problem.moved([(problem.source, dims), (problem.destination, dims)]))
    return finish(problem, main, dims, {"src0": dims, "dst": dims})


def binary(problem: Problem) -> Cost:
    """One operation for each element of the destination; an operand is broadcast along dimensions of size 1."""
    operands = shapes(problem.text)
    if operands is None or len(operands) < 2 or len({len(dims) for dims in operands}) != 1:
        return UNKNOWN
    dims = [_broadcast(sizes) for sizes in zip(*operands, strict=True)]
    sources = problem.all("src")
    if len(sources) != len(operands):
        return Cost(product(dims), None)
    main = Cost(product(dims), problem.moved([*zip(sources, operands, strict=True), (problem.destination, dims)]))
    return finish(problem, main, dims, {"src0": operands[0], "src1": operands[1], "dst": dims})


def _broadcast(sizes: tuple[int, ...]) -> int:
    return 0 if 0 in sizes else max(sizes)


def sums(problem: Problem) -> Cost:
    """Σ scale × src over n sources: n multiplications and n - 1 additions for each element."""
    dims = shape(problem.text)
    sources = problem.all("src")
    if dims is None or not sources:
        return UNKNOWN
    flops = (2 * len(sources) - 1) * product(dims)
    main = Cost(flops, problem.moved([*((one, dims) for one in sources), (problem.destination, dims)]))
    return finish(problem, main, dims, {"dst": dims})


def prelu(problem: Problem) -> Cost:
    """Give x if x > 0 else w × x: a comparison and a multiplication; weights are broadcast."""
    found = shapes(problem.text)
    if found is None or len(found) != 2:
        return UNKNOWN
    dims, weights = found
    if not problem.forward:
        return UNKNOWN
    moved = [(problem.source, dims), (problem.tensor("wei"), weights), (problem.destination, dims)]
    return finish(problem, Cost(2 * product(dims), problem.moved(moved)), dims, {"src0": dims, "dst": dims})


def softmax(problem: Problem) -> Cost:
    """Maximum, difference, exponential, sum, quotient: 5 an element; the logarithmic one takes a logarithm a row more.

    The logarithmic form subtracts the logarithm of the sum in place of the quotient.
    """
    dims, axis = shape(problem.text), problem.option("axis")
    if dims is None or axis is None or not axis.isdigit() or int(axis) >= len(dims):
        return UNKNOWN
    if not problem.forward:
        return _gradient(problem, dims)
    elements = product(dims)
    rows = product(size for at, size in enumerate(dims) if at != int(axis)) if elements else 0
    flops = 5 * elements + (rows if problem.algorithm == "log" else 0)
    main = Cost(flops, problem.moved([(problem.source, dims), (problem.destination, dims)]))
    return finish(problem, main, dims, {"src0": dims, "dst": dims})


#: Algorithm → operations for each element of the source, and for each of the destination. The Lp norms take |x|, a
#: power and a sum; then a maximum with or a sum of eps, and the root but for those of the power itself.
_REDUCTIONS = {
    "max": (1, 0),
    "min": (1, 0),
    "sum": (1, 0),
    "mul": (1, 0),
    "mean": (1, 1),
    "norm_lp_max": (3, 2),
    "norm_lp_sum": (3, 2),
    "norm_lp_power_p_max": (3, 1),
    "norm_lp_power_p_sum": (3, 1),
}


def reduction(problem: Problem) -> Cost:
    """One step for each element of the source, and what closes each element of the destination."""
    found = shapes(problem.text)
    steps = _REDUCTIONS.get(problem.algorithm)
    if found is None or len(found) != 2:
        return UNKNOWN
    src, dst = found
    flops = None if steps is None else steps[0] * product(src) + steps[1] * product(dst)
    main = Cost(flops, problem.moved([(problem.source, src), (problem.destination, dst)]))
    return finish(problem, main, dst, {"src0": src, "dst": dst})


def reorder(problem: Problem) -> Cost:
    """No operations (conversions and scales are not counted); read in one layout, written in the other."""
    dims = shape(problem.text)
    if dims is None:
        return UNKNOWN
    main = Cost(0, problem.moved([(problem.source, dims), (problem.destination, dims)]))
    return finish(problem, main, dims, {"src0": dims, "dst": dims})


def shuffle(problem: Problem) -> Cost:
    """No operations; every element is read and written."""
    dims = shape(problem.text)
    if dims is None:
        return UNKNOWN
    return Cost(0, problem.moved([(problem.source, dims), (problem.destination, dims)]))


def concat(problem: Problem) -> Cost:
    """No operations; every source is read, and written into its part of the destination."""
    operands, axis = shapes(problem.text), problem.option("axis")
    sources = problem.all("src")
    if operands is None or axis is None or not axis.isdigit():
        return UNKNOWN
    # A destination printed at the end of the problem (before 2.0) is no source.
    operands = operands[: len(sources)]
    if len(sources) != len(operands) or any(int(axis) >= len(dims) for dims in operands):
        return Cost(0, None)
    dims = list(operands[0])
    dims[int(axis)] = sum(one[int(axis)] for one in operands)
    main = Cost(0, problem.moved([*zip(sources, operands, strict=True), (problem.destination, dims)]))
    named = {f"src{at}": one for at, one in enumerate(operands)}
    named |= {f"msrc{at}": one for at, one in enumerate(operands)}
    return finish(problem, main, dims, {**named, "dst": dims})


def _gradient(problem: Problem, dims: tuple[int, ...]) -> Cost:
    """Bytes of all tensors of a gradient that have one shape: data, gradient in and gradient out."""
    printed = [one.size_bytes(dims) for _, one in problem.described]
    third = printed[1] if len(printed) == 2 else 0.0  # one gradient is printed for two
    return Cost(None, total(*printed, third) if printed else None)


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
