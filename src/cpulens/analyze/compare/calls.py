"""The executions of one side as arrays: which kernel, how long, in which iteration of which run, cold or not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cpulens.analyze.compare.identity import COLUMNS, Variant, variant
from cpulens.analyze.compare.numbering import numbered
from cpulens.analyze.selection import Selection, nothing_left, predicate
from cpulens.errors import LogError, UsageError
from cpulens.trace.schema import EVENT_COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from cpulens.trace import Trace

_NONE = -1


@dataclass(frozen=True, slots=True)
class Preparation:
    """What happens beside executions, in one run on average: milliseconds and numbers of records."""

    creation_ms: float
    creations: float
    cache_misses: float
    compilation_ms: float
    compilations: float


@dataclass(frozen=True, slots=True)
class Calls:
    """The chosen executions of one side, run after run, in log order within each.

    `kernel`: place in `variants`. `unit`: number of the iteration (counted over all runs and processes), -1 outside of
    any. `cold`: the first call of its kind in its process, where there are further ones. `marked`: every run has marks
    of iterations. `threads`: those that oneMKL's lines name. `untimed`: executions without a time, which are left out.
    """

    variants: tuple[Variant, ...]
    kernel: NDArray[np.int32]
    duration_ms: NDArray[np.float64]
    unit: NDArray[np.int32]
    run: NDArray[np.int32]
    cold: NDArray[np.bool_]
    runs: int
    units: int
    marked: bool
    threads: tuple[int, ...]
    untimed: int
    preparation: Preparation

    def __len__(self) -> int:
        return len(self.kernel)

    def inside(self) -> Calls:
        """Only what ran inside of an iteration."""
        keep = self.unit != _NONE
        if keep.all():
            return self
        arrays = {name: getattr(self, name)[keep] for name in ("kernel", "duration_ms", "unit", "run", "cold")}
        rest = {name: getattr(self, name) for name in self.__slots__ if name not in arrays}
        return Calls(**arrays, **rest)


@dataclass(frozen=True, slots=True)
class _Run:
    variants: list[Variant]
    kernel: NDArray[np.int32]
    duration_ms: NDArray[np.float64]
    unit: NDArray[np.int32]
    cold: NDArray[np.bool_]
    units: int
    threads: set[int]
    sums: dict[str, float]


def read(traces: Sequence[Trace], selection: Selection, by: tuple[str, ...], side: str) -> Calls:
    """Read the executions of one side. Raises LogError when a run has none that is timed and chosen."""
    runs = [_read(trace, selection, by, f"{side} run {number}") for number, trace in enumerate(traces, 1)]
    places: dict[Variant, int] = {}
    numbers = [np.array([places.setdefault(one, len(places)) for one in run.variants], np.int32) for run in runs]
    before = np.cumsum([0, *(run.units for run in runs)])
    preparation = {name: sum(run.sums[name] for run in runs) / len(runs) for name in Preparation.__slots__}
    return Calls(
        variants=tuple(places),
        kernel=np.concatenate([number[run.kernel] for number, run in zip(numbers, runs, strict=True)]),
        duration_ms=np.concatenate([run.duration_ms for run in runs]),
        unit=np.concatenate(
            [
                np.where(run.unit == _NONE, np.int32(_NONE), run.unit + np.int32(start))
                for start, run in zip(before[:-1], runs, strict=True)
            ]
        ),
        run=np.repeat(np.arange(len(runs), dtype=np.int32), [len(run.kernel) for run in runs]),
        cold=np.concatenate([run.cold for run in runs]),
        runs=len(runs),
        units=int(before[-1]),
        marked=all(run.units for run in runs),
        threads=tuple(sorted(set().union(*(run.threads for run in runs)))),
        untimed=int(sum(run.sums["untimed"] for run in runs)),
        preparation=Preparation(**preparation),
    )


def _read(trace: Trace, selection: Selection, by: tuple[str, ...], name: str) -> _Run:
    import polars as pl

    row_by = [column for column in by if column in EVENT_COLUMNS and column not in ("text", "inner")]
    rows = _rows(trace, selection, row_by)
    executions = trace.texts.filter(pl.col("event") == "exec")
    timed = pl.col("timed") & pl.col("text").is_in(executions["text"].implode())
    calls, sums = pl.collect_all([rows.filter(timed).drop("timed"), _sums(rows)], engine="streaming")
    kept = _by_event(sums, trace.texts)
    if selection and not kept["chosen"]:
        raise nothing_left(selection, f"the {name}")
    if not calls["chosen"].any():
        raise LogError(
            f"the {name} has no timed execution to compare{f' ({selection})' if selection else ''}; "
            "was it recorded at level ON or ON_CREATION?"
        )
    cold = _cold(calls)
    if selection:
        cold, calls = cold[calls["chosen"].to_numpy()], calls.filter("chosen")
    kernel, firsts = numbered([calls[name] for name in ("text", "inner", *row_by)])
    kinds = calls.select("text", "inner", *row_by)[firsts]
    unit, units = _units(calls)
    return _Run(
        variants=_variants(kinds, executions, by),
        kernel=kernel,
        duration_ms=calls["duration_ms"].to_numpy(),
        unit=unit,
        cold=cold,
        units=units,
        threads=set(kinds.join(executions, on="text", how="left")["threads"].drop_nulls()),
        sums=kept,
    )


def _rows(trace: Trace, selection: Selection, row_by: list[str]) -> pl.LazyFrame:
    import polars as pl

    source = trace.events if selection.where is None else trace.frame
    columns = dict.fromkeys(["text", "iteration", "duration_ms", *row_by])
    return source.select(
        *columns,
        inner=pl.col("inner").fill_null(False),
        # Names of processes are few: as numbers they take a quarter of the room.
        process=pl.col("instance").cast(pl.Categorical).to_physical().cast(pl.Int32).fill_null(_NONE),
        timed=pl.col("duration_ms").is_finite().fill_null(False),
        chosen=predicate(trace, selection),
    )


def _cold(calls: pl.DataFrame) -> NDArray[np.bool_]:
    """Mark the first call of each text in each process, unless it is the only chosen one."""
    kind, firsts = numbered([calls["process"], calls["text"], calls["inner"]])
    several = np.bincount(kind[calls["chosen"].to_numpy()], minlength=len(firsts)) > 1
    cold = np.zeros(len(calls), np.bool_)
    cold[firsts[several]] = True
    return cold


def _units(calls: pl.DataFrame) -> tuple[NDArray[np.int32], int]:
    """Number the iterations of all processes from 0; -1 outside of any."""
    unit = np.full(len(calls), _NONE, np.int32)
    inside = calls["iteration"].is_not_null()
    marked = calls.select("process", "iteration").filter(inside)
    if marked.is_empty():
        return unit, 0
    unit[inside.to_numpy()], firsts = numbered([marked["process"], marked["iteration"]])
    return unit, len(firsts)


def _variants(kinds: pl.DataFrame, texts: pl.DataFrame, by: tuple[str, ...]) -> list[Variant]:
    columns = dict.fromkeys(["text", *COLUMNS, *(name for name in by if name in texts.columns)])
    joined = kinds.join(texts.select(*columns), on="text", how="left", maintain_order="left")
    return [variant(row, row["inner"], tuple(row[name] for name in by)) for row in joined.iter_rows(named=True)]


def _sums(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Sum the chosen records of each text: how many, how many of them timed, how long."""
    import polars as pl

    time = pl.col("duration_ms").filter(pl.col("timed")).sum()
    return rows.filter("chosen").group_by("text").agg(records=pl.len(), timed=pl.col("timed").sum(), ms=time)


def _by_event(sums: pl.DataFrame, texts: pl.DataFrame) -> dict[str, float]:
    events = sums.join(texts.select("text", "event", "cache"), on="text", how="left")

    def total(column: str, **values: str) -> float:
        return float(events.filter(**values)[column].sum())

    return {
        "chosen": total("records"),
        "untimed": total("records", event="exec") - total("timed", event="exec"),
        "creation_ms": total("ms", event="create"),
        "creations": total("records", event="create"),
        "cache_misses": total("records", event="create", cache="miss"),
        "compilation_ms": total("ms", event="compile"),
        "compilations": total("records", event="compile"),
    }


def check_columns(by: tuple[str, ...]) -> None:
    """Raise UsageError for columns that every record has another value of, which nothing could be matched by."""
    single = [name for name in by if name in ("seq", "line", "duration_ms", "start_ns", "text")]
    if single:
        raise UsageError(f"kernels of two runs can't be matched by {', '.join(single)}: no two runs share its values")
