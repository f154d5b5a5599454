"""A window that slides over one axis: how many of its taps hit the image, and how much of the image they touch.

Output `o` takes input ``o × stride - padding + k × (dilation + 1)`` at tap `k` (oneDNN's developer guide,
"Convolution"; dilation 0 is a dense window). Taps outside the image are zeros and do no work: oneDNN's benchdnn counts
its operations in the same way.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

#: Beyond this many steps of a loop a size is no image's, and the count is given up.
_MOST_STEPS: Final = 1 << 16


class Window(NamedTuple):
    """One axis: sizes of input, output and kernel, stride, dilation, padding on the left."""

    size: int
    outputs: int
    kernel: int
    stride: int
    dilation: int
    padding: int

    def counts(self) -> tuple[int, int] | None:
        """Pairs (output, tap) inside the image, and positions of the image that at least one of them takes.

        None for sizes beyond all measure.
        """
        return None if self.kernel > _MOST_STEPS else _counts(self)

    def hits(self) -> int:
        """Pairs (output, tap) inside the image."""
        return sum(last - first + 1 for _, first, last in self._ranges())

    def touched(self) -> int:
        """Positions of the image that at least one pair takes."""
        if self.dilation == 0 and 1 <= self.stride <= self.kernel:  # no gaps between the windows
            end = min(self.size, (self.outputs - 1) * self.stride - self.padding + self.kernel)
            return max(end - max(0, -self.padding), 0) if self.outputs > 0 else 0
        ranges = self._ranges()
        if self.kernel == 1 or (self.dilation == 0 and self.stride > self.kernel):  # no window meets another
            return sum(last - first + 1 for _, first, last in ranges)
        if sum(last - first + 1 for _, first, last in ranges) > _MOST_STEPS:
            return self.size
        return len({start + o * self.stride for start, first, last in ranges for o in range(first, last + 1)})

    def _ranges(self) -> list[tuple[int, int, int]]:
        """For each tap its position at output 0, and the first and last output at which it is inside the image."""
        found = []
        stride = max(self.stride, 1)
        for k in range(self.kernel):
            start = k * (self.dilation + 1) - self.padding
            first = max(0, -(start // stride))
            last = min(self.outputs - 1, (self.size - 1 - start) // stride)
            if first <= last:
                found.append((start, first, last))
        return found


@lru_cache(maxsize=4096)  # a log repeats few windows
def _counts(window: Window) -> tuple[int, int]:
    return window.hits(), window.touched()
