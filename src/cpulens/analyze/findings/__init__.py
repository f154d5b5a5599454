"""Rules that say what is wrong with a run, how one sees it, what it costs and what to do. They don't guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpulens.analyze.findings.finding import ADVICE, ERROR, SEVERITIES, WARNING, Evidence, Finding, Findings
from cpulens.analyze.findings.thresholds import Thresholds

if TYPE_CHECKING:
    from cpulens.analyze.coverage import Coverage
    from cpulens.trace import Trace

__all__ = ["ADVICE", "ERROR", "SEVERITIES", "WARNING", "Evidence", "Finding", "Findings", "Thresholds", "find"]


def find(trace: Trace, thresholds: Thresholds | None = None, coverage: Coverage | None = None) -> Findings:
    """Ask every rule; the findings, worst first: by severity, then by what they cost.

    `thresholds`: from when on something counts (default: those of `Thresholds`). `coverage`: of the same trace, where
    it is known already. A clean trace gives none.
    """
    from cpulens.analyze.findings.ledger import Ledger
    from cpulens.analyze.findings.rules import RULES

    limits = thresholds or Thresholds()
    ledger = Ledger(trace, coverage)
    found = [finding for rule in RULES for finding in rule(ledger, limits)]
    kept = [
        finding
        for finding in found
        if finding.code not in limits.disable and (finding.cost_ms is None or finding.cost_ms >= limits.least_ms)
    ]
    return Findings(sorted(kept, key=lambda finding: finding.rank))
