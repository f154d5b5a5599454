"""Lists of numbers as the kernel and people write them: ``0-3,8``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def parse(text: str) -> list[int]:
    """Return the numbers of a list such as ``0-3,8``, in the order given, each once.

    An empty text is an empty list. Raises ValueError, with the offending part, for anything else than numbers and
    ranges, and for a range that runs backwards.
    """
    numbers: dict[int, None] = {}
    for part in text.replace("\n", " ").replace(" ", ",").split(","):
        if not part:
            continue
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is not a number or a range")
        low, high = int(first), int(last or first)
        if high < low:
            raise ValueError(f"the range {part!r} runs backwards")
        numbers.update(dict.fromkeys(range(low, high + 1)))
    return list(numbers)


def form(numbers: Iterable[int]) -> str:
    """Return the numbers as the shortest ascending list of ranges, ``0-3,8``; an empty text for none."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
