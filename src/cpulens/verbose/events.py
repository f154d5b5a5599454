"""Columns of a log and what its order told → the table of events. Two ways to the same table.

Small logs go through plain lists, for loading numpy would take longer than reading them. Long ones go chunk by chunk
through numpy into a Parquet file, so their length takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cpulens.trace.backing import Backing
from cpulens.trace.needs import polars
from cpulens.trace.schema import EVENT_COLUMNS
from cpulens.trace.tables import PARQUET, events_frame, schema
from cpulens.verbose.columns import NO_START, NO_TIME
from cpulens.verbose.sequence import Order, Role, Span

if TYPE_CHECKING:
    import polars as pl

    from cpulens.verbose.parts import Log

#: Records up to this number go through lists.
PLAIN_ROWS: Final = 50_000
#: Records up to this number stay in memory.
MEMORY_ROWS: Final = 1 << 20


@dataclass
class Events:
    """What is needed to make the table: the log, roles by code, the order's answers, numbers of paired texts."""

    log: Log
    roles: list[Role]
    order: Order
    paired: dict[int, int]

    def table(self) -> tuple[pl.DataFrame | pl.LazyFrame, Backing | None]:
        """Give the events, and the backing that holds them if they are many."""
        if self.log.rows <= PLAIN_ROWS:
            return self._plain(), None
        if self.log.rows <= MEMORY_ROWS:
            frame: pl.DataFrame = polars().concat(list(self._frames()))
            return frame, None
        from polars.io.plugins import register_io_source

        backing = Backing()
        source = register_io_source(lambda *_: self._frames(), schema=schema(EVENT_COLUMNS))
        source.sink_parquet(backing.events, **PARQUET)
        scanned: pl.LazyFrame = polars().scan_parquet(backing.events)
        return scanned, backing

    def _plain(self) -> pl.DataFrame:
        columns: dict[str, list[Any]] = {name: [] for name in EVENT_COLUMNS}
        for _, code_start, line_start, (codes, lines, durations, starts) in self.log.chunks():
            roles = [self.roles[code + code_start] for code in codes]
            columns["line"] += [line + line_start + 1 for line in lines]
            columns["instance"] += [role.instance for role in roles]
            columns["text"] += [role.text for role in roles]
            columns["duration_ms"] += [None if time == NO_TIME else time for time in durations]
            columns["start_ns"] += [None if start == NO_START else start for start in starts]
            columns["thread"] += [role.thread for role in roles]
        rows = self.log.rows
        columns["seq"] = list(range(rows))
        spread = {"region": self.order.regions, "layer": self.order.layers, "iteration": self.order.iterations}
        for name, spans in spread.items():
            columns[name] = _spread(spans, columns["instance"])
        columns["inner"] = [row in self.order.inner for row in range(rows)]
        for row, text in self.paired.items():
            columns["text"][row] = text
        return events_frame(columns)

    def _frames(self) -> Iterator[pl.DataFrame]:
        from cpulens.verbose.events_numpy import frames

        return frames(self)


def _spread(spans: list[Span], instances: list[str | None]) -> list[Any]:
    values: list[Any] = [None] * len(instances)
    for first, last, instance, value in spans:
        for row in range(first, last):
            if instances[row] == instance:
                values[row] = value
    return values
