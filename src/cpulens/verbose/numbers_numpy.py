"""Plain decimal numbers, read by the thousand."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The sign before a number and up to 11 characters, as `%g` prints it.
WIDTH: Final = 12
POWERS: Final = 10 ** np.arange(WIDTH + 1, dtype=np.int64)
_DECIMALS: Final = np.arange(WIDTH - 1, -1, -1, dtype=np.uint8)[:, None]


def decimals(data: Any, ends: Any, sign: int) -> tuple[Any, Any, Any, Any]:
    """Read the plain numbers that stand before each of `ends`, after the sign: digits, and perhaps a point between.

    Gives whether there is one, where it begins, its digits as an integer, and how many of them are decimals. The
    integer is below 2**53, so one division by a power of ten rounds as `float` would. Each of `ends` must be at least
    WIDTH.
    """
    columns = windows(data, ends - WIDTH, WIDTH)
    # True from the last sign on to the left.
    before = np.logical_or.accumulate(columns[::-1] == sign)[::-1]
    digits = columns - 48
    is_digit = digits < 10
    point = (columns == 46) & ~before
    length = WIDTH - before.sum(axis=0)
    points = point.sum(axis=0)
    digits[before | ~is_digit] = 0
    first = np.minimum(WIDTH - length, WIDTH - 1)
    right = (before | is_digit | point).all(axis=0) & before[0] & is_digit[-1] & (points < 2)
    right &= is_digit[first, np.arange(len(ends))]
    places = (point * _DECIMALS).sum(axis=0, dtype=np.int64)
    spread = integers(digits)
    # The point was read as a digit 0: what stands left of it is ten times too large.
    fraction = spread % POWERS[np.minimum(places + points, WIDTH)]
    mantissa = np.where(points > 0, (spread - fraction) // 10 + fraction, spread)
    return right, ends - length, mantissa, np.minimum(places, WIDTH)


def windows(data: Any, at: Any, width: int) -> Any:
    """Give the bytes from these places on: one row of the result for each place behind."""
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(data, width)[at].T)


def integers(digits: Any) -> Any:
    """Read columns of digits as integers, the highest first."""
    value = np.zeros(digits.shape[1], np.int64)
    for column in digits:
        value *= 10
        value += column
    return value
