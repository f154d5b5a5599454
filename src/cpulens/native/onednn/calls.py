"""One primitive, run once on real data: numpy arrays (or memories) in, a numpy array out.

Each call makes its primitive anew (from oneDNN's cache after the first time), makes the reorders that the layouts
need explicitly, runs, and reads the result back. In a loop, make the primitive once (`Matmul`, `Convolution`, …).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from cpulens.errors import UsageError
from cpulens.native.onednn.arrays import Array, dtype_of, memory_of, numpy_dtype, read, reordered
from cpulens.native.onednn.attributes import Attributes, PostOp
from cpulens.native.onednn.descriptors import MemoryDescriptor
from cpulens.native.onednn.memory import Memory
from cpulens.native.onednn.primitive import Primitive
from cpulens.native.onednn.primitives import Convolution, Eltwise, InnerProduct, Matmul, Reorder, Softmax
from cpulens.native.onednn.types import DataType, named

Tensor = Array | Memory


class Options(TypedDict, total=False):
    """Keywords that the calls share.

    `dtype`: type of the result; by default that of the first source, s32 where that is s8 or u8.
    `formats`: "plain" (default) computes on the layouts that the arrays have; "any" lets the library choose, and the
    reorders that follow are made; a mapping says it by argument, with tags too: ``{"weights": "any", "src": "nhwc"}``.
    `scales`, `zero_points`: by argument, one number; for weights also one for each output channel.
    `post_ops`: applied to the result in this order; `post_op_sources`: place in `post_ops` → second source of a
    binary one; `initial`: what a sum adds. `fpmath`: types that f32 may be rounded to ("strict": none).
    """

    dtype: str
    formats: str | Mapping[str, str]
    scales: Mapping[str, Any]
    zero_points: Mapping[str, Any]
    post_ops: Sequence[PostOp]
    post_op_sources: Mapping[int, Array]
    initial: Array
    fpmath: str


def matmul(a: Tensor, b: Tensor, bias: Tensor | None = None, **options: Unpack[Options]) -> Array:
    """Matrix product a @ b (+ bias) of 2 to 12 dimensions; the leading ones are a batch, and may be 1 on one side.

    A one-dimensional `bias` is one value for each column. Raises `UsageError` for shapes that don't go together.
    """
    src, weights = _as_memory(a), _as_memory(b)
    left, right = src.descriptor.dims, weights.descriptor.dims
    if len(left) != len(right) or len(left) < 2 or left[-1] != right[-2]:
        raise UsageError(f"can't multiply {_shape(left)} by {_shape(right)}: the inner dimensions must be equal")
    if any(one != other and 1 not in (one, other) for one, other in zip(left[:-2], right[:-2], strict=True)):
        raise UsageError(f"can't multiply {_shape(left)} by {_shape(right)}: the batch dimensions must be equal or 1")
    dims = (*(max(pair) for pair in zip(left[:-2], right[:-2], strict=True)), left[-2], right[-1])
    call = _Call(options, {"src": src, "weights": weights}, dims, per_channel=1 << (len(right) - 1))
    if bias is not None:
        call.add_bias(bias, ones_before=len(dims) - 1)
    return call.run(Matmul(*call.descriptors(), attributes=call.attributes))


def convolution(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    *,
    strides: int | Sequence[int] = 1,
    padding: int | Sequence[int] | Sequence[tuple[int, int]] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    algorithm: str = "convolution_direct",
    **options: Unpack[Options],
) -> Array:
    """Convolution of x (N, C, spatial…) with weights (O, C / groups, kernel…), 1 to 3 spatial dimensions.

    `padding` is a number, one for each dimension, or a (before, after) pair for each; `dilation` 1 is a dense kernel.
    Weights given as a memory with `groups` above 1 have the shape (groups, O / groups, C / groups, kernel…).
    """
    src, kernel = _as_memory(x), _as_memory(_grouped(weights, groups))
    spatial = len(src.descriptor.dims) - 2
    step, hole = _each(strides, spatial, "strides"), _each(dilation, spatial, "dilation")
    before, after = _pairs(padding, spatial)
    dims = _convolved(src.descriptor.dims, kernel.descriptor.dims, groups, step, hole, before, after)
    call = _Call(options, {"src": src, "weights": kernel}, dims, per_channel=1 if groups == 1 else 0b11)
    if bias is not None:
        call.add_bias(bias)
    primitive = Convolution(
        *call.descriptors(),
        strides=step,
        dilates=[size - 1 for size in hole],
        padding_left=before,
        padding_right=after,
        algorithm=algorithm,
        attributes=call.attributes,
    )
    return call.run(primitive)


def inner_product(x: Tensor, weights: Tensor, bias: Tensor | None = None, **options: Unpack[Options]) -> Array:
    """Inner product of x (N, C, spatial…) and weights (O, C, spatial…), summed over all but their first dimensions."""
    src, kernel = _as_memory(x), _as_memory(weights)
    left, right = src.descriptor.dims, kernel.descriptor.dims
    if left[1:] != right[1:] or len(left) < 2:
        raise UsageError(f"inner product of {_shape(left)} with {_shape(right)}: all but the first must be equal")
    call = _Call(options, {"src": src, "weights": kernel}, (left[0], right[0]), per_channel=1)
    if bias is not None:
        call.add_bias(bias)
    return call.run(InnerProduct(*call.descriptors(), attributes=call.attributes))


def eltwise(algorithm: str, x: Tensor, alpha: float = 0.0, beta: float = 0.0, **options: Unpack[Options]) -> Array:
    """An element-wise function of x, such as "eltwise_relu"; `alpha` and `beta` as oneDNN's documentation says."""
    src = _as_memory(x, dense=True)
    options.setdefault("dtype", src.descriptor.dtype.name)
    call = _Call(options, {"src": src}, src.descriptor.dims)
    source, target = call.alike()
    return call.run(Eltwise(algorithm, source, target, alpha, beta, attributes=call.attributes))


