"""The two tables and their file. polars is imported when a trace is made or opened, not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpulens.trace.run import Trace

__all__ = ["Trace"]


def __getattr__(name: str) -> object:
    if name == "Trace":
        from cpulens.trace.run import Trace

        return Trace
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
