"""LAPACK: factorizations, solvers, inverses, reductions.

Counts of multiplications and additions: LAPACK Working Note 41 (Blackford, Dongarra, "Installation Guide for LAPACK"),
appendix C, "Operation Counts for the BLAS and LAPACK"; a driver is the sum of what it calls. Eigenvalues and singular
values iterate until they converge: their operations depend on the numbers, so they are not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from cpulens.cost.mkl.work import Work, flags, sizes, triangle
from cpulens.cost.tally import UNKNOWN, Cost

_NAME: Final = re.compile(r"[sdcz]([a-z0-9]+?)(?:_64)?_?$")


def call(text: Mapping[str, Any]) -> Cost:
    """Cost of one call; UNKNOWN for a routine without a formula, and for a call that failed (info ≠ 0)."""
    found, given = _NAME.fullmatch(str(text.get("primitive"))), sizes(str(text.get("problem") or ""))
    if found is None or given is None or str(text.get("message") or "").startswith("info="):
        return UNKNOWN
    arguments = flags(str(text.get("auxiliary") or ""))
    try:
        if found[1] in _SIDED:
            return _apply_q(arguments[0] == "L", *given).cost(text.get("src_dt"))
        return _FORMULAS[found[1]](*given).cost(text.get("src_dt")) if found[1] in _FORMULAS else UNKNOWN
    except (TypeError, IndexError):  # fewer or more sizes than the routine has
        return UNKNOWN


def _getrf(m: int, n: int) -> Work:
    small, large = min(m, n), max(m, n)
    multiplications = small * (small * (large - small / 3 - 1) + large) / 2 + 2 * small / 3
    additions = small * (small * (large - small / 3) - large) / 2 + small / 6
    return Work(multiplications, additions, 2 * m * n)


def _getrs(n: int, nrhs: int) -> Work:
    return Work(nrhs * n * n, nrhs * n * (n - 1), n * n + 2 * n * nrhs)


def _getri(n: int) -> Work:
    return Work(n * (5 / 6 + n * (2 * n / 3 + 1 / 2)), n * (5 / 6 + n * (2 * n / 3 - 3 / 2)), 2 * n * n)


def _potrf(n: int) -> Work:
    return Work(n * ((n / 6 + 1 / 2) * n + 1 / 3), n * (n * n / 6 - 1 / 6), 2 * triangle(n))


def _potrs(n: int, nrhs: int) -> Work:
    return Work(nrhs * n * (n + 1), nrhs * n * (n - 1), triangle(n) + 2 * n * nrhs)


def _potri(n: int) -> Work:
    return Work(n * (2 / 3 + n * (n / 3 + 1)), n * (1 / 6 + n * (n / 3 - 1 / 2)), 2 * triangle(n))


def _trtri(n: int) -> Work:
    return Work(n * (n * (n / 6 + 1 / 2) + 1 / 3), n * (n * (n / 6 - 1 / 2) + 1 / 3), 2 * triangle(n))


def _trtrs(n: int, nrhs: int) -> Work:
    return Work(nrhs * triangle(n), nrhs * (triangle(n) - n), triangle(n) + 2 * n * nrhs)


def _geqrf(m: int, n: int) -> Work:
    if m > n:
        multiplications = n * (n * (1 / 2 - n / 3 + m) + m + 23 / 6)
        additions = n * (n * (1 / 2 - n / 3 + m) + 5 / 6)
    else:
        multiplications = m * (m * (-1 / 2 - m / 3 + n) + 2 * n + 23 / 6)
        additions = m * (m * (-1 / 2 - m / 3 + n) + n + 5 / 6)
    return Work(multiplications, additions, 2 * m * n)


def _gelqf(m: int, n: int) -> Work:
    if m > n:
        multiplications = n * (n * (1 / 2 - n / 3 + m) + m + 29 / 6)
        additions = n * (n * (-1 / 2 - n / 3 + m) + m + 5 / 6)
    else:
        multiplications = m * (m * (-1 / 2 - m / 3 + n) + 2 * n + 29 / 6)
        additions = m * (m * (1 / 2 - m / 3 + n) + 5 / 6)
    return Work(multiplications, additions, 2 * m * n)


def _orgqr(m: int, n: int, k: int) -> Work:
    multiplications = k * (2 * m * n + 2 * n - 5 / 3 + k * (2 * k / 3 - (m + n) - 1))
    additions = k * (2 * m * n + n - m + 1 / 3 + k * (2 * k / 3 - (m + n)))
    return Work(multiplications, additions, m * k + m * n)


def _orglq(m: int, n: int, k: int) -> Work:
    multiplications = k * (2 * m * n + m + n - 2 / 3 + k * (2 * k / 3 - (m + n) - 1))
    additions = k * (2 * m * n + m - n + 1 / 3 + k * (2 * k / 3 - (m + n)))
    return Work(multiplications, additions, k * n + m * n)


def _apply_q(left: bool, m: int, n: int, k: int) -> Work:
    if left:
        return Work(n * k * (2 * m - k + 2), n * k * (2 * m - k + 1), m * k + 2 * m * n)
    multiplications = k * (m * (2 * n - k + 1) + n - k / 2 + 1 / 2)
    return Work(multiplications, m * k * (2 * n - k + 1), n * k + 2 * m * n)


def _gels(m: int, n: int, nrhs: int) -> Work:
    """Factorize, apply Q, solve with R; for more unknowns than equations the same with L and Q."""
    small = min(m, n)
    factorized = _geqrf(m, n) if m >= n else _gelqf(m, n)
    work = factorized + _apply_q(True, max(m, n), nrhs, small) + _trtrs(small, nrhs)
    return work._replace(elements=2 * m * n + 2 * max(m, n) * nrhs)


def _driver(factorize: Callable[[int], Work], solve: Callable[[int, int], Work]) -> Callable[[int, int], Work]:
    def work(n: int, nrhs: int) -> Work:
        factorized = factorize(n)
        both = factorized + solve(n, nrhs)
        return both._replace(elements=factorized.elements + 2 * n * nrhs)

    return work


def _sytrd(n: int) -> Work:
    """The formula is for more than a few rows; below it would be negative."""
    multiplications = n * (n * (2 * n / 3 + 5 / 2) - 1 / 6) - 15
    additions = n * (n * (2 * n / 3 + 1) - 8 / 3) - 4
    return Work(max(multiplications, 0), max(additions, 0), 2 * triangle(n))


def _gebrd(m: int, n: int) -> Work:
    small, large = min(m, n), max(m, n)
    multiplications = small * (small * (2 * large - 2 * small / 3 + 2) + 20 / 3)
    additions = small * (small * (2 * large - 2 * small / 3 + 1) - large + 5 / 3)
    return Work(multiplications, additions, 2 * m * n)


_SIDED: Final = frozenset({"ormqr", "unmqr", "ormlq", "unmlq"})
#: Name without its precision → work by its sizes.
_FORMULAS: Final[dict[str, Callable[..., Work]]] = {
    "getrf": _getrf,
    "getrf2": _getrf,
    "getrs": _getrs,
    "getri": _getri,
    "gesv": _driver(lambda n: _getrf(n, n), _getrs),
    "potrf": _potrf,
    "potrf2": _potrf,
    "potrs": _potrs,
    "potri": _potri,
    "posv": _driver(_potrf, _potrs),
    "trtri": _trtri,
    "trtrs": _trtrs,
    "geqrf": _geqrf,
    "geqlf": _geqrf,
    "gelqf": _gelqf,
    "gerqf": _gelqf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "orglq": _orglq,
    "unglq": _orglq,
    "gels": _gels,
    "sytrd": _sytrd,
    "hetrd": _sytrd,
    "gebrd": _gebrd,
}
