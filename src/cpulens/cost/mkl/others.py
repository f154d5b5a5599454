"""oneMKL beside dense linear algebra: Fourier transforms, sparse products, random numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from cpulens.cost.mkl.work import Work
from cpulens.cost.tally import UNKNOWN, Cost, product
from cpulens.cost.tensors import ELEMENT_BYTES, shape

_SPARSE: Final = re.compile(r"mkl_sparse_([sdcz])_(mv|mm|trsv)")
_SPARSE_PROBLEM: Final = re.compile(r"(\d{1,18})x(\d{1,18})nnz(\d{1,18})(?:n(\d{1,18}))?")
_PRECISION: Final = {"s": "f32", "d": "f64", "c": "cf32", "z": "cf64"}
#: A row or column number in a sparse matrix: 32 bits in the usual interface (lp64), which is the least.
_INDEX_BYTES: Final = 4
_RANDOM: Final = re.compile(r"v([sdi])Rng\w+")


def transform(text: Mapping[str, Any]) -> Cost:
    """5 N log₂ N for N complex points, half of it for real ones: FFTW's convention, not the exact count.

    Source: "benchFFT" of the FFTW project, which defines its "mflops" so for all algorithms and lengths. N is the
    product of all lengths; a batch counts as often. Data in and out move once; the spectrum of real data has
    ⌊n / 2⌋ + 1 points along the last dimension.
    """
    lengths, _, batch_text = str(text.get("problem") or "").partition("*")
    dims, batch = shape(lengths), shape(batch_text or "1")
    if dims is None or batch is None or len(batch) != 1 or 0 in dims:
        return UNKNOWN
    points = product(dims)
    real = "domain:real" in str(text.get("auxiliary") or "")
    flops = (2.5 if real else 5.0) * points * math.log2(points) * batch[0]
    element = ELEMENT_BYTES.get(str(text.get("src_dt")))
    spectrum = 2 * product(dims[:-1]) * (dims[-1] // 2 + 1) if real else points
    return Cost(flops, None if element is None else element * (points + spectrum) * batch[0])


def sparse(text: Mapping[str, Any]) -> Cost:
    """A multiplication and an addition for every stored value and column of the dense operand.

    Source: oneMKL's reference, "Sparse BLAS Routines"; scaling by alpha and beta is not counted. The matrix moves with
    its index arrays (32 bits each), the dense operands once. Formats csr, csc and coo; in others the line does not
    say what a stored value is.
    """
    routine = _SPARSE.fullmatch(str(text.get("primitive")))
    found = _SPARSE_PROBLEM.fullmatch(str(text.get("problem") or ""))
    form = str(text.get("auxiliary") or "").removeprefix("format:")
    if routine is None or found is None or form not in ("csr", "csc", "coo"):
        return UNKNOWN
    rows, columns, stored = (int(found[at]) for at in (1, 2, 3))
    if routine[2] == "mm" and found[4] is None:
        return UNKNOWN
    width = int(found[4]) if routine[2] == "mm" else 1
    dt = _PRECISION[routine[1]]
    indices = {"csr": stored + rows + 1, "csc": stored + columns + 1, "coo": 2 * stored}[form]
    moved = ELEMENT_BYTES[dt] * (stored + (rows + columns) * width) + _INDEX_BYTES * indices
    return Cost(Work(stored * width, stored * width, 0).cost(dt).flops, moved)


def random_numbers(text: Mapping[str, Any]) -> Cost:
    """Numbers written; the operations depend on the generator and are not known."""
    routine = _RANDOM.fullmatch(str(text.get("primitive")))
    count = shape(str(text.get("problem") or "").removeprefix("n"))
    if routine is None or count is None:
        return UNKNOWN
    return Cost(None, {"s": 4.0, "d": 8.0, "i": 4.0}[routine[1]] * count[0])
