"""One problem of oneDNN as the drivers' options are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cpulens.report.benchdnn.layouts import Inexpressible
from cpulens.verbose import tensors
from cpulens.verbose.tensors import Tensor

_DIRECTIONS: Final = {
    "forward_training": "FWD_D",
    "forward_inference": "FWD_I",
    "forward_scoring": "FWD_I",
    "backward_data": "BWD_D",
    "backward_weights": "BWD_W",
    "backward": "BWD_DW",
}


@dataclass(frozen=True)
class Problem:
    """The columns of a text, taken apart. `exact`: say the layouts that ran, not those that were asked for."""

    primitive: str
    prop_kind: str
    shapes: str
    auxiliary: Mapping[str, str]
    tensors: tuple[Tensor, ...]
    exact: bool

    @classmethod
    def of(cls, columns: Mapping[str, Any], *, exact: bool) -> Problem:
        """Take the columns of a text in the newest spelling."""
        words = (word.partition(":") for word in (columns.get("auxiliary") or "").split())
        return cls(
            columns.get("primitive") or "",
            columns.get("prop_kind") or "",
            columns.get("problem") or "",
            {name: value for name, _, value in words},
            tuple(one for one in tensors.parse(columns.get("tensors") or "") if one.dt != "undef"),
            exact,
        )

    @property
    def direction(self) -> str:
        """The propagation kind as benchdnn names it."""
        if self.prop_kind not in _DIRECTIONS:
            raise Inexpressible(f"the propagation kind {self.prop_kind or 'is not said'}")
        return _DIRECTIONS[self.prop_kind]

    @property
    def algorithm(self) -> str:
        """The algorithm without the primitive's name in front; "" where none is said."""
        return self.auxiliary.get("alg", "").removeprefix(self.primitive + "_")

    def find(self, *names: str) -> Tensor | None:
        """The first tensor of the first of these names that is there; a gradient stands for what it is one of."""
        for name in names:
            for one in self.tensors:
                if one.name in (name, f"diff_{name}"):
                    return one
        return None

    def need(self, *names: str) -> Tensor:
        """The same; raises Inexpressible when there is none, or its type is not said."""
        found = self.find(*names)
        if found is None:
            raise Inexpressible(f"the line describes no {names[0]}")
        if not found.dt:
            raise Inexpressible(f"the line does not say the data type of {found.name}")
        return found

    def all(self, name: str) -> list[Tensor]:
        """Every tensor of this name."""
        return [one for one in self.tensors if one.name == name]
