"""Reproducers as a text that is a shell script, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cpulens.report.text import count, milliseconds, percent, visible

if TYPE_CHECKING:
    from cpulens.report.benchdnn.reproducers import Reproducer, Reproducers


def chosen(result: Reproducers, top: int) -> list[Reproducer]:
    """The first `top` problems, grouped by driver; drivers and their problems by descending time."""
    first = result.found[:top]
    by_driver: dict[str, list[Reproducer]] = {}
    for one in first:
        by_driver.setdefault(one.driver, []).append(one)
    groups = sorted(by_driver.values(), key=lambda group: -sum(one.total_ms for one in group))
    return [one for group in groups for one in group]


def listing_text(result: Reproducers, top: int, ran: Mapping[str, str] | None = None) -> str:
    """Commands under comments with their weight; what was left out and what can't be expressed last.

    `ran`: by command line, what a run of it gave.
    """
    return "\n".join(visible(line) for line in _lines(result, top, ran or {}))


def _lines(result: Reproducers, top: int, ran: Mapping[str, str]) -> Iterator[str]:
    shown = chosen(result, top)
    covered = sum(one.share for one in shown)
    yield f"# {count(len(shown), 'problem')}, {percent(covered)} % of {milliseconds(result.total_ms)} ms of execution"
    driver = ""
    for one in shown:
        if one.driver != driver:
            driver = one.driver
            group = [other for other in shown if other.driver == driver]
            time = milliseconds(sum(other.total_ms for other in group))
            yield ""
            yield f"# {driver}: {count(len(group), 'problem')}, {time} ms"
        yield _weight(one)
        yield one.line
        if one.line in ran:
            yield f"# benchdnn: {ran[one.line]}"
    yield from _foot(result, len(shown))


def _weight(one: Reproducer) -> str:
    share = f"{percent(one.share)} %" if one.share else "inside of other records"
    words = [
        f"{milliseconds(one.total_ms)} ms ({share}) in {count(one.calls, 'call')}",
        f"median {milliseconds(one.median_ms)} ms",
        " and ".join(one.implementations),
    ]
    return f"# {', '.join(words)}" + (f"; not in the line: {one.unsaid}" if one.unsaid else "")


def _foot(result: Reproducers, shown: int) -> Iterator[str]:
    rest = result.found[shown:]
    if rest:
        time = milliseconds(sum(one.total_ms for one in rest))
        yield ""
        yield f"# {count(len(rest), 'more problem')}, {time} ms (--top 0 shows all)"
    if result.refused:
        time = milliseconds(sum(one.total_ms for one in result.refused))
        yield ""
        yield f"# not expressed: {count(len(result.refused), 'problem')}, {time} ms"
    for reason in dict.fromkeys(one.reason for one in result.refused):
        yield f"# {reason}:"
        for one in (one for one in result.refused if one.reason == reason):
            name = f"{one.name} {one.problem}".strip()
            yield f"#   {milliseconds(one.total_ms)} ms in {count(one.calls, 'call')}: {name}"


def listing_object(result: Reproducers, top: int, ran: Mapping[str, dict[str, Any]] | None) -> dict[str, Any]:
    """`{"schema": 1, "total_ms", "problems": [{"driver", "command", "arguments", …}], "not_expressed": […]}`."""
    problems = [
        {"command": one.line, **dataclasses.asdict(one), **({"benchdnn": ran.get(one.line)} if ran is not None else {})}
        for one in chosen(result, top)
    ]
    return {
        "schema": 1,
        "total_ms": result.total_ms,
        "problems": problems,
        "left_out": len(result.found) - len(problems),
        "not_expressed": [dataclasses.asdict(one) for one in result.refused],
    }
