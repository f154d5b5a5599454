"""Lines of oneDNN's graph API: one line is one partition that ran or was compiled.

``op,engine,id,kind,names,formats,logical tensors,fpmath[,scratchpad][,implementation],backend,ms``. Names are the
framework's own and may hold commas, so the fields are found from both ends.
"""

from __future__ import annotations

import re
from typing import Final

_TENSOR: Final = re.compile(r"(in|out)(\d+)_(\w+?):(\d+):(\w+):(\w+)(?::host_scalar)?:([^:\s]*):?(\S*)")
_FPMATH: Final = re.compile(r"fpm:\w+(?::\w+)?")
_SPECIAL: Final = re.compile(r"([a-z0-9_]+):\d+:[^:}]*:([0-9x]+)")

Fields = dict[str, str | int | None]


def understand(fields: list[bytes]) -> Fields:
    """Give the columns of a partition from its fields: component and time cut off, operation word first."""
    words = [field.decode("utf-8", "replace") for field in fields]
    engine = words[1]
    if not words[2].isdigit():
        return _special(engine, words)
    backend_at = next((at for at in range(len(words) - 1, 3, -1) if "backend" in words[at]), len(words) - 1)
    math_at = next((at for at in range(backend_at, 3, -1) if _FPMATH.fullmatch(words[at])), None)
    after = words[(math_at if math_at is not None else backend_at - 1) + 1 : backend_at]
    scratchpad = next((word for word in after if word.startswith("scratchpad")), None)
    implementation = next((word for word in after if word and not word.startswith("scratchpad")), None)
    middle = words[4 : math_at if math_at is not None else backend_at]
    tensors_at = next((at for at in range(len(middle) - 1, -1, -1) if _TENSOR.search(middle[at])), len(middle))
    logical = middle[tensors_at].strip() if tensors_at < len(middle) else ""
    formats = middle[tensors_at - 1] if tensors_at >= 1 else ""
    names = ",".join(middle[: max(tensors_at - 1, 0)])
    found = _TENSOR.findall(logical)
    math = [words[math_at]] if math_at is not None else []
    return {
        "engine": engine,
        "primitive": words[3] or "partition",
        "implementation": implementation,
        "family": "graph",
        "src_dt": next((dt for side, _, dt, *_ in found if side == "in"), None),
        "dst_dt": next((dt for side, _, dt, *_ in found if side == "out"), None),
        "tensors": logical or None,
        "attributes": " ".join([*math, *([scratchpad] if scratchpad else [])]) or None,
        "auxiliary": " ".join(part for part in (f"ops:{names}" if names else "", formats.strip()) if part) or None,
        "problem": ":".join(dims for *_, dims, _ in found if dims) or None,
    }


def _special(engine: str, words: list[str]) -> Fields:
    """Read the irregular line of operations that stand outside a partition, such as ``_gen_index``."""
    rest = ",".join(words[3:])
    shapes = _SPECIAL.findall(rest)
    return {
        "engine": engine,
        "primitive": words[2].partition("(")[0],
        "family": "graph",
        "src_dt": shapes[0][0] if shapes else None,
        "dst_dt": shapes[-1][0] if shapes else None,
        "tensors": rest or None,
        "problem": ":".join(dims for _, dims in shapes) or None,
    }
