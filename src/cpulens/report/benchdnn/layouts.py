"""Layouts of a problem's tensors as benchdnn's options say them: tags, ``any``, strides."""

from __future__ import annotations

import re
from typing import Final

from cpulens.verbose.tensors import Tensor

_PLAIN: Final = re.compile(r"[a-l]+")


class Inexpressible(Exception):
    """benchdnn has no way to say this; the message says what and why. It never leaves this package."""


def tag(tensor: Tensor, *, exact: bool) -> str:
    """The tag of a tensor.

    ``any`` where its program left the layout to the library, unless the `exact` one that ran is asked for; always
    where the layout is private, or holds compensation that only the library can make.
    """
    if tensor.kind in ("any", "opaque", "wino", "rnn_packed", "zen_packed") or tensor.flags.partition("_")[0] != "f0":
        return "any"
    if "a" in tensor.properties and not exact:
        return "any"
    return concrete(tensor)


def concrete(tensor: Tensor) -> str:
    """The tag of a tensor whose layout must be said. Raises Inexpressible for a private, sparse or unknown one."""
    if tensor.kind != "blocked" or not tensor.tag:
        raise Inexpressible(f"{tensor.name} lies in a layout of kind {tensor.kind or 'unknown'}, which has no tag")
    return tensor.tag


def without_strides(*tensors: Tensor) -> None:
    """Raise Inexpressible for a tensor with strides of its own: the driver has no option for them."""
    for one in tensors:
        if one.strides:
            raise Inexpressible(f"the strides {one.strides} of {one.name}: the driver has no option for them")


def tags_or_strides(tensors: dict[str, Tensor], *, exact: bool) -> list[str]:
    """`--stag`, `--wtag`, `--dtag` by their letters, and `--strides` for those that have strides of their own."""
    options, strides = [], []
    for letter, one in tensors.items():
        name = tag(one, exact=exact)
        if not one.strides or name == "any":
            options.append(f"--{letter}tag={name}")
            strides.append("")
        elif _PLAIN.fullmatch(name):
            strides.append(one.strides)
        else:
            raise Inexpressible(f"the strides {one.strides} of the blocked layout {name} of {one.name}")
    return options + ([f"--strides={':'.join(strides)}"] if any(strides) else [])
