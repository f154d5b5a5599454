"""How much of the wall time the two libraries account for, and where the gaps between oneDNN's kernels are.

Of each stretch (an iteration with timed markers, else the scopes of a recording, else a command): its wall time, the
time of its kernels in oneDNN (a graph partition once) and in oneMKL, about what printing the lines took, and what is
left. Kernels that ran at the same time in several threads count each; then nothing is left, which `overlapping` says.

Gaps need time stamps. Only oneDNN prints them, so no gap is claimed across a line of oneMKL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

#: What a printed line costs beyond its kernel's own time, in µs, measured by `benchmarks/record.py`: into a spill file
#: (in the process), into a pipe (a recorded command).
LINE_COST_US: Final = {"file": {"onednn": 4.0, "mkl": 11.0}, "pipe": {"onednn": 9.0, "mkl": 16.0}}
#: A gap worth telling.
_GAP_NS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Stretch:
    """One iteration, scope or command; times in milliseconds. `kind`: iteration, scope, command."""

    kind: str
    name: str
    wall_ms: float
    onednn_ms: float
    mkl_ms: float
    printing_ms: float
    calls: int

    @property
    def neither_ms(self) -> float:
        """Wall time that neither library nor printing accounts for; not below 0."""
        return max(self.wall_ms - self.onednn_ms - self.mkl_ms - self.printing_ms, 0.0)

    @property
    def overlapping(self) -> bool:
        """Whether kernels took longer together than the wall time: they ran at the same time."""
        return self.onednn_ms + self.mkl_ms > self.wall_ms


@dataclass(frozen=True, slots=True)
class Gap:
    """Gaps after one kind of kernel: how many, how long together, the longest, and the line before the longest."""

    after: str
    count: int
    total_ms: float
    longest_ms: float
    line: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """The stretches in order, and the gaps by what they follow, largest first."""

    stretches: tuple[Stretch, ...]
    gaps: tuple[Gap, ...]

    @property
    def wall_ms(self) -> float:
        """Wall time of all stretches."""
        return sum(one.wall_ms for one in self.stretches)

    @property
    def neither_ms(self) -> float:
        """Time in neither library, over all stretches."""
        return sum(one.neither_ms for one in self.stretches)


def cover(trace: Trace) -> Coverage:
    """Set the wall time of a trace against its kernels. Empty where no wall time and no stamps are known."""
    return Coverage(tuple(_stretches(trace)), tuple(_gaps(trace)))


def printing_ms(records: pl.DataFrame, facts: dict[str, Any]) -> tuple[float, int]:
    """About how long printing took, and how many lines: of texts with their number of `calls`."""
    import polars as pl

    lines = records.group_by("library").agg(calls=pl.col("calls").sum())
    costs = _line_costs(facts)
    spent = sum(costs.get(library or "", 0.0) * calls for library, calls in lines.iter_rows()) / 1e3
    return spent, int(lines.filter(pl.col("library").is_in(list(costs)))["calls"].sum())


def _line_costs(facts: dict[str, Any]) -> dict[str, float]:
    return LINE_COST_US["pipe" if "exit_code" in facts else "file"]


def _rows(trace: Trace) -> pl.LazyFrame:
    """Narrow rows: what coverage needs of each record."""
    import polars as pl

    texts = trace.texts.lazy().select("text", "library", "event")
    finite = pl.when(pl.col("duration_ms").is_finite()).then(pl.col("duration_ms"))
    events = trace.events.select(
        "seq", "line", "text", "instance", "iteration", "start_ns", "inner", duration_ms=finite
    )
    return events.join(texts, on="text", how="left", maintain_order="left")


def _stretches(trace: Trace) -> list[Stretch]:
    iterations = _iterations(trace)
    if iterations:
        return iterations
    sums = _sums(_rows(trace), [], trace.facts)
    if not len(sums):
        return []
    total = sums.row(0, named=True)
    scopes = trace.facts.get("scopes_ms") or []
    wall_ms = sum(scopes) if scopes else trace.facts.get("wall_ms")
    if not isinstance(wall_ms, int | float) or wall_ms <= 0:
        return []
    kind = "command" if "exit_code" in trace.facts else "scope"
    name = "the command" if kind == "command" else f"{len(scopes)} scopes" if len(scopes) > 1 else "the scope"
    return [_stretch(kind, name, float(wall_ms), total)]


def _sums(rows: pl.LazyFrame, by: list[str], facts: dict[str, Any]) -> pl.DataFrame:
    """Time per library, calls and printing, by the columns `by` (none: over all)."""
    import polars as pl

    outer = (pl.col("event") == "exec") & ~pl.col("inner").fill_null(False)
    creation = pl.col("event").is_in(["create", "compile"])
    time = pl.col("duration_ms")
    costs = _line_costs(facts)
    columns = {
        "onednn_ms": time.filter((pl.col("library") == "onednn") & (outer | creation)).sum(),
        "mkl_ms": time.filter((pl.col("library") == "mkl") & outer).sum(),
        "printing_ms": sum(((pl.col("library") == name).sum() * cost for name, cost in costs.items()), pl.lit(0.0))
        / 1e3,
        "calls": outer.sum(),
    }
    return rows.group_by(by).agg(**columns).collect() if by else rows.select(**columns).collect()


def _stretch(kind: str, name: str, wall_ms: float, sums: dict[str, Any]) -> Stretch:
    return Stretch(kind, name, wall_ms, sums["onednn_ms"], sums["mkl_ms"], sums["printing_ms"], sums["calls"])


def _iterations(trace: Trace) -> list[Stretch]:
    """Iterations whose markers are timed: each lasts to the next one's, the last to the end of its scope."""
    import polars as pl

    texts = trace.texts.filter(pl.col("event") == "iteration")
    if not len(texts):
        return []
    marks = (
        trace.events.select("seq", "text", "instance", "iteration", "start_ns")
        .filter(pl.col("text").is_in(texts["text"].implode()), pl.col("start_ns").is_not_null())
        .collect()
        .sort("seq")
    )
    if not len(marks):
        return []
    rows = _rows(trace).filter(pl.col("iteration").is_not_null())
    sums = _sums(rows, ["instance", "iteration"], trace.facts)
    last = pl.col("start_ns") + (pl.col("duration_ms").fill_null(0.0) * 1e6).cast(pl.Int64)
    ends = rows.group_by("instance", "iteration").agg(last_ns=last.max()).collect()
    joined = (
        marks.join(sums, on=["instance", "iteration"], how="inner", nulls_equal=True, maintain_order="left")
        .join(ends, on=["instance", "iteration"], how="left", nulls_equal=True, maintain_order="left")
        .with_columns(next_ns=pl.col("start_ns").shift(-1).over("instance"))
    )
    scopes = [tuple(scope) for scope in trace.facts.get("scopes_ns") or []]
    found = []
    for row in joined.iter_rows(named=True):
        end = _end(row, scopes)
        if end is not None and end > row["start_ns"]:
            name = f"iteration {row['iteration']}" + (f" of {row['instance']}" if row["instance"] else "")
            found.append(_stretch("iteration", name, (end - row["start_ns"]) / 1e6, row))
    return found


