"""Plain decimal numbers, read by the thousand."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

#: The sign before a number and up to 11 characters, as `%g` prints it.
WIDTH: Final = 12
POWERS: Final = 10 ** np.arange(WIDTH + 1, dtype=np.int64)
_PLACES: Final = np.arange(1, WIDTH + 1, dtype=np.uint8)[:, None]


def decimals(data: Any, ends: Any, sign: int) -> tuple[Any, Any, Any, Any]:
    """Read the plain numbers that stand before each of `ends`, after the sign: digits, and perhaps a point between.

    Gives whether there is one, where it begins, its digits as an integer, and how many of them are decimals. The
    integer is below 2**53, so one division by a power of ten rounds as `float` would. Each of `ends` must be at least
    WIDTH.
    """
    columns = windows(data, ends - WIDTH, WIDTH)
    signs = (_PLACES * (columns == sign)).max(axis=0)  # place of the last sign, from 1; 0: none
    after = signs < _PLACES
    digits = columns - 48
    is_digit = digits < 10
    points = (_PLACES * ((columns == 46) & after)).max(axis=0)  # place of the point, from 1; 0: none
    is_digit &= after
    digits *= is_digit
    length = WIDTH - signs
    has_point = points > 0
    # One byte behind the sign is not a digit if it is the point, and that must stand between two digits.
    right = (signs > 0) & (is_digit.sum(axis=0, dtype=np.uint8) + has_point == length)
    right &= is_digit[-1] & (points != signs + 1)
    places = np.where(has_point, WIDTH - points, 0).astype(np.int64)
    spread = integers(digits)
    # The point was read as a digit 0: what stands left of it is ten times too large.
    fraction = spread % POWERS[places + has_point]
    mantissa = np.where(has_point, (spread - fraction) // 10 + fraction, spread)
    return right, ends - length, mantissa, places


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
