"""Rows numbered by the values in some columns: a grouping that keeps the rows where they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

#: Tables of possible pairs may be so many times as long as the rows; longer ones are sorted instead.
_TABLE: int = 4


def numbered(columns: Sequence[pl.Series]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the distinct rows of some columns from 0: each row's number, and the first row of each number.

    Null is a value like any other. The numbers follow no order.
    """
    number = np.zeros(len(columns[0]), np.int32)
    for column in columns:
        if column.null_count() == len(column) or (column.null_count() == 0 and column.min() == column.max()):
            continue  # tells nothing apart
        codes = _codes(column)
        if number.any():
            codes += number.astype(np.int64) * (int(codes.max(initial=0)) + 1)
        number = _dense(codes)
    firsts = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    # Of several values for one place the last is kept, so the rows go backwards.
    firsts[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    return number, firsts


def _codes(column: pl.Series) -> NDArray[np.int64]:
    """Small numbers from 0 for the values of a column."""
    import polars as pl

    if column.dtype == pl.String:
        column = column.cast(pl.Categorical).to_physical()
    if column.dtype in (pl.Float64, pl.Boolean):
        column = column.rank("dense")
    lowest = column.min()
    assert isinstance(lowest, int)
    if column.null_count():
        column = (column.cast(pl.Int64) + 1).fill_null(lowest)
    return column.to_numpy().astype(np.int64) - lowest


def _dense(labels: NDArray[np.int64]) -> NDArray[np.int32]:
    size = int(labels.max(initial=-1)) + 1
    if size > _TABLE * len(labels) + 1024:
        return np.unique(labels, return_inverse=True)[1].astype(np.int32)
    present = np.zeros(size, np.bool_)
    present[labels] = True
    number = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return number[labels]
