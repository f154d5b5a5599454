"""The table of events of a long log, chunk by chunk through numpy."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from cpulens.verbose.columns import NO_START, NO_TIME
from cpulens.verbose.sequence import Role, Span

if TYPE_CHECKING:
    from cpulens.verbose.events import Events
    from cpulens.verbose.parts import Log


class _Lookup:
    """Values by code, for columns that a code decides."""

    def __init__(self, roles: list[Role]) -> None:
        self.texts = np.array([role.text for role in roles], np.uint32)
        self.threads = np.array([-1 if role.thread is None else role.thread for role in roles], np.int32)
        self.has_threads = bool((self.threads >= 0).any())
        names = sorted({role.instance for role in roles if role.instance is not None})
        self.names = pl.Series(names, dtype=pl.String)
        number = {name: at for at, name in enumerate(names)}
        self.instances = np.array([number.get(role.instance or "", -1) for role in roles], np.int32)
        self.number: dict[str | None, int] = {None: -1}
        self.number |= dict(number.items())


class _Values:
    """Spans of a column as an array of values for a chunk; spans come in the order of their ends."""

    def __init__(self, spans: list[Span], lookup: _Lookup) -> None:
        self.values = list(dict.fromkeys(span.value for span in spans))
        numbers = {value: at for at, value in enumerate(self.values)}
        self.spans = sorted(
            (span.first, span.last, lookup.number[span.instance], numbers[span.value]) for span in spans
        )
        self._firsts = [first for first, *_ in self.spans]
        self._longest = max((last - first for first, last, *_ in self.spans), default=0)

    def chunk(self, row: int, instances: Any) -> Any:
        """Give indices into `values` for the rows from `row` on, -1 where there is none."""
        found = np.full(len(instances), -1, np.int32)
        begin = bisect.bisect_left(self._firsts, row - self._longest)
        end = bisect.bisect_left(self._firsts, row + len(instances))
        for first, last, instance, value in self.spans[begin:end]:
            part = slice(max(first - row, 0), max(last - row, 0))
            found[part][instances[part] == instance] = value
        return found


def rows_of(log: Log, chosen: list[bool]) -> Iterator[tuple[int, int]]:
    """Give number and code of the records whose code is chosen."""
    wanted = np.array(chosen)
    for row, code_start, _, (codes, *_) in log.chunks():
        numbers = np.frombuffer(codes, codes.typecode).astype(np.int64) + code_start
        at = np.flatnonzero(wanted[numbers])
        yield from zip((at + row).tolist(), numbers[at].tolist(), strict=True)


def frames(events: Events) -> Iterator[pl.DataFrame]:
    """Give the table piece by piece."""
    lookup = _Lookup(events.roles)
    order = events.order
    regions, layers, iterations = (_Values(spans, lookup) for spans in (order.regions, order.layers, order.iterations))
    inner = np.fromiter(sorted(order.inner), np.int64)
    paired = sorted(events.paired.items())
    for row, code_start, line_start, columns in events.log.chunks():
        codes, lines, durations, starts = (np.frombuffer(column, column.typecode) for column in columns)
        codes = codes.astype(np.int64) + code_start
        rows = len(codes)
        instances = lookup.instances[codes]
        texts = lookup.texts[codes]
        for at, text in paired[bisect.bisect_left(paired, (row,)) : bisect.bisect_left(paired, (row + rows,))]:
            texts[at - row] = text
        inside = np.zeros(rows, bool)
        inside[inner[np.searchsorted(inner, row) : np.searchsorted(inner, row + rows)] - row] = True
        frame = pl.DataFrame(
            {
                "seq": np.arange(row, row + rows, dtype=np.int64),
                "line": lines + (line_start + 1),
                "text": texts,
                "duration_ms": durations,
                "start_ns": starts,
                "inner": inside,
            }
        )
        threads = lookup.threads[codes] if lookup.has_threads else None
        yield frame.select(
            "seq",
            "line",
            _named("instance", instances, lookup.names) if len(lookup.names) else _null("instance", pl.String),
            "text",
            pl.when(pl.col("duration_ms") != NO_TIME).then(pl.col("duration_ms")).alias("duration_ms"),
            pl.when(pl.col("start_ns") != NO_START).then(pl.col("start_ns")).alias("start_ns"),
            _null("thread", pl.Int32) if threads is None else _or_null("thread", pl.Series(threads)),
            _spread("region", regions, row, instances, pl.String),
            _spread("layer", layers, row, instances, pl.String),
            _spread("iteration", iterations, row, instances, pl.Int32),
            "inner",
        )


def _spread(name: str, values: _Values, row: int, instances: Any, dtype: Any) -> pl.Expr:
    if not values.spans:
        return _null(name, dtype)
    return _named(name, values.chunk(row, instances), pl.Series(values.values, dtype=dtype))


def _named(name: str, numbers: Any, values: pl.Series) -> pl.Expr:
    indices = pl.DataFrame({"n": numbers}).select(pl.when(pl.col("n") >= 0).then(pl.col("n")))["n"]
    return pl.lit(values.gather(indices)).alias(name)


def _or_null(name: str, numbers: pl.Series) -> pl.Expr:
    found = pl.lit(numbers)
    return pl.when(found >= 0).then(found).alias(name)


def _null(name: str, dtype: Any) -> pl.Expr:
    return pl.lit(None, dtype).alias(name)
