"""A comparison as a person reads it in a terminal: what differed around it, the total, its causes, the kernels."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from cpulens.report.console import as_text, show
from cpulens.report.terminal import ALL, GRAIN_LIMIT_MS
from cpulens.report.text import cell, count, milliseconds, visible

if TYPE_CHECKING:
    from cpulens.analyze.compare import Change, Comparison, Effect, Kernel
    from cpulens.analyze.compare.result import Pair, Times

_HEADER: Final = ("change ms", "", "interval", "base ms", "new ms", "calls", "kernel")
_STYLES: Final = {"slower": "red", "faster": "green"}
#: Room that a kernel's name needs beside the figures; with less it goes on a line of its own.
_BESIDE: Final = 50

#: Characters of a changed value that are shown; --json has all.
_LONG: Final = 200


def show_comparison(stream: Any, comparison: Comparison, limit: int | None = None) -> None:
    """Print to a stream, `limit` kernels and causes; see `report.console.show`."""
    show(stream, lambda console: _print(console, comparison, limit))


def comparison_text(comparison: Comparison, limit: int | None = None, width: int = 100) -> str:
    """The same as plain text, `width` columns wide."""
    return as_text(lambda console: _print(console, comparison, limit), width)


def _print(console: Console, comparison: Comparison, limit: int | None) -> None:
    facts = list(head(comparison))
    indent = max(len(name) for name, _, _ in facts) + 2
    for name, value, style in facts:
        _wrapped(console, f"{name:<{indent}}", visible(value), style)
    console.print()
    for change, text in _causes(comparison, limit):
        _wrapped(console, change, visible(text), "")
    console.print()
    _kernels(console, comparison, limit)
    console.print()
    for word in foot(comparison, limit):
        _wrapped(console, "", visible(word), "dim")


def _wrapped(console: Console, start: str, text: str, style: str) -> None:
    """Print `text` after `start`, its further lines indented as far."""
    room = max(console.width - len(start), 20)
    lines = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
    for at, line in enumerate(lines):
        lead = Text(start if at == 0 else " " * len(start))
        console.print(lead + Text(line, style=style), soft_wrap=True)


def head(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """What differed around the runs, the basis, the total: names, values, and their colour for rich ("": none)."""
    if not comparison.differences:
        yield "around", "no difference in what both sides tell of libraries, machine and settings", ""
    for one in comparison.differences:
        yield one.name, f"{_told(one.base)} → {_told(one.new)}", "yellow"
    yield "compared", comparison.basis.text, ""
    total = comparison.total
    figures = f"{_arrow(comparison.total_ms)} ms: "
    yield "total", figures + verdict(total) + _interval_words(total, comparison.alpha), _style(total)
    yield from _preparation(comparison)


def _told(value: Any) -> str:
    return "not set" if value is None else cell(value) or "none"


def _preparation(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    if any(side and side.first_ms for kernel in comparison.kernels for side in (kernel.base, kernel.new)):
        yield "first calls", f"{_arrow(comparison.first_ms)} ms beyond later ones, once a run, not in the total", ""
    if comparison.creations.base or comparison.creations.new:
        counts = (
            f"{_arrow_count(comparison.creations)} primitives, {_arrow_count(comparison.cache_misses)} cache misses"
        )
        yield "creation", f"{_arrow(comparison.creation_ms)} ms a run, {counts}, not in the total", ""
    if comparison.compilation_ms.base or comparison.compilation_ms.new:
        yield "compilation", f"{_arrow(comparison.compilation_ms)} ms a run for graph partitions, not in the total", ""


def _arrow(pair: Pair) -> str:
    return f"{milliseconds(pair.base)} → {milliseconds(pair.new)}".replace("-", "−")


def _arrow_count(pair: Pair) -> str:
    return f"{pair.base:,.6g} → {pair.new:,.6g}" if pair.base != pair.new else f"{pair.base:,.6g}"


def verdict(effect: Effect) -> str:
    """The direction in words: 1.23× slower, 1.10× faster, no significant change, or why it can't be said."""
    if effect.significant and effect.ratio is not None:
        times = max(effect.ratio, 1 / effect.ratio)
        return f"{times:{'.2f' if times < 10 else ',.0f'}}× {'slower' if effect.ratio > 1 else 'faster'}"
    return effect.reason or "no significant change"


def _interval_words(effect: Effect, alpha: float) -> str:
    if effect.low is None:
        return "" if effect.ratio is None else f" to tell (new/base {_ratio(effect.ratio)})"
    return f" (new/base {_ratio(effect.ratio)}, {interval(effect)} at {100 * (1 - alpha):g} % confidence)"


def interval(effect: Effect) -> str:
    """The interval of new/base; – where nothing can be said."""
    if effect.low is None or effect.high is None:
        return "–"
    if effect.high == float("inf"):
        return f"{effect.low:.2f}–"
    digits = 2 if effect.high - effect.low >= 0.02 else 3
    return f"{effect.low:.{digits}f}–{effect.high:.{digits}f}"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3f}" if ratio < 10 else f"{ratio:,.1f}"


