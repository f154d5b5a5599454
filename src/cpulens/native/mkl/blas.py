"""oneMKL's matrix products: prepared by their numbers for replay, or on numpy arrays.

All run column-major (CBLAS calls it so), which is what verbose lines print: the numbers of such a line, in their
order, make the same call again.
"""

from __future__ import annotations

import ctypes
from ctypes import c_byte, c_double, c_float, c_int, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cpulens.errors import UsageError
from cpulens.native.mkl.api import library

_COLUMN_MAJOR: Final = 102
_TRANSPOSE: Final = {"N": 111, "T": 112, "C": 113}
_FIXED_OFFSET: Final = 173  # CblasFixOffset
# By value in 64 bits: right for the 32-bit (lp64) and the 64-bit (ilp64) interface alike, as the System V ABI
# leaves the upper half of a 32-bit argument free. Numbers given by pointer use one little-endian 64-bit item.
_INT: Final = c_int64


@dataclass(frozen=True)
class Routine:
    """Bytes of an element of a, b and c, the C type of alpha and beta, and how its call differs.

    `by_pointer`: alpha and beta are complex, and given by address. `offsets`: there are integer offsets too.
    """

    a_bytes: int
    b_bytes: int
    c_bytes: int
    scalar: Any
    by_pointer: bool = False
    offsets: bool = False

    @property
    def scalar_argument(self) -> Any:
        """The C type of the argument."""
        return c_void_p if self.by_pointer else self.scalar

    def pass_scalar(self, value: complex) -> Any:
        """`value` as that argument."""
        if self.by_pointer:
            value = complex(value)
            return (self.scalar * 2)(value.real, value.imag)
        if isinstance(value, complex):
            raise UsageError(f"a real matrix product can't be multiplied by {value}")
        return value


#: Name as verbose lines print it, in lower case → routine.
ROUTINES: Final = {
    "sgemm": Routine(4, 4, 4, c_float),
    "dgemm": Routine(8, 8, 8, c_double),
    "cgemm": Routine(8, 8, 8, c_float, by_pointer=True),
    "zgemm": Routine(16, 16, 16, c_double, by_pointer=True),
    "gemm_bf16bf16f32": Routine(2, 2, 4, c_float),
    "gemm_f16f16f32": Routine(2, 2, 4, c_float),
    "gemm_s8u8s32": Routine(1, 1, 4, c_float, offsets=True),
}


class _Call(NamedTuple):
    """A C function, its arguments, and at which of them the addresses of a, b and c stand."""

    function: Any
    arguments: list[Any]
    matrices: tuple[int, ...]


