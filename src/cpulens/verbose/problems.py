"""Problem descriptions of every era, brought to the newest spelling.

Convolutions ``gGmbN_icIocO_idDodD…``, matmul ``MxK:KxN``, pooling and resampling ``mbNicC_ih…``, the rest lists of
dimensions. Dimensions unknown until run time are ``*`` (version 1 printed the smallest 64-bit number).
"""

from __future__ import annotations

import re
from typing import Final

_RUNTIME: Final = "-9223372036854775808"
_GROUPS: Final = re.compile(r"^(mb[\d*]+)_?g([\d*]+)ic")
_PAIR: Final = re.compile(r"([a-z]+)([\d*]+)")
_FLAT: Final = re.compile(r"ih1oh1kh1sh1dh\dph0_(?=iw)")
_MATMUL: Final = re.compile(r"(?:b([\d*]+))?m([\d*]+)n([\d*]+)k([\d*]+)")
_POOL_ORDER: Final = ("i", "o", "k", "s", "d", "p")


def newest(primitive: str, text: str, spatial_dims: int | None = None) -> str:
    """Spell a problem in the newest way. `spatial_dims`: of the source where known, to tell a 1-D convolution."""
    if _RUNTIME in text:
        text = text.replace(_RUNTIME, "*")
    text = text.strip("# ")
    spell = _SPELLERS.get(primitive)
    return spell(text, spatial_dims) if spell else text


def _convolution(text: str, spatial_dims: int | None) -> str:
    found = _GROUPS.match(text)
    if found:
        groups = "" if found[2] == "1" else f"g{found[2]}"
        text = f"{groups}{found[1]}_ic{text[found.end() :]}"
    return _FLAT.sub("", text) if spatial_dims == 1 else text


def _matmul(text: str, _: int | None) -> str:
    found = _MATMUL.fullmatch(text)
    if found:
        batch = f"{found[1]}x" if found[1] else ""
        m, n, k = found[2], found[3], found[4]
        return f"{batch}{m}x{k}:{batch}{k}x{n}"
    parts = text.split(":")
    return ":".join(parts[:2]) if len(parts) == 3 else text


def _pooling(text: str, _: int | None) -> str:
    parts = text.split("_")
    spelled = parts[:1]
    for part in parts[1:]:
        values = dict(_PAIR.findall(part))
        axis = next(iter(values), "iw")[-1]
        wanted = [letter + axis for letter in _POOL_ORDER if letter + axis in values]
        if set(wanted) != set(values):
            return text
        spelled.append("".join(name + values[name] for name in wanted))
    return "_".join(spelled)


def _resampling(text: str, _: int | None) -> str:
    shapes = [shape.split("x") for shape in text.split()]
    if len(shapes) != 2 or len(shapes[0]) != len(shapes[1]) or len(shapes[0]) < 3:
        return text
    axes = ("d", "h", "w")[-(len(shapes[0]) - 2) :]
    spatial = (f"i{axis}{size}o{axis}{out}" for axis, size, out in zip(axes, shapes[0][2:], shapes[1][2:], strict=True))
    return f"mb{shapes[0][0]}ic{shapes[0][1]}_" + "_".join(spatial)


def _binary(text: str, _: int | None) -> str:
    shapes = text.split()
    return ":".join(shapes[:2] if len(shapes) == 3 else shapes)


def _joined(text: str, _: int | None) -> str:
    return ":".join(text.split())


def _rnn(text: str, _: int | None) -> str:
    return text.replace("dlc", "dic")


_SPELLERS: Final = {
    "convolution": _convolution,
    "deconvolution": _convolution,
    "matmul": _matmul,
    "pooling": _pooling,
    "resampling": _resampling,
    "binary": _binary,
    "prelu": _joined,
    "concat": _joined,
    "reduction": _joined,
    "rnn": _rnn,
}
