"""The trace: two tables and the facts of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpulens.shown import Shown
from cpulens.trace import run_file, tables
from cpulens.trace.needs import polars

if TYPE_CHECKING:
    import pandas
    import polars as pl
    import pyarrow

    from cpulens.trace.backing import Backing


class Trace(Shown):
    """What a log or a recording holds.

    `texts`: a DataFrame, one row per distinct text. `events`: a LazyFrame, one row per record in log order; a long log
    keeps its events in a file, so collecting them is a choice. `facts`: a JSON-able dict (libraries, lines, notes, …).
    The columns are those of `cpulens.trace.schema`.
    """

    def __init__(
        self,
        texts: pl.DataFrame,
        events: pl.DataFrame | pl.LazyFrame,
        facts: dict[str, Any],
        *,
        backing: Backing | None = None,
        parts: Sequence[Backing | None] = (),
    ) -> None:
        self.texts = texts
        self.events: pl.LazyFrame = events.lazy()
        self.facts = facts
        #: The Parquet file that holds the events of a long log; it lives as long as the trace does.
        self.backing = backing
        #: Backings of the traces that this one was made of.
        self.parts = list(parts)

    @property
    def frame(self) -> pl.LazyFrame:
        """Both tables joined, in log order, with every column under its own name."""
        return self.events.join(self.texts.lazy(), on="text", how="left", maintain_order="left")

    def with_events(self, events: pl.LazyFrame) -> Trace:
        """Give a trace of other events (such as some of its own) with the same texts and facts."""
        # Its file isn't the new trace's own, which must not be saved with all of it; but it must live as long.
        return Trace(self.texts, events, self.facts, parts=(self.backing, *self.parts))

    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the run as one file (`.cpulens`).

        The file is complete or not there: it is written beside its name and renamed. `force`: replace what is there.
        Raises TraceFileError when the file exists or can't be written.
        """
        return run_file.save(self, Path(path), force=force)

    @classmethod
    def open(cls, path: str | Path) -> Trace:
        """Open a run file.

        Raises TraceFileError when there is none, it is damaged, or its schema is newer than this version reads.
        """
        texts, events, facts, backing = run_file.load(Path(path))
        return cls(texts, events, facts, backing=backing)

    def to_pandas(self) -> pandas.DataFrame:
        """Give the joined table as a pandas DataFrame; it must fit into memory. Needs pandas and pyarrow."""
        tables.require("pandas", "pyarrow")
        return self.frame.collect().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """Give the joined table as an Arrow table; it must fit into memory. Needs pyarrow."""
        tables.require("pyarrow")
        return self.frame.collect().to_arrow()

    def sql(self, query: str) -> pl.DataFrame:
        """Run an SQL query on the tables `run` (both joined), `events` and `texts`.

        Raises UsageError with the engine's words when the query can't be run.
        """
        return tables.sql(self, query)

    def __repr__(self) -> str:
        records = self.events.select(polars().len()).collect().item()
        return f"<Trace of {records} records, {len(self.texts)} texts>"
