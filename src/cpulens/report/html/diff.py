"""Everything that the page of two runs shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.compare import compare
from cpulens.analyze.findings import Finding, Thresholds, find
from cpulens.analyze.selection import Selection, select
from cpulens.analyze.summary import summarize
from cpulens.report.comparison import interval, signed, verdict
from cpulens.report.html.figures import Figure, label
from cpulens.report.html.page import render
from cpulens.report.terminal import foot, head
from cpulens.report.text import milliseconds

if TYPE_CHECKING:
    from cpulens.analyze.compare import Cause, Comparison
    from cpulens.trace import Trace

_ROWS: Final = 500
_BARS: Final = 12
_SLOWER: Final = "#d9534f"
_FASTER: Final = "#2ca58d"
_TOTAL: Final = "#7a8ca0"


def diff_page(
    base: Trace, new: Trace, names: tuple[str, str], selection: Selection, *, thresholds: Thresholds | None = None
) -> str:
    """Give the page of two runs and what changed from `base` to `new`, as text. `names`: what they are called."""
    comparison = compare(base, new, where=selection.where, iterations=selection.iterations)
    chosen = select(base, selection), select(new, selection)
    found = find(chosen[0], thresholds), find(chosen[1], thresholds)
    summaries = [summarize(trace) for trace in chosen]
    bars = _causes(comparison) if comparison.causes else None
    kernels = comparison.kernels[:_ROWS]
    return render(
        "diff.html",
        {"causes": bars} if bars else {},
        names=names,
        comparison=comparison,
        kernels=kernels,
        more=len(comparison.kernels) - len(kernels),
        primitives=sorted({kernel.primitive for kernel in kernels if kernel.primitive}),
        gone=_only(found[0], found[1]),
        come=_only(found[1], found[0]),
        stayed=_only(found[1], _only(found[1], found[0])),
        sides=[
            (name, trace.facts, list(head(summary)), list(foot(summary, None))[-1])
            for name, trace, summary in zip(names, chosen, summaries, strict=True)
        ],
        verdict=verdict,
        signed=signed,
        interval=interval,
    )


def _only(some: tuple[Finding, ...] | list[Finding], others: tuple[Finding, ...] | list[Finding]) -> list[Finding]:
    """The findings whose rule found nothing among the others."""
    codes = {one.code for one in others}
    return [one for one in some if one.code not in codes]


def _causes(comparison: Comparison) -> Figure:
    """A waterfall from the total of base to that of new."""
    shown: list[tuple[str, float]] = [(cause.text, cause.delta_ms) for cause in comparison.causes[:_BARS]]
    rest: tuple[Cause, ...] = comparison.causes[_BARS:]
    if rest:
        shown.append((f"{len(rest)} smaller causes", sum(cause.delta_ms for cause in rest)))
    start, end = comparison.total_ms.base, comparison.total_ms.new
    names = [f"{at}" for at in range(1, len(shown) + 1)]
    figure: dict[str, Any] = {
        "type": "waterfall",
        "orientation": "v",
        "measure": ["absolute", *("relative" for _ in shown), "total"],
        "x": ["base", *names, "new"],
        "y": [start, *(value for _, value in shown), end],
        "text": [milliseconds(start), *(signed(value) for _, value in shown), milliseconds(end)],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": ["base", *(label(text) for text, _ in shown), "new"],
        "hovertemplate": "%{hovertext}<br>%{text} ms<extra></extra>",
        "increasing": {"marker": {"color": _SLOWER}},
        "decreasing": {"marker": {"color": _FASTER}},
        "totals": {"marker": {"color": _TOTAL}},
        "connector": {"line": {"color": _TOTAL, "width": 1}},
    }
    layout = {
        "xaxis": {"type": "category", "fixedrange": True, "title": {"text": "causes, numbered as below"}},
        "yaxis": {"title": {"text": "ms"}, "automargin": True},
        "margin": {"l": 10, "r": 10, "t": 30, "b": 45},
        "showlegend": False,
    }
    return {"data": [figure], "layout": layout, "height": 360}
