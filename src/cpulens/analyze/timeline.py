"""When each kernel ran: slices on tracks that nest, whatever the log says of time.

A track is an instance and a thread: oneDNN prints none, so its lines are one track; oneMKL prints its number. Where two
slices of a track ran at the same time (several callers), the later one goes to a further lane.

A line with a stamp stands at its time. One without (oneMKL never prints any) begins where what stands before it in the
log ended: the kernels of a log without stamps lie end to end, which tells their order and length, not when they ran.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

#: Executions, creations, compilations: what takes time of its own.
EVENTS: Final = ("exec", "create", "compile")
#: Two slices that overlap by no more than this are moved apart: the stamps and times of oneDNN are multiples of 244 ns.
GRAIN_NS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Timeline:
    """Slices, by instance, track, lane and begin.

    `slices`: a DataFrame of seq, line, instance, track, lane, begin_ns, end_ns, text, event, inner, stamped, region,
    layer, iteration; nanoseconds since `origin_ns` (Unix time; None: nothing is stamped). Two slices of a lane are
    apart, or one lies in the other. `laid`: how many have no stamp of their own; `untimed`: records without a time.
    """

    slices: pl.DataFrame
    origin_ns: int | None
    laid: int
    untimed: int


@dataclass(frozen=True, slots=True)
class Span:
    """Slices of one lane that follow each other under one name. `kind`: iteration, region, layer. `level`: from 0."""

    kind: str
    name: str
    begin_ns: int
    end_ns: int
    level: int


def timeline(trace: Trace) -> Timeline:
    """Lay out the executions, creations and compilations of a trace. They must fit into memory."""
    import polars as pl

    rows = _rows(trace)
    begins = pl.Series("begin_ns", _begins(rows), pl.Int64)
    kernels = rows.with_columns(begins).filter(pl.col("event") != "").sort("instance", "track", "begin_ns", "seq")
    timed = kernels.filter(pl.col("took_ns").is_not_null()).drop("start_ns")
    # At one begin the longer one holds the shorter.
    timed = timed.sort(["instance", "track", "begin_ns", "took_ns"], descending=[False, False, False, True])
    lanes, moved = _lanes(timed)
    placed = timed.with_columns(lane=pl.Series(lanes, dtype=pl.Int32), begin_ns=pl.Series(moved, dtype=pl.Int64))
    stamps = rows["start_ns"].drop_nulls()
    first = int(placed["begin_ns"].min() or 0)  # type: ignore[arg-type]
    placed = placed.with_columns(begin_ns=pl.col("begin_ns") - first)
    slices = placed.with_columns(end_ns=pl.col("begin_ns") + pl.col("took_ns")).drop("took_ns")
    return Timeline(
        slices=slices.sort(
            ["instance", "track", "lane", "begin_ns", "end_ns"], descending=[False, False, False, False, True]
        ),
        origin_ns=first if len(stamps) else None,
        laid=int((~slices["stamped"]).sum()),
        untimed=len(kernels) - len(slices),
    )


def _rows(trace: Trace) -> pl.DataFrame:
    """The records with a time, and the stamps of markers between them (event ""), in log order."""
    import polars as pl

    took = pl.when(pl.col("duration_ms").is_finite() & (pl.col("duration_ms") >= 0)).then(pl.col("duration_ms"))
    texts = trace.texts.lazy().select(
        "text", "library", event=pl.when(pl.col("event").is_in(EVENTS)).then("event").otherwise(pl.lit(""))
    )
    marker = (pl.col("library") == "cpulens") & pl.col("start_ns").is_not_null()
    number = pl.col("thread").fill_null(0).cast(pl.String)
    track = pl.when(pl.col("library") == "mkl").then(pl.lit("oneMKL thread ") + number).otherwise(pl.lit("oneDNN"))
    columns = ["seq", "line", "instance", "text", "start_ns", "thread", "region", "layer", "iteration", "inner"]
    return (
        trace.events.select(*columns, took_ns=(took * 1e6).round().cast(pl.Int64))
        .join(texts, on="text", how="left", maintain_order="left")
        .filter((pl.col("event") != "") | marker)
        .with_columns(track=track, stamped=pl.col("start_ns").is_not_null(), inner=pl.col("inner").fill_null(False))
        .drop("library", "thread")
        .sort("seq")
        .collect()
    )


def _begins(rows: pl.DataFrame) -> list[int]:
    """When each row begins, in Unix nanoseconds (from 0 where nothing is stamped)."""
    starts = rows["start_ns"].to_list()
    first = next((start for start in starts if start is not None), 0)
    found: list[int] = []
    # By instance: when what stood before ended, and the same among primitives inside the partition that comes next.
    ends: dict[str | None, list[int]] = {}
    columns = (rows["instance"].to_list(), starts, rows["took_ns"].to_list(), rows["inner"].to_list())
    for instance, start, took, inner in zip(*columns, strict=True):
        end = ends.setdefault(instance, [first, first])
        begin = start if start is not None else end[1] if inner else end[0]
        found.append(begin)
        end[1] = max(end[1], begin + (took or 0))
        if not inner:
            end[0] = end[1] = max(end[0], begin + (took or 0))
    return found


def _lanes(rows: pl.DataFrame) -> tuple[list[int], list[int]]:
    """The lane and the begin of each row, whose rows stand by track and begin."""
    lanes: list[int] = []
    begins: list[int] = []
    current: object = None
    track = _Track()
    names = ("instance", "track", "begin_ns", "took_ns", "inner", "event")
    for instance, name, begin, took, inner, event in zip(*(rows[column].to_list() for column in names), strict=True):
        if current != (instance, name):
            current, track = (instance, name), _Track()
        lane, at = track.put(begin, took, inner or event == "create", event == "compile" or not inner)
        lanes.append(lane)
        begins.append(at)
    return lanes, begins


class _Track:
    """The lanes of one track: for each the slices that are open, outermost first, as [end, where it is free from]."""

    def __init__(self) -> None:
        self._lanes: list[list[list[float]]] = []

    def put(self, begin: int, took: int, nests: bool, holds: bool) -> tuple[int, int]:
        """Place a slice, at most GRAIN_NS from `begin`: its lane and where it begins.

        `nests`: it may lie in another slice (a primitive in its partition, a creation in a compilation) that `holds`.
        """
        lane = 0
        while True:
            if lane == len(self._lanes):
                self._lanes.append([[math.inf, -math.inf]])
            open_ = self._lanes[lane]
            while len(open_) > 1 and open_[-1][0] <= begin:
                open_.pop()
            for depth in range(len(open_) - 1 if nests else 0, -1, -1):
                at = _within(open_[depth], begin, took)
                if at is not None:
                    del open_[depth + 1 :]
                    open_[depth][1] = at + took
                    if holds:
                        open_.append([at + took, at])
                    return lane, at
            lane += 1


def _within(holder: list[float], begin: int, took: int) -> int | None:
    """Where a slice fits into what is open, near its begin; None: nowhere."""
    end, free = holder
    at = int(min(max(begin, free), end - took))
    return at if at >= free and abs(at - begin) <= GRAIN_NS else None


def spans(rows: pl.DataFrame) -> Iterator[Span]:
    """The iterations, regions and layers around the slices of one lane, by begin, the outer before the inner."""
    open_: list[tuple[tuple[str, str], int]] = []
    found: list[Span] = []
    end_before = 0
    columns = ("iteration", "region", "layer", "begin_ns", "end_ns")
    for iteration, region, layer, begin, end in zip(*(rows[name].to_list() for name in columns), strict=True):
        path = _path(iteration, region, layer)
        same = next((at for at, (one, _) in enumerate(open_) if at >= len(path) or path[at] != one), len(open_))
        found += _closed(open_, same, end_before)
        open_ += [(one, begin) for one in path[same:]]
        end_before = max(end_before, end)
    found += _closed(open_, 0, end_before)
    return iter(sorted(found, key=lambda span: (span.begin_ns, span.level)))


def _closed(open_: list[tuple[tuple[str, str], int]], keep: int, end: int) -> list[Span]:
    closed = [Span(kind, name, begin, end, keep + at) for at, ((kind, name), begin) in enumerate(open_[keep:])]
    del open_[keep:]
    return closed


def _path(iteration: int | None, region: str | None, layer: str | None) -> list[tuple[str, str]]:
    """The names around a slice, outermost first. A layer stands with its whole path."""
    path: list[tuple[str, str]] = [] if iteration is None else [("iteration", f"iteration {iteration}")]
    path += [("region", name) for name in region.split("/")] if region else []
    if layer:
        parts = layer.split(".")
        path += [("layer", ".".join(parts[: depth + 1])) for depth in range(len(parts))]
    return path


def lanes(slices: pl.DataFrame) -> Iterator[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The slices of each lane, with the lane's instance, track and number."""
    yield from slices.group_by("instance", "track", "lane", maintain_order=True)
