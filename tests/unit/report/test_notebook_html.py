"""Results as HTML for a notebook's cell, read back by a parser."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from typing import Any

import pytest

import cpulens
from analyze_support import header, mark, moved, run, sgemm, trace_of
from cpulens.analyze.compare import compare
from cpulens.analyze.findings import Findings, find
from cpulens.analyze.summary import summarize
from cpulens.report.notebook import summary_html

EVIL = "<script>alert(1)</script><img src=x onerror=y>\"'&amp;\u2028\u202e\x1b[31m"


class Reader(HTMLParser):
    """Names of elements, the words of each table's rows, all text; and that elements are closed as they were opened."""

    VOID = ("br", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag not in self.VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data


def shown(result: Any) -> Reader:
    return Reader(result._repr_html_())


LINES = (
    header(),
    run(2.0, "matmul", "brg_matmul:avx2"),
    run(1.0, "matmul", "brg_matmul:avx2"),
    run(1.0, "eltwise", "ref:any"),
    sgemm(0.5),
)


def test_a_trace_shows_where_the_time_went() -> None:
    page = shown(trace_of(*LINES))
    titles, *rows = page.rows
    assert titles[:6] == ["library", "primitive", "implementation", "total ms", "%", "calls"]
    assert [row[:6] for row in rows] == [
        ["onednn", "matmul", "brg_matmul:avx2", "3.00", "66.7", "2"],
        ["onednn", "eltwise", "ref:any", "1.00", "22.2", "1"],
        ["mkl", "sgemm", "–", "0.500", "11.1", "1"],
    ]
    assert "oneDNN" in page.text and "3.12.0" in page.text and "7 pieces of log read: 7 records" in page.text


def test_a_summary_shows_its_own_columns_and_what_it_leaves_out() -> None:
    summary = summarize(trace_of(*LINES), "primitive")
    page = Reader(summary_html(summary, 1))
    assert page.rows[0][0] == "primitive" and [row[0] for row in page.rows[1:]] == ["matmul"]
    assert "2 more rows, 1.50 ms (summary(by=…).rows has all)" in page.text
    assert [row[0] for row in shown(summary).rows[1:]] == ["matmul", "eltwise", "sgemm"]


def test_a_comparison_shows_total_causes_and_kernels() -> None:
    steady = [run(1.0 + at % 3 * 0.001) for at in range(30)]
    slower = [run(2.0 + at % 3 * 0.001, implementation="ref:any") for at in range(30)]
    page = shown(compare(trace_of(header(), *steady), trace_of(header(), *slower)))
    assert "2.00× slower" in page.text
    causes = page.rows[1:2]
    assert causes[0][0].startswith("+") and "brg_matmul:avx2 → ref:any" in causes[0][1]
    kernel = page.rows[-1]
    assert kernel[1] == "2.00× slower" and kernel[3:5] == ["1.00", "2.00"]
    assert "matmul 64x64:64x64" in kernel[-1] and "implementation: brg_matmul:avx2 → ref:any" in kernel[-1]


def test_findings_show_themselves_together_and_alone() -> None:
    found = find(trace_of(header(), *[run(1.0, implementation="ref:any")] * 3))
    page = shown(found)
    assert isinstance(found, Findings) and len(found) == page.elements.count("details")
    first = shown(found[0])
    assert found[0].title in first.text and found[0].next_step in first.text
    assert first.elements.count("details") == 1
    assert "Nothing found" in shown(Findings()).text


def test_nothing_recorded_is_a_sentence() -> None:
    page = shown(cpulens.record())
    assert "nothing was recorded yet" in page.text and "table" not in page.elements


@pytest.mark.parametrize("evil", [EVIL, "=cmd|' /C calc'!A0", "{{ 7*7 }}{% raw %}"])
def test_text_of_a_log_stays_text(evil: str) -> None:
    hostile = evil.replace(",", ";").replace("\n", " ")
    lines = (
        header(),
        mark("begin", hostile),
        run(1.0, "eltwise", hostile),
        moved(1.0, "64x64", "f32:ab", "f32:ba"),
        run(2.0, "matmul", f"ref:{hostile}"),
        mark("end", hostile),
    )
    trace = trace_of(*lines, command=["python", hostile], notes=[hostile])
    other = trace_of(header(version=hostile), run(3.0, "eltwise", "jit:uni"), command=[hostile])
    pages = [
        shown(trace),
        shown(compare(trace, other)),
        shown(find(trace)),
        Reader(summary_html(summarize(trace, "region,raw"))),
    ]
    for page in pages:
        assert not {"script", "img", "iframe", "object", "a", "link"} & set(page.elements)
        assert set(page.attributes) <= {"class", "style", "open", "aria-hidden"}
        assert not set("\x1b\u2028\u202e") & set(page.text)
    assert hostile.split("\u2028")[0] in pages[0].text


def test_without_the_packages_for_it_the_repr_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = trace_of(*LINES)
    for name in [name for name in sys.modules if name.startswith(("cpulens.report.notebook", "cpulens.report.html"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert trace._repr_html_() is None
