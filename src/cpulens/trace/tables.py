"""polars' part of the trace: types of the columns, SQL, and joining many traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cpulens.errors import BackendUnavailable, UsageError
from cpulens.trace.needs import polars
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace.run import Trace


#: How events are written: twice as quick as by default, and a quarter larger; nobody looks for ranges in them.
PARQUET: Final[dict[str, Any]] = {"compression": "zstd", "compression_level": 1, "statistics": False}


def schema(columns: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Give polars' data types for columns as `cpulens.trace.schema` names them."""
    module = polars()
    return {name: getattr(module, kind) for name, (kind, _) in columns.items()}


def texts_frame(columns: dict[str, list[Any]]) -> pl.DataFrame:
    """Make the table of texts from its columns."""
    frame: pl.DataFrame = polars().DataFrame(columns, schema=schema(TEXT_COLUMNS))
    return frame


def events_frame(columns: dict[str, Any]) -> pl.DataFrame:
    """Make a table of events from lists; a column that is left out is null."""
    rows = len(columns["text"])
    filled = {name: columns.get(name, [None] * rows) for name in EVENT_COLUMNS}
    frame: pl.DataFrame = polars().DataFrame(filled, schema=schema(EVENT_COLUMNS))
    return frame


def require(*names: str) -> None:
    """Raise BackendUnavailable when a package for an exchange isn't installed."""
    import importlib.util

    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise BackendUnavailable(
            f"This exchange needs {' and '.join(missing)}. Install with: pip install {' '.join(missing)}"
        )


def sql(trace: Trace, query: str) -> pl.DataFrame:
    """Run a query on `run`, `events` and `texts`."""
    module = polars()
    context = module.SQLContext(frames={"run": trace.frame, "events": trace.events, "texts": trace.texts.lazy()})
    try:
        found: pl.DataFrame = context.execute(query).collect(engine="streaming")
    except module.exceptions.PolarsError as error:
        raise UsageError(
            f"The query can't be run: {str(error).splitlines()[0]}. Tables are run (both joined), events and texts."
        ) from error
    return found


def merge(named: Sequence[tuple[str, Trace]]) -> tuple[pl.DataFrame, pl.LazyFrame, list[Any]]:
    """Join traces one after another, each under its name as instance: texts, events, and what must be kept alive.

    A trace that has instances of its own keeps them behind its name: `name/0`.
    """
    module = polars()
    texts, numbers = _merged_texts([trace.texts for _, trace in named])
    events, before = [], 0
    for (name, trace), number in zip(named, numbers, strict=True):
        own = module.col("instance")
        label = module.when(own.is_null()).then(module.lit(name)).otherwise(module.lit(name + "/") + own)
        events.append(
            trace.events.with_columns(
                (module.col("seq") + before).alias("seq"),
                label.alias("instance"),
                module.col("text").replace_strict(number["old"], number["text"], return_dtype=module.UInt32),
            )
        )
        before += trace.events.select(module.len()).collect().item()
    joined: pl.LazyFrame = module.concat(events)
    return texts, joined, [trace.backing for _, trace in named]


def _merged_texts(tables: list[pl.DataFrame]) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    module = polars()
    columns = [name for name in TEXT_COLUMNS if name != "text"]
    stacked = module.concat([table.with_columns(module.lit(at).alias("log")) for at, table in enumerate(tables)])
    distinct = stacked.unique(columns, keep="first", maintain_order=True).select(columns).with_row_index("new")
    keyed = stacked.join(distinct, on=columns, how="left", nulls_equal=True, maintain_order="left")
    numbers = [
        keyed.filter(module.col("log") == at).select(module.col("text").alias("old"), module.col("new").alias("text"))
        for at in range(len(tables))
    ]
    texts = distinct.rename({"new": "text"}).cast({"text": module.UInt32}).select(list(TEXT_COLUMNS))
    return texts, numbers
