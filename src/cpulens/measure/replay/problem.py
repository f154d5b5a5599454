"""What a text's columns say of a oneDNN problem, as shapes and settings of the native bindings. Pure.

A problem that can't be run again raises `Unreplayable`, whose message says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cpulens.cost.attributes import masked
from cpulens.cost.problem import AXES
from cpulens.cost.problem import Problem as Columns
from cpulens.cost.tensors import ELEMENT_BYTES, shapes
from cpulens.verbose import tensors
from cpulens.verbose.tensors import Tensor

KINDS: Final = ("matmul", "convolution", "inner_product", "reorder", "eltwise", "softmax")
_FORWARD: Final = ("forward_inference", "forward_training", "forward_scoring", "undef", "")
_MASK: Final = re.compile(r"_mask(\d+)")
Dims = tuple[int, ...]


class Unreplayable(Exception):
    """A problem that can't be run again here; the message says why. It never leaves `cpulens.measure`."""


@dataclass(frozen=True)
class Window:
    """Of a convolution, one number for each spatial dimension; dilations count from 0."""

    strides: Dims
    dilations: Dims
    before: Dims
    after: Dims


@dataclass(frozen=True)
class Problem:
    """One primitive: its tensors by the names of the native bindings, and their dimensions."""

    kind: str
    prop_kind: str
    tensors: Mapping[str, Tensor]
    dims: Mapping[str, Dims]
    settings: Mapping[str, str]
    window: Window | None = None
    algorithm: str = ""
    axis: int = 0
    alpha: float = 0.0
    beta: float = 0.0

    @property
    def size_bytes(self) -> int:
        """Bytes of all its tensors, paddings of blocks left out."""
        return sum(int(ELEMENT_BYTES.get(one.dt, 4) * math.prod(self.dims[name])) for name, one in self.tensors.items())


def read(columns: Mapping[str, Any]) -> Problem:
    """The problem of a text of oneDNN."""
    kind, engine = columns.get("primitive") or "", columns.get("engine") or ""
    if columns.get("component") == "graph":
        raise Unreplayable("a graph partition; its primitives are replayed where the log has them")
    if kind not in KINDS:
        raise Unreplayable(f"not a kind that replay runs ({', '.join(KINDS)})")
    if engine not in ("cpu", "", "-"):
        raise Unreplayable(f"it ran on {engine}; replay runs on the CPU")
    told = Columns.of(columns)
    if told.prop_kind not in _FORWARD:
        raise Unreplayable(f"{told.prop_kind}: replay runs forward only")
    if "*" in told.text:
        raise Unreplayable(f"the sizes {told.text} are given at run time, and the line does not say them")
    described = {one.name: one for one in tensors.parse(columns.get("tensors") or "") if one.dt != "undef"}
    return _READERS[kind](told, _named(described))


