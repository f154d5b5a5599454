"""A primitive's problem, taken apart once for all the formulas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cpulens.cost import tensors
from cpulens.cost.tally import total
from cpulens.cost.tensors import Tensor

_PAIR: Final = re.compile(r"([a-z]+)(\d{1,18})(?!\d)")
_WELL_FORMED: Final = re.compile(r"[a-z]+\d{1,18}(?:_?[a-z]+\d{1,18})*(?:\.\d+)?(?:e[-+]?\d+)?")
AXES: Final = "dhw"


@dataclass(frozen=True, slots=True)
class Problem:
    """The columns of one primitive that decide its cost; those not known are empty.

    `described`: its tensors in the order of the line. `sizes`: sizes by their letters (``mb1_ic3oc8_ih224…``), empty
    when one is not known before the run. `settings`: attributes by name, without ``attr-``.
    """

    primitive: str
    prop_kind: str
    auxiliary: str
    text: str
    described: tuple[tuple[str, Tensor], ...]
    sizes: Mapping[str, int]
    settings: Mapping[str, str]

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Problem:
        """Take the columns of a text."""
        text = columns.get("problem") or ""
        attributes = columns.get("attributes")
        return cls(
            columns.get("primitive") or "",
            columns.get("prop_kind") or "",
            columns.get("auxiliary") or "",
            text,
            tensors.parse(columns.get("tensors") or ""),
            _sizes(text.lower()) if text[:1].isalpha() else {},
            _settings(attributes) if attributes else {},
        )

    @property
    def forward(self) -> bool:
        """Whether it is no gradient; what has no direction (``undef``) is none."""
        return not self.prop_kind.startswith("backward")

    def tensor(self, *names: str) -> Tensor | None:
        """The first tensor of the first of these names that there is."""
        for name in names:
            for found, one in self.described:
                if found == name:
                    return one
        return None

    def all(self, name: str) -> list[Tensor]:
        """Every tensor of this name."""
        return [one for found, one in self.described if found == name]

    @property
    def source(self) -> Tensor | None:
        """What is read first; older lines print one tensor ``data`` for both ends."""
        return self.tensor("src", "data", "src_a")

    @property
    def destination(self) -> Tensor | None:
        """What is written."""
        return self.tensor("dst", "data")

    def spatial(self, prefix: str) -> list[int]:
        """Sizes of the image: of the source (``i``) or the destination (``o``), depth first."""
        return [self.sizes[prefix + axis] for axis in AXES if prefix + axis in self.sizes]

    def option(self, name: str) -> str | None:
        """A word of the auxiliary field: ``alg``, ``axis``, ``flags``, …; None where it is not there."""
        for word in self.auxiliary.split():
            key, colon, value = word.partition(":")
            if colon and key == name:
                return value
        return None

    @property
    def algorithm(self) -> str:
        """The algorithm without the primitive's name in front."""
        return (self.option("alg") or "").removeprefix(self.primitive + "_")

    def moved(self, tensors_with_dims: Iterable[tuple[Tensor | None, Sequence[int]]]) -> float | None:
        """Bytes of all these tensors; None when one is not described or has no known size."""
        return total(*(tensor.size_bytes(dims) if tensor else None for tensor, dims in tensors_with_dims))


def _sizes(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in _PAIR.findall(text)} if _WELL_FORMED.fullmatch(text) else {}


def _settings(attributes: str) -> dict[str, str]:
    words = (word.partition(":") for word in attributes.split())
    return {name.removeprefix("attr-"): value for name, _, value in words}
