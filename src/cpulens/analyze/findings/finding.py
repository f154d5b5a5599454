"""What a rule found: one fact about a run, with its evidence, what it costs, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cpulens.shown import Shown

#: Something failed; it costs time; it may be worth a try (it changes results, or the log alone can't decide).
ERROR: Final = "error"
WARNING: Final = "warning"
ADVICE: Final = "advice"
SEVERITIES: Final = (ERROR, WARNING, ADVICE)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of evidence: a sentence with numbers, and the physical lines of the log where it stands (a few)."""

    sentence: str
    lines: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding(Shown):
    """One thing found.

    `code`: the rule, as `docs/findings.md` lists it. `severity`: one of SEVERITIES. `cost_ms`: the time that would be
    saved at most if the cause went away, in milliseconds over the whole trace; None where the log can't tell. Costs of
    two findings may be the same time. `numbers`: the figures behind it, by name, units in the names.
    """

    code: str
    severity: str
    title: str
    evidence: tuple[Evidence, ...]
    cost_ms: float | None
    next_step: str
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, bool, float]:
        """Sorts findings: by severity; causes without a price of their own before what they may cause; by cost."""
        return SEVERITIES.index(self.severity), self.cost_ms is not None, -(self.cost_ms or 0.0)


class Findings(tuple[Finding, ...], Shown):
    """What all rules found, worst first."""

    __slots__ = ()


def share_of(part: float, whole: float) -> float:
    """Give a part as a share from 0 to 1; 0 where there is nothing."""
    return part / whole if whole > 0 else 0.0


def ms(value: float) -> str:
    """Give a time in words: three digits, and its unit."""
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.3g} ms"


def percent(share: float) -> str:
    """Give a share in words."""
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"


def times(number: float, noun: str, plural: str = "") -> str:
    """Give a number of things in words."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
