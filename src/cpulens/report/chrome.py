"""A trace as JSON in the Trace Event Format, which Perfetto and chrome://tracing open.

The format: "Trace Event Format" of the Chromium project. An instance is a process, a track and each of its lanes a
thread. Slices are complete events (ph X) with times in microseconds to the nanosecond; iterations, regions and layers
are slices around those of the kernels; GFLOP/s and threads are counters (ph C) of the process. Slices of a thread nest.
The Unix time of 0 is in `otherData`: as a double it would not hold nanoseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from cpulens._version import __version__
from cpulens.analyze.breakdown import types
from cpulens.analyze.timeline import Span, Timeline, lanes, spans, timeline
from cpulens.report.text import visible

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

_BATCH: Final = 20_000
#: Event → what stands before the primitive in a slice's name.
_DOING: Final = {"exec": "", "create": "create ", "compile": "compile "}
_STAMPED: Final = "every slice stands at its time stamp"
_LAID: Final = "the log has no time stamps: slices are laid end to end, gaps between them are not known"


def write_chrome(trace: Trace, file: IO[bytes]) -> Timeline:
    """Write a trace to a binary file, as one JSON object; gives the timeline that was written."""
    laid = timeline(trace)
    head = {"displayTimeUnit": "ms", "otherData": _other_data(trace, laid)}
    file.write(json.dumps(head)[:-1].encode() + b', "traceEvents": [\n')
    batch: list[str] = []
    first = True
    for event in _events(trace, laid):
        batch.append(event)
        if len(batch) == _BATCH:
            file.write((("" if first else ",\n") + ",\n".join(batch)).encode())
            batch, first = [], False
    file.write((("" if first or not batch else ",\n") + ",\n".join(batch) + "\n]}\n").encode())
    return laid


def time_words(laid: Timeline) -> str:
    """How the slices of a timeline came to their places."""
    if not laid.laid:
        return _STAMPED
    if laid.laid == len(laid.slices):
        return _LAID
    return f"{laid.laid} of {len(laid.slices)} slices have no time stamp and follow what stands before in the log"


def _other_data(trace: Trace, laid: Timeline) -> dict[str, Any]:
    libraries = [
        " ".join(str(one[key]) for key in ("library", "version", "commit", "isa") if one.get(key))
        for one in trace.facts.get("libraries", [])
    ]
    return {
        "made_by": f"cpulens {__version__}",
        "time": time_words(laid),
        "origin_unix_ns": None if laid.origin_ns is None else str(laid.origin_ns),
        "records_without_a_time": laid.untimed,
        "libraries": [visible(one) for one in libraries],
    }


def _events(trace: Trace, laid: Timeline) -> Iterator[str]:
    texts = {row["text"]: _Words(row) for row in trace.texts.join(laid.slices, on="text", how="semi").to_dicts()}
    instances = laid.slices["instance"].unique(maintain_order=True).to_list()
    mark = " (no time stamps: laid end to end)" if laid.laid and laid.laid == len(laid.slices) else ""
    for pid, instance in enumerate(instances, start=1):
        yield _meta(pid, 0, "process_name", (instance or "cpulens") + mark)
    tids = dict.fromkeys(instances, 0)
    for (instance, track, lane), rows in lanes(laid.slices):
        tids[instance] += 1
        pid, tid = instances.index(instance) + 1, tids[instance]
        yield _meta(pid, tid, "thread_name", track if lane == 0 else f"{track}, at the same time ({lane + 1})")
        yield json.dumps({"name": "thread_sort_index", "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": tid}})
        yield from _lane(rows, texts, pid, tid)
    headers = _header_threads(trace)
    for pid, instance in enumerate(instances, start=1):
        import polars as pl

        rows = laid.slices.filter(pl.col("instance").eq_missing(pl.lit(instance, pl.String)))
        yield from _counters(rows, texts, headers, pid, instance)


def _meta(pid: int, tid: int, what: str, name: str) -> str:
    return json.dumps({"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": visible(name)}})


class _Words:
    """What the slices of one text have in common, as pieces of JSON."""

    def __init__(self, row: dict[str, Any]) -> None:
        kernel = " ".join(str(row[name]) for name in ("primitive", "implementation") if row[name])
        self.name = json.dumps(visible(_DOING.get(row["event"], "") + (kernel or str(row["component"]))))
        self.category = json.dumps(visible(f"{row['library']},{row['event']}"))
        told = {"problem": row["problem"], "types": types(row), "attributes": row["attributes"]}
        args = {name: visible(str(value)) for name, value in told.items() if value}
        self.args = "".join(f"{json.dumps(name)}: {json.dumps(value)}, " for name, value in args.items())
        self.library: str = row["library"]
        self.executes = row["event"] == "exec"
        self.threads: int | None = row["threads"]
        self.flops: float | None = row["flops"] if self.executes else None


def _lane(rows: pl.DataFrame, texts: dict[int, _Words], pid: int, tid: int) -> Iterator[str]:
    """The slices of a lane by begin, each after those around it."""
    around = spans(rows)
    outer = next(around, None)
    names = ("text", "begin_ns", "end_ns", "line", "stamped")
    for text, begin, end, line, stamped in zip(*(rows[name].to_list() for name in names), strict=True):
        while outer is not None and outer.begin_ns <= begin:
            yield _span(outer, pid, tid)
            outer = next(around, None)
        words = texts[text]
        rate = f'"GFLOP/s": {words.flops / (end - begin):.4g}, ' if words.flops and end > begin else ""
        laid = "" if stamped else ', "time_stamp": "none"'
        yield (
            f'{{"name": {words.name}, "cat": {words.category}, "ph": "X", "pid": {pid}, "tid": {tid}, '
            f'"ts": {_us(begin)}, "dur": {_us(end - begin)}, "args": {{{words.args}{rate}"line": {line}{laid}}}}}'
        )


def _span(span: Span, pid: int, tid: int) -> str:
    return (
        f'{{"name": {json.dumps(visible(span.name))}, "cat": "{span.kind}", "ph": "X", "pid": {pid}, "tid": {tid}, '
        f'"ts": {_us(span.begin_ns)}, "dur": {_us(span.end_ns - span.begin_ns)}, "args": {{}}}}'
    )


def _us(nanoseconds: int) -> str:
    """Microseconds, with the nanoseconds as decimals."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def _header_threads(trace: Trace) -> dict[tuple[str | None, str], int]:
    """Threads as the headers tell them, by instance and library."""
    libraries = trace.facts.get("libraries", [])
    return {(one.get("instance"), one["library"]): one["threads"] for one in libraries if one.get("threads")}