def _named(described: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Under the names of the bindings; one tensor ``data`` stands for both ends."""
    names = {"wei": "weights", "bia": "bias"}
    found = {names.get(name, name): one for name, one in described.items() if name != "data"}
    if "data" in described:
        found |= {"src": described["data"], "dst": described["data"]}
    for name in ("src", "dst"):
        if name not in found:
            raise Unreplayable(f"the line describes no {name}")
    for one in found.values():
        if not one.dt:
            raise Unreplayable(f"the line does not say the data type of {one.name}")
        if one.kind == "sparse":
            raise Unreplayable(f"{one.name} is sparse, and the line does not say how many values it has")
    return found


def _shapes(told: Columns, count: int) -> list[Dims]:
    found = shapes(told.text)
    if found is None or len(found) < count:
        raise Unreplayable(f"the sizes {told.text or 'are not in the line, or'} are not understood")
    return found


def _sizes(told: Columns, *names: str) -> list[int]:
    missing = [name for name in names if name not in told.sizes]
    if missing:
        raise Unreplayable(f"the sizes {told.text!r} lack {' and '.join(missing)}")
    return [told.sizes[name] for name in names]


def _need(named: Mapping[str, Tensor], *names: str) -> dict[str, Tensor]:
    missing = [name for name in names if name not in named]
    if missing:
        raise Unreplayable(f"the line describes no {' and no '.join(missing)}")
    return {name: named[name] for name in (*names, *(["bias"] if "bias" in named else []))}


def _matmul(told: Columns, named: dict[str, Tensor]) -> Problem:
    used = _need(named, "src", "weights", "dst")
    left, right = _shapes(told, 2)[:2]
    if len(left) != len(right) or len(left) < 2 or left[-1] != right[-2]:
        raise Unreplayable(f"the sizes {told.text} are those of no matrix product")
    batch = tuple(max(pair) for pair in zip(left[:-2], right[:-2], strict=True))
    dims = {"src": left, "weights": right, "dst": (*batch, left[-2], right[-1])}
    if "bias" in used:
        found = _MASK.search(used["bias"].flags)
        mask = int(found[1]) if found else 1 << (len(left) - 1)
        dims["bias"] = tuple(masked(dims["dst"], mask))
    return Problem("matmul", told.prop_kind, used, dims, told.settings)


def _convolution(told: Columns, named: dict[str, Tensor]) -> Problem:
    if "src_fused" in named or told.settings.get("post-ops", "").count("dw"):
        raise Unreplayable("a fused depthwise convolution, which the bindings do not make")
    used = _need(named, "src", "weights", "dst")
    axes = [axis for axis in AXES if f"i{axis}" in told.sizes]
    batch, inputs, outputs = _sizes(told, "mb", "ic", "oc")
    source, target = (tuple(_sizes(told, *(side + axis for axis in axes))) for side in "io")
    kernel, strides, dilations, before = (
        tuple(_sizes(told, *(letter + axis for axis in axes)) if letter != "d" else _dilations(told, axes))
        for letter in "ksdp"
    )
    groups = told.sizes.get("g", 1)
    if 0 in strides or groups < 1:
        raise Unreplayable(f"the sizes {told.text} have a stride or a number of groups of 0")
    grouped = groups > 1 or _ndims(used["weights"]) == len(axes) + 3
    if inputs % groups or outputs % groups:
        raise Unreplayable(f"{inputs} and {outputs} channels do not fall into {groups} groups")
    weights = ((groups,) if grouped else ()) + (outputs // groups, inputs // groups, *kernel)
    dims = {"src": (batch, inputs, *source), "weights": weights, "dst": (batch, outputs, *target), "bias": (outputs,)}
    spans = tuple((size - 1) * (hole + 1) + 1 for size, hole in zip(kernel, dilations, strict=True))
    after = tuple(map(_padding_after, source, target, spans, strides, before))
    return Problem(
        "convolution",
        told.prop_kind,
        used,
        {name: dims[name] for name in used},
        told.settings,
        Window(strides, dilations, before, after),
        f"convolution_{told.algorithm or 'direct'}",
    )


def _dilations(told: Columns, axes: list[str]) -> Dims:
    return tuple(told.sizes.get(f"d{axis}", 0) for axis in axes)


def _ndims(tensor: Tensor) -> int:
    return len({letter for letter in tensor.tag.lower() if letter.isalpha()}) if tensor.kind == "blocked" else 0


def _padding_after(size: int, out: int, span: int, stride: int, before: int) -> int:
    """Lines print the padding before only: that one again if it fits, else the least that gives the output."""
    if stride and size + 2 * before >= span and (size + 2 * before - span) // stride + 1 == out:
        return before
    return (out - 1) * stride + span - size - before


def _inner_product(told: Columns, named: dict[str, Tensor]) -> Problem:
    used = _need(named, "src", "weights", "dst")
    batch, inputs, outputs = _sizes(told, "mb", "ic", "oc")
    image = tuple(told.spatial("i"))
    dims = {
        "src": (batch, inputs, *image),
        "weights": (outputs, inputs, *image),
        "dst": (batch, outputs),
        "bias": (outputs,),
    }
    return Problem("inner_product", told.prop_kind, used, {name: dims[name] for name in used}, told.settings)


def _alike(told: Columns, named: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Dims]]:
    dims = _shapes(told, 1)[0]
    return {name: named[name] for name in ("src", "dst")}, {"src": dims, "dst": dims}


def _reorder(told: Columns, named: dict[str, Tensor]) -> Problem:
    return Problem("reorder", told.prop_kind, *_alike(told, named), told.settings)


def _eltwise(told: Columns, named: dict[str, Tensor]) -> Problem:
    alpha, beta = (float(told.option(name) or 0) for name in ("alpha", "beta"))
    algorithm = f"eltwise_{told.algorithm}"
    return Problem(
        "eltwise",
        told.prop_kind,
        *_alike(told, named),
        told.settings,
        algorithm=algorithm,
        alpha=alpha,
        beta=beta,
    )


def _softmax(told: Columns, named: dict[str, Tensor]) -> Problem:
    used, dims = _alike(told, named)
    axis = told.option("axis") or ""
    if not axis.isdigit() or int(axis) >= len(dims["src"]):
        raise Unreplayable(f"the axis {axis or 'is not said, and so'} is none of {told.text}")
    return Problem(
        "softmax",
        told.prop_kind,
        used,
        dims,
        told.settings,
        algorithm=f"softmax_{told.algorithm or 'accurate'}",
        axis=int(axis),
    )


_READERS: Final = {
    "matmul": _matmul,
    "convolution": _convolution,
    "inner_product": _inner_product,
    "reorder": _reorder,
    "eltwise": _eltwise,
    "softmax": _softmax,
}
