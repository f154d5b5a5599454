"""Findings and coverage as JSON: the contract for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cpulens.analyze.coverage import Coverage
    from cpulens.analyze.findings import Finding


def findings_object(findings: Sequence[Finding], coverage: Coverage) -> dict[str, Any]:
    """Give `{"schema": 1, "findings": [{"code", "severity", "title", "evidence", …}], "coverage": {…}}`."""
    return {
        "schema": 1,
        "findings": [
            {
                "code": one.code,
                "severity": one.severity,
                "title": one.title,
                "cost_ms": one.cost_ms,
                "evidence": [{"sentence": piece.sentence, "lines": list(piece.lines)} for piece in one.evidence],
                "next_step": one.next_step,
                "numbers": dict(one.numbers),
            }
            for one in findings
        ],
        "coverage": {
            "stretches": [
                {**asdict(one), "neither_ms": one.neither_ms, "overlapping": one.overlapping}
                for one in coverage.stretches
            ],
            "gaps": [asdict(gap) for gap in coverage.gaps],
        },
    }