def _style(effect: Effect) -> str:
    return "red" if effect.slower else "green" if effect.faster else ""


def signed(value: float) -> str:
    """Milliseconds with a sign, the proper minus included."""
    shown = milliseconds(abs(value))
    return shown if shown == "0" else f"{'+' if value > 0 else '−'}{shown}"


def _causes(comparison: Comparison, limit: int | None) -> Iterator[tuple[str, str]]:
    causes = comparison.causes
    difference = comparison.total_ms.new - comparison.total_ms.base
    yield "", f"{signed(difference)} ms is the sum of:"
    shown = causes[:limit]
    for cause in shown:
        yield f"{signed(cause.delta_ms):>10}  ", cause.text
    rest = causes[len(shown) :]
    if rest:
        yield f"{signed(sum(cause.delta_ms for cause in rest)):>10}  ", f"{count(len(rest), 'smaller cause')}"


def _kernels(console: Console, comparison: Comparison, limit: int | None) -> None:
    kernels = comparison.kernels[:limit]
    rows = [_row(kernel) for kernel in kernels]
    widths = [max(map(len, column)) for column in zip(_HEADER[:-1], *rows, strict=True)]
    beside = console.width - sum(widths) - 2 * len(widths)
    apart = beside < _BESIDE
    header = _figures(_HEADER[:-1], widths) + ("" if apart else _HEADER[-1])
    console.print(Text(header.rstrip(), style="bold"), soft_wrap=True)
    for kernel, row in zip(kernels, rows, strict=True):
        figures = _figures(row, widths)
        if apart:
            _wrapped(console, "", visible(kernel.label), "")
            console.print(Text(figures.rstrip(), style=_style(kernel.effect)), soft_wrap=True)
            words = "    "
        else:
            lines = textwrap.wrap(visible(kernel.label), beside, break_on_hyphens=False) or [""]
            console.print(Text(figures, style=_style(kernel.effect)) + Text(lines[0]), soft_wrap=True)
            for line in lines[1:]:
                console.print(Text(" " * len(figures) + line), soft_wrap=True)
            words = " " * (len(figures) + 2)
        for change in kernel.changes:
            for text in _change(change):
                _wrapped(console, words, visible(text), "dim")


def _change(change: Change) -> Iterator[str]:
    if change.what == "kernels":
        yield f"base: {_short(change.base)}"
        yield f"new: {_short(change.new)}"
    else:
        yield f"{change.what} {_short(change.base)} → {_short(change.new)}"


def _short(value: str) -> str:
    return value if 0 < len(value) <= _LONG else f"{value[:_LONG]}…" if value else "–"


def _figures(row: tuple[str, ...], widths: list[int]) -> str:
    cells = [
        f"{text:<{width}}" if at == 1 else f"{text:>{width}}"
        for at, (text, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "".join(f"{text}  " for text in cells)


def _row(kernel: Kernel) -> tuple[str, ...]:
    word = verdict(kernel.effect) if kernel.kind == "matched" else kernel.kind
    return (
        ("(" + signed(kernel.delta_ms) + ")") if kernel.inner else signed(kernel.delta_ms),
        word,
        interval(kernel.effect),
        median(kernel.base),
        median(kernel.new),
        calls(kernel.base, kernel.new),
    )


def median(times: Times | None) -> str:
    """The median time of a call, ~ before what the clock's grain makes coarse."""
    if times is None:
        return "–"
    return ("~" if 0 < times.median_ms < GRAIN_LIMIT_MS else "") + milliseconds(times.median_ms)


def calls(base: Times | None, new: Times | None) -> str:
    """Calls of both sides; one number where they are the same."""
    before, after = (f"{side.calls:,.5g}" if side else "–" for side in (base, new))
    return before if before == after else f"{before} → {after}"


def foot(comparison: Comparison, limit: int | None, rest: str = ALL) -> Iterator[str]:
    """What was left out (`rest`: how to see it), what the columns and marks mean, notes."""
    kernels = comparison.kernels
    if limit is not None and len(kernels) > limit:
        time = sum(kernel.delta_ms for kernel in kernels[limit:] if not kernel.inner)
        yield f"{count(len(kernels) - limit, 'more kernel')}, {signed(time)} ms ({rest})"
    yield (
        f"change ms: of the total, from calls and time a call; base ms and new ms: median time of a call, first calls "
        f"left out; interval: of new/base at {100 * (1 - comparison.alpha):g} %; significant: chance below "
        f"{100 * comparison.alpha:g} % for all kernels together, and {100 * comparison.min_effect:g} % or more"
    )
    if any(side and 0 < side.median_ms < GRAIN_LIMIT_MS for one in kernels[:limit] for side in (one.base, one.new)):
        yield "~ under 5 µs: the clock's grain of 0.24 µs is 5 % or more of it"
    if any(kernel.inner for kernel in kernels):
        yield "( ) inside of a graph partition: not in the total"
    for note in comparison.notes:
        yield f"note: {note}"
