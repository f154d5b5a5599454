"""Attributes of a problem as benchdnn's options say them.

Values of scales and zero points that are given at execution are in no line: 0.5 and 1 stand for them.
"""

from __future__ import annotations

import re
from typing import Final

from cpulens.report.benchdnn.layouts import Inexpressible

_SCALE, _ZERO_POINT = "0.5", "1"
_ARGUMENTS: Final = re.compile(r"src[01]?|wei|dst|msrc\d+")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
_SHAPE: Final = re.compile(r"\d+(?:x\d+)*")
_MODES: Final = {"host_scalar": "host_scalar", "dynamic_mx": "mx", "dynamic_fp": "dynamic_fp"}
_DEPTHWISE: Final = re.compile(r"k\d+s\d+p\d+")
_PASSED_ON: Final = ("scratchpad", "fpmath", "acc-mode", "rounding-mode")
#: Said by the configuration of the rnn driver, or of no influence on what runs.
_SAID_ELSEWHERE: Final = ("rnn_data_qparams", "rnn_weights_qparams")


def options(attributes: str) -> list[str]:
    """The options for attributes in the newest spelling. Raises Inexpressible for one that has no option."""
    found = []
    for word in attributes.split():
        name, _, value = word.partition(":")
        name = name.removeprefix("attr-")
        if name in _SAID_ELSEWHERE:
            continue
        if name not in _SPELLERS and name not in _PASSED_ON:
            raise Inexpressible(_UNSAID.get(name, f"the attribute {name}"))
        spelled = value if name in _PASSED_ON else _SPELLERS[name](value)
        found.append(f"--attr-{name}={spelled}")
    return found


_UNSAID: Final = {
    "oscale": "output scales of oneDNN up to 2.x, which benchdnn no longer has",
}


def _scales(value: str) -> str:
    return "+".join(_quantization(entry, _SCALE, "f32") for entry in value.split("+"))


def _zero_points(value: str) -> str:
    return "+".join(_quantization(entry, _ZERO_POINT, "s32") for entry in value.split("+"))


def _quantization(entry: str, unknown_value: str, default_type: str) -> str:
    """``wei:3:bf16:32x1`` → ``wei:3:bf16:32x1``; a single number needs its value, which older lines print."""
    argument, *rest = entry.split(":")
    if not _ARGUMENTS.fullmatch(argument) or not rest or not rest[0].isdigit():
        raise Inexpressible(f"scales or zero points of {entry}")
    mask, value, data_type, groups = rest[0], unknown_value, default_type, ""
    policy = mask
    for part in rest[1:]:
        if part in _MODES:
            policy = _MODES[part]
        elif _SHAPE.fullmatch(part) and "x" in part:
            groups = part
        elif _NUMBER.fullmatch(part):
            value = f"{float(part):g}"
        elif part not in ("*", ""):
            data_type = part
    parts = ["src" if argument == "src0" else argument, policy]
    if policy in ("0", "host_scalar"):
        parts.append(value)
    if data_type != default_type or groups:
        parts.append(data_type)
    return ":".join([*parts, groups] if groups else parts)


def _precomputed(value: str) -> str:
    return "+".join(_precomputed_entry(entry) for entry in value.split("+"))


def _precomputed_entry(entry: str) -> str:
    argument, mask, *rest = [*entry.split(":"), "", ""][: max(entry.count(":") + 1, 2)]
    return ":".join(["src" if argument == "src0" else argument, mask, *rest])


def _post_operations(value: str) -> str:
    return "+".join(_post_operation(entry) for entry in value.split("+"))


def _post_operation(entry: str) -> str:
    name, *rest = entry.split(":")
    if name.startswith("eltwise_"):
        short = name.removeprefix("eltwise_").replace("_use_dst_for_bwd", "_dst")
        return ":".join([short, *rest])
    if name == "binary_select":
        raise Inexpressible("the post-operation select: its line does not say the shape of the condition")
    if name.startswith("binary_"):
        return ":".join([name.removeprefix("binary_"), *_second_source(rest)])
    if name.startswith("dw"):
        window = name.removeprefix("dw_") if name.startswith("dw_") else rest.pop(0) if rest else ""
        if not _DEPTHWISE.fullmatch(window):
            raise Inexpressible(f"the fused depthwise convolution {entry}")
        return ":".join(["dw", window, *rest[:1]])
    if name in ("sum", "prelu"):
        return entry
    raise Inexpressible(f"the post-operation {name}")


def _second_source(rest: list[str]) -> list[str]:
    """Type, mask, tag, strides; a tag belongs only to a source of more than one dimension."""
    if "grouped" in rest:
        raise Inexpressible("a second source of a binary post-operation in grouped memory")
    several = len(rest) > 1 and rest[1].isdigit() and int(rest[1]).bit_count() > 1
    return rest if several else rest[:2]


def _deterministic(value: str) -> str:
    return {"1": "true", "0": "false"}.get(value, value)


def _dropout(value: str) -> str:
    """``tag:seed type:offset:host`` → probability (in no line: 0.5), seed, tag, offset, host."""
    tag, _, offset, host = [*value.split(":"), "", "", "", ""][:4]
    if not tag:
        return "0.5"
    return (
        f"0.5:0:{tag}" + (f":{offset or '0'}" if offset == "1" or host == "1" else "") + (":1" if host == "1" else "")
    )


_SPELLERS: Final = {
    "scales": _scales,
    "zero-points": _zero_points,
    "precomputed-reductions": _precomputed,
    "post-ops": _post_operations,
    "deterministic": _deterministic,
    "dropout": _dropout,
}
