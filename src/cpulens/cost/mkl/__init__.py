"""oneMKL's calls: which formula a routine has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cpulens.cost.mkl import blas, lapack, others
from cpulens.cost.tally import UNKNOWN, Cost


def call(text: Mapping[str, Any]) -> Cost:
    """Cost of one call; UNKNOWN for a routine that has no formula here."""
    component = text.get("component")
    if component == "blas":
        return blas.call(text)
    if component == "lapack":
        return lapack.call(text)
    if component == "fft":
        return others.transform(text)
    if component == "sparse":
        return others.sparse(text)
    if component == "rng":
        return others.random_numbers(text)
    return UNKNOWN
