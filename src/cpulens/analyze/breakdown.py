"""Execution time from the whole down: by primitive, implementation, problem, layer, data type."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cpulens.trace import Trace

#: What one may go down by → the names on the way.
WAYS: Final = {
    "primitive": ("primitive", "implementation", "problem"),
    "implementation": ("implementation", "primitive", "problem"),
    "data type": ("types", "primitive", "implementation"),
    "layer": ("layer", "primitive", "implementation"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """The executions of one text in one layer. `total_ms` counts a graph partition once, not what lies in it."""

    text: int
    library: str
    primitive: str | None
    implementation: str | None
    problem: str | None
    types: str | None
    layer: str | None
    calls: int
    total_ms: float
    line: int


@dataclass(slots=True)
class Node:
    """A name with what is under it, by descending time."""

    name: str
    total_ms: float = 0.0
    calls: int = 0
    under: dict[str, Node] = field(default_factory=dict)

    @property
    def children(self) -> list[Node]:
        """What is directly under it, largest first."""
        return sorted(self.under.values(), key=lambda node: -node.total_ms)


def parts(trace: Trace) -> tuple[Part, ...]:
    """Sum the executions of a trace by text and layer, largest first."""
    import polars as pl

    time = pl.when(pl.col("duration_ms").is_finite() & ~pl.col("inner").fill_null(False)).then(pl.col("duration_ms"))
    names = ["text", "library", "primitive", "implementation", "problem", "src_dt", "wei_dt", "dst_dt"]
    texts = trace.texts.lazy().filter(pl.col("event") == "exec").select(names)
    summed = (
        trace.events.group_by("text", "layer")
        .agg(calls=pl.len(), total_ms=time.sum(), line=pl.col("line").min())
        .join(texts, on="text", how="inner")
        .sort(["total_ms", "text", "layer"], descending=[True, False, False])
        .collect(engine="streaming")
    )
    return tuple(
        Part(
            **{name: row[name] for name in ("text", "library", "primitive", "implementation", "problem", "layer")},
            types=types(row),
            calls=row["calls"],
            total_ms=row["total_ms"],
            line=row["line"],
        )
        for row in summed.iter_rows(named=True)
    )


def types(row: dict[str, Any]) -> str | None:
    """The data types of a kernel in a word: f32; u8,s8→f32; None where none is printed."""
    sources = [row[name] for name in ("src_dt", "wei_dt") if row[name]]
    target = row["dst_dt"]
    if len({*sources, target} - {None}) <= 1:
        return target or (sources[0] if sources else None)
    return "→".join(part for part in (",".join(dict.fromkeys(sources)), target) if part)


def tree(of: Iterable[Part], way: tuple[str, ...]) -> Node:
    """The time of parts under the names of `way`; a layer's path is a name for each of its steps."""
    root = Node("all")
    for part in of:
        node = root
        _add(node, part)
        for name in (step for column in way for step in _steps(part, column)):
            node = node.under.setdefault(name, Node(name))
            _add(node, part)
    return root


def _add(node: Node, part: Part) -> None:
    node.total_ms += part.total_ms
    node.calls += part.calls


def _steps(part: Part, column: str) -> list[str]:
    value = getattr(part, column)
    if value is None:
        return ["no layer" if column == "layer" else "not printed"]
    return str(value).split(".") if column == "layer" else [str(value)]
