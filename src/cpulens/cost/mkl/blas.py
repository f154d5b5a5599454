"""BLAS.

Counts of multiplications and additions: LAPACK Working Note 41 (Blackford, Dongarra, "Installation Guide for LAPACK"),
appendix C; scaling by alpha and beta, which a line shows as pointers, is not counted. For the same reason a matrix that
is added to (beta × C) counts as written only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from cpulens.cost.mkl.work import Work, flags, half_band, sizes, triangle
from cpulens.cost.tally import UNKNOWN, Cost, total
from cpulens.cost.tensors import ELEMENT_BYTES

_NAME: Final = re.compile(r"(i?)((?:sc|dz|cs|zd)(?=asum|nrm2|scal|rot)|[sdczh])([a-z0-9]+?)(?:_64)?_?$")
_GEMM: Final = re.compile(r"(?:[sdczh]gemm(?:3m)?|gemm_[a-z0-9]+?)(_batch(?:_strided)?|_compute)?(?:_64)?_?$")

Formula = Callable[..., Work]


def call(text: Mapping[str, Any]) -> Cost:
    """Cost of one call of BLAS; UNKNOWN for what has no formula."""
    routine, given = str(text.get("primitive")), sizes(str(text.get("problem") or ""))
    if given is None:
        return UNKNOWN
    if gemm := _GEMM.fullmatch(routine):
        return _gemm(text, given, gemm[1] or "")
    found = _NAME.fullmatch(routine)
    if found is None:
        return UNKNOWN
    arguments = flags(str(text.get("auxiliary") or ""))
    dt = text.get("src_dt")
    if found[2] in ("cs", "zd", "sc", "dz"):
        return _mixed(found[3], given[0], dt)
    try:
        if found[3] in _SIDED:
            return _SIDED[found[3]](arguments[0] == "L", *given).cost(dt)
        return _FORMULAS[found[3]](*given).cost(dt) if found[3] in _FORMULAS else UNKNOWN
    except (TypeError, IndexError):  # fewer or more sizes than the routine has: the line is cut, or of another era
        return UNKNOWN


def _gemm(text: Mapping[str, Any], given: list[int], suffix: str) -> Cost:
    """Count m × n × k multiplications and as many additions for every matrix of the batch.

    A batch whose size the line doesn't say (pointers only, or several groups) is not known.
    """
    batch = given.pop(0) if str(text.get("problem")).startswith("b") else 1
    if (suffix.startswith("_batch") and not str(text.get("problem")).startswith("b")) or len(given) != 3:
        return UNKNOWN
    m, n, k = given
    flops = Work(batch * m * n * k, batch * m * n * k, 0).cost(text.get("src_dt")).flops
    elements = (("src_dt", m * k), ("wei_dt", k * n), ("dst_dt", m * n))
    parts = [_bytes(text.get(column), batch * count) for column, count in elements]
    return Cost(flops, total(*parts))


def _bytes(dt: str | None, elements: int) -> float | None:
    element = ELEMENT_BYTES.get(dt or "")
    return None if element is None else element * elements


def _mixed(root: str, n: int, dt: str | None) -> Cost:
    """Complex vectors with real arithmetic: csscal, scnrm2, dzasum, csrot."""
    real = {
        "scal": Work(2 * n, 0, 0),
        "nrm2": Work(2 * n, 2 * n, 0),
        "asum": Work(0, 2 * n, 0),
        "rot": Work(8 * n, 4 * n, 0),
    }
    moved = {"scal": 2 * n, "nrm2": n, "asum": n, "rot": 4 * n}
    if root not in real:
        return UNKNOWN
    complex_dt = {"f32": "cf32", "f64": "cf64"}.get(dt or "", dt)
    return Cost(real[root].cost("f32").flops, _bytes(complex_dt, moved[root]))


def _symmetric(n: int) -> Work:
    return Work(n * n, n * n, triangle(n) + 2 * n)


def _triangular(n: int) -> Work:
    return Work(triangle(n), triangle(n) - n, triangle(n) + 2 * n)


def _banded_triangular(n: int, k: int) -> Work:
    band = half_band(n, k)
    return Work(band, band - n, band + 2 * n)


def _banded_symmetric(n: int, k: int) -> Work:
    band = 2 * half_band(n, k) - n
    return Work(band, band, half_band(n, k) + 2 * n)


def _general_band(m: int, n: int, kl: int, ku: int) -> Work:
    """The band has kl diagonals below the main one and ku above."""
    band = sum(max(0, min(m, n + d) if d <= 0 else min(m - d, n)) for d in range(-min(ku, n), min(kl, m) + 1))
    return Work(band, band, band + m + n)


def _outer(m: int, n: int) -> Work:
    return Work(m * n, m * n, 2 * m * n + m + n)


def _rank_one(n: int) -> Work:
    return Work(triangle(n), triangle(n), 2 * triangle(n) + n)


def _rank_two(n: int) -> Work:
    return Work(2 * triangle(n), 2 * triangle(n), 2 * triangle(n) + 2 * n)


#: Root of the name → work by its sizes. Level 1 by n, level 2, level 3 without a side.
_FORMULAS: Final[dict[str, Formula]] = {
    "axpy": lambda n: Work(n, n, 3 * n),
    "axpby": lambda n: Work(2 * n, n, 3 * n),
    "dot": lambda n: Work(n, n, 2 * n),
    "dotc": lambda n: Work(n, n, 2 * n),
    "dotu": lambda n: Work(n, n, 2 * n),
    "nrm2": lambda n: Work(n, n, n),
    "asum": lambda n: Work(0, n, n),
    "scal": lambda n: Work(n, 0, 2 * n),
    "copy": lambda n: Work(0, 0, 2 * n),
    "swap": lambda n: Work(0, 0, 4 * n),
    "rot": lambda n: Work(4 * n, 2 * n, 4 * n),
    "amax": lambda n: Work(0, 0, n),
    "amin": lambda n: Work(0, 0, n),
    "gemv": lambda m, n: Work(m * n, m * n, m * n + m + n),
    "gbmv": _general_band,
    "symv": _symmetric,
    "hemv": _symmetric,
    "spmv": _symmetric,
    "hpmv": _symmetric,
    "sbmv": _banded_symmetric,
    "hbmv": _banded_symmetric,
    "trmv": _triangular,
    "trsv": _triangular,
    "tpmv": _triangular,
    "tpsv": _triangular,
    "tbmv": _banded_triangular,
    "tbsv": _banded_triangular,
    "ger": _outer,
    "geru": _outer,
    "gerc": _outer,
    "syr": _rank_one,
    "her": _rank_one,
    "spr": _rank_one,
    "hpr": _rank_one,
    "syr2": _rank_two,
    "her2": _rank_two,
    "spr2": _rank_two,
    "hpr2": _rank_two,
    "syrk": lambda n, k: Work(k * triangle(n), k * triangle(n), n * k + triangle(n)),
    "herk": lambda n, k: Work(k * triangle(n), k * triangle(n), n * k + triangle(n)),
    "syr2k": lambda n, k: Work(k * n * n, k * n * n + n, 2 * n * k + triangle(n)),
    "her2k": lambda n, k: Work(k * n * n, k * n * n + n, 2 * n * k + triangle(n)),
    "gemmt": lambda n, k: Work(k * triangle(n), k * triangle(n), 2 * n * k + triangle(n)),
}


def _symmetric_product(left: bool, m: int, n: int) -> Work:
    order = m if left else n
    return Work(m * n * order, m * n * order, triangle(order) + 2 * m * n)


def _triangular_product(left: bool, m: int, n: int) -> Work:
    order, others = (m, n) if left else (n, m)
    return Work(others * triangle(order), others * (triangle(order) - order), triangle(order) + 2 * m * n)


_SIDED: Final[dict[str, Formula]] = {
    "symm": _symmetric_product,
    "hemm": _symmetric_product,
    "trmm": _triangular_product,
    "trsm": _triangular_product,
}
