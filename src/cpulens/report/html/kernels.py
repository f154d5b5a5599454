"""The kernels of a run as rows of a table."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.breakdown import Part, types
from cpulens.report.benchdnn import command
from cpulens.report.benchdnn.reproducers import RUN_OPTIONS

if TYPE_CHECKING:
    from cpulens.analyze.summary import Row, Summary
    from cpulens.trace import Trace

#: Rows shown, and characters of their raw lines together: a page must stay small.
_ROWS: Final = 500
_CHARACTERS: Final = 600_000
_LAYERS: Final = 8


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One text, the `number`-th by time: its columns, its figures, where it ran.

    `reproducer`: benchdnn's command line for it; empty where there is none, and `why_none` says why.
    """

    number: int
    text: dict[str, Any]
    types: str | None
    figures: Row
    line: int | None
    layers: tuple[str, ...]
    more_layers: int
    reproducer: str
    why_none: str

    @property
    def name(self) -> str:
        """A short name for a plot."""
        return f"{self.number} {self.text['primitive'] or 'kernel'}"


@dataclass(frozen=True, slots=True)
class KernelTable:
    """The largest kernels, and what the rest of them comes to."""

    rows: tuple[KernelRow, ...]
    more: int
    more_ms: float

    def choices(self, name: str) -> list[str]:
        """The different values of a column of the shown rows, for a filter."""
        values = (row.types if name == "types" else row.text[name] for row in self.rows)
        return sorted({str(value) for value in values if value})


def kernel_table(trace: Trace, summary: Summary, parts: Sequence[Part]) -> KernelTable:
    """The rows of a summary by text, with what the text says and the layers that ran it."""
    texts = {row["text"]: row for row in trace.texts.iter_rows(named=True)}
    layers: dict[int, list[str]] = {}
    lines: dict[int, int] = {}
    for part in parts:
        lines[part.text] = min(part.line, lines.get(part.text, part.line))
        if part.layer:
            layers.setdefault(part.text, []).append(part.layer)
    rows: list[KernelRow] = []
    room = _CHARACTERS
    for figures in summary.rows[:_ROWS]:
        number = figures.key[0]
        text = texts[number]
        room -= len(text["raw"] or "")
        if room < 0 and rows:
            break
        named = layers.get(number, [])
        rows.append(
            KernelRow(
                number=len(rows) + 1,
                text=text,
                types=types(text),
                figures=figures,
                line=lines.get(number),
                layers=tuple(named[:_LAYERS]),
                more_layers=max(len(named) - _LAYERS, 0),
                **_reproducer(text),
            )
        )
    rest = summary.rows[len(rows) :]
    return KernelTable(tuple(rows), len(rest), sum(row.total_ms or 0.0 for row in rest))


def _reproducer(text: dict[str, Any]) -> dict[str, str]:
    made = command(text)
    if isinstance(made, str):
        return {"reproducer": "", "why_none": made}
    return {"reproducer": shlex.join(["benchdnn", *RUN_OPTIONS, *made.arguments]), "why_none": ""}
