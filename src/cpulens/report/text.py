"""Numbers and untrusted text, made fit for a terminal."""

from __future__ import annotations

import math
from typing import Any

from cpulens.verbose.visible import visible as visible


def cell(value: Any) -> str:
    """A value of the table; – for what the log doesn't say."""
    return "–" if value is None else visible(str(value))


def milliseconds(value: float | None) -> str:
    """Three significant digits, and never finer than the clock's grain of a quarter microsecond."""
    if value is None:
        return "–"
    size = abs(value)
    if size == 0:
        return "0"
    decimals = min(4, max(0, 2 - math.floor(math.log10(size))))
    return f"{value:,.{decimals}f}"


def rate(value: float | None) -> str:
    """A number of 10⁹ a second with three significant digits; what is next to nothing is shown as <0.001."""
    return "<0.001" if value is not None and 0 < value < 0.001 else milliseconds(value)


def percent(share: float) -> str:
    """0.1234 → 12.3; a rest that rounds to nothing is shown as <0.1."""
    return "<0.1" if 0 < share < 0.0005 else f"{share * 100:.1f}"


def count(number: int, noun: str, plural: str = "") -> str:
    """1 call, 2 calls, 1,000 calls; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
