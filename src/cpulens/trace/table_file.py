"""A trace as a file, by the ending of its name: a run file, or one Parquet table for any engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from cpulens.errors import UsageError
from cpulens.trace.schema import SCHEMA_VERSION
from cpulens.trace.writing import atomic

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace.run import Trace

SUFFIXES: Final = (".cpulens", ".parquet")


def write(trace: Trace, path: Path, *, force: bool = False) -> None:
    """Write a trace by the ending of the name: ``.cpulens``, or ``.parquet`` with both tables joined.

    The Parquet file carries ``cpulens.schema`` and ``cpulens.facts`` (JSON) in its key-value metadata. Raises
    UsageError for another ending, TraceFileError when the file exists (unless `force`) or can't be written.
    """
    if path.suffix == ".cpulens":
        trace.save(path, force=force)
        return
    if path.suffix != ".parquet":
        raise UsageError(f"{path}: the format goes by the ending, and it has to be {' or '.join(SUFFIXES)}")
    with atomic(path, force=force) as file:
        write_parquet(trace.frame, trace.facts, file)


def write_parquet(table: pl.LazyFrame, facts: dict[str, Any], file: IO[bytes]) -> None:
    """Write a table as Parquet, with the facts of its run in the metadata as `write` has them."""
    metadata = {"cpulens.schema": str(SCHEMA_VERSION), "cpulens.facts": json.dumps(facts)}
    table.sink_parquet(file, metadata=metadata)
