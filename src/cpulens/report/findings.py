"""Findings as a person reads them: what, how one sees it, what to do; worst first."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from cpulens.report.text import count, milliseconds, visible

if TYPE_CHECKING:
    from cpulens.analyze.coverage import Coverage
    from cpulens.analyze.findings import Finding

_MOST_WIDE: Final = 110
_STRETCHES: Final = 5


def findings_text(findings: Sequence[Finding], width: int | None = None) -> str:
    """All findings as plain text, wrapped to `width` columns (default: the terminal's)."""
    columns = _columns(width)
    if not findings:
        return "Nothing found: no rule sees anything wrong with this run."
    blocks = ["\n".join(_block(number, one, columns)) for number, one in enumerate(findings, 1)]
    return "\n\n".join(blocks)


def _columns(width: int | None) -> int:
    return min(width or shutil.get_terminal_size((80, 24)).columns, _MOST_WIDE)


def _block(number: int, finding: Finding, width: int) -> Iterator[str]:
    price = f", costs up to {milliseconds(finding.cost_ms)} ms" if finding.cost_ms is not None else ""
    yield from _wrapped(f"{number}. {finding.title}", width, "   ")
    yield f"   {finding.severity}: {finding.code}{price}"
    for one in finding.evidence:
        where = f" [{'line' if len(one.lines) == 1 else 'lines'} {', '.join(map(str, one.lines))}]" if one.lines else ""
        yield from _wrapped(f"   - {one.sentence}{where}", width, "     ")
    yield from _wrapped(f"   → {finding.next_step}", width, "     ")


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(visible(text), width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def coverage_text(coverage: Coverage, width: int | None = None) -> str:
    """The wall time of each stretch against its kernels, and the gaps; an empty string where none is known."""
    lines = []
    for one in coverage.stretches[:_STRETCHES]:
        shares = [
            f"{milliseconds(time)} ms {name}"
            for name, time in (
                ("in oneDNN", one.onednn_ms),
                ("in oneMKL", one.mkl_ms),
                ("printing", one.printing_ms),
                ("in neither", one.neither_ms),
            )
        ]
        over = "; kernels ran at the same time" if one.overlapping else ""
        lines.append(f"{one.name}: {milliseconds(one.wall_ms)} ms wall, {', '.join(shares)}{over}")
    if len(coverage.stretches) > _STRETCHES:
        rest = coverage.stretches[_STRETCHES:]
        lines.append(
            f"{count(len(rest), 'more iteration')}: {milliseconds(sum(one.wall_ms for one in rest))} ms wall, "
            f"{milliseconds(sum(one.neither_ms for one in rest))} ms in neither"
        )
    if coverage.gaps:
        total_ms, number = sum(gap.total_ms for gap in coverage.gaps), sum(gap.count for gap in coverage.gaps)
        most = coverage.gaps[0]
        lines.append(
            f"{count(number, 'gap')} between oneDNN's kernels, {milliseconds(total_ms)} ms; most after {most.after}: "
            f"{milliseconds(most.total_ms)} ms in {most.count:,}, the longest {milliseconds(most.longest_ms)} ms after "
            f"line {most.line}"
        )
    return "\n".join(part for line in lines for part in _wrapped(line, _columns(width), "  "))


def print_findings(stream: TextIO, findings: Sequence[Finding], coverage: Coverage) -> None:
    """Print coverage, then the findings."""
    covered = coverage_text(coverage)
    if covered:
        stream.write(covered + "\n\n")
    stream.write(findings_text(findings) + "\n")