def _end(row: dict[str, Any], scopes: list[tuple[Any, ...]]) -> int | None:
    """When an iteration ended: at the next marker, at its scope's end, or with its last line, whatever is first."""
    scope = next((end for begin, end in scopes if begin <= row["start_ns"] < end), None)
    known = [time for time in (row["next_ns"], scope) if time is not None]
    if known:
        return int(min(known))
    return int(row["last_ns"]) if row["last_ns"] is not None else None


def _gaps(trace: Trace) -> list[Gap]:
    """Gaps between stamped lines of oneDNN that follow each other, by the kernel before."""
    import polars as pl

    rows = _rows(trace).filter(
        pl.col("event").is_in(["exec", "create", "create_nested", "compile"]), pl.col("library") != "cpulens"
    )
    start = pl.when(pl.col("library") == "onednn").then(pl.col("start_ns"))
    end = start + (pl.col("duration_ms").fill_null(0.0) * 1e6).round().cast(pl.Int64)
    lines = rows.select("seq", "line", "text", "instance", start=start, end=end).collect().sort("seq")
    if lines["start"].null_count() == len(lines):
        return []
    known_end = pl.col("end").cum_max().over("instance")
    gap = pl.col("start") - known_end.shift(1).over("instance")
    across_mkl = pl.col("start").shift(1).over("instance").is_null()
    gaps = (
        lines.with_columns(gap=pl.when(~across_mkl).then(gap), before=pl.col("text").shift(1).over("instance"))
        .with_columns(line_before=pl.col("line").shift(1).over("instance"))
        .filter(pl.col("gap") >= _GAP_NS)
        .join(trace.texts.select("text", "primitive", "implementation", "event"), left_on="before", right_on="text")
    )
    summed = (
        gaps.group_by("event", "primitive", "implementation")
        .agg(
            count=pl.len(),
            total=pl.col("gap").sum(),
            longest=pl.col("gap").max(),
            line=pl.col("line_before").get(pl.col("gap").arg_max()),
        )
        .sort("total", descending=True)
    )
    return [
        Gap(_after(row), row["count"], row["total"] / 1e6, row["longest"] / 1e6, row["line"])
        for row in summed.iter_rows(named=True)
    ]


def _after(row: dict[str, Any]) -> str:
    kernel = " ".join(part for part in (row["primitive"], row["implementation"]) if part) or "a kernel"
    return kernel if row["event"] == "exec" else f"the creation of {kernel}"
