"""Which records of a trace an analysis is about: an expression over the columns, a slice of the iterations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cpulens.errors import LogError, UsageError
from cpulens.trace.iterations import mark
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS
from cpulens.trace.tables import schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from cpulens.trace import Trace

_COLUMNS: Final = {**TEXT_COLUMNS, **EVENT_COLUMNS}
_SLICE: Final = re.compile(r"(-?\d+)?(?:(:)(-?\d+)?(?::(-?\d+)?)?)?")
_SHARE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)")
#: The engine reads deeply nested expressions by recursion; nobody writes longer ones by hand.
_MAX_EXPRESSION: Final = 4096


@dataclass(frozen=True, slots=True)
class Selection:
    """What is looked at; both parts must hold. Empty: every record.

    `where`: an SQL condition over the columns of the trace, in which == may stand for =, such as
    "primitive == 'matmul' and duration_ms > 0.1"; rows for which it is null are left out. `iterations`: a slice as in
    Python, "3:", ":-1", "2:10:2", or one number; iterations count from 0, -1 is the last one, and what lies outside of
    any is left out. Both are checked at once: UsageError says what is wrong with them.
    """

    where: str | None = None
    iterations: str | None = None

    def __post_init__(self) -> None:
        if self.where is not None:
            condition(self.where)
        if self.iterations is not None:
            iteration_slice(self.iterations)

    def __bool__(self) -> bool:
        return self.where is not None or self.iterations is not None

    def __str__(self) -> str:
        parts = [
            f"where {self.where}" if self.where else "",
            f"iterations {self.iterations}" if self.iterations else "",
        ]
        return ", ".join(part for part in parts if part) or "everything"


def condition(text: str) -> pl.Expr:
    """Read a condition over the columns of a trace. Raises UsageError, in one sentence, for what is none."""
    import polars as pl

    if len(text) > _MAX_EXPRESSION:
        raise UsageError(f"the condition is {len(text):,} characters long; at most {_MAX_EXPRESSION:,} are read")
    try:
        expression = pl.sql_expr(text)
        # On no rows at all it costs nothing, and shows unknown columns and types that don't go together.
        empty = pl.DataFrame(schema=schema(_COLUMNS)).lazy().filter(expression.fill_null(False))
        empty.collect()
    except pl.exceptions.ColumnNotFoundError as error:
        raise UsageError(_unknown_column(text, str(error))) from error
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        reason = str(error).splitlines()[0].rstrip(".")[:200] if str(error) else type(error).__name__
        raise UsageError(
            f"the condition {_short(text)} can't be used: {reason}. "
            "Write it like: primitive == 'matmul' and duration_ms > 0.1"
        ) from error
    return expression.fill_null(False)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _unknown_column(text: str, message: str) -> str:
    found = re.search(r'unable to find column "(.*?)"', message)
    name = found[1] if found else "one of its names"
    hint = f"; text stands in single quotes: '{name}'" if f'"{name}"' in text else ""
    columns = ", ".join(_COLUMNS)
    return f"the condition {_short(text)} names {name!r}, which is not a column of the trace{hint}; it has {columns}"


def iteration_slice(text: str) -> slice:
    """Read "3:", ":-1", "2:10:2" or "4". Raises UsageError for anything else."""
    found = _SLICE.fullmatch(text.strip())
    if not text.strip() or found is None:
        raise UsageError(f"iterations {text!r} is no slice; write it as in Python: 3: or :-1 or 2:10:2, or one number")
    start, colon, stop, step = (int(group) if group not in (None, ":") else group for group in found.groups())
    if step is not None and int(step) <= 0:
        raise UsageError(f"iterations {text!r} has the step {step}; it must be 1 or more")
    if colon is None:
        return slice(start, int(start) + 1 if start != -1 else None)
    return slice(start, stop, step)


def share(text: str, option: str) -> float:
    """Read "90%" or "0.9" as a part of one. Raises UsageError for anything else, naming the option."""
    found = _SHARE.fullmatch(text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{option} {text!r} is no share; write it as 90% or 0.9")
    return value


def with_iterations(trace: Trace) -> Trace:
    """The trace itself where its iterations are marked, else with those that the period of its kernels shows.

    Raises UsageError where there is neither.
    """
    import polars as pl

    marked = mark(trace, "auto")
    if not marked.events.select(pl.col("iteration").is_not_null().any()).collect(engine="streaming").item():
        raise UsageError(
            "the run has no marks of iterations, and its kernels no repeating period that would show them: "
            "mark them with cpulens.iteration(), or choose records by seq or start_ns in a condition"
        )
    return marked


def predicate(trace: Trace, selection: Selection) -> pl.Expr:
    """The selection as an expression over `trace.frame`, never null; its iterations must be marked."""
    import polars as pl

    parts = [condition(selection.where)] if selection.where is not None else []
    if selection.iterations is not None:
        last = trace.events.select(pl.col("iteration").max()).collect(engine="streaming").item()
        numbers = range(-1 if last is None else last + 1)[iteration_slice(selection.iterations)]
        step = (pl.col("iteration") - numbers.start) % numbers.step == 0
        within = pl.col("iteration").is_between(numbers.start, numbers.stop, closed="left")
        parts.append((within & step).fill_null(False))
    return pl.all_horizontal(parts) if parts else pl.lit(True)


def select(trace: Trace, selection: Selection) -> Trace:
    """Keep the chosen records: a trace with the same texts and facts, and a note of what was chosen.

    Raises UsageError where the iterations can't be known, LogError when no record is left.
    """
    if not selection:
        return trace
    import polars as pl

    if selection.iterations is not None:
        trace = with_iterations(trace)
    events = trace.frame.filter(predicate(trace, selection)).select(list(EVENT_COLUMNS))
    kept, there = pl.collect_all([events.select(pl.len()), trace.events.select(pl.len())], engine="streaming")
    if not kept.item():
        raise nothing_left(selection)
    chosen = trace.with_events(events)
    note = f"only {selection} ({kept.item():,} of {there.item():,} records)"
    chosen.facts = {**trace.facts, "notes": [*trace.facts.get("notes", []), note]}
    return chosen


def nothing_left(selection: Selection, what: str = "the run") -> LogError:
    """The error for a selection that no record satisfies."""
    return LogError(
        f"no record of {what} is chosen by {selection}. "
        "See what there is: cpulens top RUN --by event,primitive,iteration"
    )


def covering(shares: Iterable[float], wanted: float) -> int:
    """How many of the first shares, in their order, reach the wanted part of one together; all when none does."""
    reached, count = 0.0, 0
    for part in shares:
        if reached >= wanted - 1e-12:
            break
        reached += part
        count += 1
    return count
