"""A cost, and sums in which one unknown makes the whole unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Cost(NamedTuple):
    """Operations and bytes of one execution; None: not known."""

    flops: float | None
    bytes: float | None

    def finite(self) -> Cost:
        """The same as floats. Raises OverflowError for numbers that no float holds."""
        return Cost(*(None if value is None else float(value) for value in self))


UNKNOWN = Cost(None, None)


def total(*parts: float | None) -> float | None:
    """The sum; None when a part is not known."""
    found: float = 0
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def product(dims: Iterable[int]) -> int:
    """Number of elements of a shape; 1 for no dimensions."""
    return math.prod(dims)
