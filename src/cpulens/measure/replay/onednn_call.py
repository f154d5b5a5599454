"""A oneDNN problem made ready to run through the native bindings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import numpy as np

from cpulens.errors import CpulensError
from cpulens.measure.replay import filling, settings
from cpulens.measure.replay.memory import new_array
from cpulens.measure.replay.problem import Problem, Unreplayable
from cpulens.native import onednn
from cpulens.native.onednn.types import DataType
from cpulens.verbose.tensors import Tensor

#: `exact`: the layouts that ran; `asked`: any where the program left them to the library; `any`: any for all.
Layouts = Literal["exact", "asked", "any"]
_COMPUTE: Final = ("matmul", "convolution", "inner_product")
_PROP_KINDS: Final = {"forward_training": "forward_training"}


class OneDnnCall:
    """One primitive with its memories bound; `execute` runs it once and waits. `layouts`: argument → tag."""

    library = "onednn"

    def __init__(self, problem: Problem, layouts: Layouts = "exact") -> None:
        """Raises `Unreplayable`, in the library's words where it refuses."""
        self.problem = problem
        told = settings.read(problem)
        try:
            attributes = _attributes(problem, told)
            descriptors = {
                name: _described(one, problem.dims[name], layouts, problem.kind)
                for name, one in problem.tensors.items()
            }
            self.primitive = _MAKERS[problem.kind](problem, descriptors, attributes)
            self.memories = self._bind(told)
        except CpulensError as error:
            raise Unreplayable(str(error)) from None
        self.implementation: str | None = self.primitive.implementation
        self.execute: Callable[[], None] = self.primitive.execute

    def _bind(self, told: settings.Settings) -> dict[str, onednn.Memory]:
        """Sources filled, scales and zero points set, the rest allocated."""
        primitive, values = self.primitive, dict[str, onednn.Memory]()
        for kind, parts, dtype in (("scales", told.scales, "f32"), ("zero_points", told.zero_points, "s32")):
            for name, (_, count) in parts.items():
                values[f"{kind}_{name}"] = _values((count,), dtype)
        summed = any(one.name == "sum" for one in told.chain)
        for seed, name in enumerate(primitive.arguments):
            wanted = primitive.describe(name)
            if wanted is not None and name != "scratchpad" and (name != "dst" or summed):
                values[name] = filling.memory(wanted, seed + 1)
        primitive.bind(**values)
        return primitive.allocate()

    def renew(self, *, untouched: bool = False) -> None:
        """Give the result new memory, as frameworks do for every call; what it held is lost, unless it is summed."""
        old = self.memories["dst"]
        buffer = new_array((old.descriptor.size_bytes,), np.uint8, untouched=True) if untouched else None
        self.memories["dst"] = onednn.Memory(old.descriptor, buffer)
        self.primitive.bind(dst=self.memories["dst"])
        old.close()

    def touch_source(self) -> None:
        """Read the source."""
        filling.touch(self.memories["src"].bytes_view())

    @property
    def result_bytes(self) -> int:
        """Size of the result."""
        return self.memories["dst"].descriptor.size_bytes

    @property
    def layouts(self) -> dict[str, str]:
        """The layouts that the primitive has, by argument."""
        found = {name: self.primitive.describe(name) for name in self.problem.tensors}
        return {name: one.tag for name, one in found.items() if one is not None}

    def close(self) -> None:
        """Free the primitive and its memories."""
        self.primitive.close()
        for one in self.memories.values():
            one.close()


def prepare(problem: Problem, implementation: str | None) -> OneDnnCall:
    """The problem in the layouts that ran; as its program asked for them where only that gives `implementation`."""
    refused: Unreplayable | None = None
    first: OneDnnCall | None = None
    ways: tuple[Layouts, ...] = ("exact", "asked")
    for layouts in ways:
        try:
            call = OneDnnCall(problem, layouts)
        except Unreplayable as reason:
            refused = refused or reason
            continue
        if call.implementation == implementation:
            if first is not None:
                first.close()
            return call
        if first is None:
            first = call
        else:
            call.close()
    if first is None:
        raise refused or Unreplayable("no layout works")
    return first


def can_choose_layouts(problem: Problem) -> bool:
    """Whether the library may be left to choose layouts that this problem has fixed."""
    return problem.kind in _COMPUTE and any(
        "a" not in one.properties and one.kind == "blocked" for name, one in problem.tensors.items() if name != "bias"
    )


