"""oneMKL's Fourier transforms (DFTI): a descriptor prepared once, run as often as wanted.

Three of the C functions are variadic. On x86-64, the only processor that oneMKL exists for, an integer argument may
be passed as 64 bits whatever width is read, and libffi tells how many vector registers hold doubles, so that they
can be called through ctypes as if they were not.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from typing import Final, Literal

from cpulens.errors import NativeError, UsageError
from cpulens.native.handles import Owned
from cpulens.native.mkl.api import library

# Values of mkl_dfti.h.
_PRECISION: Final = {"single": 35, "double": 36}
_COMPLEX, _REAL = 32, 33
_FORWARD_SCALE, _BACKWARD_SCALE, _NUMBER_OF_TRANSFORMS = 4, 5, 7
_CONJUGATE_EVEN_STORAGE, _PLACEMENT = 10, 11
_INPUT_STRIDES, _OUTPUT_STRIDES, _INPUT_DISTANCE, _OUTPUT_DISTANCE = 12, 13, 14, 15
_COMPLEX_COMPLEX, _INPLACE, _NOT_INPLACE = 39, 43, 44


class Fft(Owned):
    """Transforms over `lengths` (one number a dimension), `batch` of them, stored densely one after the other.

    `domain` "complex" maps complex to complex of the same shape. "real" maps real data to the first half of the
    (symmetric) spectrum, whose last length is n // 2 + 1, or back when `direction` is "backward"; `in_place` then
    pads each real row to 2 × (n // 2 + 1) numbers. The result is multiplied by `scale`; without it a transform
    forward and backward multiplies the data by the product of the lengths.

    Raises `UsageError` for impossible numbers and `NativeError`, in oneMKL's words, when a call fails.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        precision: Literal["single", "double"] = "single",
        domain: Literal["complex", "real"] = "complex",
        direction: Literal["forward", "backward"] = "forward",
        batch: int = 1,
        in_place: bool = False,
        scale: float = 1.0,
    ) -> None:
        if not lengths or min(*lengths, batch) < 1 or len(lengths) > 7:
            raise UsageError(f"an FFT has 1 to 7 dimensions, and no length or batch below 1: {lengths}, {batch}")
        self.lengths, self.batch, self.in_place = tuple(lengths), batch, in_place
        self.precision, self.domain, self.direction = precision, domain, direction
        lib = self._lib = library()
        compute = "DftiComputeForward" if direction == "forward" else "DftiComputeBackward"
        self._compute = lib.declare(compute, [c_void_p, c_void_p, c_void_p], c_int64)
        free = lib.declare("DftiFreeDescriptor", [ctypes.POINTER(c_void_p)], c_int64)
        super().__init__(self._create(), lambda raw: free(ctypes.byref(raw)))
        self._configure(scale)
        self._check(lib.declare("DftiCommitDescriptor", [c_void_p], c_int64)(self), "DftiCommitDescriptor")

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Batch and lengths of the data that goes in, padding included."""
        return self._spectrum() if self._is_c2r else self._data()

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Batch and lengths of the data that comes out, padding included."""
        return self._data() if self._is_c2r or self.domain == "complex" else self._spectrum()

    @property
    def _is_c2r(self) -> bool:
        return self.domain == "real" and self.direction == "backward"

    def _spectrum(self) -> tuple[int, ...]:
        return (self.batch, *self.lengths[:-1], self.lengths[-1] // 2 + 1)

    def _data(self) -> tuple[int, ...]:
        last = self.lengths[-1]
        if self.domain == "real" and self.in_place:
            last = 2 * (last // 2 + 1)
        return (self.batch, *self.lengths[:-1], last)

    def _create(self) -> c_void_p:
        raw, kind = c_void_p(), _COMPLEX if self.domain == "complex" else _REAL
        # The last argument is a number for one dimension, else a pointer to as many: the compiler's view is a
        # variadic function, and the two are told apart by the number of dimensions.
        lengths = (c_int64 * len(self.lengths))(*self.lengths)
        last = c_int64(self.lengths[0]) if len(self.lengths) == 1 else c_int64(ctypes.addressof(lengths))
        types = [ctypes.POINTER(c_void_p), c_int, c_int, c_int64, c_int64]
        create = self._lib.declare("DftiCreateDescriptor", types, c_int64)
        status = create(ctypes.byref(raw), _PRECISION[self.precision], kind, len(self.lengths), last)
        self._check(status, "DftiCreateDescriptor")
        return raw

    def _configure(self, scale: float) -> None:
        self._set(_PLACEMENT, _INPLACE if self.in_place else _NOT_INPLACE)
        if self.domain == "real":
            self._set(_CONJUGATE_EVEN_STORAGE, _COMPLEX_COMPLEX)
            self._set_strides(_INPUT_STRIDES, self.input_shape)
            self._set_strides(_OUTPUT_STRIDES, self.output_shape)
        if self.batch > 1:
            self._set(_NUMBER_OF_TRANSFORMS, self.batch)
            self._set(_INPUT_DISTANCE, math.prod(self.input_shape[1:]))
            self._set(_OUTPUT_DISTANCE, math.prod(self.output_shape[1:]))
        if scale != 1.0:
            set_double = self._lib.declare("DftiSetValue", [c_void_p, c_int, c_double], c_int64)
            which = _FORWARD_SCALE if self.direction == "forward" else _BACKWARD_SCALE
            self._check(set_double(self, which, scale), "DftiSetValue")

    def _set(self, what: int, value: int) -> None:
        set_value = self._lib.declare("DftiSetValue", [c_void_p, c_int, c_int64], c_int64)
        self._check(set_value(self, what, value), "DftiSetValue")

    def _set_strides(self, what: int, shape: tuple[int, ...]) -> None:
        steps = [math.prod(shape[at:]) for at in range(2, len(shape) + 1)]
        strides = (c_int64 * (len(shape)))(0, *steps)
        self._set(what, ctypes.addressof(strides))

    def _check(self, status: int, call: str) -> None:
        if status == 0:
            return
        message = self._lib.declare("DftiErrorMessage", [c_int64], c_char_p)(status) or b""
        words = message.decode("utf-8", "replace")
        raise NativeError(f"oneMKL refused {call} for an FFT of {self.lengths}: {words}", call=call, status=words)

    def execute(self, source: int, target: int | None = None) -> None:
        """Transform the data at address `source` to `target`; in place when the descriptor is."""
        if (target is None) != self.in_place:
            raise UsageError("an in-place FFT takes one address, any other two")
        self._check(self._compute(self.handle, source, target), self._compute.__name__)
