"""A summary as a person reads it in a terminal: facts first, then the table, what was not understood last."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cpulens.report.console import as_text, show
from cpulens.report.text import cell, count, milliseconds, percent, rate, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cpulens.analyze.summary import Row, Summary

#: oneDNN's clock gives a time of day in milliseconds as a double: steps of 2⁻¹² ms, 5 % of this.
GRAIN_LIMIT_MS: Final = 0.005
#: How a command shows what its table leaves out.
ALL: Final = "--limit 0 shows all"
_NUMBERS: Final = ("total ms", "%", "cum%", "calls", "median", "p95", "first")
#: Shown where a row knows it and the width allows.
_RATES: Final = {"GFLOP/s": "gflops_per_s", "GB/s": "gbytes_per_s"}


def print_summary(console: Console, summary: Summary, limit: int | None = None, rest: str = ALL) -> None:
    """Print a summary; `limit` rows at most (None: all), and say what was left out; `rest`: how to see it."""
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    for name, value in head(summary):
        facts.add_row(Text(name, style="dim"), Text(visible(value)))
    console.print(facts)
    console.print()
    console.print(_table(summary, limit, console.width))
    console.print()
    for line in foot(summary, limit, rest):
        console.print(Text(visible(line), style="dim"))


def summary_text(summary: Summary, limit: int | None = None, width: int = 100, rest: str = ALL) -> str:
    """The same as plain text, `width` columns wide, without colours."""
    return as_text(lambda console: print_summary(console, summary, limit, rest), width)


def show_summary(stream: Any, summary: Summary, limit: int | None = None) -> None:
    """Print to a stream; see `report.console.show`."""
    show(stream, lambda console: print_summary(console, summary, limit))


def head(summary: Summary) -> Iterator[tuple[str, str]]:
    """What ran, on what, and the phases apart: names and values."""
    yield from _libraries(summary.facts.get("libraries", []))
    if command := summary.facts.get("command"):
        yield "command", shlex.join(command)
    if wall_ms := summary.facts.get("wall_ms"):
        share = percent((summary.total_ms or 0.0) / wall_ms)
        yield "wall time", f"{milliseconds(wall_ms)} ms, {share} % of it in these kernels"
    yield from _phases(summary)


def _libraries(libraries: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """One entry per distinct library; copies that say the same are one."""
    titles = {"onednn": "oneDNN", "mkl": "oneMKL"}
    entries = ((titles.get(one["library"], one["library"]), _library(one)) for one in libraries)
    yield from dict.fromkeys(entries)


def _library(library: dict[str, Any]) -> str:
    version, commit = library.get("version") or "version not printed", library.get("commit")
    parts = [
        f"{version} ({commit[:8]})" if commit else version,
        library.get("runtime") or library.get("threading"),
        count(library["threads"], "thread") if library.get("threads") else None,
        library.get("isa") or library.get("cpu"),
    ]
    return ", ".join(str(part) for part in parts if part)


def _phases(summary: Summary) -> Iterator[tuple[str, str]]:
    phases, total_ms = summary.phases, summary.total_ms
    yield "execution", f"{milliseconds(total_ms)} ms in {count(phases.executions, 'call')}"
    if phases.reorders:
        share = f", {percent(phases.reorder_ms / total_ms)} % of it" if total_ms else ""
        yield "reorders", f"{milliseconds(phases.reorder_ms)} ms in {count(phases.reorders, 'call')}{share}"
    if phases.creations:
        misses = count(phases.cache_misses, "cache miss", "cache misses")
        yield "creation", f"{milliseconds(phases.creation_ms)} ms for {count(phases.creations, 'primitive')}, {misses}"
    if phases.compilations:
        partitions = count(phases.compilations, "graph partition")
        yield "compilation", f"{milliseconds(phases.compilation_ms)} ms for {partitions}"


def _table(summary: Summary, limit: int | None, width: int) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold", show_edge=False)
    keys = [[cell(value) for value in row.key] for row in summary.rows[:limit]]
    columns = [[title, *cells] for title, *cells in zip(_NUMBERS, *map(_numbers, summary.rows[:limit]), strict=True)]
    room = width - sum(max(map(len, column)) + 1 for column in columns)
    widths = [max(map(len, column)) + 1 for column in zip(summary.by, *keys, strict=True)]
    stacked = sum(widths) > room
    if stacked:  # side by side they would be cut into slivers: one above the other, they can be read
        keys = [[_stack(key, room - 1)] for key in keys]
    else:
        columns += _rates(summary.rows[:limit], room - sum(widths))
    for name in [" ".join(summary.by)] if stacked else summary.by:
        table.add_column(Text(name), overflow="fold")
    for title, *_ in columns:
        table.add_column(Text(title), justify="right", no_wrap=True)
    for at, key in enumerate(keys, start=1):
        table.add_row(*map(Text, key), *(Text(column[at]) for column in columns))
    return table


def _rates(rows: Sequence[Row], room: int) -> list[list[str]]:
    """Columns of what was achieved, a title and a cell a row: those that fit into `room`, and say anything."""
    found = []
    for title, field in _RATES.items():
        values = [getattr(row, field) for row in rows]
        column = [title, *map(rate, values)]
        room -= max(map(len, column)) + 1
        if room >= 0 and any(value is not None for value in values):
            found.append(column)
    return found


def _stack(words: list[str], width: int) -> str:
    """Words on as few lines as hold them, the later lines indented; one that is too long is broken."""
    lines = [""]
    for word in words:
        joined = f"{lines[-1]} {word}" if lines[-1].strip() else lines[-1] + word
        if len(joined) <= width:
            lines[-1] = joined
            continue
        room = max(width - 2, 8)
        lines += [f"  {word[start : start + room]}" for start in range(0, len(word), room)]
    return "\n".join(line for line in lines if line.strip())


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


def foot(summary: Summary, limit: int | None, rest: str = ALL) -> Iterator[str]:
    """What was left out (`rest`: how to see it), what the marks mean, notes, and what was not understood."""
    if limit is not None and len(summary.rows) > limit:
        more = summary.rows[limit:]
        time = sum(row.total_ms or 0.0 for row in more)
        yield f"{count(len(more), 'more row')}, {milliseconds(time)} ms ({rest})"
    if any(row.median_ms is not None and 0 < row.median_ms < GRAIN_LIMIT_MS for row in summary.rows[:limit]):
        yield "~ under 5 µs: the clock's grain of 0.24 µs is 5 % or more of it"
    yield "times in ms; median and p95 leave out a row's first call, unless it is the only one"
    for note in summary.facts.get("notes", []):
        yield f"note: {note}"
    lines = summary.lines
    yield (
        f"{lines['read']:,} pieces of log read: {count(lines['records'], 'record')}, {lines['own']:,} of other text, "
        f"{lines['unknown']:,} not understood"
    )
