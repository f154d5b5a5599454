"""The name of this processor's design, from archspec, where it knows the design."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cpulens.machine.isa import Processor, read_processor


class Microarchitecture(NamedTuple):
    """`name`: archspec's, None where it doesn't know this design; `nearest`: the one that it takes it for."""

    name: str | None
    nearest: str | None
    reason: str  #: why there is no name; "" when there is one


@lru_cache(maxsize=1)
def microarchitecture() -> Microarchitecture:
    """Name the design of this host. Needs the package archspec (40 ms once), else unknown."""
    try:
        from archspec.cpu import TARGETS, host
    except ImportError:
        return Microarchitecture(None, None, "the package archspec is not installed: pip install archspec")
    processor = read_processor()
    if not processor.listed:
        return Microarchitecture(None, None, "; ".join(processor.notes))
    try:
        nearest = str(host())
    except Exception as error:  # it reads /proc and sysctl, and raises what they raise
        return Microarchitecture(None, None, f"archspec can't tell: {type(error).__name__}: {error}")
    return judge(processor, nearest, frozenset(TARGETS))


def judge(processor: Processor, nearest: str, known: frozenset[str]) -> Microarchitecture:
    """Whether archspec's answer is this design, or the nearest that it knows.

    It takes a design that it lacks for the newest one whose features the processor has; the model number tells.
    """
    if processor.generation is None:
        generic = nearest.startswith("x86_64") or nearest == processor.architecture
        reason = f"archspec knows no design like it, only its family {nearest}" if generic else ""
        return Microarchitecture(None if generic else nearest, nearest, reason)
    own = target(processor.generation, processor.architecture)
    if own in known:
        return Microarchitecture(own, nearest, "")
    return Microarchitecture(
        None, nearest, f"archspec has no {processor.generation} yet; the nearest that it knows is {nearest}"
    )


#: Where archspec's name is not the design's own, written in lower case.
_OTHER_NAMES = {"Skylake-SP": "skylake_avx512", "Zen+": "zen", "Ampere-1": "ampere1", "Ampere-1A": "ampere1a"}


def target(generation: str, architecture: str) -> str:
    """The name that archspec gives a design: "Sapphire Rapids" → "sapphirerapids", "Neoverse V2" → "neoverse_v2"."""
    if generation in _OTHER_NAMES:
        return _OTHER_NAMES[generation]
    joint = "_" if generation.startswith("Neoverse") else ""
    name = generation.lower().replace(" ", joint)
    return name + "le" if architecture == "ppc64le" else name
