"""What the rules look at: each distinct kernel with its calls and times, worked out once from the tables."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from cpulens.analyze.coverage import Coverage, cover, several_instances

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

#: Executions at the end of the log in which a period is looked for.
_LOOKED_AT: Final = 100_000


class Ledger:
    """A trace, summed up. Times in milliseconds; a time that is no number counts as none."""

    def __init__(self, trace: Trace, coverage: Coverage | None = None) -> None:
        self.trace = trace
        self._coverage = coverage
        self.facts: dict[str, Any] = trace.facts

    @functools.cached_property
    def records(self) -> pl.DataFrame:
        """Per text: calls, first line, total, first and median time, in the order of the texts, with their columns."""
        import polars as pl

        time = pl.col("duration_ms")
        summed = (
            self._times()
            .group_by("text")
            .agg(
                calls=pl.len(),
                inner=pl.col("inner").fill_null(False).sum(),
                line=pl.col("line").min(),
                first_seq=pl.col("seq").min(),
                last_seq=pl.col("seq").max(),
                total_ms=time.sum(),
                counted_ms=time.filter(~pl.col("inner").fill_null(False)).sum(),
                first_ms=time.get(pl.col("seq").arg_min()),
                median_ms=time.median(),
                max_ms=time.max(),
            )
            .sort("text")
            .collect()
        )
        return summed.join(self.trace.texts, on="text", how="left", maintain_order="left")

    def _times(self) -> pl.LazyFrame:
        import polars as pl

        finite = pl.when(pl.col("duration_ms").is_finite()).then(pl.col("duration_ms"))
        return self.trace.events.select("seq", "line", "text", "inner", finite.alias("duration_ms"))

    @functools.cached_property
    def kernels(self) -> pl.DataFrame:
        """The texts of executions on the CPU, by descending time; a graph partition without what it contains."""
        import polars as pl

        outer = (pl.col("event") == "exec") & (pl.col("inner") < pl.col("calls"))
        return self.records.filter(outer).sort("counted_ms", descending=True, nulls_last=True)

    @functools.cached_property
    def primitives(self) -> pl.DataFrame:
        """The texts of oneDNN's primitives that ran, those inside graph partitions too, by descending time."""
        import polars as pl

        mine = (pl.col("event") == "exec") & (pl.col("library") == "onednn") & (pl.col("component") != "graph")
        return self.records.filter(mine).sort("total_ms", descending=True, nulls_last=True)

    @functools.cached_property
    def execution_ms(self) -> float:
        """Time of all executions, a graph partition's once."""
        return float(self.kernels["counted_ms"].sum())

    @functools.cached_property
    def creation_ms(self) -> float:
        """Time of creating primitives and compiling partitions."""
        import polars as pl

        return float(self.records.filter(pl.col("event").is_in(["create", "compile"]))["total_ms"].sum())

    @property
    def spent_ms(self) -> float:
        """Execution and creation."""
        return self.execution_ms + self.creation_ms

    @functools.cached_property
    def executions(self) -> pl.DataFrame:
        """Every execution in order, one instance after another: seq, line, text, duration_ms, iteration, instance."""
        import polars as pl

        runs = self.records.filter(pl.col("event") == "exec")["text"]
        columns = ["seq", "line", "text", "duration_ms", "iteration"]
        several = several_instances(self.trace)
        found = (
            self.trace.events.select(*columns, *(["instance"] if several else []))
            .filter(pl.col("text").is_in(runs.implode()))
            .collect()
        )
        if several:
            return found.sort("instance", maintain_order=True)
        return found.with_columns(instance=pl.lit(None, pl.String))

    @functools.cached_property
    def coverage(self) -> Coverage:
        """The wall time against the kernels."""
        return cover(self.trace) if self._coverage is None else self._coverage

    @functools.cached_property
    def passes(self) -> int | None:
        """How often the same inference ran: the iterations marked, or the periods of the sequence; None: not known."""
        from cpulens.trace.iterations import find_period

        iterations = self.executions["iteration"]
        if iterations.null_count() < len(iterations):
            return iterations.n_unique() - (iterations.null_count() > 0)
        period = find_period(self.executions["text"].tail(_LOOKED_AT).to_list()) if len(self.executions) > 1 else None
        return period.count if period else None

    @functools.cached_property
    def instances(self) -> dict[str | None, dict[str, Any]]:
        """The facts of each process or log: their own where there are several."""
        own: dict[str, dict[str, Any]] = self.facts.get("instances") or {}
        found: dict[str | None, dict[str, Any]] = {} if own else {None: self.facts}
        found.update(own.items())
        return found

    def libraries(self, name: str) -> list[dict[str, Any]]:
        """The headers of a library's copies."""
        return [one for one in self.facts.get("libraries", []) if one.get("library") == name]

    def lines_of(self, texts: pl.Series, limit: int = 3) -> tuple[int, ...]:
        """The first lines on which any of these texts stand."""
        import polars as pl

        rows = self.records.filter(pl.col("text").is_in(texts.implode()))["line"].sort()
        return tuple(rows.head(limit).to_list())


def named(row: dict[str, Any]) -> str:
    """A kernel in words: primitive, implementation, problem, as far as they are known."""
    parts = (row.get("primitive"), row.get("implementation"), row.get("problem"))
    return " ".join(str(part) for part in parts if part) or "a kernel"
