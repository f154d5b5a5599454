"""Attributes of a problem as the native bindings take them, and the shapes of the values they need. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cpulens.cost.attributes import masked
from cpulens.measure.replay.problem import Dims, Problem, Unreplayable

_ARGUMENTS: Final = {"src0": "src", "src": "src", "wei": "weights", "dst": "dst"}
_KNOWN: Final = ("scales", "zero-points", "post-ops", "fpmath", "scratchpad", "rnn_data_qparams")
_TYPES: Final = {"scales": "f32", "zero-points": "s32"}


@dataclass(frozen=True)
class Chained:
    """One post-operation: `numbers` of an eltwise or a sum; data type, dimensions and tag of a second source."""

    name: str
    numbers: tuple[float, ...] = ()
    dt: str = ""
    dims: Dims = ()
    tag: str | None = None


@dataclass(frozen=True)
class Settings:
    """`scales` and `zero_points`: argument → (mask, number of values)."""

    scales: Mapping[str, tuple[int, int]]
    zero_points: Mapping[str, tuple[int, int]]
    chain: tuple[Chained, ...]
    fpmath: str
    scratchpad: str


def read(problem: Problem) -> Settings:
    """What the attributes of a problem say. Raises `Unreplayable` for one that the bindings can't make."""
    told = problem.settings
    unknown = [name for name in told if name not in _KNOWN]
    if unknown:
        extra = " of oneDNN 2.x, which 3.x no longer has" if unknown == ["oscale"] else ""
        raise Unreplayable(f"the attribute {unknown[0]}{extra}")
    chain = [entry for entry in told.get("post-ops", "").split("+") if entry]
    fpmath, _, integers = told.get("fpmath", "strict").partition(":")
    if integers == "true":
        raise Unreplayable("floating-point math applied to integers")
    return Settings(
        _quantization(problem, "scales"),
        _quantization(problem, "zero-points"),
        tuple(_chained(entry, problem.dims["dst"]) for entry in chain),
        fpmath,
        told.get("scratchpad", "library"),
    )


def _quantization(problem: Problem, name: str) -> dict[str, tuple[int, int]]:
    found = {}
    for entry in filter(None, problem.settings.get(name, "").split("+")):
        argument, mask, *rest = [*entry.split(":"), ""]
        other = [part for part in rest if part and part != "*" and part != _TYPES[name] and not _is_number(part)]
        where = _ARGUMENTS.get(argument)
        if where is None or where not in problem.dims or not mask.isdigit() or other:
            raise Unreplayable(f"{name.replace('-', ' ')} of {entry}: the bindings take one type, and no groups")
        count = 1
        for size in masked(problem.dims[where], int(mask)):
            count *= size
        found[where] = (int(mask), count)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _chained(entry: str, dims: Dims) -> Chained:
    name, *rest = entry.split(":")
    if name == "sum" or name.startswith("eltwise_"):
        numbers = tuple(float(part) for part in rest if _is_number(part))
        types = [part for part in rest if not _is_number(part)]
        if name != "sum" and len(numbers) > 2 and numbers[2] != 1:
            raise Unreplayable(f"the scale of the post-operation {entry}, which oneDNN 3.x no longer has")
        return Chained(name, numbers, types[0] if types else "")
    if name.startswith("binary_") and name != "binary_select" and len(rest) > 1 and rest[1].isdigit():
        if len(rest) > 3:
            raise Unreplayable(f"the strides of the second source in {entry}")
        tag = rest[2] if len(rest) > 2 else None
        return Chained(name, (), rest[0], tuple(masked(dims, int(rest[1]))), None if tag == "any" else tag)
    raise Unreplayable(f"the post-operation {name}, which the bindings do not make")