def _values(dims: tuple[int, ...], dtype: str) -> onednn.Memory:
    """Scales of 0.5, zero points of 1."""
    return onednn.memory_of(np.full(dims, 0.5 if dtype == "f32" else 1, np.float32 if dtype == "f32" else np.int32))


def _described(tensor: Tensor, dims: tuple[int, ...], layouts: Layouts, kind: str) -> onednn.MemoryDescriptor:
    if tensor.dt not in DataType.__members__:
        raise Unreplayable(f"{tensor.name} is of type {tensor.dt}, which the bindings do not have")
    free = kind in _COMPUTE and tensor.name != "bia"
    private = tensor.kind != "blocked" or tensor.flags.partition("_")[0] not in ("f0", "")
    if private and not free:
        raise Unreplayable(
            f"{tensor.name} has a layout ({tensor.kind} {tensor.flags}) that only its primitive can make"
        )
    if private or (free and (layouts == "any" or (layouts == "asked" and "a" in tensor.properties))):
        return onednn.MemoryDescriptor(dims, tensor.dt, "any")
    if tensor.strides:
        return onednn.MemoryDescriptor(dims, tensor.dt, strides=[int(step) for step in tensor.strides.split("x")])
    return onednn.MemoryDescriptor(dims, tensor.dt, tensor.tag)


def _attributes(problem: Problem, told: settings.Settings) -> onednn.Attributes:
    return onednn.Attributes(
        scales={name: mask for name, (mask, _) in told.scales.items()},
        zero_points={name: mask for name, (mask, _) in told.zero_points.items()},
        post_ops=tuple(_post_op(one) for one in told.chain),
        fpmath=told.fpmath,
        scratchpad=told.scratchpad,
    )


def _post_op(one: settings.Chained) -> Any:
    if one.name == "sum":
        scale, zero_point = [*one.numbers, *(1.0, 0.0)[len(one.numbers) :]][:2]
        return onednn.SumPostOp(scale, int(zero_point), one.dt or None)
    if one.name.startswith("eltwise_"):
        return onednn.EltwisePostOp(one.name, *one.numbers[:2])
    return onednn.BinaryPostOp(one.name, onednn.MemoryDescriptor(one.dims, one.dt, one.tag))


Descriptors = Mapping[str, onednn.MemoryDescriptor]


def _matmul(_: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    bias = tensors.get("bias")
    return onednn.Matmul(tensors["src"], tensors["weights"], tensors["dst"], bias, attributes=attributes)


def _convolution(problem: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    window = problem.window
    assert window is not None
    return onednn.Convolution(
        tensors["src"],
        tensors["weights"],
        tensors["dst"],
        tensors.get("bias"),
        strides=window.strides,
        dilates=window.dilations,
        padding_left=window.before,
        padding_right=window.after,
        algorithm=problem.algorithm,
        prop_kind=_prop_kind(problem),
        attributes=attributes,
    )


def _inner_product(problem: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    ends = (tensors["src"], tensors["weights"], tensors["dst"], tensors.get("bias"))
    return onednn.InnerProduct(*ends, prop_kind=_prop_kind(problem), attributes=attributes)


def _reorder(_: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    return onednn.Reorder(tensors["src"], tensors["dst"], attributes=attributes)


def _eltwise(problem: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    ends = (tensors["src"], tensors["dst"], problem.alpha, problem.beta)
    return onednn.Eltwise(problem.algorithm, *ends, prop_kind=_prop_kind(problem), attributes=attributes)


def _softmax(problem: Problem, tensors: Descriptors, attributes: onednn.Attributes) -> onednn.Primitive:
    return onednn.Softmax(
        tensors["src"],
        tensors["dst"],
        problem.axis,
        algorithm=problem.algorithm,
        prop_kind=_prop_kind(problem),
        attributes=attributes,
    )


def _prop_kind(problem: Problem) -> str:
    return _PROP_KINDS.get(problem.prop_kind, "forward_inference")


_MAKERS: Final[dict[str, Callable[[Problem, Descriptors, onednn.Attributes], onednn.Primitive]]] = {
    "matmul": _matmul,
    "convolution": _convolution,
    "inner_product": _inner_product,
    "reorder": _reorder,
    "eltwise": _eltwise,
    "softmax": _softmax,
}
