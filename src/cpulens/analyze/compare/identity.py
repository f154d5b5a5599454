"""Which kernels of two runs are the same work: their identity, and looser ones for what an exact match leaves over."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cpulens.verbose.tensors import parse

#: Tensors that follow from the others or carry little: left out of a layout.
_MINOR: Final = ("bia", "bias", "ws", "scratchpad", "stats")
#: Older versions print one tensor where source and destination are alike.
_BOTH: Final = {"data": ("src", "dst"), "diff": ("diff_src", "diff_dst")}
#: Attributes that say who owns a buffer, how it lies, or how many threads may be used: not what is computed.
_NO_WORK: Final = ("attr-scratchpad:", "unaligned_", "tLim:")

#: Columns of `texts` that the identity is made of.
COLUMNS: Final = (
    "library", "component", "engine", "primitive", "prop_kind", "problem", "src_dt", "wei_dt", "dst_dt",
    "attributes", "auxiliary", "tensors", "implementation",
)  # fmt: skip


class Variant(NamedTuple):
    """A kernel as one side ran it, in the newest spelling. Absent parts are empty; `inner`: its time lies in another's.

    `grouping` holds the values of the columns that the caller matches by, if any.
    """

    library: str
    component: str
    engine: str
    primitive: str
    prop_kind: str
    problem: str
    types: str
    attributes: str
    auxiliary: str
    layout: str
    implementation: str
    inner: bool
    grouping: tuple[Any, ...] = ()

    @property
    def own_layout(self) -> str:
        """The layout where it is the work itself: a reorder from a to b is not one from b to a."""
        return self.layout if self.primitive == "reorder" else ""


#: Stage → what must be equal, strictest first. What a stage leaves unmatched goes to the next.
STAGES: Final[dict[str, tuple[str, ...]]] = {
    "problem": (
        "library", "component", "engine", "primitive", "inner", "own_layout", "problem", "prop_kind", "types",
        "attributes", "auxiliary",
    ),
    "attributes": (
        "library", "component", "engine", "primitive", "inner", "own_layout", "problem", "prop_kind", "types",
    ),
    "types": ("library", "component", "engine", "primitive", "inner", "own_layout", "problem", "prop_kind"),
    "propagation": ("library", "component", "engine", "primitive", "inner", "own_layout", "problem"),
    "primitive": ("library", "component", "primitive", "inner"),
}  # fmt: skip
#: The stage whose matches are other work of the same kind.
OTHER_WORK: Final = "primitive"
#: The only stage when the caller names the columns to match by.
GROUPING: Final = {"columns": ("grouping", "inner")}


def variant(row: dict[str, Any], inner: bool, grouping: tuple[Any, ...] = ()) -> Variant:
    """Give the variant of one row of `texts` (the columns COLUMNS)."""
    return Variant(
        library=row["library"] or "",
        component=row["component"] or "",
        engine=row["engine"] or "",
        primitive=row["primitive"] or "",
        prop_kind=_propagation(row["prop_kind"]),
        problem=row["problem"] or "",
        types=" ".join(f"{name}:{row[column]}" for name, column in _TYPES if row[column]),
        attributes=_attributes(row["attributes"]),
        auxiliary=row["auxiliary"] or "",
        layout=layout(row["tensors"] or ""),
        implementation=row["implementation"] or "",
        inner=inner,
        grouping=grouping,
    )


_TYPES: Final = (("src", "src_dt"), ("wei", "wei_dt"), ("dst", "dst_dt"))


def _propagation(kind: str | None) -> str:
    return "" if kind in (None, "undef") else kind


def _attributes(text: str | None) -> str:
    return " ".join(sorted(word for word in (text or "").split() if not word.startswith(_NO_WORK)))


def layout(tensors: str) -> str:
    """The layouts of the tensors that count, as "src:abcd wei:Acdb16a dst:aBcd16b"."""
    words: list[str] = []
    for tensor in parse(tensors):
        if tensor.kind != "undef" and not tensor.name.startswith(_MINOR):
            names = _BOTH.get(tensor.name, (tensor.name,))
            words += [f"{name}:{tensor.tag or tensor.kind}" for name in names]
    return " ".join(words)
