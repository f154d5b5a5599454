"""oneDNN's lines: where the stamp, the text and the time stand, in every era.

======================  ==================================================================================
mkldnn 0.13-0.21        marker,op,primitive,implementation,prop_kind,data,auxiliary,problem,ms
mkldnn 1.0, dnnl 1.1    marker,op,engine,primitive,implementation,prop_kind,tensors,auxiliary,problem,ms
dnnl 1.2 - onednn 3.2   marker,[stamp,]op,engine,primitive,…,tensors,attributes,auxiliary,problem,ms
onednn 3.3 and later    marker,[v1,][stamp,]component,op,engine,…,problem,ms
======================  ==================================================================================

Fields are counted from both ends: no field of a primitive's line holds a comma, but graph, dispatch and error
lines can, and a process with a decimal comma splits its stamp and its time in two.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

HEAD: Final = re.compile(
    rb"((?:mkldnn|dnnl|onednn)(?:_graph)?_verbose,(?:v\d+,)?)"
    rb"(?:(\d{1,15})[.,](\d{6}),|(\d\.\d+e[+]?\d+),)?"
)
COMPONENTS: Final = frozenset((b"primitive", b"graph", b"ukernel", b"common"))
ENGINE: Final = re.compile(rb"(?:cpu|gpu)(?::\d+)?(?:2(?:cpu|gpu)(?::\d+)?)?")
_PRIMITIVE: Final = re.compile(rb"[a-z][a-z0-9_]*")
_PROP: Final = re.compile(rb"undef|(?:forward|backward)(?:_[a-z]+)?|")
_TIME: Final = re.compile(rb"-?(?:1\.#[A-Z]+\d*|\d+\.?\d*(?:[eE][+-]?\d+)?|nan(?:\([a-z0-9]*\))?|inf)")
_PLAIN_TIME: Final = re.compile(rb"\d{1,9}(?:\.\d{1,12})?")
_AFTER_TIME: Final = re.compile(rb"(?![x:._\d])")
_DECIMALS: Final = re.compile(rb"\d+(?:[eE][+-]?\d+)?")
_TIMED: Final = frozenset((b"exec", b"create", b"create_nested", b"compile"))
_REFUSALS: Final = frozenset((b"dispatch", b"check"))
_SOURCE: Final = re.compile(rb"[^,]+:\d+\s*$")

FULL: Final = (
    "op",
    "engine",
    "primitive",
    "implementation",
    "prop_kind",
    "tensors",
    "attributes",
    "auxiliary",
    "problem",
)
_NO_ATTRIBUTES: Final = (*FULL[:6], *FULL[7:])
_NO_ENGINE: Final = (FULL[0], *_NO_ATTRIBUTES[2:])
_NO_AUXILIARY: Final = (*FULL[:7], FULL[8])


class Line(NamedTuple):
    """A oneDNN line cut up: `text` is the line without stamp and time."""

    text: bytes
    duration_ms: float | None
    start_ns: int | None
    plain: bool
    rest: bytes


def cut(piece: bytes) -> Line | None:
    """Cut stamp and time out of a line; None when it isn't a whole line of any era."""
    head = HEAD.match(piece)
    if head is None:
        return None
    marker, body = head[1], piece[head.end() :]
    fields = body.split(b",")
    component = fields.pop(0) if fields[0] in COMPONENTS else b""
    if not fields:
        return None
    word, _, state = fields[0].partition(b":")
    if word in _TIMED and state not in _REFUSALS:
        graph = component == b"graph" or b"_graph_" in marker or is_graph(fields)
        timed = _graph_time(fields) if graph else _time(marker, fields)
        if timed is None:
            return None
        duration_ms, length, rest, plain = timed
        body = body[: len(body) - length]
    elif _untimed(word, state, fields):
        duration_ms, rest, plain = None, b"", True
    else:
        return None
    start_ns = int(head[2] + head[3]) if head[2] is not None else None
    # A stamp with a decimal comma, or one printed with six digits only, is not where a kernel looks for one.
    plain = plain and not rest and head[4] is None and b"," not in head[0][len(marker) : -1]
    return Line(marker + body, duration_ms, start_ns, plain, rest)


def _untimed(word: bytes, state: bytes, fields: list[bytes]) -> bool:
    """Tell the lines that never have a time, from their operation word."""
    if word == b"info":
        return len(fields) > 1 and bool(fields[1])
    if state in _REFUSALS:
        if len(fields) > 3 and fields[1] == b"pattern_matcher":
            return bool(fields[-1])
        return len(fields) > 2 and _SOURCE.match(fields[-1]) is not None
    if word in (b"error", b"warn", b"warning", b"debuginfo"):
        return len(fields) > 1
    return len(fields) > 2 and word in (b"cpu", b"gpu") and fields[1] in (b"acl", b"debuginfo")


