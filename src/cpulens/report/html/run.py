"""Everything that the page of one run shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.attainable import choose
from cpulens.analyze.breakdown import WAYS, Node, Part, parts
from cpulens.analyze.coverage import Coverage, cover
from cpulens.analyze.distribution import spreads
from cpulens.analyze.findings import Thresholds, find
from cpulens.analyze.roofline import Roofline, roofline
from cpulens.analyze.summary import summarize
from cpulens.errors import LogError
from cpulens.report.html import roofline as roofline_drawing
from cpulens.report.html import timeline as timeline_drawing
from cpulens.report.html.figures import Figure, colours, icicles, spread_figure
from cpulens.report.html.kernels import kernel_table
from cpulens.report.html.page import render
from cpulens.report.terminal import foot, head

if TYPE_CHECKING:
    from cpulens.machine.peaks import Peaks
    from cpulens.trace import Trace

_TOP: Final = 12
_UNKNOWN: Final = 20
#: Facts that stand elsewhere on the page.
_SHOWN: Final = ("libraries", "lines", "notes", "command", "first_unknown", "peaks")


def run_page(
    trace: Trace,
    name: str,
    *,
    thresholds: Thresholds | None = None,
    peaks: tuple[Peaks, str] | None = None,
    known_peaks: Iterable[Peaks] = (),
) -> str:
    """Give the page of a run, as text.

    `name`: what it is called in the title. `thresholds`: of the findings (default: those of `Thresholds`). `peaks`:
    what its host can do, and where that is known from; default: chosen by `attainable.choose` from what the run carries
    and `known_peaks`.
    """
    summary = summarize(trace, "text")
    divided = parts(trace)
    table = kernel_table(trace, summary, divided)
    shades = colours(divided)
    covered = cover(trace)
    drawn = timeline_drawing.draw(trace, shades)
    reached, why_not = _roofline(trace, peaks, known_peaks)
    spread = spreads(trace, [row.text["text"] for row in table.rows[:_TOP]])
    figures: dict[str, Figure | None] = {
        "icicle": icicles(divided) if summary.total_ms else None,
        "timeline": drawn.figure if drawn else None,
        "roofline": roofline_drawing.draw(reached, shades) if reached else None,
        "spread": spread_figure(table.rows, spread, shades),
    }
    return render(
        "run.html",
        {place: figure for place, figure in figures.items() if figure},
        name=name,
        summary=summary,
        head=list(head(summary)),
        shares=_shares(covered, divided),
        coverage=covered,
        findings=find(trace, thresholds, covered),
        ways=_ways(divided),
        table=table,
        timeline=drawn,
        roofline=reached,
        why_no_roofline=why_not,
        spreads=[(table.rows[at], one) for one in spread for at in [_place(table.rows, one.text)]],
        foot=list(foot(summary, None)),
        facts=trace.facts,
        machine=_machine(trace.facts),
        other_facts={key: value for key, value in trace.facts.items() if key not in _SHOWN},
        unknown=_unknown(trace),
    )


def _place(rows: Any, text: int) -> int:
    return next(at for at, row in enumerate(rows) if row.text["text"] == text)


def _shares(coverage: Coverage, divided: Iterable[Part]) -> list[tuple[str, str, float]]:
    """The whole time in parts: CSS class, name, milliseconds. Wall time where it is known, else that of kernels."""
    if coverage.stretches:
        stretches = coverage.stretches
        return [
            ("onednn", "oneDNN", sum(one.onednn_ms for one in stretches)),
            ("mkl", "oneMKL", sum(one.mkl_ms for one in stretches)),
            ("printing", "printing the log", sum(one.printing_ms for one in stretches)),
            ("neither", "neither", coverage.neither_ms),
        ]
    sums = {"onednn": 0.0, "mkl": 0.0}
    for part in divided:
        sums[part.library] = sums.get(part.library, 0.0) + part.total_ms
    return [("onednn", "oneDNN", sums["onednn"]), ("mkl", "oneMKL", sums["mkl"])]


def _ways(divided: tuple[Part, ...]) -> dict[str, tuple[list[Node], float, int]]:
    """For each way down its first names, the time of all, and how many are not shown."""
    found = {}
    for way, names in WAYS.items():
        if way == "layer" and not any(part.layer for part in divided):
            continue
        children = _by(divided, names[0])
        found[way] = (children[:_TOP], sum(child.total_ms for child in children), max(len(children) - _TOP, 0))
    return found


def _by(divided: tuple[Part, ...], column: str) -> list[Node]:
    """The time by one column, a layer by its whole path, largest first."""
    nodes: dict[str | None, Node] = {}
    for part in divided:
        value = getattr(part, column)
        node = nodes.setdefault(value, Node("not printed" if value is None else str(value)))
        node.total_ms += part.total_ms
        node.calls += part.calls
    return sorted(nodes.values(), key=lambda node: -node.total_ms)


def _roofline(
    trace: Trace, given: tuple[Peaks, str] | None, known_peaks: Iterable[Peaks]
) -> tuple[Roofline | None, str]:
    try:
        peaks, origin = given or choose(trace, known_peaks)
    except LogError as error:
        return None, str(error)
    return roofline(trace, peaks, origin=origin), ""


def _machine(facts: dict[str, Any]) -> str:
    """The machine in a line; empty where the run doesn't say."""
    machine = facts.get("machine") or {}
    cpus, cores, quota = (machine.get(key) for key in ("cpus_allowed", "cores_allowed", "quota_cpus"))
    parts = [
        machine.get("cpu"),
        f"{len(cpus)} CPUs allowed" + (f" on {cores} cores" if cores else "") if cpus else None,
        f"CPU time of {quota:g} CPUs" if quota else None,
        machine.get("system"),
    ]
    return ", ".join(str(part) for part in parts if part)


def _unknown(trace: Trace) -> tuple[list[dict[str, Any]], int]:
    """The texts that were not understood, the most frequent first, and how many more there are."""
    import polars as pl

    texts = trace.texts.filter(pl.col("event") == "unknown").select("text", "raw")
    if not len(texts):
        return [], 0
    counted = (
        trace.events.filter(pl.col("text").is_in(texts["text"].implode()))
        .group_by("text")
        .agg(calls=pl.len(), line=pl.col("line").min())
        .collect()
    )
    rows = counted.join(texts, on="text").sort(["calls", "line"], descending=[True, False])
    return rows.head(_UNKNOWN).to_dicts(), max(len(rows) - _UNKNOWN, 0)
