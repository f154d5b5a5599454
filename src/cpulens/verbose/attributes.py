"""Attributes and auxiliary fields of every era, brought to the newest spelling."""

from __future__ import annotations

import re
from typing import Final

_OLD: Final = re.compile(
    r"(scratchpad_mode|oscale|scales|zero_points|post_ops|rnn_data_qparams|rnn_weights_qparams):('[^']*'|[^;]*);?"
)
_OLD_NAMES: Final = {
    "scratchpad_mode": "attr-scratchpad",
    "oscale": "attr-oscale",
    "scales": "attr-scales",
    "zero_points": "attr-zero-points",
    "post_ops": "attr-post-ops",
    "rnn_data_qparams": "rnn_data_qparams",
    "rnn_weights_qparams": "rnn_weights_qparams",
}
_ARGUMENT: Final = re.compile(r"_(?=(?:src|wei|dst)\d*:)")
_BNORM_BITS: Final = ((1, "G"), (2, "CH"), (4, "R"))


def newest(text: str) -> str:
    """Spell attributes in the newest way: words ``attr-name:value`` joined by one blank."""
    text = text.strip("# ")
    if not text:
        return ""
    if "attr-" not in text and _OLD.match(text):
        text = " ".join(_old_attribute(name, value) for name, value in _OLD.findall(text))
    words = text.split()
    return " ".join(_word(word) for word in words)


def _old_attribute(name: str, value: str) -> str:
    value = value.strip("'")
    if name == "post_ops":
        value = "+".join(part for part in value.split(";") if part)
    elif name in ("scales", "zero_points"):
        value = _ARGUMENT.sub("+", value)
    value = re.sub(r"(?<=:)-?nan\b", "*", value)
    return f"{_OLD_NAMES[name]}:{value}"


def _word(word: str) -> str:
    if word.startswith("attr-acc:"):
        return "attr-acc-mode:" + word.removeprefix("attr-acc:")
    if word.startswith(("attr-zero-points:", "attr-scales:", "attr-oscale:")):
        return re.sub(r"(?<=[:+])src(?=:)", "src0", word)
    return word


def auxiliary(primitive: str, printed_primitive: str, text: str) -> str:
    """Spell the auxiliary field in the newest way."""
    text = text.strip("# ")
    spell = _SPELLERS.get(primitive)
    return spell(text, printed_primitive) if spell else text


def _eltwise(text: str, _: str) -> str:
    parts = text.split(":")
    if len(parts) == 4 and " " not in text:
        return f"alg:{parts[1]} alpha:{parts[2]} beta:{parts[3]}"
    return text


def _softmax(text: str, printed: str) -> str:
    algorithm = "softmax_log" if printed == "logsoftmax" else "softmax_accurate"
    if text.startswith("axis:"):
        return f"alg:{algorithm} {text}"
    return re.sub(
        r"alg:(?:log)?softmax (?=axis)", lambda m: "alg:softmax_log " if "log" in m[0] else f"alg:{algorithm} ", text
    )


def _normalization(text: str, _: str) -> str:
    flags = text.removeprefix("flags:")
    if flags == text:
        return text
    if flags.isdigit():
        flags = "".join(letters for bit, letters in _BNORM_BITS if int(flags) & bit)
    return "flags:" + flags.replace("S", "CH")


def _shuffle(text: str, _: str) -> str:
    return text.replace("group_size:", "group:")


def _concat(text: str, _: str) -> str:
    return re.sub(r" num:\d+", "", text)


def _counted(text: str, _: str) -> str:
    return re.sub(r"^num:\d+$", "", text)


def _rnn(text: str, _: str) -> str:
    return text if "flags:" in text or "direction:" not in text else text + " flags:"


_SPELLERS: Final = {
    "eltwise": _eltwise,
    "softmax": _softmax,
    "batch_normalization": _normalization,
    "layer_normalization": _normalization,
    "group_normalization": _normalization,
    "shuffle": _shuffle,
    "concat": _concat,
    "sum": _counted,
    "reorder": _counted,
    "rnn": _rnn,
}
