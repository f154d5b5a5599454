"""Names of layouts in mkldnn 0.x, brought to the letters that later versions use.

Later tags name the dimensions a, b, c, … in logical order and write a blocked one as a capital: ``nchw`` is ``abcd``,
``OIhw8i8o`` is ``ABcd8b8a``. The logical orders: data n c d h w, weights g o i d h w, sequences t n c and l d g i o …
"""

from __future__ import annotations

import re
from typing import Final

_ORDERS: Final = ("tnc", "ncdhw", "goidhw", "ldsnc", "ldigo", "ldgo", "x")
_TOKENS: Final = re.compile(r"(\d+)([a-z])|([A-Za-z])")


def letters(old: str) -> str:
    """Give the newest tag for an old layout name; a name that is not understood is given back."""
    tokens = _TOKENS.findall(old)
    if "".join("".join(token) for token in tokens) != old:
        return old
    outer = [token[2] for token in tokens if token[2]]
    present = {letter.lower() for letter in outer} | {token[1] for token in tokens if token[1]}
    if len(outer) != len({letter.lower() for letter in outer}):
        return old
    order = next((order for order in _ORDERS if present <= set(order)), None)
    if order is None:
        return old
    rank = {letter: "abcdef"[place] for place, letter in enumerate(letter for letter in order if letter in present)}
    blocked = {token[1] for token in tokens if token[1]}
    return "".join(
        size + rank[inner] if size else (rank[dim.lower()].upper() if dim.lower() in blocked else rank[dim.lower()])
        for size, inner, dim in tokens
    )
