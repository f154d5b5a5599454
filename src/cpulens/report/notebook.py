"""Results as HTML for a notebook's cell: no script, and the colours of the notebook, light or dark."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Final

from cpulens.analyze.compare import Comparison
from cpulens.analyze.findings import Finding, Findings
from cpulens.analyze.summary import Summary, summarize
from cpulens.errors import CpulensError
from cpulens.report.comparison import calls, interval, median, signed, verdict
from cpulens.report.comparison import foot as comparison_foot
from cpulens.report.comparison import head as comparison_head
from cpulens.report.html.page import fragment
from cpulens.report.terminal import GRAIN_LIMIT_MS, foot, head
from cpulens.trace import Trace

#: Rows of a table: a cell's output is to be seen at a glance.
ROWS: Final = 30


@singledispatch
def html(shown: Any) -> str:
    """HTML of a Trace, a Summary, a Comparison, findings, or of anything with a `trace`, such as a Recording.

    Where there is no trace, the sentence that says why.
    """
    try:
        trace = shown.trace
    except CpulensError as error:
        return sentence_html(str(error))
    return summary_html(summarize(trace))


@html.register(Trace)
def _(shown: Any) -> str:
    return summary_html(summarize(shown))


@html.register(Summary)
def _(shown: Any) -> str:
    return summary_html(shown)


@html.register(Comparison)
def _(shown: Any) -> str:
    return comparison_html(shown)


@html.register(Findings)
def _(shown: Any) -> str:
    return fragment("findings.html", findings=shown)


@html.register(Finding)
def _(shown: Any) -> str:
    return fragment("findings.html", findings=[shown])


def sentence_html(sentence: str) -> str:
    """Why there is nothing to show."""
    return fragment("sentence.html", sentence=sentence)


def summary_html(summary: Summary, limit: int | None = ROWS) -> str:
    """Facts, the table of `limit` rows (None: all), and what the marks mean."""
    rows = summary.rows[:limit]
    return fragment(
        "summary.html",
        summary=summary,
        rows=rows,
        head=list(head(summary)),
        foot=list(foot(summary, limit, "summary(by=…).rows has all")),
        grain_ms=GRAIN_LIMIT_MS,
        rates=[
            name for name in ("gflops_per_s", "gbytes_per_s") if any(getattr(row, name) is not None for row in rows)
        ],
    )


def comparison_html(comparison: Comparison, limit: int | None = ROWS) -> str:
    """What differed around the runs, the total, its causes, and `limit` kernels (None: all)."""
    return fragment(
        "comparison.html",
        comparison=comparison,
        head=list(comparison_head(comparison)),
        foot=list(comparison_foot(comparison, limit, ".kernels has all")),
        limit=limit,
        calls=calls,
        median=median,
        interval=interval,
        signed=signed,
        verdict=verdict,
    )