def _time(marker: bytes, fields: list[bytes]) -> tuple[float | None, int, bytes, bool] | None:
    """Find the time of a primitive: its value, the bytes from its comma to the end, what follows it, plain.

    The fields before it are counted from the left, so that text behind it may hold commas.
    """
    count = len(fields)
    for before in _counts(marker, fields):
        if before >= count or profile(marker, fields[:before]) is None:
            continue
        printed = fields[before]
        length = sum(map(len, fields[before:])) + count - before
        if _PLAIN_TIME.fullmatch(printed) and count == before + 1:
            return float(printed), length, b"", True
        behind = _DECIMALS.match(fields[before + 1]) if count > before + 1 else None
        if behind and printed.lstrip(b"-").isdigit():
            rest = b",".join([fields[before + 1][behind.end() :], *fields[before + 2 :]])
            return value(printed + b"." + behind[0]), length, rest, False
        number = _TIME.match(printed)
        if number and _AFTER_TIME.match(printed, number.end()):
            return value(number[0]), length, b",".join([printed[number.end() :], *fields[before + 1 :]]), False
    if count > 7 and (fields[2] == b"sdpa" or fields[1].startswith(b"gpu")) and profile(marker, fields):
        return None, 0, b"", False
    return None


def _counts(marker: bytes, fields: list[bytes]) -> tuple[int, ...]:
    """Say how many fields may stand before the time: most torn lines have fewer, and are told by that."""
    if len(fields) < 8:
        return (3, 2)
    if marker.startswith(b"onednn"):
        return (8,) if fields[2] == b"gemm_api" and len(fields) < 10 else (9,)
    return (9, 8, 7) if marker.startswith(b"dnnl") else (8, 7)


def is_graph(fields: list[bytes]) -> bool:
    """Tell a graph partition's line by its shape: one version prints it as a primitive's."""
    return len(fields) > 8 and fields[2].isdigit() and ENGINE.fullmatch(fields[1]) is not None


def _graph_time(fields: list[bytes]) -> tuple[float | None, int, bytes, bool] | None:
    if len(fields) < 6 or ENGINE.fullmatch(fields[1]) is None or not fields[0].startswith((b"exec", b"compile")):
        return None
    named = [index for index in range(len(fields) - 1, 4, -1) if b"backend" in fields[index]]
    at = named[0] + 1 if named else len(fields) - 1
    if at >= len(fields) or (not named and not any(field.startswith(b"attrs:") for field in fields[3:5])):
        return None
    number = _TIME.match(fields[at])
    if number is None:
        return None
    after = fields[at + 1 :]
    length = sum(map(len, fields[at:])) + len(fields) - at
    if len(after) == 1 and fields[at].isdigit():
        decimals = re.match(rb"\d+", after[0])
        if decimals:
            return value(fields[at] + b"." + decimals[0]), length, after[0][decimals.end() :], False
    plain = not after and _PLAIN_TIME.fullmatch(fields[at]) is not None
    return value(number[0]), length, b"" if after else fields[at][number.end() :], plain


def profile(marker: bytes, fields: list[bytes]) -> tuple[str, ...] | None:
    """Name the fields of a primitive's line, without component and time; None when they don't fit any era."""
    word, _, state = fields[0].partition(b":") if fields else (b"", b"", b"")
    if word not in (b"exec", b"create", b"create_nested"):
        return None
    count = len(fields)
    if state == b"external":
        return ("op", "implementation") if count == 2 else None
    if count == 3 and fields[1] == b"zero_pad":
        return ("op", "primitive", "auxiliary")
    has_engine = count > 1 and ENGINE.fullmatch(fields[1]) is not None
    names = _names(marker, fields, has_engine)
    if names is None:
        return None
    first = 2 if has_engine else 1
    if _PRIMITIVE.fullmatch(fields[first]) is None or _PROP.fullmatch(fields[first + 2]) is None:
        return None
    return names


def _names(marker: bytes, fields: list[bytes], has_engine: bool) -> tuple[str, ...] | None:
    count = len(fields)
    old = not marker.startswith(b"onednn")
    if not has_engine:
        return _NO_ENGINE if count == 7 and old else None
    if count == 9 and not marker.startswith(b"mkldnn") and not fields[6].startswith((b"alg:", b"axis:", b"flags:")):
        return FULL
    if count == 8 and fields[2] == b"gemm_api":
        return _NO_AUXILIARY
    return _NO_ATTRIBUTES if count == 8 and old else None


def value(number: bytes) -> float:
    """Read a time as C prints it, old MSVC spellings included."""
    if b"#" in number:
        infinite = b"INF" in number
        return float("-inf" if number.startswith(b"-") else "inf") if infinite else float("nan")
    if b"(" in number:
        number = number.partition(b"(")[0]
    return float(number)


def coarse(text: bytes) -> bytes:
    """Give the text with its problem emptied, field by field, so that it can still be understood."""
    head = HEAD.match(text)
    if head is None:
        return b""
    fields = text[head.end() :].split(b",")
    first = 1 if fields[0] in COMPONENTS else 0
    names = profile(head[1], fields[first:])
    if names:
        kept = names.index("prop_kind") + 1 if "prop_kind" in names else len(names)
        return head[1] + b",".join(fields[: first + kept] + [b""] * (len(names) - kept))
    return head[1] + b",".join(fields[: first + 2])
