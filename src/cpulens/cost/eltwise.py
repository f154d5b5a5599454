"""Operations per element of element-wise functions."""

from __future__ import annotations

from typing import Final

#: From the formulas of oneDNN's developer guide, "Eltwise": each arithmetic operation, comparison, maximum, rounding or
#: elementary function is one; a change of sign, and constants that can be multiplied out before, are none. Both
#: branches of a choice are counted, as vector code runs both.
_OPERATIONS: Final = {
    "abs": 1,
    "clip": 2,  # max, min
    "clip_v2": 2,
    "bounded_relu": 2,
    "elu": 4,  # s > 0, exp, - 1, × alpha
    "exp": 1,
    "gelu_erf": 5,  # s / √2, erf, + 1, 0.5 s, ×
    "gelu_tanh": 9,  # s², s³, × 0.044715, + s, × √(2/π), tanh, + 1, 0.5 s, ×
    "gelu": 9,
    "hardsigmoid": 4,  # × alpha, + beta, min, max
    "hardswish": 5,  # hardsigmoid, × s
    "linear": 2,
    "log": 1,
    "logistic": 3,  # exp, + 1, 1 /
    "logsigmoid": 3,  # exp, + 1, log
    "mish": 5,  # exp, + 1, log, tanh, × s
    "pow": 2,  # power, × alpha
    "round": 1,
    "soft_relu": 5,  # × alpha, exp, + 1, log, / alpha
    "soft_relu_v2": 5,
    "sqrt": 1,
    "square": 1,
    "swish": 4,  # × alpha, exp, + 1, s /
    "tanh": 1,
}


def operations(algorithm: str, alpha: float | None = None) -> int | None:
    """Operations for one element; None for a function that is not known. relu with a slope `alpha` takes two."""
    name = algorithm.removesuffix("_use_dst_for_bwd").removesuffix("_dst")
    if name == "relu":
        return 2 if alpha else 1
    return _OPERATIONS.get(name)
