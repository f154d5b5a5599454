"""A replay as a person reads it in a terminal, and as JSON for scripts."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from cpulens.report.text import count, milliseconds, percent, visible

if TYPE_CHECKING:
    from cpulens.analyze.replay import Replay, Replayed, Variant

_TITLES: Final = ("run", "here", "hot", "best", "pages", "run/here", "it is")
_VERDICTS: Final = {
    "kernel": "with its data in the caches it takes as long as in the run",
    "caches": "with its data in the caches it would be faster, and the run found them as cold as here",
    "pages": "in the run its result lay in pages that were touched for the first time",
    "program": "the run took longer than any of this; look at threads, other programs, the clock",
    "first": "it ran once, and a first call pays for generated code and for threads",
    "faster": "the run was faster than the kernel is here",
    "unknown": "too short for the library's clock, or not timed in the run",
}
_INDENT: Final = "    "
#: Refused problems that are named for each reason; JSON has all.
_NAMED: Final = 12


def replay_object(result: Replay) -> dict[str, Any]:
    """`{"schema": 1, "total_ms", "run_libraries", "libraries", "replayed": […], "refused": […], "left_out", …}`."""
    replayed = []
    for one in result.replayed:
        fields = {name: value for name, value in dataclasses.asdict(one).items() if name != "columns"}
        replayed.append({**fields, "raw": one.columns["raw"], "ratio": one.ratio, "verdict": one.verdict})
    return {
        "schema": 1,
        "total_ms": result.total_ms,
        "run_libraries": [_version(one) for one in result.run_libraries],
        "libraries": [_version(one) for one in result.libraries],
        "replayed": replayed,
        "refused": [dataclasses.asdict(one) for one in result.refused],
        "left_out": result.left_out,
        "notes": list(result.notes),
    }


def _version(library: dict[str, Any]) -> dict[str, Any]:
    return {name: library.get(name) for name in ("library", "version", "commit", "threads", "runtime", "isa")}


def replay_text(result: Replay, width: int = 100) -> str:
    """Versions side by side, problems by their time in the run, each with its variants, then what could not run."""
    around = [textwrap.fill(line, width, subsequent_indent="          ") for line in _head(result)]
    below = [textwrap.fill(line, width, subsequent_indent="  ") for line in _foot(result)]
    return "\n".join([*around, "", *_table(result, width), "", *_refusals(result, width), *below])


def _head(result: Replay) -> Iterator[str]:
    covered = sum(one.share for one in result.replayed)
    time = milliseconds(result.total_ms)
    yield f"{count(len(result.replayed), 'problem')} run again, {percent(covered)} % of {time} ms of execution"
    for library, title in (("onednn", "oneDNN"), ("mkl", "oneMKL")):
        run, here = (_said(side, library) for side in (result.run_libraries, result.libraries))
        if here:
            yield visible(f"{title}  run:  {run or 'not said'}")
            yield visible(f"{' ' * len(title)}  here: {here}" if run != here else f"{title}  here: the same")


def _said(libraries: tuple[dict[str, Any], ...], name: str) -> str:
    found = dict.fromkeys(
        ", ".join(str(one[part]) for part in ("version", "isa") if one.get(part))
        for one in libraries
        if one["library"] == name
    )
    return "; ".join(found)


def _table(result: Replay, width: int) -> Iterator[str]:
    rows = [_TITLES, *map(_figures, result.replayed)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_TITLES))]
    for number, row in enumerate(rows):
        figures = "  ".join(value.rjust(size) for value, size in zip(row, widths, strict=True))
        yield " " + figures
        if number:
            yield from _about(result.replayed[number - 1], width)


def _figures(one: Replayed) -> tuple[str, ...]:
    return (
        milliseconds(one.run_median_ms),
        milliseconds(one.median_ms),
        milliseconds(one.hot_ms),
        milliseconds(one.best_ms),
        milliseconds(one.new_pages_ms),
        "–" if one.ratio is None else f"{one.ratio:.2f}",
        one.verdict,
    )


def _about(one: Replayed, width: int) -> Iterator[str]:
    weight = f"{percent(one.share)} % in {count(one.calls, 'call')}, {count(one.threads, 'thread')}"
    yield from _wrapped(f"{one.primitive} {one.problem}: {weight}{_implementation(one)}", width)
    if one.layouts:
        layouts = ", ".join(f"{name} {tag}" for name, tag in one.layouts.items())
        yield from _wrapped(f"other layouts here: {layouts}", width)
    if one.same_problem is False:
        yield from _wrapped("the library's line of this run says another problem than the run's", width)
    if one.variants:
        yield from _wrapped("would be: " + "; ".join(map(_variant, one.variants)), width)


def _implementation(one: Replayed) -> str:
    if one.run_implementation is None:
        return ""
    if one.implementation == one.run_implementation:
        return f", {one.implementation}"
    return f", {one.run_implementation} in the run, {one.implementation} here"


def _variant(one: Variant) -> str:
    name = {"layout": "layouts chosen by the library"}.get(one.kind, one.name)
    if one.trouble is not None:
        return f"{name} – (not here)"
    gain = "" if one.gain is None else f"{one.gain:.2f}×, "
    return f"{name} {gain}{milliseconds(one.median_ms)} ms" + (f" {one.implementation}" if one.implementation else "")


def _wrapped(text: str, width: int) -> Iterator[str]:
    wrapped = textwrap.wrap(
        visible(text), width, initial_indent=_INDENT, subsequent_indent=_INDENT + "  ", break_on_hyphens=False
    )
    yield from wrapped


def _refusals(result: Replay, width: int) -> Iterator[str]:
    if not result.refused:
        return
    time = milliseconds(sum(one.total_ms for one in result.refused))
    yield f"not run again: {count(len(result.refused), 'problem')}, {time} ms"
    for reason in dict.fromkeys(one.reason for one in result.refused):
        alike = [one for one in result.refused if one.reason == reason]
        spent = milliseconds(sum(one.total_ms for one in alike))
        yield textwrap.fill(visible(f"{spent} ms: {reason}"), width, subsequent_indent="  ")
        for one in alike[:_NAMED]:
            name = visible(f"{one.primitive} {one.problem}")
            room = width - len(_INDENT)
            yield _INDENT + (name if len(name) <= room else name[: room - 1] + "…")
        if len(alike) > _NAMED:
            yield f"{_INDENT}and {count(len(alike) - _NAMED, 'more problem')}"
    yield ""


def _foot(result: Replay) -> Iterator[str]:
    if result.left_out:
        yield f"{count(result.left_out, 'more problem')} with less time (--top 0 runs all)"
    yield (
        "times in ms, medians but for best; here: in turn with the others, in the caches only its source and another "
        "program's data; hot: again and again "
        "on the same memory; pages: as here, with results in memory never touched before; run/here above 1: the run "
        "was slower"
    )
    for verdict in dict.fromkeys(one.verdict for one in result.replayed):
        yield f"{verdict}: {_VERDICTS[verdict]}"
    if any(one.variants for one in result.replayed):
        yield "would be: gains over the same problem beside it, without the reorders and conversions that it would need"
    for note in result.notes:
        yield f"note: {note}"
