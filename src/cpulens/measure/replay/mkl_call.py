"""A oneMKL call made ready to run through the native bindings: matrix products, batches of them, Fourier transforms.

Lines print no values behind pointers: alpha is taken as 1 and beta as 0. Strides of transforms are taken as dense.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from cpulens.errors import CpulensError
from cpulens.measure.replay import filling
from cpulens.measure.replay.filling import Array
from cpulens.measure.replay.memory import new_array
from cpulens.measure.replay.problem import Unreplayable
from cpulens.native import mkl
from cpulens.native.mkl.blas import ROUTINES

_CALL: Final = re.compile(r"MKL_VERBOSE \w+\(([^()]*)\)?")
_TYPES: Final[dict[str, tuple[Any, Any, Any]]] = {
    "sgemm": (np.float32,) * 3,
    "dgemm": (np.float64,) * 3,
    "cgemm": (np.complex64,) * 3,
    "zgemm": (np.complex128,) * 3,
    "gemm_bf16bf16f32": (np.uint16, np.uint16, np.float32),
    "gemm_f16f16f32": (np.float16, np.float16, np.float32),
    "gemm_s8u8s32": (np.int8, np.uint8, np.int32),
}
#: What stands in the places of the arguments; `ptr` is skipped.
_PLACES: Final = {
    "single": "transa transb m n k ptr ptr lda ptr ldb ptr ptr ldc",
    "offset": "transa transb offset m n k ptr ptr lda ptr ptr ldb ptr ptr ptr ldc ptr",
    "strided": "transa transb m n k ptr ptr lda stride_a ptr ldb stride_b ptr ptr ldc stride_c batch",
    "grouped": "transa transb m n k ptr ptr lda ptr ldb ptr ptr ldc groups batch",
}


class Product(NamedTuple):
    """A matrix product as `cpulens.native.mkl.Gemm` takes it."""

    routine: str
    sizes: tuple[int, int, int]
    options: dict[str, Any]

    @property
    def size_bytes(self) -> int:
        """Bytes of its matrices, at most: as if each had the larger of its two extents on both sides."""
        m, n, k = self.sizes
        element, batch = np.dtype(_TYPES[self.routine][2]).itemsize, self.options.get("batch", 1)
        extents = ((self.options["lda"], max(m, k)), (self.options["ldb"], max(n, k)), (self.options["ldc"], n))
        strides = self.options.get("strides", (0, 0, 0))
        each = (max(ld * count, step) for (ld, count), step in zip(extents, strides, strict=True))
        return int(element * batch * sum(each))


class Transform(NamedTuple):
    """A Fourier transform as `cpulens.native.mkl.Fft` takes it."""

    lengths: tuple[int, ...]
    options: dict[str, Any]
    unaligned: tuple[str, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Bytes of source and target, at most."""
        element = 16 if self.options["precision"] == "double" else 8
        return int(2 * element * self.options["batch"] * math.prod(self.lengths))

    @property
    def result_aligned(self) -> bool:
        """Whether the data that is written begins at a cache line."""
        return ("input" if self.options["in_place"] else "output") not in self.unaligned


def read(columns: Mapping[str, Any]) -> Product | Transform:
    """What a text of oneMKL says. Raises `Unreplayable`."""
    routine, engine = columns.get("primitive") or "", columns.get("engine") or "cpu"
    if engine != "cpu":
        raise Unreplayable(f"it ran on {engine}; replay runs on the CPU")
    if routine == "fft":
        return _transform(columns)
    base = re.sub(r"_batch(_strided)?$", "", routine)
    if base not in ROUTINES:
        raise Unreplayable("not a routine that replay runs (matrix products, Fourier transforms)")
    return _product(base, routine, columns.get("raw") or "")


def _product(base: str, routine: str, raw: str) -> Product:
    found = _CALL.match(raw)
    arguments = found[1].split(",") if found else []
    form = _form(base, routine)
    layout = _PLACES[form].split()
    if len(arguments) != len(layout) or any(
        (name == "ptr") != (value == "ptr") for name, value in zip(layout, arguments, strict=True)
    ):
        raise Unreplayable("a batch whose line does not print its sizes (oneMKL does since 2025)")
    named = {name: value for name, value in zip(layout, arguments, strict=True) if name != "ptr"}
    if named.pop("offset", "F") != "F":
        raise Unreplayable(f"{routine} with an offset for each row or column")
    if named.pop("groups", "1") != "1":
        raise Unreplayable(f"{routine} of several groups, of which the line prints one")
    options: dict[str, Any] = {name: named[name] for name in ("transa", "transb")}
    if not all(value.isdecimal() for name, value in named.items() if name not in options):
        raise Unreplayable(f"{routine} with a size, leading dimension or stride that is no positive number")
    numbers = {name: int(value) for name, value in named.items() if name not in options}
    options |= {name: numbers[name] for name in ("lda", "ldb", "ldc", "batch") if name in numbers}
    if "stride_a" in numbers:
        options["strides"] = (numbers["stride_a"], numbers["stride_b"], numbers["stride_c"])
    options["pointers"] = form == "grouped"
    return Product(base, (numbers["m"], numbers["n"], numbers["k"]), options)