def softmax(x: Tensor, axis: int = -1, *, log: bool = False, **options: Unpack[Options]) -> Array:
    """Softmax of x along `axis`, or its logarithm."""
    src = _as_memory(x, dense=True)
    ndims = src.descriptor.ndims
    if not -ndims <= axis < ndims:
        raise UsageError(f"softmax along dimension {axis} of a tensor of {ndims}")
    call = _Call(options, {"src": src}, src.descriptor.dims)
    source, target = call.alike()
    algorithm = "softmax_log" if log else "softmax_accurate"
    return call.run(Softmax(source, target, axis % ndims, algorithm=algorithm, attributes=call.attributes))


def reorder(x: Tensor, tag: str | None = None, dtype: str | None = None, *, scale: float | None = None) -> Memory:
    """Copy x to another layout (`tag`; row-major by default) or type; `read` gives the memory as an array.

    With `scale` the values are multiplied by it on the way, before they are rounded to `dtype`.
    """
    source = _as_memory(x)
    given = source.descriptor
    target = Memory(MemoryDescriptor(given.dims, given.dtype if dtype is None else named(DataType, dtype), tag))
    attributes = Attributes() if scale is None else Attributes(scales={"src": 0})
    with Reorder(given, target.descriptor, attributes=attributes) as primitive:
        primitive.bind(src=source, dst=target)
        if scale is not None:
            primitive.bind(scales_src=memory_of(np.array([scale], np.float32)))
        primitive.execute()
    return target


class _Call:
    """What one call gathers before its primitive can be made: sources, layouts, attributes and their values."""

    def __init__(
        self, options: Options, sources: dict[str, Memory], dims: tuple[int, ...], per_channel: int = 0
    ) -> None:
        self._formats = options.get("formats", "plain")
        self._sources = sources
        self._dims = dims
        self._dtype = named(DataType, options.get("dtype") or _result_dtype(sources["src"].descriptor.dtype).name)
        self._initial = options.get("initial")
        self._values: dict[str, Memory] = {}
        scales = self._masks("scales", options.get("scales", {}), np.float32, per_channel)
        zero_points = self._masks("zero_points", options.get("zero_points", {}), np.int32, per_channel)
        for place, array in options.get("post_op_sources", {}).items():
            self._values[f"post_op_{place}"] = memory_of(array)
        post_ops = tuple(options.get("post_ops", ()))
        fpmath = options.get("fpmath", "strict")
        self.attributes = Attributes(scales=scales, zero_points=zero_points, post_ops=post_ops, fpmath=fpmath)

    def _masks(self, kind: str, given: Mapping[str, Any], dtype: Any, per_channel: int) -> dict[str, int]:
        masks = {}
        for name, value in given.items():
            values = np.atleast_1d(np.asarray(value, dtype))
            if values.size > 1 and name != "weights":
                raise UsageError(f"{kind} of {name} must be one number; only weights take one for each channel")
            masks[name] = per_channel if values.size > 1 else 0
            self._values[f"{kind}_{name}"] = memory_of(values.reshape(-1))
        return masks

    def add_bias(self, bias: Tensor, ones_before: int = 0) -> None:
        """Take a bias; a one-dimensional one gets `ones_before` dimensions of size 1 in front."""
        if not isinstance(bias, Memory) and bias.ndim == 1:
            bias = bias.reshape((1,) * ones_before + bias.shape)
        self._sources["bias"] = _as_memory(bias)

    def descriptors(self) -> list[MemoryDescriptor]:
        """Descriptors to make the primitive from, as its maker orders them: sources, dst, bias."""
        order = [name for name in ("src", "weights") if name in self._sources]
        found = [self._described(name, self._sources[name].descriptor) for name in order]
        found.append(self._described("dst", MemoryDescriptor(self._dims, self._dtype)))
        if "bias" in self._sources:
            found.append(self._sources["bias"].descriptor)
        return found

    def alike(self) -> tuple[MemoryDescriptor, MemoryDescriptor]:
        """Descriptors of src and dst in the same layout, unless `formats` says otherwise."""
        own = self._sources["src"].descriptor
        same = MemoryDescriptor(own.dims, self._dtype, strides=own.strides) if own.is_plain else own
        return self._described("src", own), self._described("dst", same)

    def _described(self, name: str, own: MemoryDescriptor) -> MemoryDescriptor:
        layout = self._formats if isinstance(self._formats, str) else self._formats.get(name, "plain")
        return own if layout == "plain" else MemoryDescriptor(own.dims, own.dtype, layout)

    def run(self, primitive: Primitive) -> Array:
        """Reorder what must be, execute, and give the result row-major."""
        with primitive:
            for name, memory in self._sources.items():
                primitive.bind(**{name: reordered(memory, primitive.describe(name) or memory.descriptor)})
            primitive.bind(**self._values)
            result = np.empty(self._dims, numpy_dtype(self._dtype))
            if self._initial is not None:
                np.copyto(result, self._initial, casting="no")
            plain = memory_of(result)
            target = self._target(primitive, plain)
            primitive.bind(dst=target)
            primitive.execute()
            return result if target is plain else read(target)

    def _target(self, primitive: Primitive, plain: Memory) -> Memory:
        wanted = primitive.describe("dst") or plain.descriptor
        if wanted == plain.descriptor:
            return plain
        return Memory(wanted) if self._initial is None else reordered(plain, wanted)


