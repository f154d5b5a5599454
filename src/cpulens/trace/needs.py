"""polars, imported when it is first needed: the slim install records without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpulens.errors import BackendUnavailable

if TYPE_CHECKING:
    from types import ModuleType


def polars() -> ModuleType:
    """Import polars; raise BackendUnavailable with what to install when it isn't there."""
    try:
        import polars as module
    except ImportError as error:
        raise BackendUnavailable(
            f"Tables need polars, which can't be imported ({error}). Install it with: pip install cpulens"
        ) from error
    return module
