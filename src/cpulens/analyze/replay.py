"""What a replay found: a run's problems, run again on this host, beside what they took in the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

#: Medians within this of each other are called alike.
ALIKE: Final = 1.25


@dataclass(frozen=True)
class Variant:
    """The same operation another way: `kind` is layout, type or threads, `name` says which.

    `gain`: the problem's own median, measured in the same rounds, by this one's; above 1 the variant is faster.
    Reorders and conversions that it would need around it are not in it. `trouble`: why it could not run; else None.
    """

    kind: str
    name: str
    implementation: str | None = None
    best_ms: float | None = None
    median_ms: float | None = None
    gain: float | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class Replayed:
    """One problem: its weight and times in the run, and its times here, in milliseconds.

    `best_ms` is the shortest of all, `hot_ms` the median again and again on the same memory, `median_ms` the median in
    turn with the others, its source and another program's data in the caches, `new_pages_ms` the same with results in
    pages that were never touched (None: the result is small).
    `layouts`: argument → tag here, where it is not the one of the run. `same_problem`: whether the library's line of
    the replay says the same problem as the run's; None where it printed none. `by_library`: whether the times are
    those that the library printed, as in the run, or ours around the call.
    """

    library: str
    primitive: str
    problem: str
    columns: dict[str, Any]
    calls: int
    total_ms: float
    share: float
    run_median_ms: float | None
    run_implementation: str | None
    threads: int
    best_ms: float
    hot_ms: float
    median_ms: float
    new_pages_ms: float | None
    runs: int
    implementation: str | None
    layouts: dict[str, str]
    same_problem: bool | None
    by_library: bool
    variants: tuple[Variant, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Median in the run by median here; above 1 the run was slower."""
        return self.run_median_ms / self.median_ms if self.run_median_ms and self.median_ms else None

    @property
    def verdict(self) -> str:
        """What the median in the run is explained by, in one word.

        kernel: it runs no faster with its data in the caches. caches: with them it would; the run found them as cold
        as here. pages: its result lay, at least in part, in memory that was touched for the first time. program: the
        run took longer than all of that; other threads, other programs or a lower clock. first: so it did, but ran only
        once, and a first call pays for generated code and threads. faster: the run took less than the kernel does here.
        """
        run, hot, cold = self.run_median_ms, self.hot_ms, self.median_ms
        if not run or not cold:
            return "unknown"
        if self.calls == 1 and run > cold * ALIKE:
            return "first"
        if run * ALIKE < min(hot, cold):
            return "faster"
        if run <= hot * ALIKE:
            return "kernel"
        if run <= cold * ALIKE:
            return "caches"
        return "pages" if self.new_pages_ms and run <= self.new_pages_ms * ALIKE else "program"


@dataclass(frozen=True)
class Refused:
    """A problem that was not run again, and why."""

    library: str
    primitive: str
    problem: str
    calls: int
    total_ms: float
    reason: str


@dataclass(frozen=True)
class Replay:
    """All of it. `run_libraries`, `libraries`: headers there and here. `total_ms`: all executions of the run."""

    replayed: tuple[Replayed, ...]
    refused: tuple[Refused, ...]
    left_out: int
    total_ms: float
    run_libraries: tuple[dict[str, Any], ...]
    libraries: tuple[dict[str, Any], ...]
    notes: tuple[str, ...]
