"""Memory descriptors in the newest spelling, and the bytes that a tensor of given dimensions takes in one.

The tag of a blocked layout (``aBcd16b``) names the dimensions by letters, those that are blocked in capitals, then the
inner blocks; a dimension is stored rounded up to whole blocks (oneDNN's developer guide, "Memory Format Propagation"
and "Understanding Memory Formats").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from cpulens.cost.tally import product

#: Bytes of an element. Types of 4 bits are packed two to a byte.
ELEMENT_BYTES: Final = {
    "f64": 8.0, "f32": 4.0, "s32": 4.0, "f16": 2.0, "bf16": 2.0, "s8": 1.0, "u8": 1.0, "boolean": 1.0,
    "f8_e5m2": 1.0, "f8_e4m3": 1.0, "e8m0": 1.0, "s4": 0.5, "u4": 0.5, "f4_e2m1": 0.5, "f4_e3m0": 0.5,
    "s64": 8.0, "cf16": 4.0, "cf32": 8.0, "cf64": 16.0,
}  # fmt: skip
_BLOCK: Final = re.compile(r"(\d{1,9})([a-l])")
_OUTER: Final = re.compile(r"[a-lA-L]+")
_MASK: Final = re.compile(r"_mask(\d{1,9})")
_MOST_DIMENSIONS: Final = 12


class Tensor(NamedTuple):
    """One descriptor: data type, kind of format, tag, strides, flags; absent parts are empty."""

    dt: str
    kind: str
    tag: str
    strides: str
    flags: str

    @property
    def ndims(self) -> int | None:
        """Number of dimensions that the tag names; None where it names none."""
        blocks = _blocks(self.tag) if self.kind == "blocked" else None
        return None if blocks is None else len(blocks)

    @property
    def mask(self) -> int | None:
        """The mask of dimensions glued to a bias of matmul; None: there is none."""
        found = _MASK.search(self.flags)
        return int(found[1]) if found else None

    def size_bytes(self, dims: Sequence[int]) -> float | None:
        """Bytes that a tensor of these dimensions takes, padding of its blocks included.

        A private format (``opaque``, ``wino``, ``rnn_packed``) doesn't show its padding: it counts as dense. None for a
        sparse tensor, whose number of values no line says, and for a type that is not known.
        """
        element = ELEMENT_BYTES.get(self.dt)
        if element is None or self.kind == "sparse":
            return None
        return element * product(self._stored(dims))

    def _stored(self, dims: Sequence[int]) -> Sequence[int]:
        blocks = _blocks(self.tag) if self.kind == "blocked" else None
        if blocks is None:
            return dims
        if len(dims) > len(blocks):  # a 1-D problem may be spelled as a flat 2-D one
            spare = len(dims) - len(blocks)
            dims = [*dims[:2], *dims[2 + spare :]] if set(dims[2 : 2 + spare]) == {1} else dims
        if len(dims) != len(blocks):
            return dims
        stored = [-(-size // block) * block for size, block in zip(dims, blocks, strict=True)]
        strides = self.strides.split("x")
        if len(strides) == len(stored):  # a stride of 0 repeats one element
            stored = [1 if stride == "0" and size else size for size, stride in zip(stored, strides, strict=True)]
        return stored


@lru_cache(maxsize=1024)
def _blocks(tag: str) -> tuple[int, ...] | None:
    """For each dimension the size of its blocks, 1 where it has none; None for what is no blocked layout."""
    outer = _OUTER.match(tag)
    if outer is None:
        return None
    blocks = [1] * len(outer[0])
    for size, letter in _BLOCK.findall(tag[len(outer[0]) :]):
        axis = ord(letter) - ord("a")
        if axis >= len(blocks):
            return None
        blocks[axis] *= max(int(size), 1)
    return tuple(blocks)


def parse(spelled: str) -> tuple[tuple[str, Tensor], ...]:
    """Names and descriptors that are defined, in order; names of gradients without their ``diff_``."""
    found = map(_descriptor, spelled.split())
    return tuple(one for one in found if one)


@lru_cache(maxsize=4096)  # a log repeats few descriptors
def _descriptor(word: str) -> tuple[str, Tensor] | None:
    parts = word.split(":", 6)
    if len(parts) < 6 or parts[1] == "undef":
        return None
    return parts[0].removeprefix("diff_"), Tensor(
        parts[1], parts[3], parts[4], parts[5], parts[6] if len(parts) > 6 else ""
    )


_DIMS: Final = re.compile(r"\d{1,18}(?:x\d{1,18})*")


def shape(text: str) -> tuple[int, ...] | None:
    """Read ``2x8x32``; None for what is not known before the run (``*``), or is no shape."""
    if not _DIMS.fullmatch(text):
        return None
    dims = tuple(map(int, text.split("x")))
    return dims if len(dims) <= _MOST_DIMENSIONS else None


def shapes(text: str) -> list[tuple[int, ...]] | None:
    """Read ``2x8:8x4``; None unless all of them are known."""
    found = [shape(part) for part in text.split(":")]
    known = [dims for dims in found if dims is not None]
    return known if len(known) == len(found) else None
