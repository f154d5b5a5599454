"""Text → records, for every era of oneDNN and oneMKL. Importing it loads nothing but the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cpulens.verbose.reader import load

__all__ = ["load"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from cpulens.verbose import reader

        return getattr(reader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
