"""Memory descriptors of every era, brought to the newest spelling: ``name:dt:properties:kind:tag:strides:flags``.

============  ===================================  =============================
mkldnn 0.x    ``fsrc:nchw`` / ``in:f32_nchw``      old layout names, some types
1.0 - 3.1     ``src_f32::blocked:abcd:f0``         no strides
3.2 - 3.5     ``src_f32::blocked:abcd::f0``
3.6 -         ``src:f32::blocked:abcd::f0``
============  ===================================  =============================

What does not look like a descriptor is kept as it stands.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

#: `f8_e5m2` before `e5m2`-like endings: the longest spelling wins, for names themselves hold underscores.
DATA_TYPES: Final = (
    "f8_e5m2", "f8_e4m3", "f4_e2m1", "f4_e3m0", "boolean", "undef", "bf16", "e8m0",
    "f16", "f32", "f64", "s32", "s8", "u8", "s4", "u4",
)  # fmt: skip
_OLD: Final = re.compile(rf"(?P<name>[a-z]\w*?)_(?P<dt>{'|'.join(DATA_TYPES)})")
_FLAGS: Final = re.compile(r"f\d+")
_GLUED: Final = re.compile(r"(:f\d+)(?=[a-z]+_\w+:)")
_ERA_A: Final = re.compile(
    r"f(src|wei|bia|dst|data|diff|ws):(\S*)|(in|out):(?:([a-z]+\d+)_)?(\S+)|([a-z]data):(\S*)|dt:(\w+) fmt:(\S+)"
)
_OLD_NAMES: Final = {"in": "src", "out": "dst", "ddata": "dst_iter"}


class Tensor(NamedTuple):
    """One memory descriptor. Absent parts are empty strings; `flags` may hold colons of its own."""

    name: str
    dt: str
    properties: str
    kind: str
    tag: str
    strides: str
    flags: str

    def __str__(self) -> str:
        return ":".join(self)


@lru_cache(maxsize=4096)
def newest(text: str, era: str, forward: bool) -> str:
    """Spell a list of descriptors in the newest way.

    `era`: one of "0", "1", "3.6" for the three families of spelling. `forward`: null gradients are dropped, as newer
    versions don't print them.
    """
    if era == "0":
        return " ".join(str(tensor) for tensor in _era_a(text))
    if era == "1":
        text = _GLUED.sub(r"\1 ", text)
    spelled = [word if era == "3.6" else _respell(word) for word in text.split() if word != "#"]
    if forward:
        spelled = [word for word in spelled if not (word.startswith("diff") and ":undef::undef:" in word)]
    return " ".join(spelled)


def _respell(word: str) -> str:
    parts = word.split(":")
    found = _OLD.fullmatch(parts[0])
    if found is None or len(parts) < 4:
        return word
    name, dt = found["name"], found["dt"]
    if dt == "undef":
        return str(Tensor(name, "undef", "", "undef", "", "", ""))
    if len(parts) > 4 and _FLAGS.match(parts[4]) and not (len(parts) > 5 and _FLAGS.match(parts[5])):
        parts.insert(4, "")
    return ":".join([name, dt, *parts[1:]])


def _era_a(text: str) -> list[Tensor]:
    tensors = []
    for found in _ERA_A.finditer(text):
        new, new_tag, old, dt, old_tag, rnn, rnn_tag, shuffle_dt, shuffle_tag = found.groups()
        if new:
            tensors.append(_old_tensor(new, "", new_tag))
        elif old:
            tensors.append(_old_tensor(_OLD_NAMES[old], dt or "", old_tag))
        elif rnn:
            tensors.append(Tensor(_OLD_NAMES.get(rnn, rnn), "", "", "", rnn_tag, "", ""))
        else:
            tensors.append(_old_tensor("data", shuffle_dt, shuffle_tag))
    return [tensor for tensor in tensors if not (tensor.name in ("diff", "ws") and tensor.kind == "undef")]


def _old_tensor(name: str, dt: str, tag: str) -> Tensor:
    if tag in ("undef", ""):
        return Tensor(name, "undef", "", "undef", "", "", "")
    if tag == "any":
        return Tensor(name, dt, "", "any", "any", "", "")
    if tag in ("wino", "wino_fmt", "rnn_packed", "blocked"):
        return Tensor(name, dt, "", tag.removesuffix("_fmt"), "", "", "")
    from cpulens.verbose.old_layouts import letters

    return Tensor(name, dt, "", "blocked", letters(tag), "", "")


def parse(spelled: str) -> list[Tensor]:
    """Take the newest spelling apart; words that are no descriptors are left out."""
    tensors = []
    for word in spelled.split():
        parts = word.split(":", 6)
        if len(parts) >= 6:
            name, dt, properties, kind, tag, strides = parts[:6]
            tensors.append(Tensor(name, dt, properties, kind, tag, strides, "".join(parts[6:])))
    return tensors


_SOURCES: Final = ("src", "src_layer", "data", "src_a", "src0", "query")
_DESTINATIONS: Final = ("dst", "dst_layer", "data")
_WEIGHTS: Final = ("wei", "wei_layer", "wei_gate")
_SOURCE_GRADIENTS: Final = ("diff_src", "diff")


@lru_cache(maxsize=4096)
def types(spelled: str) -> tuple[str | None, str | None, str | None]:
    """Give the data types of the first source, the weights and the destination; None where not said."""
    by_name: dict[str, str] = {}
    for word in spelled.split():
        name, _, rest = word.partition(":")
        dt = rest.partition(":")[0]
        if dt and dt != "undef":
            by_name.setdefault(name, dt)

    def first(names: tuple[str, ...]) -> str | None:
        return next((by_name[name] for name in names if name in by_name), None)

    return first(_SOURCES) or first(_SOURCE_GRADIENTS), first(_WEIGHTS), first(_DESTINATIONS) or first(("diff_dst",))
