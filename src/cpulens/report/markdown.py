"""A run in Markdown, for a ticket or a wiki: what ran, where the time went, what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from cpulens.report.terminal import foot, head
from cpulens.report.text import milliseconds, percent, rate, visible

if TYPE_CHECKING:
    from cpulens.analyze.findings import Finding
    from cpulens.analyze.summary import Row, Summary

_TITLES: Final = ("total ms", "%", "calls", "median ms", "p95 ms", "first ms", "GFLOP/s", "GB/s")
#: What Markdown gives a meaning inside a line; the last two make links of addresses.
_MARKS: Final = re.compile(r"([\\`*_\[\]#|~$]|/(?=/)|(?<=www)\.)")
_MORE: Final = 3


def summary_markdown(summary: Summary, findings: Sequence[Finding], name: str, limit: int | None = None) -> str:
    """A heading, facts, the table of a summary (`limit` rows at most), findings, and what was not understood."""
    parts = [f"# {text(name)}", _facts(summary), "## Where the time went", _table(summary, limit)]
    if findings:
        parts += ["## Findings", "\n".join(line for one in findings for line in _finding(one))]
    parts.append("\n\n".join(text(line) for line in foot(summary, limit)))
    return "\n\n".join(parts) + "\n"


def text(value: str) -> str:
    """Text of a log as text: nothing in it is markup."""
    shown = visible(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", shown)


def code(value: Any) -> str:
    """A value as a code span fit for a cell of a table; – for what the log doesn't say."""
    if value is None or value == "":
        return "–"
    shown = visible(str(value))
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|")


def _facts(summary: Summary) -> str:
    return "\n".join(f"- {text(name)}: {text(value)}" for name, value in head(summary))


def _table(summary: Summary, limit: int | None) -> str:
    lines = [_line([*map(text, summary.by), *_TITLES]), _line(["---"] * len(summary.by) + ["--:"] * len(_TITLES))]
    lines += [_line([*map(code, row.key), *_figures(row)]) for row in summary.rows[:limit]]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _figures(row: Row) -> list[str]:
    times = [milliseconds(value) for value in (row.median_ms, row.p95_ms, row.first_ms)]
    rates = [rate(value) for value in (row.gflops_per_s, row.gbytes_per_s)]
    return [milliseconds(row.total_ms), percent(row.share), f"{row.calls:,}", *times, *rates]


def _finding(one: Finding) -> Iterator[str]:
    price = f", up to {milliseconds(one.cost_ms)} ms" if one.cost_ms is not None else ""
    yield f"- **{text(one.title)}** ({one.severity}{price})"
    for piece in one.evidence:
        where = f" (line {', '.join(map(str, piece.lines[:_MORE]))})" if piece.lines else ""
        yield f"  - {text(piece.sentence)}{where}"
    yield f"  - Next: {text(one.next_step)}"
