"""Layouts as rules compare them: reorders as (dimensions, from, to), and the weights that kernels take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cpulens.verbose.dimensions import dimensions
from cpulens.verbose.tensors import parse

if TYPE_CHECKING:
    import polars as pl


class Layout(NamedTuple):
    """Data type, and how the elements lie: kind, tag and strides."""

    dt: str
    order: str

    def __str__(self) -> str:
        return f"{self.dt}:{self.order}"


class Move(NamedTuple):
    """What a reorder does: dimensions, from which layout, to which."""

    problem: str
    source: Layout
    destination: Layout


#: Weights in a layout: dimensions and layout.
Weights = tuple[str, Layout]
_SPATIAL: Final = ("d", "h", "w")


def move(row: dict[str, Any]) -> Move | None:
    """Read a reorder's text; None when it doesn't say."""
    layouts = {tensor.name: _layout(tensor) for tensor in parse(row["tensors"] or "")}
    if row["problem"] and "src" in layouts and "dst" in layouts:
        return Move(row["problem"], layouts["src"], layouts["dst"])
    return None


def _layout(tensor: Any) -> Layout:
    kind = "" if tensor.kind == "blocked" else tensor.kind
    return Layout(tensor.dt, ":".join(part for part in (kind, tensor.tag, tensor.strides) if part))


def weights(kernels: pl.DataFrame) -> dict[Weights, dict[str, Any]]:
    """The weights that kernels take, and the kernel that takes them: convolutions, inner products, plain products."""
    found: dict[Weights, dict[str, Any]] = {}
    for row in kernels.iter_rows(named=True):
        shape = _weights_shape(row["primitive"], row["problem"])
        if shape is None:
            continue
        for tensor in parse(row["tensors"] or ""):
            if tensor.name == "wei":
                found.setdefault((shape, _layout(tensor)), row)
    return found


def _weights_shape(primitive: str, problem: str | None) -> str | None:
    """Dimensions of the weights, in the order of oneDNN's descriptors; None where they aren't weights for certain."""
    sizes = dimensions(primitive, problem)
    if primitive == "matmul" and problem:
        second = problem.partition(":")[2].partition(":")[0]
        return second if second.count("x") == 1 else None  # with batch dimensions it may be an activation
    if not isinstance(sizes.get("oc"), int) or not isinstance(sizes.get("ic"), int):
        return None
    oc, ic = int(sizes["oc"] or 0), int(sizes["ic"] or 0)
    if primitive in ("convolution", "deconvolution"):
        groups = int(sizes["g"] or 1) if "g" in sizes else 1
        channels = [groups, oc // groups, ic // groups] if "g" in sizes else [oc, ic]
        return "x".join(map(str, channels + [sizes[f"k{axis}"] for axis in _SPATIAL if f"k{axis}" in sizes]))
    if primitive == "inner_product":
        return "x".join(map(str, [oc, ic] + [sizes[f"i{axis}"] for axis in _SPATIAL if f"i{axis}" in sizes]))
    return None
