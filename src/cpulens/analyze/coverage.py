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
#: (in the process), into a pipe (a recorded command; oneMKL's is its file's plus what the pipe adds for oneDNN).
LINE_COST_US: Final = {"file": {"onednn": 4.0, "mkl": 11.0}, "pipe": {"onednn": 9.0, "mkl": 16.0}}
#: Kinds of records: executions, creations and compilations, creations inside others, the rest.
_ONEDNN, _MKL, _CREATION, _NESTED, _OTHER = range(5)
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


def several_instances(trace: Trace) -> bool:
    """Whether the records come from several processes or logs."""
    import polars as pl

    return bool(trace.events.select(pl.col("instance").is_not_null().any()).collect().item())


def _line_costs(facts: dict[str, Any]) -> dict[str, float]:
    return LINE_COST_US["pipe" if "exit_code" in facts else "file"]


def _rows(trace: Trace) -> pl.LazyFrame:
    """Narrow rows: what coverage needs of each record. `kind`: see _KINDS; `cost_us`: of printing its line."""
    import polars as pl

    library, event = pl.col("library"), pl.col("event")
    kind = (
        pl.when((library == "onednn") & (event == "exec"))
        .then(_ONEDNN)
        .when((library == "mkl") & (event == "exec"))
        .then(_MKL)
        .when((library == "onednn") & event.is_in(["create", "compile"]))
        .then(_CREATION)
        .when((library == "onednn") & (event == "create_nested"))
        .then(_NESTED)
        .otherwise(_OTHER)
        .cast(pl.UInt8)
    )
    costs = _line_costs(trace.facts)
    cost = library.replace_strict(list(costs), list(costs.values()), default=0.0, return_dtype=pl.Float64)
    texts = trace.texts.select("text", kind=kind, cost_us=cost)
    finite = pl.when(pl.col("duration_ms").is_finite()).then(pl.col("duration_ms"))
    events = trace.events.select(
        "seq", "line", "text", "instance", "iteration", "start_ns", "inner", duration_ms=finite
    )
    if (texts["text"] == pl.int_range(len(texts), dtype=pl.UInt32, eager=True)).all():  # as the reader numbers them
        looked_up = (pl.lit(texts[name]).gather(pl.col("text")).alias(name) for name in ("kind", "cost_us"))
        return events.with_columns(looked_up)
    return events.join(texts.lazy(), on="text", how="left", maintain_order="left")


def _stretches(trace: Trace) -> list[Stretch]:
    iterations = _iterations(trace)
    if iterations:
        return iterations
    sums = _sums(_rows(trace), [])
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


def _sums(rows: pl.LazyFrame, by: list[str]) -> pl.DataFrame:
    """Time per library, calls and printing, by the columns `by` (none: over all)."""
    import polars as pl

    kind, time, outer = pl.col("kind"), pl.col("duration_ms"), ~pl.col("inner").fill_null(False)
    columns = {
        "onednn_ms": time.filter(((kind == _ONEDNN) & outer) | (kind == _CREATION)).sum(),
        "mkl_ms": time.filter(kind == _MKL).sum(),
        "printing_ms": pl.col("cost_us").sum() / 1e3,
        "calls": ((kind <= _MKL) & outer).sum(),
        "last_ns": (pl.col("start_ns") + (time.fill_null(0.0) * 1e6).cast(pl.Int64)).max(),
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
    keys = ["instance", "iteration"] if several_instances(trace) else ["iteration"]
    sums = _sums(rows, keys)
    joined = marks.join(sums, on=keys, how="inner", nulls_equal=True, maintain_order="left").with_columns(
        next_ns=pl.col("start_ns").shift(-1).over("instance")
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

    rows = _rows(trace).filter(pl.col("kind") < _OTHER)
    start = pl.when(pl.col("kind") != _MKL).then(pl.col("start_ns"))
    end = start + (pl.col("duration_ms").fill_null(0.0) * 1e6).round().cast(pl.Int64)
    several = several_instances(trace)
    lines = rows.select("line", "text", *(["instance"] if several else []), start=start, end=end).collect()
    if lines["start"].null_count() == len(lines):
        return []
    if several:  # one after another: what follows is then another's first
        lines = lines.sort("instance", maintain_order=True)
    end_before = (pl.col("end").cum_max().over("instance") if several else pl.col("end").cum_max()).shift(1)
    follows = pl.col("start").shift(1).is_not_null()  # no line of oneMKL stands between
    if several:
        follows &= pl.col("instance").eq_missing(pl.col("instance").shift(1))
    begins = sorted(int(begin) for begin, _ in trace.facts.get("scopes_ns") or [])
    gaps = (
        lines.with_columns(end_before=end_before, before=pl.col("text").shift(1), line_before=pl.col("line").shift(1))
        .with_columns(gap=pl.col("start") - pl.col("end_before"))
        .filter(follows & (pl.col("gap") >= _GAP_NS))
        .filter(_same_scope(begins))
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


def _same_scope(begins: list[int]) -> pl.Expr:
    """No scope begins inside the gap: between two scopes nothing is recorded."""
    import polars as pl

    if len(begins) < 2:
        return pl.lit(True)
    known = pl.Series(begins)
    place = pl.lit(known).search_sorted
    return place(pl.col("start"), side="right") == place(pl.col("end_before"), side="right")


def _after(row: dict[str, Any]) -> str:
    kernel = " ".join(part for part in (row["primitive"], row["implementation"]) if part) or "a kernel"
    return kernel if row["event"] == "exec" else f"the creation of {kernel}"
