"""oneMKL on numpy arrays: one call, the result as a new array.

bfloat16 travels as ``uint16`` arrays of the bit patterns (see `cpulens.native.onednn.to_bf16`).
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from cpulens.errors import UsageError
from cpulens.native.mkl.blas import Gemm
from cpulens.native.mkl.dfti import Fft

Array = NDArray[Any]

#: Element types of (a, b) → routine and type of the result.
_BY_TYPES: Final[dict[tuple[Any, Any], tuple[str, Any]]] = {
    (np.float32, np.float32): ("sgemm", np.float32),
    (np.float64, np.float64): ("dgemm", np.float64),
    (np.complex64, np.complex64): ("cgemm", np.complex64),
    (np.complex128, np.complex128): ("zgemm", np.complex128),
    (np.uint16, np.uint16): ("gemm_bf16bf16f32", np.float32),
    (np.float16, np.float16): ("gemm_f16f16f32", np.float32),
    (np.uint8, np.int8): ("gemm_s8u8s32", np.int32),
}


def gemm(a: Array, b: Array, *, alpha: complex = 1.0, beta: complex = 0.0, c: Array | None = None) -> Array:
    """Alpha × a @ b + beta × c by the routine for the arrays' types; c is left as it is.

    Two dimensions, or three for a batch (f32 and f64: ``gemm_batch_strided``). Types: f32, f64, complex64,
    complex128, f16 and bf16 (to f32), u8 by s8 (to s32). Arrays stored row-major or column-major are used where they
    lie, others are copied. Raises `UsageError` for other types and for shapes that don't go together.
    """
    key = (a.dtype.type, b.dtype.type)
    if key not in _BY_TYPES:
        known = ", ".join(f"{one.__name__} by {other.__name__}" for one, other in _BY_TYPES)
        raise UsageError(f"oneMKL has no product of {a.dtype} by {b.dtype}; it has {known}")
    if a.ndim != b.ndim or a.ndim not in (2, 3) or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise UsageError(f"can't multiply arrays of shapes {a.shape} and {b.shape}")
    routine, dtype = _BY_TYPES[key]
    shape = (*a.shape[:-2], a.shape[-2], b.shape[-1])
    result = np.zeros(shape, dtype) if c is None else np.array(c, dtype, order="C")
    if result.shape != shape:
        raise UsageError(f"c has the shape {result.shape}; the product has {shape}")
    if 0 in (*shape, a.shape[-1]):
        return np.asarray(result * beta, dtype)
    # Row-major memory read column-major is the transpose, and c.T = b.T @ a.T: so the operands change places.
    (left, transa, lda), (right, transb, ldb) = _stored(b), _stored(a)
    product = Gemm(
        routine,
        *(shape[-1], shape[-2], a.shape[-1]),
        transa=transa,
        transb=transb,
        alpha=alpha,
        beta=beta,
        lda=lda,
        ldb=ldb,
        batch=math.prod(shape[:-2]),
    )
    product.bind(left.ctypes.data, right.ctypes.data, result.ctypes.data, keep=(left, right, result))
    product.execute()
    return result


def sgemm(a: Array, b: Array, *, alpha: float = 1.0, beta: float = 0.0, c: Array | None = None) -> Array:
    """Alpha × a @ b + beta × c in f32; arrays of other types are converted first."""
    return gemm(np.asarray(a, np.float32), np.asarray(b, np.float32), alpha=alpha, beta=beta, c=c)


def dgemm(a: Array, b: Array, *, alpha: float = 1.0, beta: float = 0.0, c: Array | None = None) -> Array:
    """Alpha × a @ b + beta × c in f64; arrays of other types are converted first."""
    return gemm(np.asarray(a, np.float64), np.asarray(b, np.float64), alpha=alpha, beta=beta, c=c)


def _stored(array: Array) -> tuple[Array, str, int]:
    """The array as memory, the letter that makes its rows the columns, and its leading dimension."""
    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return array, "T", array.shape[0]
    dense = np.ascontiguousarray(array)
    return dense, "N", dense.shape[-1]


def fft(x: Array, ndim: int = 1, *, inverse: bool = False, in_place: bool = False) -> Array:
    """Complex Fourier transform over the last `ndim` dimensions; the inverse is divided by the number of points.

    Single precision for complex64 (f32 is converted to it), double otherwise. `in_place` overwrites x, which must
    then be a row-major complex array, and returns it.
    """
    single = x.dtype in (np.float32, np.complex64)
    dtype = np.dtype(np.complex64 if single else np.complex128)
    if in_place and (x.dtype != dtype or not x.flags.c_contiguous):
        raise UsageError(f"an FFT in place needs a row-major complex array, not {x.dtype}")
    source = np.ascontiguousarray(x, dtype)
    plan = _plan(source.shape, ndim, "complex", single, inverse, in_place)
    with plan:
        if in_place:
            plan.execute(x.ctypes.data)
            return x
        result = np.empty_like(source)
        plan.execute(source.ctypes.data, result.ctypes.data)
    return result


def rfft(x: Array, ndim: int = 1) -> Array:
    """Transform of real data over the last `ndim` dimensions: the half of the spectrum that is not redundant."""
    single = x.dtype == np.float32
    source = np.ascontiguousarray(x, np.float32 if single else np.float64)
    with _plan(source.shape, ndim, "real", single, inverse=False) as plan:
        shape = (*source.shape[:-1], source.shape[-1] // 2 + 1)
        result = np.empty(shape, np.complex64 if single else np.complex128)
        plan.execute(source.ctypes.data, result.ctypes.data)
    return result


def irfft(x: Array, length: int, ndim: int = 1) -> Array:
    """Real data of last length `length` from the half spectrum that `rfft` gives; divided by the number of points."""
    single = x.dtype == np.complex64
    # oneMKL may overwrite the input of a transform back to real data: give it a copy.
    source = np.array(x, np.complex64 if single else np.complex128, order="C")
    if source.shape[-1] != length // 2 + 1:
        raise UsageError(f"a half spectrum of {length} real points has {length // 2 + 1} numbers, not {x.shape[-1]}")
    shape = (*source.shape[:-1], length)
    with _plan(shape, ndim, "real", single, inverse=True) as plan:
        result = np.empty(shape, np.float32 if single else np.float64)
        plan.execute(source.ctypes.data, result.ctypes.data)
    return result


def _plan(
    shape: tuple[int, ...],
    ndim: int,
    domain: Literal["complex", "real"],
    single: bool,
    inverse: bool,
    in_place: bool = False,
) -> Fft:
    if not 1 <= ndim <= len(shape) or 0 in shape:
        raise UsageError(f"can't transform {ndim} dimension(s) of an array of shape {shape}")
    lengths = shape[-ndim:]
    return Fft(
        lengths,
        precision="single" if single else "double",
        domain=domain,
        direction="backward" if inverse else "forward",
        batch=math.prod(shape[:-ndim]),
        in_place=in_place,
        scale=1 / math.prod(lengths) if inverse else 1.0,
    )
