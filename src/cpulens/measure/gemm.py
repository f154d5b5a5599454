"""Matrix products of one data type through oneDNN and oneMKL, ready to be timed."""

from __future__ import annotations

import contextlib
import functools
import random
import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from cpulens.errors import CpulensError
from cpulens.native import mkl, onednn

#: Data type of the peak → types of (src, weights, dst) in oneDNN, and routine in oneMKL. oneDNN has no f64 on CPUs.
TYPES: Final = {
    "f32": (("f32", "f32", "f32"), "sgemm"),
    "bf16": (("bf16", "bf16", "f32"), "gemm_bf16bf16f32"),
    "int8": (("u8", "s8", "s32"), "gemm_s8u8s32"),
    "f16": (("f16", "f16", "f32"), "gemm_f16f16f32"),
    "f64": (None, "dgemm"),
}
#: Matrices are filled with one tile of numbers again and again: data of zeros would let a core clock higher.
_TILE_NUMBERS: Final = 1 << 14


class Call(NamedTuple):
    """One product that can be executed; `operations` of one execution."""

    library: str
    implementation: str | None
    n: int
    execute: Callable[[], None]

    @property
    def operations(self) -> float:
        """2 n³."""
        return 2.0 * self.n**3


def calls(data_type: str, n: int) -> Iterator[Call]:
    """Products of two n × n matrices, by each library that has one; errors of a library mean that it has none."""
    types, routine = TYPES[data_type]
    with contextlib.suppress(CpulensError):
        if types is not None:
            yield _onednn(types, n)
    with contextlib.suppress(CpulensError):
        yield _mkl(routine, data_type, n)


def _onednn(types: tuple[str, str, str], n: int) -> Call:
    """The library chooses the layouts: its products are fastest so, and real models reorder their weights once."""
    tensors = [onednn.MemoryDescriptor((n, n), dt, "any") for dt in types]
    primitive = onednn.Matmul(*tensors)
    memories = primitive.allocate()
    for name, dt in zip(("src", "weights"), types[:2], strict=True):
        _fill(memories[name].bytes_view(), dt)
    return Call("onednn", primitive.implementation, n, primitive.execute)


def _mkl(routine: str, data_type: str, n: int) -> Call:
    product = mkl.Gemm(routine, n, n, n)
    a, b, _ = product.allocate()
    for view, dt in ((a, "s8"), (b, "u8")) if data_type == "int8" else ((a, data_type), (b, data_type)):
        _fill(view, dt)
    return Call("mkl", routine, n, product.execute)


def _fill(view: memoryview, dt: str) -> None:
    tile = _tile(dt)
    for start in range(0, len(view), len(tile)):
        part = view[start : start + len(tile)]
        part[:] = tile[: len(part)]


@functools.cache
def _tile(dt: str) -> bytes:
    numbers = random.Random(dt)
    values = [numbers.uniform(-1, 1) for _ in range(_TILE_NUMBERS)]
    if dt in ("u8", "s8"):
        return bytes(numbers.randrange(128) for _ in range(_TILE_NUMBERS))
    if dt == "bf16":  # the upper half of an f32
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{ {'f32': 'f', 'f64': 'd', 'f16': 'e'}[dt] }", *values)