class Gemm:
    """c = alpha × op(a) × op(b) + beta × c, column-major, on buffers of its own or given ones.

    `routine` is one of `ROUTINES`; op(a) is m × k, op(b) k × n, c m × n; `transa`, `transb` are "N", "T" or "C".
    Leading dimensions default to the dense ones. With `batch` above 1 it is ``<routine>_batch_strided``, or with
    `pointers` the ``<routine>_batch`` of one group: matrices of a batch lie densely one after the other, or `strides`
    (of a, b, c, in elements) apart.
    In gemm_s8u8s32 a is s8 and b u8 in a column-major call; the three offsets are 0.

    `bind` sets the addresses; `allocate` makes zeroed buffers. Raises `UsageError` for impossible numbers.
    """

    def __init__(
        self,
        routine: str,
        m: int,
        n: int,
        k: int,
        *,
        transa: str = "N",
        transb: str = "N",
        alpha: complex = 1.0,
        beta: complex = 0.0,
        lda: int | None = None,
        ldb: int | None = None,
        ldc: int | None = None,
        batch: int = 1,
        strides: tuple[int, int, int] | None = None,
        pointers: bool = False,
    ) -> None:
        if routine not in ROUTINES:
            raise UsageError(f"unknown oneMKL routine {routine!r}; known: {', '.join(ROUTINES)}")
        self.routine, self._types = routine, ROUTINES[routine]
        self.m, self.n, self.k = m, n, k
        self.transa, self.transb = transa.upper(), transb.upper()
        self._check_scalars()
        rows = (m if self.transa == "N" else k, k if self.transb == "N" else n, m)
        columns = (k if self.transa == "N" else m, n if self.transb == "N" else k, n)
        self.ld = tuple(
            max(1, low) if given is None else given for given, low in zip((lda, ldb, ldc), rows, strict=True)
        )
        if any(one < max(1, low) for one, low in zip(self.ld, rows, strict=True)):
            raise UsageError(f"leading dimensions {self.ld} of {routine} are below its rows {rows}")
        extents = tuple(one * count for one, count in zip(self.ld, columns, strict=True))
        self.batch, self.strides = batch, extents if strides is None else strides
        if batch > 1 and any(step < extent for step, extent in zip(self.strides[2:], extents[2:], strict=True)):
            raise UsageError(f"a stride of {self.strides[2]} lets the results of {routine} overlap ({extents[2]} each)")
        self._elements = [step * (batch - 1) + extent for step, extent in zip(self.strides, extents, strict=True)]
        self.alpha, self.beta = alpha, beta
        self._scalars = (self._types.pass_scalar(alpha), self._types.pass_scalar(beta))
        self._buffers: Any = None
        self._pointers: list[Any] = [(c_void_p * batch)() for _ in range(3)] if pointers else []
        if batch > 1 or pointers:
            if self._types.offsets or routine.startswith("gemm_"):
                raise UsageError(f"oneMKL has no batch of {routine}")
            self._call = self._grouped() if pointers else self._strided()
        else:
            self._call = self._single()

    def _check_scalars(self) -> None:
        if min(self.m, self.n, self.k) < 0:
            raise UsageError(f"{self.routine} can't have sizes m={self.m} n={self.n} k={self.k}")
        if self.transa not in _TRANSPOSE or self.transb not in _TRANSPOSE:
            raise UsageError(f"transpose letters are N, T, C; not {self.transa}, {self.transb}")

    @property
    def sizes_bytes(self) -> tuple[int, int, int]:
        """Bytes that a, b and c take."""
        types = (self._types.a_bytes, self._types.b_bytes, self._types.c_bytes)
        a, b, c = (count * size for count, size in zip(self._elements, types, strict=True))
        return (a, b, c)

    def _head(self) -> list[int]:
        return [_COLUMN_MAJOR, _TRANSPOSE[self.transa], _TRANSPOSE[self.transb], self.m, self.n, self.k]

    def _single(self) -> _Call:
        scalar, (lda, ldb, ldc), (alpha, beta) = self._types.scalar_argument, self.ld, self._scalars
        types = [c_int] * 3 + [_INT] * 3 + [scalar, c_void_p, _INT, c_void_p, _INT, scalar, c_void_p, _INT]
        arguments = [*self._head(), alpha, None, lda, None, ldb, beta, None, ldc]
        matrices = (7, 9, 12)
        if self._types.offsets:
            types = [c_int] * 4 + [_INT] * 3 + [scalar, c_void_p, _INT, c_byte, c_void_p, _INT, c_byte]
            types += [scalar, c_void_p, _INT, c_void_p]
            offset = ctypes.pointer(ctypes.c_int32(0))
            arguments = [*self._head()[:3], _FIXED_OFFSET, *self._head()[3:]]
            arguments += [alpha, None, lda, 0, None, ldb, 0, beta, None, ldc, offset]
            matrices = (8, 11, 15)
        return _Call(library().declare(f"cblas_{self.routine}", types), arguments, matrices)

    def _strided(self) -> _Call:
        scalar, (lda, ldb, ldc), (alpha, beta) = self._types.scalar_argument, self.ld, self._scalars
        a, b, c = self.strides
        types = [c_int] * 3 + [_INT] * 3 + [scalar, *[c_void_p, _INT, _INT] * 2, scalar, c_void_p, _INT, _INT, _INT]
        arguments = [*self._head(), alpha, None, lda, a, None, ldb, b, beta, None, ldc, c, self.batch]
        return _Call(library().declare(f"cblas_{self.routine}_batch_strided", types), arguments, (7, 10, 14))

    def _grouped(self) -> _Call:
        layout, *head = self._head()
        alpha, beta = (one if self._types.by_pointer else self._types.scalar(one) for one in self._scalars)
        a, b, c = self._pointers
        lda, ldb, ldc, size = (_INT(one) for one in (*self.ld, self.batch))
        by_address: list[Any] = [*(c_int(one) for one in head[:2]), *(_INT(one) for one in head[2:])]
        by_address += [alpha, a, lda, b, ldb, beta, c, ldc]
        arguments = [layout, *(ctypes.byref(one) for one in by_address), 1, ctypes.byref(size)]
        types = [c_int, *[c_void_p] * 13, _INT, c_void_p]
        return _Call(library().declare(f"cblas_{self.routine}_batch", types), arguments, ())

    def bind(self, a: int, b: int, c: int, keep: object = None) -> None:
        """Use the matrices at these addresses; `keep` is held as long as they are used."""
        self._buffers = (a, b, c, keep)
        for place, address in zip(self._call.matrices, (a, b, c), strict=False):
            self._call.arguments[place] = address
        types = (self._types.a_bytes, self._types.b_bytes, self._types.c_bytes)
        for array, start, step, size in zip(self._pointers, (a, b, c), self.strides, types, strict=False):
            array[:] = [start + at * step * size for at in range(self.batch)]

    def allocate(self) -> tuple[memoryview, memoryview, memoryview]:
        """Bind zeroed buffers of 64-byte alignment and return their bytes (a, b, c), to be filled."""
        views, addresses = [], []
        for size in self.sizes_bytes:
            raw = (ctypes.c_uint8 * (size + 64))()
            start = -ctypes.addressof(raw) % 64
            views.append(memoryview(raw)[start : start + size].cast("B"))
            addresses.append(ctypes.addressof(raw) + start)
        self.bind(addresses[0], addresses[1], addresses[2], keep=views)
        return (views[0], views[1], views[2])

    def execute(self) -> None:
        """Compute. Raises `UsageError` before anything is bound."""
        if self._buffers is None:
            raise UsageError(f"{self.routine} can't run yet: bind its matrices, or allocate them")
        self._call.function(*self._call.arguments)
