"""A summary as a person reads it in a terminal: facts first, then the table, what was not understood last."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cpulens.report.text import cell, count, milliseconds, percent, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cpulens.analyze.summary import Row, Summary

#: oneDNN's clock gives a time of day in milliseconds as a double: steps of 2⁻¹² ms, 5 % of this.
GRAIN_LIMIT_MS: Final = 0.005
_NUMBERS: Final = ("total ms", "%", "cum%", "calls", "median", "p95", "first")
#: The key columns share what the numbers leave of the width, but none is squeezed below this.
_NARROWEST: Final = 80


def print_summary(console: Console, summary: Summary, limit: int | None = None) -> None:
    """Print a summary; `limit` rows at most (None: all), and say what was left out."""
    for line in head(summary):
        console.print(Text(line))
    console.print(_table(summary, limit))
    for line in foot(summary, limit):
        console.print(Text(line, style="dim"))


def summary_text(summary: Summary, limit: int | None = None, width: int = 100) -> str:
    """The same as plain text, `width` columns wide, without colours."""
    target = io.StringIO()
    print_summary(Console(file=target, width=width, color_system=None, highlight=False), summary, limit)
    return target.getvalue().rstrip("\n")


def console_for(stream: Any) -> Console:
    """A console on a stream: coloured on a terminal (unless NO_COLOR), plain and at least 80 columns in a pipe."""
    console = Console(file=stream, highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = max(console.width, 120)
    return console


def head(summary: Summary) -> Iterator[str]:
    """What ran, on what, and the phases apart."""
    for library in _libraries(summary.facts.get("libraries", [])):
        yield visible(library)
    command = summary.facts.get("command")
    if command:
        yield visible("command: " + " ".join(command))
    yield " · ".join(_phases(summary))
    yield ""


def _libraries(libraries: list[dict[str, Any]]) -> list[str]:
    """One line per distinct library; copies that say the same are one."""
    return list(dict.fromkeys(_library(library) for library in libraries))


def _library(library: dict[str, Any]) -> str:
    names = {"onednn": "oneDNN", "mkl": "oneMKL"}
    title = names.get(library["library"], library["library"])
    commit = library.get("commit")
    parts = [
        f"{title} {library.get('version') or '(version not printed)'}" + (f" ({commit[:8]})" if commit else ""),
        library.get("isa") or library.get("cpu"),
        library.get("runtime") or library.get("threading"),
        count(library["threads"], "thread") if library.get("threads") else None,
    ]
    return ", ".join(str(part) for part in parts if part)


def _phases(summary: Summary) -> Iterator[str]:
    phases, total_ms = summary.phases, summary.total_ms
    yield f"execution {milliseconds(total_ms)} ms ({count(phases.executions, 'call')})"
    if phases.reorders:
        share = f", {percent(phases.reorder_ms / total_ms)} %" if total_ms else ""
        yield f"of it reorders {milliseconds(phases.reorder_ms)} ms ({count(phases.reorders, 'call')}{share})"
    if phases.creations:
        misses = f"{count(phases.creations, 'primitive')}, {count(phases.cache_misses, 'cache miss', 'cache misses')}"
        yield f"creation {milliseconds(phases.creation_ms)} ms ({misses})"
    if phases.compilations:
        yield f"compilation {milliseconds(phases.compilation_ms)} ms ({count(phases.compilations, 'partition')})"
    wall_ms = summary.facts.get("wall_ms")
    if wall_ms:
        yield f"wall time {milliseconds(wall_ms)} ms, {percent((total_ms or 0.0) / wall_ms)} % of it in these kernels"


def _table(summary: Summary, limit: int | None) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    shown = summary.rows[:limit]
    for number, name in enumerate(summary.by):
        # A column that says the same in every row says it in the facts already, but a key must not vanish.
        longest = max((len(cell(row.key[number])) for row in shown), default=0)
        table.add_column(Text(name), overflow="fold", min_width=min(longest, 9))
    for name in _NUMBERS:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for row in shown:
        table.add_row(*(Text(cell(value)) for value in row.key), *(Text(number) for number in _numbers(row)))
    return table


def _numbers(row: Row) -> tuple[str, ...]:
    coarse = row.median_ms is not None and 0 < row.median_ms < GRAIN_LIMIT_MS
    return (
        milliseconds(row.total_ms),
        percent(row.share),
        percent(row.cumulative),
        f"{row.calls:,}",
        ("~" if coarse else "") + milliseconds(row.median_ms),
        milliseconds(row.p95_ms),
        milliseconds(row.first_ms),
    )


def foot(summary: Summary, limit: int | None) -> Iterator[str]:
    """What was left out, what the marks mean, notes, and what was not understood."""
    yield ""
    if limit is not None and len(summary.rows) > limit:
        rest = summary.rows[limit:]
        time = sum(row.total_ms or 0.0 for row in rest)
        yield f"{count(len(rest), 'more row')}, {milliseconds(time)} ms (--limit 0 shows all)"
    if any(row.median_ms is not None and 0 < row.median_ms < GRAIN_LIMIT_MS for row in summary.rows[:limit]):
        yield "~ under 5 µs: the clock's grain of 0.24 µs is 5 % or more of it"
    for note in summary.facts.get("notes", []):
        yield visible(f"note: {note}")
    lines = summary.lines
    yield (
        f"{lines['read']:,} pieces of log read: {count(lines['records'], 'record')}, {lines['own']:,} of other text, "
        f"{lines['unknown']:,} not understood"
    )
