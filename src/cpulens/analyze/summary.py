"""Where the time went: a trace's records by any of its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.selection import covering
from cpulens.errors import UsageError
from cpulens.shown import Shown
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

DEFAULT_BY: Final = ("library", "primitive", "implementation")


@dataclass(frozen=True, slots=True)
class Row:
    """The records of one key. Times in milliseconds, null where nothing is timed.

    `median_ms` and `p95_ms` (linear interpolation) leave out the first call of the key unless it is the only one:
    it pays for threads, code generation and cold caches, and stands apart as `first_ms`. `share` is the part of
    `Summary.counted_ms`, from 0 to 1; time that another record contains counts there once.
    `gflops_per_s` and `gbytes_per_s` are what was achieved (10⁹ a second, see `cpulens.cost`) over the timed calls
    whose operations or bytes are known; null where none are.
    """

    key: tuple[Any, ...]
    calls: int
    total_ms: float | None
    share: float
    cumulative: float
    median_ms: float | None
    p95_ms: float | None
    first_ms: float | None
    gflops_per_s: float | None = None
    gbytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Phases:
    """Execution, the reorders in it, creation and compilation apart: milliseconds and numbers of records."""

    execution_ms: float
    executions: int
    reorder_ms: float
    reorders: int
    creation_ms: float
    creations: int
    cache_misses: int
    compilation_ms: float
    compilations: int


@dataclass(frozen=True, slots=True)
class Summary(Shown):
    """Rows by descending time. `total_ms` counts executions only, a graph partition's time once."""

    by: tuple[str, ...]
    rows: tuple[Row, ...]
    total_ms: float | None
    counted_ms: float
    phases: Phases
    facts: dict[str, Any]

    @property
    def lines(self) -> dict[str, int]:
        """Pieces of the log: read = records + own + unknown."""
        lines: dict[str, int] = self.facts["lines"]
        return lines


def columns(by: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Names of columns from "a,b" or a sequence. Raises UsageError for one that no table has, or for none."""
    names = tuple(by.split(",")) if isinstance(by, str) else tuple(by)
    names = tuple(name.strip() for name in names)
    known = [*TEXT_COLUMNS, *EVENT_COLUMNS]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(f"{', '.join(unknown) or 'nothing'} is not a column of the trace; it has {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def summarize(trace: Trace, by: str | tuple[str, ...] | list[str] = DEFAULT_BY) -> Summary:
    """Sum a trace by the columns `by`, over `exec` records; over all records when `event` is among them."""
    import polars as pl

    keys = columns(by)
    needed = {*keys, "event", "primitive", "cache", "duration_ms", "inner", "flops", "bytes"}
    frame = trace.frame.select([name for name in {**TEXT_COLUMNS, **EVENT_COLUMNS} if name in needed])
    # A kernel of another library inside an exec is contained in it, like a primitive inside a graph partition.
    counted = ~(pl.col("inner") | (pl.col("event") == "external"))
    # A time that is no number (nan, inf: a clock that was set) says nothing, and must not take the sums with it.
    finite = pl.when(pl.col("duration_ms").is_finite()).then(pl.col("duration_ms"))
    frame = frame.with_columns(counted=counted, duration_ms=finite)
    chosen = frame if "event" in keys else frame.filter(pl.col("event") == "exec")
    grouped, phases = pl.collect_all([_by_key(chosen, keys), _phases(frame)])
    counted_ms = float(grouped["counted_ms"].sum())
    total = phases.row(0, named=True)
    return Summary(
        by=keys,
        rows=tuple(_rows(grouped, keys, counted_ms)),
        total_ms=total["execution_ms"] if total["timed"] else None,
        counted_ms=counted_ms,
        phases=Phases(**{name: value for name, value in total.items() if name != "timed"}),
        facts=trace.facts,
    )


def largest(summary: Summary, wanted: float) -> Summary:
    """Keep the first rows, as many as make up the part `wanted` of the time together (0.9: 90 %), and note it."""
    kept = covering((row.share for row in summary.rows), wanted)
    note = f"only the largest rows that make up {100 * wanted:g} % of the time: {kept:,} of {len(summary.rows):,}"
    facts = {**summary.facts, "notes": [*summary.facts.get("notes", []), note]}
    return replace(summary, rows=summary.rows[:kept], facts=facts)


def _by_key(frame: pl.LazyFrame, keys: tuple[str, ...]) -> pl.LazyFrame:
    import polars as pl

    timed = pl.col("duration_ms").drop_nulls()
    warm = timed.slice(1)
    # The key's columns get names of their own: a key may be `line` or `duration_ms` too.
    named = [pl.col(name).alias(f"key_{number}") for number, name in enumerate(keys)]
    return (
        frame.group_by(named, maintain_order=True)
        .agg(
            calls=pl.len(),
            total_ms=pl.when(timed.len() > 0).then(timed.sum()),
            counted_ms=pl.col("duration_ms").filter(pl.col("counted")).sum(),
            median_ms=pl.coalesce(warm.quantile(0.5, "linear"), timed.first()),
            p95_ms=pl.coalesce(warm.quantile(0.95, "linear"), timed.first()),
            first_ms=timed.first(),
            gflops_per_s=_per_second("flops"),
            gbytes_per_s=_per_second("bytes"),
        )
        .sort("total_ms", descending=True, nulls_last=True, maintain_order=True)
    )


def _per_second(amount: str) -> pl.Expr:
    """10⁹ of a cost for each second of the calls whose cost is known; null without any such time."""
    import polars as pl

    time = pl.col("duration_ms")
    known = pl.col(amount).is_not_null() & time.is_not_null()
    spent_ms = time.filter(known).sum()
    return pl.when(spent_ms > 0).then(pl.col(amount).filter(known).sum() / (spent_ms * 1e6))


def _phases(frame: pl.LazyFrame) -> pl.LazyFrame:
    import polars as pl

    time = pl.col("duration_ms")
    execution = (pl.col("event") == "exec") & pl.col("counted")
    reorder = (pl.col("event") == "exec") & (pl.col("primitive") == "reorder")
    creation = pl.col("event") == "create"
    compilation = pl.col("event") == "compile"
    return frame.select(
        execution_ms=time.filter(execution).sum(),
        executions=(pl.col("event") == "exec").sum(),
        timed=(execution & time.is_not_null()).any(),
        reorder_ms=time.filter(reorder).sum(),
        reorders=reorder.sum(),
        creation_ms=time.filter(creation).sum(),
        creations=creation.sum(),
        cache_misses=(creation & (pl.col("cache") == "miss")).sum(),
        compilation_ms=time.filter(compilation).sum(),
        compilations=compilation.sum(),
    )


def _rows(grouped: pl.DataFrame, keys: tuple[str, ...], counted_ms: float) -> list[Row]:
    rows, cumulative = [], 0.0
    for record in grouped.iter_rows(named=True):
        share = max(record["counted_ms"] / counted_ms, 0.0) if counted_ms > 0 else 0.0
        cumulative = min(cumulative + share, 1.0)
        rows.append(
            Row(
                key=tuple(record[f"key_{number}"] for number in range(len(keys))),
                calls=record["calls"],
                total_ms=record["total_ms"],
                share=share,
                cumulative=cumulative,
                median_ms=record["median_ms"],
                p95_ms=record["p95_ms"],
                first_ms=record["first_ms"],
                gflops_per_s=record["gflops_per_s"],
                gbytes_per_s=record["gbytes_per_s"],
            )
        )
    return rows
