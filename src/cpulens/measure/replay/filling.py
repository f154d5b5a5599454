"""Data for what a replayed problem reads: numbers that neither overflow nor vanish, the same in every run."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cpulens.native import onednn
from cpulens.native.onednn.arrays import numpy_dtype, reordered
from cpulens.native.onednn.types import DataType

Array = NDArray[Any]
_INTEGERS: Final = {DataType.u8: (0, 9), DataType.s8: (-4, 5), DataType.s32: (-100, 101)}
#: Larger tensors repeat their numbers: they are made ten times as quickly, and no kernel can tell.
_DISTINCT: Final = 1 << 18


def numbers(dims: tuple[int, ...], dtype: DataType, seed: int) -> Array:
    """A row-major array of small numbers of this type."""
    rng, count = np.random.default_rng(seed), int(np.prod(dims, dtype=np.int64))
    distinct = min(count, _DISTINCT)
    if dtype in _INTEGERS:
        values = rng.integers(*_INTEGERS[dtype], distinct).astype(numpy_dtype(dtype))
    elif dtype is DataType.bf16:
        values = onednn.to_bf16(rng.uniform(-1, 1, distinct))
    else:
        values = rng.uniform(-1, 1, distinct).astype(numpy_dtype(dtype))
    return np.resize(values, dims)


def memory(descriptor: onednn.MemoryDescriptor, seed: int) -> onednn.Memory:
    """Memory of this layout, filled; its padding is zero, as oneDNN wants it."""
    plain = onednn.memory_of(numbers(descriptor.dims, descriptor.dtype, seed))
    filled = reordered(plain, descriptor)
    # A memory on numpy's data would begin at any address: oneDNN's own are aligned as frameworks' are.
    return filled if filled is not plain else _aligned(plain)


def _aligned(plain: onednn.Memory) -> onednn.Memory:
    target = onednn.Memory(plain.descriptor)
    target.bytes_view()[:] = plain.bytes_view()
    return target


def fill(view: memoryview, dtype: np.dtype[Any], seed: int) -> None:
    """Fill a plain buffer."""
    array = np.frombuffer(view, dtype)
    rng, distinct = np.random.default_rng(seed), min(array.size, _DISTINCT)
    if dtype == np.uint16:  # bfloat16
        values: Array = onednn.to_bf16(rng.uniform(-1, 1, distinct))
    elif dtype.kind in "iu":
        values = rng.integers(0 if dtype.kind == "u" else -4, 9 if dtype.kind == "u" else 5, distinct).astype(dtype)
    elif dtype.kind == "c":
        values = (rng.uniform(-1, 1, distinct) + 1j * rng.uniform(-1, 1, distinct)).astype(dtype)
    else:
        values = rng.uniform(-1, 1, distinct).astype(dtype)
    array[:] = np.resize(values, array.shape)


def touch(view: memoryview) -> None:
    """Read all of a buffer, so that the caches hold it as far as they can."""
    np.bitwise_or.reduce(np.frombuffer(view, np.uint8)[: len(view) // 8 * 8].view(np.uint64))