def _counters(
    rows: pl.DataFrame,
    texts: dict[int, _Words],
    headers: dict[tuple[str | None, str], int],
    pid: int,
    instance: str | None,
) -> Iterator[str]:
    """GFLOP/s and threads over time: sums over all that runs at once."""
    rates: list[tuple[int, int, float]] = []
    busy: list[tuple[int, int, float]] = []
    columns = ("text", "begin_ns", "end_ns", "inner")
    for text, begin, end, inner in zip(*(rows[name].to_list() for name in columns), strict=True):
        words = texts[text]
        if not words.executes or end <= begin:
            continue
        if words.flops:
            rates.append((begin, end, words.flops / (end - begin)))
        threads = words.threads or headers.get((instance, words.library)) or headers.get((None, words.library))
        if threads and not inner:
            busy.append((begin, end, float(threads)))
    yield from _counter("GFLOP/s", rates, pid)
    yield from _counter("threads", busy, pid)


def _counter(name: str, intervals: Iterable[tuple[int, int, float]], pid: int) -> Iterator[str]:
    for time, value in _steps(list(intervals)):
        args = f'{{"{name}": {value:.6g}}}'
        yield f'{{"name": "{name}", "ph": "C", "pid": {pid}, "tid": 0, "ts": {_us(time)}, "args": {args}}}'


def _steps(intervals: list[tuple[int, int, float]]) -> Iterator[tuple[int, float]]:
    """The sum of the values of all open intervals, wherever it changes."""
    import numpy as np

    if not intervals:
        return
    begins, ends, values = (np.asarray(column) for column in zip(*intervals, strict=True))
    times = np.concatenate([begins, ends])
    order = np.argsort(times, kind="stable")
    times = times[order]
    sums = np.cumsum(np.concatenate([values, -values])[order])
    # What is left of rounding when nothing is open is nothing.
    sums[np.cumsum(np.repeat([1, -1], len(values))[order]) == 0] = 0.0
    last = np.append(times[1:] != times[:-1], True)
    times, sums = times[last], sums[last]
    changed = np.append(True, np.abs(np.diff(sums)) > 1e-9 * np.abs(sums).max())
    yield from zip(times[changed].tolist(), sums[changed].tolist(), strict=True)
