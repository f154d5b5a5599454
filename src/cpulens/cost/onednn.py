"""Which formula a line of oneDNN has."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from cpulens.cost import convolution, normalization, pointwise, products, recurrent, resampling
from cpulens.cost.problem import Problem
from cpulens.cost.tally import UNKNOWN, Cost, product, total
from cpulens.cost.tensors import ELEMENT_BYTES, shape

_FORMULAS: Final[dict[str, Callable[[Problem], Cost]]] = {
    "convolution": convolution.convolution,
    "deconvolution": convolution.convolution,
    "pooling": convolution.pooling,
    "matmul": products.matmul,
    "gemm": products.matmul,
    "gemm_api": products.matmul,
    "inner_product": products.inner_product,
    "sdpa": products.attention,
    "gated_mlp": products.gated_mlp,
    "rnn": recurrent.rnn,
    "eltwise": pointwise.elementwise,
    "binary": pointwise.binary,
    "sum": pointwise.sums,
    "prelu": pointwise.prelu,
    "softmax": pointwise.softmax,
    "reduction": pointwise.reduction,
    "reorder": pointwise.reorder,
    "shuffle": pointwise.shuffle,
    "concat": pointwise.concat,
    "resampling": resampling.resampling,
    "batch_normalization": normalization.batch_normalization,
    "layer_normalization": normalization.layer_normalization,
    "group_normalization": normalization.group_normalization,
    "lrn": normalization.local_response,
}


def primitive(text: Mapping[str, Any]) -> Cost:
    """Cost of a primitive; UNKNOWN for one that has no formula here."""
    formula = _FORMULAS.get(str(text.get("primitive")))
    return formula(Problem.of(text)) if formula else UNKNOWN


_LOGICAL: Final = re.compile(r"(?:in|out)\d+_(\w+?):\d+:\w+:\w+(?::host_scalar)?:([^:\s]*)(?::\S*)?")


def partition(text: Mapping[str, Any]) -> Cost:
    """A partition of the graph API: its inputs and outputs move; what it computes is not said in numbers."""
    words = str(text.get("tensors") or "").split()
    parts: list[float | None] = []
    for word in words:
        found = _LOGICAL.fullmatch(word)
        dims = shape(found[2]) if found else None
        element = ELEMENT_BYTES.get(found[1]) if found else None
        parts.append(None if dims is None or element is None else element * product(dims))
    return Cost(None, total(*parts) if parts else None)
