"""The roofline of a run, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cpulens.report.html.figures import LEGEND, Figure, label
from cpulens.report.text import milliseconds, percent, rate

if TYPE_CHECKING:
    from cpulens.analyze.roofline import Kernel, Roofline
    from cpulens.machine.peaks import Peaks

_POINTS: Final = 300
_GREY: Final = "#8a8f98"
_DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")


def draw(result: Roofline, shades: Mapping[str, str]) -> Figure | None:
    """Kernels by intensity and achieved rate under the limits of the host; None where no kernel computes."""
    points = [one for one in result.kernels if one.intensity and one.gflops_per_s][:_POINTS]
    if not points:
        return None
    low = min(0.1, *(one.intensity or 0.1 for one in points)) / 2
    high = max(100.0, *(one.intensity or 0.0 for one in points)) * 2
    data = [*_limits(result.peaks, low, high), *_points(points, result.total_ms, shades)]
    layout = {
        "xaxis": {"type": "log", "title": {"text": "operations a byte"}},
        "yaxis": {"type": "log", "title": {"text": "GFLOP/s"}, "automargin": True},
        "legend": LEGEND,
        "margin": {"l": 10, "r": 10, "t": 30, "b": 45},
    }
    return {"data": data, "layout": layout, "height": 520}


def _limits(peaks: Peaks, low: float, high: float) -> list[dict[str, Any]]:
    """For each data type its peak, with the slopes of the slowest memory; the fastest memory as a slope of its own."""
    largest = max((one.size_bytes for one in peaks.streams), default=0)
    smallest = min((one.size_bytes for one in peaks.streams), default=0)
    slow, fast = peaks.bandwidth(largest), peaks.bandwidth(smallest)
    lines = []
    best = max(one.gflops_per_s for one in peaks.products.values()) if peaks.products else None
    for at, (name, product) in enumerate(peaks.products.items()):
        ridge = product.gflops_per_s / slow if slow else low
        xs = [max(low, min(ridge, high)), high]
        line = _line(xs, [product.gflops_per_s] * 2, f"{name} peak {rate(product.gflops_per_s)} GFLOP/s")
        lines.append({**line, "line": {"color": _GREY, "dash": _DASHES[at % len(_DASHES)], "width": 1.5}})
    named = {"memory": slow, "cache": fast if fast and slow and fast > 1.2 * slow else None}
    for name, bandwidth in named.items():
        if bandwidth and best:
            end = min(best / bandwidth, high)
            line = _line([low, end], [low * bandwidth, end * bandwidth], f"{name} {rate(bandwidth)} GB/s")
            lines.append({**line, "line": {"color": _GREY, "width": 2.5 if name == "memory" else 1}})
    return lines


def _line(xs: list[float], ys: list[float], name: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": label(name), "hoverinfo": "name"}


def _points(kernels: list[Kernel], total_ms: float, shades: Mapping[str, str]) -> list[dict[str, Any]]:
    groups: dict[str, list[Kernel]] = {}
    for one in kernels:
        groups.setdefault(str(one.key[0] or "?"), []).append(one)
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": label(primitive),
            "x": [one.intensity for one in group],
            "y": [one.gflops_per_s for one in group],
            "marker": {
                "color": shades.get(primitive, _GREY),
                "size": [7 + 26 * (one.total_ms / total_ms if total_ms else 0.0) ** 0.5 for one in group],
                "opacity": 0.8,
                "line": {"width": 1},
            },
            "hovertext": [_words(one) for one in group],
            "hovertemplate": "%{hovertext}<extra></extra>",
        }
        for primitive, group in groups.items()
    ]


def _words(one: Kernel) -> str:
    reached = "" if one.efficiency is None else f"{percent(one.efficiency)} % of attainable, "
    return (
        f"{label(' '.join(str(value) for value in one.key if value))}<br>{rate(one.gflops_per_s)} of "
        f"{rate(one.attainable_gflops_per_s)} GFLOP/s, {reached}limit: {one.bound}<br>"
        f"{milliseconds(one.total_ms)} ms, {milliseconds(one.lost_ms)} ms lost"
    )
