"""A summary that prints itself as a table."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Self

from cpulens.analyze.summary import Summary, summarize

if TYPE_CHECKING:
    from cpulens.trace import Trace


@dataclasses.dataclass(frozen=True)
class PrintableSummary(Summary):
    """A Summary whose `str` is the table of `cpulens top`."""

    @classmethod
    def of(cls, trace: Trace, by: str | tuple[str, ...] | list[str]) -> Self:
        """Summarize a trace by its columns `by`."""
        summary = summarize(trace, by)
        return cls(**{field.name: getattr(summary, field.name) for field in dataclasses.fields(summary)})

    def __str__(self) -> str:
        from cpulens.report.terminal import summary_text

        return summary_text(self)
