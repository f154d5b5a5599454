"""The table of a trace for other programs: CSV and JSON. Parquet is in `cpulens.trace.table_file`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from cpulens.report.text import visible
from cpulens.trace.schema import EVENT_COLUMNS, SCHEMA_VERSION, TEXT_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from cpulens.analyze.summary import Summary
    from cpulens.trace import Trace

#: What a spreadsheet takes for the beginning of a formula, blanks before it or not (OWASP, CSV injection).
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_FIGURES: Final = (
    *("calls", "total_ms", "share", "cumulative", "median_ms", "p95_ms", "first_ms"),
    *("gflops_per_s", "gbytes_per_s"),
)
_BATCH: Final = 20_000


def summary_frame(summary: Summary) -> pl.DataFrame:
    """The rows of a summary as a table: its key, then its figures."""
    import polars as pl

    keys = {name: [row.key[at] for row in summary.rows] for at, name in enumerate(summary.by)}
    figures = {name: [getattr(row, name) for row in summary.rows] for name in _FIGURES}
    return pl.DataFrame({**keys, **figures}, infer_schema_length=None, strict=False)


def write_csv(trace: Trace, file: IO[bytes]) -> None:
    """Write every record as CSV: a header, UTF-8, quotes where a value needs them, an empty cell for null.

    Text is made harmless: control characters are spelled out, and what a spreadsheet would take for a formula gets an
    apostrophe before it.
    """
    _safe(trace.events).join(_safe(trace.texts.lazy()), on="text", how="left", maintain_order="left").sink_csv(file)


def write_summary_csv(summary: Summary, file: IO[bytes]) -> None:
    """Write the rows of a summary as CSV, as `write_csv` does."""
    _safe(summary_frame(summary).lazy()).sink_csv(file)


def _safe(table: pl.LazyFrame) -> pl.LazyFrame:
    """The table with harmless text. Each distinct text is looked at once."""
    import polars as pl

    changed = []
    for name, kind in table.collect_schema().items():
        if kind == pl.String:
            known = table.select(pl.col(name).unique()).collect(engine="streaming")[name].drop_nulls()
            safe = {text: shown for text in known if (shown := safe_cell(text)) != text}
            if safe:
                changed.append(pl.col(name).replace(list(safe), list(safe.values())))
    return table.with_columns(changed)


def safe_cell(text: str) -> str:
    """Text that neither a terminal nor a spreadsheet obeys."""
    return ("'" if text.lstrip(" ").startswith(_FORMULA) else "") + visible(text)


def write_json(trace: Trace, file: IO[bytes]) -> None:
    """Write `{"schema", "facts", "rows": [{…}]}` with every record, one a line, nulls left out; ASCII only."""
    names = [name for name in TEXT_COLUMNS if name != "text"]
    texts = {row["text"]: _members(row, names) for row in trace.texts.iter_rows(named=True)}
    events = trace.events.select(list(EVENT_COLUMNS)).collect(engine="streaming")
    own = list(EVENT_COLUMNS)
    rows = (
        "{" + ", ".join(part for part in (_members(row, own), texts[row["text"]]) if part) + "}"
        for row in events.iter_rows(named=True)
    )
    _write_rows(rows, trace.facts, file)


def write_summary_json(summary: Summary, file: IO[bytes]) -> None:
    """Write the rows of a summary as `write_json` writes records."""
    table = summary_frame(summary)
    rows = ("{" + _members(row, table.columns) + "}" for row in table.iter_rows(named=True))
    _write_rows(rows, summary.facts, file)


def _members(row: dict[str, Any], names: Iterable[str]) -> str:
    """Members of a JSON object. A number that JSON has none for (nan, inf) is left out like null."""
    values = ((name, row[name]) for name in names)
    return ", ".join(f'"{name}": {json.dumps(value)}' for name, value in values if value is not None and _finite(value))


def _finite(value: Any) -> bool:
    return not isinstance(value, float) or abs(value) < float("inf")


def _write_rows(rows: Iterator[str], facts: dict[str, Any], file: IO[bytes]) -> None:
    head = {"schema": SCHEMA_VERSION, "facts": facts}
    file.write(json.dumps(head)[:-1].encode() + b', "rows": [')
    separator = "\n"
    batch: list[str] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _BATCH:
            file.write((separator + ",\n".join(batch)).encode())
            batch, separator = [], ",\n"
    file.write(((separator + ",\n".join(batch) if batch else "") + "\n]}\n").encode())
