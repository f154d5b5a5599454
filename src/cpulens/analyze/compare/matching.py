"""Kernels of two sides brought together: exactly first, then by what they still have in common."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from cpulens.analyze.compare.identity import GROUPING, STAGES, Variant


class Match(NamedTuple):
    """Variants that are compared with each other, by place in each side's list; an empty side: added, removed."""

    stage: str
    base: tuple[int, ...]
    new: tuple[int, ...]


def match(base: Sequence[Variant], new: Sequence[Variant]) -> list[Match]:
    """Match every variant of both sides, each once. Several variants of one identity on a side are one kernel."""
    grouped = any(variant.grouping for variant in (*base[:1], *new[:1]))
    matches: list[Match] = []
    left, right = list(range(len(base))), list(range(len(new)))
    stage = ""
    for stage, names in (GROUPING if grouped else STAGES).items():
        identity = attrgetter(*names)
        before, after = _by(identity, base, left), _by(identity, new, right)
        shared = [key for key in before if key in after]
        matches += [Match(stage, before[key], after[key]) for key in shared]
        left = [at for key, places in before.items() if key not in after for at in places]
        right = [at for key, places in after.items() if key not in before for at in places]
    # What is left has no partner at all; it stays one kernel per exact identity.
    exact = attrgetter(*(GROUPING["columns"] if grouped else STAGES["problem"]))
    matches += [Match("removed", places, ()) for places in _by(exact, base, left).values()]
    matches += [Match("added", (), places) for places in _by(exact, new, right).values()]
    return matches


def _by(identity: Any, variants: Sequence[Variant], places: list[int]) -> dict[Any, tuple[int, ...]]:
    found: dict[Any, list[int]] = {}
    for at in places:
        found.setdefault(identity(variants[at]), []).append(at)
    return {key: tuple(ats) for key, ats in found.items()}
