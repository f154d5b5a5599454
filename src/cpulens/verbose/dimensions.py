"""Problem descriptions as named numbers, for every kind of primitive and for oneMKL's routines.

Names are the field's: mb, ic, oc, g; ih, oh, kh, sh, dh, ph and the same for d and w; m, n, k and batch. What is known
only at run time is None.
"""

from __future__ import annotations

import re
from typing import Final

_PAIRS: Final = re.compile(r"([a-z]+)(\*|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_SHAPE: Final = re.compile(r"(?:\d+|\*)(?:x(?:\d+|\*))*")

Number = int | float | None


def dimensions(primitive: str | None, problem: str | None) -> dict[str, Number]:
    """Give the named numbers of a problem in the newest spelling; empty where it has none or isn't understood."""
    if not problem:
        return {}
    if primitive in ("matmul", "gemm_api", "gemm", "brgemm") and ":" in problem:
        return _matmul(problem)
    shapes = problem.split(":")
    if all(_SHAPE.fullmatch(shape) for shape in shapes):
        return _shapes(shapes)
    pairs = _PAIRS.findall(problem)
    if "".join(name + value for name, value in pairs) != problem.replace("_", ""):
        return {}
    return {name: _number(value) for name, value in pairs}


def _matmul(problem: str) -> dict[str, Number]:
    """Read ``BxMxK:BxKxN``; several batch dimensions multiply."""
    first, second = (shape.split("x") for shape in problem.split(":")[:2])
    if len(first) < 2 or len(second) < 2:
        return {}
    found: dict[str, Number] = {"m": _number(first[-2]), "n": _number(second[-1]), "k": _number(first[-1])}
    if len(first) > 2:
        batch: Number = 1
        for one, other in zip(first[:-2], second[:-2], strict=False):
            sizes = [_number(one), _number(other)]
            batch = None if batch is None or None in sizes else batch * max(size for size in sizes if size is not None)
        found["batch"] = batch
    return found


def _shapes(shapes: list[str]) -> dict[str, Number]:
    """Name the dimensions of a list of shapes: d0, d1, … of the first, and how many elements each has."""
    first = shapes[0].split("x")
    found: dict[str, Number] = {f"d{at}": _number(size) for at, size in enumerate(first)}
    for at, shape in enumerate(shapes):
        count: Number = 1
        for size in map(_number, shape.split("x")):
            count = None if count is None or size is None else count * size
        found["elements" if at == 0 else f"elements{at}"] = count
    return found


def _number(text: str) -> Number:
    if text == "*":
        return None
    return int(text) if text.lstrip("-").isdigit() else float(text)
