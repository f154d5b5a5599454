"""The part of the bulk kernel that takes oneMKL's lines: digits of pointers and of the time become zeros, all at once.

What is left is a key. Keys of one text may differ in the lengths of what was blanked; they are short cuts, no texts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cpulens.verbose import numbers_numpy

_HEAD_BYTES: Final = len(b"MKL_VERBOSE ")
_CNR: Final = int.from_bytes(b"CNR:", "little")
_LOWER_HALF: Final = np.uint64(0xFFFFFFFF)
_UPPER_ZEROS: Final = np.uint64(0x3030303000000000)
_USUAL_DIGITS: Final = 12
_HEX: Final = np.isin(np.arange(256), np.frombuffer(b"0123456789abcdefABCDEF", np.uint8))
_BEFORE_POINTER: Final = np.isin(np.arange(256), np.frombuffer(b",(", np.uint8))
_LETTER: Final = np.isin(np.arange(256) | 32, np.arange(ord("a"), ord("z") + 1))
#: Added to a byte, this sets the highest bit for what is not below "0": digits and letters, but no bracket or comma.
_NOT_BELOW_ZERO: Final = np.uint64(0x5050505050505050)
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_UNITS: Final = {ord("n"): 10.0**6, ord("u"): 10.0**3, ord("m"): 1.0}


class Calls:
    """Lines of oneMKL as keys and times."""

    def __init__(self, lines: list[bytes], lengths: Any) -> None:
        text = b"\n".join(lines) + b"\n" + bytes(32)
        self._bytes = np.frombuffer(bytearray(text), np.uint8)
        self._halves: Any = np.ndarray((len(text) - 3,), "<u4", self._bytes.data, strides=(1,))
        self._ends = np.cumsum(lengths + 1) - 1
        self._starts = np.concatenate([[0], self._ends[:-1] + 1])
        self._blank_pointers()
        self.usual, self.durations_ms = self._times()
        data = self._bytes.tobytes()
        self.keys = list(map(data.__getitem__, map(slice, self._starts.tolist(), self._ends.tolist())))

    def _blank_pointers(self) -> None:
        at = np.flatnonzero(self._bytes == ord("x"))
        at = at[at >= 3]
        before = self._bytes[at - 2]
        named = (before == ord(":")) & _LETTER[self._bytes[at - 3]]
        at = at[(self._bytes[at - 1] == ord("0")) & (_BEFORE_POINTER[before] | named)] + 1
        # 16 bytes from each pointer's digits on, as two words: copied row by row, which is quicker than byte by byte.
        digits = np.lib.stride_tricks.sliding_window_view(self._bytes, 16)[at]
        words = digits.view("<u8")
        first, second = words[:, 0], (words[:, 1] & _LOWER_HALF) | _UPPER_ZEROS
        whole = ((first + _NOT_BELOW_ZERO) & (second + _NOT_BELOW_ZERO) & _HIGH_BITS) == _HIGH_BITS
        usual = whole & (digits[:, _USUAL_DIGITS] < ord("0"))
        writable = np.lib.stride_tricks.sliding_window_view(self._bytes, _USUAL_DIGITS, writeable=True)
        writable[at[usual]] = ord("0")
        others = at[~usual]
        while len(others):
            others = others[_HEX[self._bytes[others]]]
            self._bytes[others] = ord("0")
            others = others + 1

    def _times(self) -> tuple[Any, Any]:
        """Read and blank the times; tells the lines that have a plain one right before ` CNR:`."""
        blanks = np.flatnonzero(self._bytes == ord(" "))
        at = np.searchsorted(blanks, self._starts + _HEAD_BYTES)
        here = at + 1 < len(blanks)
        at = np.minimum(at, len(blanks) - 2)
        first, second = blanks[at], blanks[at + 1]
        here &= (second < self._ends) & (second - first < 14) & (second - first > 4)
        here &= (self._bytes[second - 1] == ord("s")) & (self._halves[second + 1] == _CNR)
        unit = self._bytes[second - 2]
        ends = np.where(_HEX[unit] & (unit < ord("a")), second - 1, second - 2)
        right, begins, mantissa, decimals = numbers_numpy.decimals(self._bytes, ends, ord(" "))
        usual = here & right & (begins == first + 1) & (decimals > 0)
        up, down = np.full(len(at), 1000), np.ones(len(at))
        for letter, scale in _UNITS.items():
            up[unit == letter] = 1
            down[unit == letter] = scale
        durations_ms = (mantissa * up) / (down * numbers_numpy.POWERS[decimals])
        for back in range(1, numbers_numpy.WIDTH):
            place = ends - back
            self._bytes[place[usual & (place > first)]] = ord("0")
        return usual, durations_ms
