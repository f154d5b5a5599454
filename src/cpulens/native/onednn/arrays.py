"""numpy arrays in and out of oneDNN memory. The only module here that imports numpy.

numpy has no bfloat16: such data travels as ``uint16`` arrays of the bit patterns (no other oneDNN type is 16 bits
unsigned), made and read by `to_bf16` and `from_bf16`. Arrays of ml_dtypes' ``bfloat16`` are taken as they are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cpulens.errors import UsageError
from cpulens.native.onednn.descriptors import MemoryDescriptor
from cpulens.native.onednn.memory import Memory
from cpulens.native.onednn.primitives import Reorder
from cpulens.native.onednn.types import DataType, named

Array = NDArray[Any]

_NUMPY: Final[dict[DataType, np.dtype[Any]]] = {
    DataType.f32: np.dtype(np.float32),
    DataType.f16: np.dtype(np.float16),
    DataType.bf16: np.dtype(np.uint16),
    DataType.s32: np.dtype(np.int32),
    DataType.s8: np.dtype(np.int8),
    DataType.u8: np.dtype(np.uint8),
    DataType.f64: np.dtype(np.float64),
}
_ONEDNN: Final = {numpy: onednn for onednn, numpy in _NUMPY.items()}


def to_bf16(values: Any) -> NDArray[np.uint16]:
    """Round f32 values to bfloat16 (to nearest, ties to even; NaN stays NaN) and give the bit patterns."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    # Rounding could carry a NaN with a small payload over into infinity: keep its upper half, made quiet.
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    found: NDArray[np.uint16] = np.where(is_nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)
    return found.reshape(np.shape(values))


def from_bf16(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The f32 values of bfloat16 bit patterns, exactly."""
    return (np.asarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)


def dtype_of(array: Array) -> DataType:
    """The oneDNN type of an array's elements. Raises `UsageError` when there is none."""
    if array.dtype.name == "bfloat16":
        return DataType.bf16
    try:
        return _ONEDNN[array.dtype]
    except KeyError:
        known = ", ".join(f"{numpy} ({one.name})" for one, numpy in _NUMPY.items())
        raise UsageError(f"oneDNN has no data type for {array.dtype} arrays; it takes {known}") from None


def numpy_dtype(dtype: DataType) -> np.dtype[Any]:
    """The numpy type that holds a oneDNN type's elements."""
    if dtype not in _NUMPY:
        raise UsageError(f"numpy has no type for oneDNN's {dtype.name}")
    return _NUMPY[dtype]


def memory_of(array: Array) -> Memory:
    """Memory on the array's own data where its strides allow, else on a row-major copy."""
    dtype, size = dtype_of(array), array.itemsize
    strides = [step // size for step in array.strides]
    fits = all(step > 0 and step % size == 0 for step in array.strides) and not _overlaps(array)
    if not fits or array.size == 0:
        array = np.ascontiguousarray(array)
        return Memory(MemoryDescriptor(array.shape, dtype), array)
    return Memory(MemoryDescriptor(array.shape, dtype, strides=_canonical(array.shape, strides)), array)


def _overlaps(array: Array) -> bool:
    reach = 0
    for step, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1 and step < reach:
            return True
        reach = max(reach, step * size)
    return False


def _canonical(shape: tuple[int, ...], strides: list[int]) -> list[int]:
    # The stride of a dimension of size 1 is free; row-major's own makes equal layouts compare equal and match tags.
    return _row_major(shape) if all(_same(shape, strides)) else strides


def _same(shape: tuple[int, ...], strides: list[int]) -> list[bool]:
    wanted = _row_major(shape)
    return [size == 1 or have == want for size, have, want in zip(shape, strides, wanted, strict=True)]


def _row_major(shape: tuple[int, ...]) -> list[int]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return strides[::-1]


def array_of(memory: Memory) -> Array:
    """The memory's data as a numpy array without a copy; `UsageError` when its layout is not plain."""
    descriptor = memory.descriptor
    if not descriptor.is_plain:
        raise UsageError(f"{descriptor!r} is not plain: read it with read(), which reorders")
    dtype = numpy_dtype(descriptor.dtype)
    flat = np.frombuffer(memory.bytes_view(), dtype=dtype)
    strides = [step * dtype.itemsize for step in descriptor.strides]
    return np.lib.stride_tricks.as_strided(flat, descriptor.dims, strides)


def reordered(memory: Memory, descriptor: MemoryDescriptor) -> Memory:
    """`memory` in the layout and type of `descriptor`: itself when it has them already, else by a reorder."""
    if memory.descriptor == descriptor:
        return memory
    target = Memory(descriptor)
    with Reorder(memory.descriptor, descriptor) as primitive:
        primitive.bind(src=memory, dst=target)
        primitive.execute()
    return target


def read(memory: Memory, dtype: str | DataType | None = None) -> Array:
    """The tensor as a new row-major array, of `dtype` where it is given (else its own), reordered when needed."""
    wanted = memory.descriptor.dtype if dtype is None else named(DataType, dtype)
    target = MemoryDescriptor(memory.descriptor.dims, wanted)
    if memory.descriptor == target:
        return array_of(memory).copy()
    result = np.empty(target.dims, numpy_dtype(wanted))
    with Reorder(memory.descriptor, target) as primitive:
        primitive.bind(src=memory, dst=Memory(target, result))
        primitive.execute()
    return result
