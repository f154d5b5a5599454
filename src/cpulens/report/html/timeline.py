"""One iteration of a run, drawn in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.selection import Selection, select
from cpulens.analyze.timeline import Timeline, spans, timeline
from cpulens.report.html.figures import LEGEND, Figure, label
from cpulens.report.text import count, milliseconds
from cpulens.trace.iterations import mark

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

#: Slices drawn: a browser draws as many at once.
_SLICES: Final = 2_000
_SPANS: Final = 300
_LEVELS: Final = 4
#: Records laid out where no iteration is known.
_RECORDS: Final = 20_000
_SPAN_COLOUR: Final = "#7f8ea3"


@dataclass(frozen=True, slots=True)
class Drawn:
    """The figure, and in sentences what of the run it shows."""

    figure: Figure
    words: tuple[str, ...]


def draw(trace: Trace, shades: Mapping[str, str]) -> Drawn | None:
    """Draw the iteration of median time, or the beginning of a run that has none; None without any timed record."""
    chosen, words = _one(trace)
    laid = timeline(chosen)
    if not len(laid.slices):
        return None
    words += _words(laid)
    figure, left_out = _figure(laid, trace, shades)
    if left_out:
        words.append(f"The {_SLICES:,} longest slices are drawn; {count(left_out, 'shorter one')} are left out.")
    return Drawn(figure, tuple(words))


def _words(laid: Timeline) -> list[str]:
    if laid.laid == len(laid.slices):
        return ["The log has no time stamps: the kernels are laid end to end, so gaps between them are not seen."]
    if laid.laid:
        stamped = "oneMKL prints none" if not laid.slices.filter("stamped").is_empty() else "none is printed"
        return [f"{count(laid.laid, 'slice')} without a time stamp ({stamped}) follow what stands before in the log."]
    return []


def _one(trace: Trace) -> tuple[Trace, list[str]]:
    """The part of a run that is drawn."""
    import polars as pl

    marked = mark(trace, "auto")
    kernels = marked.texts.lazy().filter(pl.col("event") == "exec").select("text")
    finite = pl.when(pl.col("duration_ms").is_finite()).then(pl.col("duration_ms"))
    sums = (
        marked.events.filter(pl.col("iteration").is_not_null() & ~pl.col("inner").fill_null(False))
        .join(kernels, on="text", how="semi")
        .group_by("instance", "iteration")
        .agg(total_ms=finite.sum())
        .sort("total_ms", "iteration")
        .collect(engine="streaming")
    )
    if not len(sums):
        events = trace.events.sort("seq").head(_RECORDS)
        there = trace.events.select(pl.len()).collect(engine="streaming").item()
        what = f"the first {_RECORDS:,} of {there:,} records" if there > _RECORDS else "the whole run"
        return trace.with_events(events), [f"No iteration is marked, and none was found: this is {what}."]
    middle = sums.row((len(sums) - 1) // 2, named=True)
    of = f" of {middle['instance']}" if middle["instance"] is not None else ""
    word = (
        f"Iteration {middle['iteration']}{of}, the median of {count(len(sums), 'iteration')} by time "
        f"({milliseconds(middle['total_ms'])} ms in kernels)."
    )
    chosen = select(marked, Selection(iterations=str(middle["iteration"])))
    only = chosen.events.filter(pl.col("instance").eq_missing(pl.lit(middle["instance"], pl.String)))
    return chosen.with_events(only.head(_RECORDS)), [word]


def _figure(laid: Timeline, trace: Trace, shades: Mapping[str, str]) -> tuple[Figure, int]:
    import polars as pl

    left_out = max(len(laid.slices) - _SLICES, 0)
    kept = laid.slices.with_columns(took=pl.col("end_ns") - pl.col("begin_ns"))
    kept = kept.sort("took", descending=True).head(_SLICES).sort("begin_ns")
    named = trace.texts.select("text", "primitive", "implementation", "problem")
    kept = kept.join(named, on="text", how="left", maintain_order="left")
    rows: list[str] = []
    bars = _span_bars(laid, rows)
    for instance, track, lane in kept.select("instance", "track", "lane").unique(maintain_order=True).iter_rows():
        name = _track_name(instance, track, lane)
        if name not in rows:
            rows.append(name)
    for (primitive,), group in kept.group_by("primitive", maintain_order=True):
        bars.append(_kernel_bar(str(primitive or "?"), group, shades))
    end_ms = int(laid.slices["end_ns"].max() or 1) / 1e6  # type: ignore[arg-type]
    layout = {
        "barmode": "overlay",
        "bargap": 0.15,
        "xaxis": {"title": {"text": "ms since the first slice"}, "range": [0, end_ms * 1.01]},
        "yaxis": {"categoryorder": "array", "categoryarray": rows[::-1], "automargin": True, "fixedrange": True},
        "legend": LEGEND,
        "margin": {"l": 10, "r": 10, "t": 30, "b": 45},
    }
    return {"data": bars, "layout": layout, "height": 170 + 36 * len(rows)}, left_out


def _kernel_bar(primitive: str, group: pl.DataFrame, shades: Mapping[str, str]) -> dict[str, Any]:
    words = []
    for one in group.iter_rows(named=True):
        kernel = " ".join(str(one[name]) for name in ("implementation", "problem") if one[name])
        kind = {"create": "creation of ", "compile": "compilation of "}.get(one["event"], "")
        layer = f"<br>{label(one['layer'])}" if one["layer"] else ""
        words.append(
            f"{kind}{label(primitive)}<br>{label(kernel)}{layer}<br>{milliseconds(one['took'] / 1e6)} ms, "
            f"line {one['line']:,}"
        )
    colour = shades.get(primitive, "#8a8f98")
    return {
        "type": "bar",
        "orientation": "h",
        "name": label(primitive),
        "y": [_track_name(*key) for key in group.select("instance", "track", "lane").iter_rows()],
        "base": (group["begin_ns"] / 1e6).to_list(),
        "x": (group["took"] / 1e6).to_list(),
        "hovertext": words,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": {"color": colour, "line": {"color": colour, "width": 0.6}},
    }


def _span_bars(laid: Timeline, rows: list[str]) -> list[dict[str, Any]]:
    """The layers and regions around the slices, a row for each level."""
    import polars as pl

    # The libraries take turns in a thread: what is around their slices is one.
    first = laid.slices.filter(pl.col("lane") == 0).sort("begin_ns").group_by("instance", maintain_order=True)
    found = [span for _, group in first for span in spans(group) if span.kind != "iteration"]
    found = sorted(found, key=lambda span: span.begin_ns - span.end_ns)[:_SPANS]
    levels = sorted({span.level for span in found})[:_LEVELS]
    bars = []
    for level in levels:
        here = sorted((span for span in found if span.level == level), key=lambda span: span.begin_ns)
        name = f"{here[0].kind}s, level {levels.index(level) + 1}"
        rows.append(name)
        times = [(span.end_ns - span.begin_ns) / 1e6 for span in here]
        bars.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": name,
                "y": [name] * len(here),
                "base": [span.begin_ns / 1e6 for span in here],
                "x": times,
                "text": [label(span.name.rpartition(".")[2]) for span in here],
                "textposition": "inside",
                "insidetextanchor": "middle",
                "constraintext": "inside",
                "textangle": 0,
                "hovertext": [
                    f"{label(span.name)}<br>{milliseconds(time)} ms" for span, time in zip(here, times, strict=True)
                ],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "marker": {"color": _SPAN_COLOUR, "opacity": 0.55, "line": {"width": 1}},
                "showlegend": False,
            }
        )
    return bars


def _track_name(instance: str | None, track: str, lane: int) -> str:
    name = track if instance is None else f"{instance}: {track}"
    return label(name if lane == 0 else f"{name} ({lane + 1})")
