"""What a linear algebra routine does, and its cost in real operations and bytes."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from cpulens.cost.tally import Cost
from cpulens.cost.tensors import ELEMENT_BYTES

_SIZE: Final = re.compile(r"[a-z]+(\d{1,18})(?!\d)")
_ALL_SIZES: Final = re.compile(r"(?:[a-z]+\d{1,18})+")


class Work(NamedTuple):
    """Multiplications (divisions among them), additions, and elements read and written."""

    multiplications: float
    additions: float
    elements: float

    def __add__(self, other: object) -> Work:
        """Both, one after the other."""
        if not isinstance(other, Work):
            return NotImplemented
        return Work(*(one + more for one, more in zip(self, other, strict=True)))

    def cost(self, dt: str | None) -> Cost:
        """In real operations: a complex multiplication is 6, a complex addition 2 (LAPACK Working Note 41)."""
        per_multiplication, per_addition = (6, 2) if (dt or "").startswith("c") else (1, 1)
        flops = per_multiplication * self.multiplications + per_addition * self.additions
        element = ELEMENT_BYTES.get(dt or "")
        return Cost(flops, None if element is None else element * self.elements)


def sizes(problem: str) -> list[int] | None:
    """Sizes in the order of the arguments, from ``m8n4k2``; None where there are none."""
    return [int(size) for size in _SIZE.findall(problem)] if _ALL_SIZES.fullmatch(problem) else None


def flags(auxiliary: str) -> list[str]:
    """Letters of the call in capitals: ``flags:L,u,N`` → L, U, N."""
    return auxiliary.removeprefix("flags:").upper().split(",") if auxiliary.startswith("flags:") else []


def triangle(n: int) -> int:
    """Elements of a triangle of n rows, its diagonal included."""
    return n * (n + 1) // 2


def half_band(n: int, k: int) -> int:
    """Elements of a triangle that has a diagonal and k more beside it."""
    k = min(k, max(n - 1, 0))
    return n * (k + 1) - k * (k + 1) // 2