def _as_memory(value: Tensor, dense: bool = False) -> Memory:
    """The tensor as memory; where an array has gaps and `dense` is asked for, on a copy."""
    if isinstance(value, Memory):
        return value
    memory = memory_of(value)
    has_gaps = memory.descriptor.reach_bytes > value.nbytes
    return memory_of(np.ascontiguousarray(value)) if dense and has_gaps else memory


def _result_dtype(source: DataType) -> DataType:
    return DataType.s32 if source in (DataType.s8, DataType.u8) else source


def _grouped(weights: Tensor, groups: int) -> Tensor:
    if groups == 1 or isinstance(weights, Memory):
        return weights
    outputs = weights.shape[0]
    if outputs % groups:
        raise UsageError(f"{outputs} output channels can't be split into {groups} groups")
    return weights.reshape(groups, outputs // groups, *weights.shape[1:])


def _each(value: int | Sequence[int], count: int, what: str) -> list[int]:
    values = [value] * count if isinstance(value, int) else [int(one) for one in value]
    if len(values) != count:
        raise UsageError(f"{what} {tuple(values)} for {count} spatial dimensions")
    return values


def _pairs(padding: int | Sequence[int] | Sequence[tuple[int, int]], count: int) -> tuple[list[int], list[int]]:
    each: Sequence[Any] = [padding] * count if isinstance(padding, int) else list(padding)
    if len(each) != count:
        raise UsageError(f"padding {tuple(each)} for {count} spatial dimensions")
    pairs = [(one, one) if isinstance(one, int) else tuple(one) for one in each]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _convolved(
    src: tuple[int, ...],
    kernel: tuple[int, ...],
    groups: int,
    strides: list[int],
    dilation: list[int],
    before: list[int],
    after: list[int],
) -> tuple[int, ...]:
    spatial = len(src) - 2
    outputs, inputs = (kernel[0], kernel[1]) if groups == 1 else (kernel[0] * kernel[1], kernel[0] * kernel[2])
    if spatial < 1 or len(kernel) != spatial + (2 if groups == 1 else 3) or src[1] != inputs:
        raise UsageError(f"can't convolve {_shape(src)} with weights {_shape(kernel)} in {groups} group(s)")
    sizes = kernel[-spatial:]
    spans = [(size - 1) * hole + 1 for size, hole in zip(sizes, dilation, strict=True)]
    padded = [size + left + right for size, left, right in zip(src[2:], before, after, strict=True)]
    if any(span > size for span, size in zip(spans, padded, strict=True)):
        raise UsageError(f"the kernel {_shape(sizes)} does not fit into {_shape(src[2:])} with this padding")
    windows = zip(padded, spans, strides, strict=True)
    return (src[0], outputs, *((size - span) // step + 1 for size, span, step in windows))


def _shape(dims: tuple[int, ...]) -> str:
    return "x".join(map(str, dims))


__all__ = ["Options", "Tensor", "convolution", "dtype_of", "eltwise", "inner_product", "matmul", "reorder", "softmax"]