def _form(base: str, routine: str) -> str:
    if routine.endswith("_batch_strided"):
        return "strided"
    if routine.endswith("_batch"):
        return "grouped"
    return "offset" if ROUTINES[base].offsets else "single"


def _transform(columns: Mapping[str, Any]) -> Transform:
    words = dict(word.partition(":")[::2] for word in (columns.get("auxiliary") or "").split())
    lengths, _, batch = (columns.get("problem") or "").partition("*")
    if not re.fullmatch(r"\d+(x\d+)*", lengths) or words.get("precision") not in ("single", "double"):
        raise Unreplayable(f"a Fourier transform of {columns.get('problem')}, precision {words.get('precision')}")
    options = {
        "precision": words["precision"],
        "domain": words.get("domain", "complex"),
        "direction": words.get("direction", "forward"),
        "batch": int(batch or 1),
        "in_place": words.get("placement") == "in",
    }
    said = (columns.get("attributes") or "").split()
    unaligned = tuple(side for side in ("input", "output") if f"unaligned_{side}" in said)
    return Transform(tuple(map(int, lengths.split("x"))), options, unaligned)


class MklCall:
    """One call of oneMKL on buffers of its own; `execute` runs it once. `arrays`: its data by name."""

    library = "mkl"
    implementation: str | None = None

    def __init__(self, told: Product | Transform) -> None:
        """Raises `Unreplayable`, in the library's words where it refuses."""
        self.told = told
        self.layouts: dict[str, str] = {}
        try:
            self._running = _RunningProduct(told) if isinstance(told, Product) else _RunningTransform(told)
        except CpulensError as error:
            raise Unreplayable(str(error)) from None
        self.arrays: dict[str, Array] = self._running.arrays
        self.execute: Callable[[], None] = self._running.execute

    def renew(self, *, untouched: bool = False) -> None:
        """Give the result new memory, as programs do for every call; what it held is lost."""
        self._running.renew(untouched)

    def touch_source(self) -> None:
        """Read the source of a transform, or the second matrix of a product.

        Programs with row-major data, as inference has it, hand their left operand, the activations, over as b.
        """
        source = self.arrays["source" if "source" in self.arrays else "b"]
        filling.touch(source.data.cast("B"))

    @property
    def result_bytes(self) -> int:
        """Size of the result."""
        return next(reversed(self.arrays.values())).nbytes

    def close(self) -> None:
        """Free what it holds."""
        self._running.close()
        self.arrays.clear()


class _RunningProduct:
    def __init__(self, told: Product) -> None:
        self._gemm = mkl.Gemm(told.routine, *told.sizes, **told.options)
        types = zip("abc", self._gemm.sizes_bytes, _TYPES[told.routine], strict=True)
        self.arrays = {name: new_array((size // np.dtype(dtype).itemsize,), dtype) for name, size, dtype in types}
        for seed, name in enumerate("ab"):
            filling.fill(self.arrays[name].data.cast("B"), self.arrays[name].dtype, seed + 1)
        self.execute = self._gemm.execute
        self._bind()

    def _bind(self) -> None:
        a, b, c = self.arrays.values()
        self._gemm.bind(a.ctypes.data, b.ctypes.data, c.ctypes.data, keep=(a, b, c))

    def renew(self, untouched: bool) -> None:
        self.arrays["c"] = new_array(self.arrays["c"].shape, self.arrays["c"].dtype, untouched=untouched)
        self._bind()

    def close(self) -> None:
        pass


class _RunningTransform:
    """In place, each run begins with the same numbers: transformed again and again, they would grow beyond bounds."""

    def __init__(self, told: Transform) -> None:
        self._fft = mkl.Fft(told.lengths, **told.options)
        single, back = self._fft.precision == "single", self._fft.direction == "backward"
        real, complex_ = (np.float32, np.complex64) if single else (np.float64, np.complex128)
        both = self._fft.domain == "complex"
        aligned, self._aligned = ("input" not in told.unaligned), told.result_aligned
        source = new_array(self._fft.input_shape, complex_ if both or back else real, aligned=aligned)
        filling.fill(source.data.cast("B"), source.dtype, 1)
        shape = self._fft.input_shape if told.options["in_place"] else self._fft.output_shape
        target = new_array(shape, source.dtype if told.options["in_place"] or both else real if back else complex_)
        self.arrays = {"source": source, "target": target}
        self.renew(untouched=False)

    def renew(self, untouched: bool) -> None:
        source, target = self.arrays.values()
        target = new_array(target.shape, target.dtype, aligned=self._aligned, untouched=untouched)
        if self._fft.in_place:
            np.copyto(target, source)
        self.arrays["target"] = target
        self._addresses = (target.ctypes.data,) if self._fft.in_place else (source.ctypes.data, target.ctypes.data)

    def execute(self) -> None:
        self._fft.execute(*self._addresses)

    def close(self) -> None:
        self._fft.close()
