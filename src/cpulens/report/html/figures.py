"""What plotly draws, as plain values: colours and fonts come from the page, which knows whether it is dark."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.breakdown import WAYS, Node, Part, tree
from cpulens.report.text import milliseconds, visible

if TYPE_CHECKING:
    from cpulens.analyze.distribution import Spread
    from cpulens.report.html.kernels import KernelRow

#: Distinct in light and dark, and for most of those who see few colours (after Okabe and Ito).
_COLOURS: Final = ("#3d8fd1", "#e08214", "#2ca58d", "#c9588f", "#8e7cc3", "#b8a000", "#d9534f", "#5f9e3f", "#7a8ca0")
_OTHERS: Final = "#8a8f98"
#: Parts below this share of the whole are drawn as one, and so are children beyond the first of a node.
_LEAST: Final = 0.002
_CHILDREN: Final = 40
_LONG: Final = 90

#: Above the plot, which makes room for it: below it would lie on the axis of a low plot.
LEGEND: Final = {"orientation": "h", "x": 0, "y": 1.01, "yanchor": "bottom"}

Figure = dict[str, Any]


def label(text: Any) -> str:
    """Text of a log for plotly, which reads tags in what it draws; long text is cut."""
    shown = visible(str(text))
    return html.escape(shown if len(shown) <= _LONG else shown[: _LONG - 1] + "…", quote=False)


def colours(parts: Iterable[Part]) -> dict[str, str]:
    """A colour for each primitive: the largest have one of their own."""
    totals: dict[str, float] = {}
    for part in parts:
        totals[part.primitive or "?"] = totals.get(part.primitive or "?", 0.0) + part.total_ms
    names = sorted(totals, key=lambda name: -totals[name])
    return {name: _COLOURS[at] if at < len(_COLOURS) else _OTHERS for at, name in enumerate(names)}


def icicles(parts: Sequence[Part]) -> Figure:
    """One icicle for each way down that says anything; the page shows one at a time."""
    traces: list[dict[str, Any]] = []
    for way, names in WAYS.items():
        if way == "layer" and not any(part.layer for part in parts):
            continue
        root = tree(parts, names)
        if root.total_ms > 0:
            traces.append({**_icicle(root), "name": way, "visible": not traces})
    layout = {"margin": {"l": 0, "r": 0, "t": 0, "b": 0}, "uniformtext": {"minsize": 11, "mode": "hide"}}
    return {"data": traces, "layout": layout, "height": 420, "buttons": False}


def _icicle(root: Node) -> Figure:
    ids, labels, parents, values, colour = ["0"], ["all"], [""], [0.0], [_OTHERS]
    for number, parent, node, leaf, shade in _nodes(root):
        ids.append(str(number))
        labels.append(label(node.name))
        parents.append(str(parent))
        values.append(node.total_ms if leaf else 0.0)
        colour.append(shade)
    return {
        "type": "icicle",
        "ids": ids,
        "labels": labels,
        "parents": parents,
        "values": values,
        "marker": {"colors": colour, "line": {"width": 1}},
        "branchvalues": "remainder",
        "textinfo": "label+percent root",
        "hovertemplate": "%{label}<br>%{value:.4g} ms, %{percentRoot:.1%} of all<extra></extra>",
        "tiling": {"orientation": "v"},
        "leaf": {"opacity": 1},
        "pathbar": {"visible": True, "thickness": 24},
    }


def _nodes(root: Node) -> Iterator[tuple[int, int, Node, bool, str]]:
    """Number, parent's number, node, whether it is a leaf, colour; small children of a node together as one."""
    queue = [(0, root, "")]
    number = 0
    for parent, node, inherited in queue:
        children = node.children
        kept = [child for child in children[:_CHILDREN] if child.total_ms >= _LEAST * root.total_ms]
        rest = children[len(kept) :]
        if len(rest) > 1:
            kept.append(Node(f"{len(rest)} others", sum(child.total_ms for child in rest)))
        else:
            kept += rest
        for at, child in enumerate(kept):
            number += 1
            shade = inherited or (_COLOURS[at] if at < len(_COLOURS) else _OTHERS)
            yield number, parent, child, not child.under, shade
            queue.append((number, child, shade))


def spread_figure(rows: Sequence[KernelRow], spreads: Sequence[Spread], shades: Mapping[str, str]) -> Figure | None:
    """A box for each kernel: quartiles, median, whiskers from the 5th to the 95th percentile, first to last call."""
    by_text = {row.text["text"]: row for row in rows}
    shown = [(by_text[one.text], one) for one in spreads if one.calls > 1 and one.min_ms > 0]
    if not shown:
        return None
    shown.reverse()
    names = [label(row.name) for row, _ in shown]
    box = {
        "type": "box",
        "orientation": "h",
        "y": names,
        "q1": [one.p25_ms for _, one in shown],
        "median": [one.median_ms for _, one in shown],
        "q3": [one.p75_ms for _, one in shown],
        "lowerfence": [one.p5_ms for _, one in shown],
        "upperfence": [one.p95_ms for _, one in shown],
        "marker": {"color": _COLOURS[0]},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    ends = {
        "type": "scatter",
        "mode": "markers",
        "x": [value for _, one in shown for value in (one.min_ms, one.max_ms)],
        "y": [name for name in names for _ in range(2)],
        "marker": {
            "symbol": "line-ns-open",
            "size": 9,
            "color": [_shade(row, shades) for row, _ in shown for _ in "12"],
        },
        "text": [_spread_words(row, one) for row, one in shown for _ in "12"],
        "hovertemplate": "%{text}<extra></extra>",
        "showlegend": False,
    }
    layout = {
        "xaxis": {"type": "log", "title": {"text": "time of a call, ms"}},
        "yaxis": {"automargin": True, "fixedrange": True},
        "margin": {"l": 10, "r": 10, "t": 30, "b": 45},
    }
    return {"data": [box, ends], "layout": layout, "height": 110 + 34 * len(shown)}


def _shade(row: KernelRow, shades: Mapping[str, str]) -> str:
    return shades.get(row.text["primitive"] or "?", _OTHERS)


def _spread_words(row: KernelRow, one: Spread) -> str:
    times = ", ".join(
        f"{name} {milliseconds(value)}"
        for name, value in (("min", one.min_ms), ("median", one.median_ms), ("p95", one.p95_ms), ("max", one.max_ms))
    )
    kernel = label(" ".join(str(row.text[name]) for name in ("implementation", "problem") if row.text[name]))
    return f"{label(row.name)} {kernel}<br>{times} ms, {one.calls:,} calls"
