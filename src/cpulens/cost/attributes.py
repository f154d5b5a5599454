"""What attributes add: operations of post-operations, bytes of their operands, of scales and of zero points.

Spellings and semantics: oneDNN's developer guide, "Primitive Attributes". Scaling and shifting of quantized data is
not counted as operations, as benchdnn does not; their values are counted as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cpulens.cost import eltwise
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import ELEMENT_BYTES, Tensor, shape

_OPERANDS = {"src": "src0", "weights": "wei"}


def post_operations(problem: Problem, dims: Sequence[int]) -> Cost:
    """Cost of the chain after the main computation, on a destination of dimensions `dims`; 0 without any."""
    chain = problem.settings.get("post-ops", "")
    costs = [_post_operation(entry.split(":"), problem, dims) for entry in chain.split("+") if entry]
    return Cost(total(*(one.flops for one in costs)), total(*(one.bytes for one in costs)))


def _post_operation(entry: list[str], problem: Problem, dims: Sequence[int]) -> Cost:
    kind, *options = entry
    elements = product(dims)
    if kind.startswith("eltwise_"):
        per_element = eltwise.operations(kind.removeprefix("eltwise_"), _number(options, 0))
        scaled = 1 if _number(options, 2) not in (None, 1.0) else 0
        return Cost(None if per_element is None else (per_element + scaled) * elements, 0)
    if kind == "sum":  # dst += result, or scale × dst
        dst = problem.destination
        return Cost(elements * (1 if _number(options, 0) in (None, 1.0) else 2), dst.size_bytes(dims) if dst else None)
    if kind.startswith("binary_") and len(options) >= 2 and options[1].isdigit():
        return Cost(elements, _masked(dims, int(options[1]), options[0]))
    if kind == "prelu" and options and options[0].isdigit():
        return Cost(2 * elements, _masked(dims, int(options[0]), "f32"))
    # The fused depthwise convolution changes the problem itself: see cpulens.cost.convolution.
    return Cost(0, 0) if kind.startswith("dw") else UNKNOWN


def _number(options: list[str], at: int) -> float | None:
    try:
        return float(options[at])
    except (IndexError, ValueError):
        return None


def masked(dims: Sequence[int], mask: int) -> list[int]:
    """The dimensions that a mask keeps: bit d set keeps dimension d, else it is 1."""
    return [size if mask >> axis & 1 else 1 for axis, size in enumerate(dims)]


def _masked(dims: Sequence[int], mask: int, dt: str) -> float | None:
    element = ELEMENT_BYTES.get(dt)
    return None if element is None else element * product(masked(dims, mask))


def quantization_bytes(problem: Problem, operands: Mapping[str, Sequence[int]]) -> float | None:
    """Bytes of scales and zero points. `operands`: dimensions of ``src0``, ``src1``, ``wei``, ``dst``.

    An entry is ``wei:3:f16:32x1``: operand, mask, type, sizes of the groups along the last dimensions. Values that
    older versions print in the line itself are no traffic.
    """
    parts: list[float | None] = []
    for name, default in (("scales", "f32"), ("zero-points", "s32")):
        for entry in problem.settings.get(name, "").split("+"):
            if entry:
                parts.append(_quantization_entry(entry.split(":"), default, operands))
    if "dropout" in problem.settings:
        parts.append(None)
    return total(*parts)


def _quantization_entry(entry: list[str], default: str, operands: Mapping[str, Sequence[int]]) -> float | None:
    dims = operands.get(_OPERANDS.get(entry[0], entry[0]))
    if len(entry) < 2 or not entry[1].isdigit() or dims is None:
        return None
    dt = entry[2] if len(entry) > 2 else default
    if dt not in ELEMENT_BYTES and dt != "*":
        return 0.0
    kept = masked(dims, int(entry[1]))
    groups = shape(entry[3]) if len(entry) > 3 else None
    for axis, group in zip(range(len(kept) - 1, -1, -1), reversed(groups or ()), strict=False):
        kept[axis] = -(-kept[axis] // max(group, 1))
    return ELEMENT_BYTES.get(dt, 4.0) * product(kept)


def finish(problem: Problem, main: Cost, dims: Sequence[int], operands: Mapping[str, Sequence[int]]) -> Cost:
    """The main computation with all that its attributes add. `dims`: of the destination."""
    if not problem.settings:
        return main
    after = post_operations(problem, dims)
    return Cost(
        total(main.flops, after.flops),
        total(main.bytes, after.bytes, quantization_bytes(problem, operands)),
    )


def with_operand(tensor: Tensor | None, dims: Sequence[int]) -> list[tuple[Tensor | None, Sequence[int]]]:
    """A list of the tensor if there is one: an operand that may be absent."""
    return [(tensor, dims)] if tensor else []
