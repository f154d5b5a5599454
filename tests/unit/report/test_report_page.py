"""The page as a file: complete, inert where a log is hostile, drawn by figures that plotly knows, small."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go
import polars as pl
import pytest

import cpulens
from analyze_support import F32, header, mark, moved, run, sgemm, trace_of
from cpulens.analyze.selection import Selection
from cpulens.cli import main
from cpulens.report.html import diff_page, run_page
from cpulens.trace import Trace

EVIL = "<script>window.evil=1</script><img/src=x/onerror=window.evil=1>\"'\u2028\x07</details>"
LOGS = [
    log
    for log in sorted((Path(__file__).parents[2] / "data" / "logs").glob("*.log"))
    if b"_verbose," in log.read_bytes() or b"MKL_VERBOSE" in log.read_bytes()
]
#: Elements that stand alone.
VOID = {"meta", "link", "input", "br", "wbr"}


class Page(HTMLParser):
    """The elements of a page, and its text outside of scripts and styles."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self._open: list[str] = []
        self.feed(content)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            self.scripts.append(data)
        elif self._open and self._open[-1] != "style":
            self.text.append(data)

    @property
    def figures(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(self.scripts[0])
        return found


def check(content: str) -> Page:
    """The page is well-formed, asks for nothing from elsewhere, and its figures are plotly's."""
    page = Page(content)
    for tag, attributes in page.elements:
        assert tag not in ("iframe", "object", "embed", "img", "form", "base")
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
    for figure in page.figures.values():
        go.Figure(data=figure["data"], layout=figure["layout"])  # raises for what plotly does not know
    return page


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_every_real_log_has_a_page(log: Path) -> None:
    page = check(run_page(cpulens.load(log), log.name))
    assert "What was not understood" in page.text


def hostile() -> Trace:
    return trace_of(
        header(),
        mark("iteration", at_ms=0),
        mark("begin", EVIL, at_ms=0.1),
        mark("layer", EVIL, at_ms=0.2),
        run(1.0, EVIL, EVIL, EVIL, F32, EVIL, start_ms=1),
        run(2.0, "matmul", "ref:any", EVIL.replace(",", ""), start_ms=3),
        f"onednn_verbose,v1,what,is,{EVIL}\n",
        command=["python", EVIL],
        environment={"ONEDNN_VERBOSE": EVIL},
        notes_of_somebody=EVIL,
    )


def test_text_of_a_log_is_only_text() -> None:
    for content in (run_page(hostile(), EVIL), diff_page(hostile(), hostile(), (EVIL, EVIL), Selection())):
        page = check(content)
        assert [tag for tag, _ in page.elements].count("script") == 3  # the figures' values, plotly, our own
        assert any("<script>window.evil=1" in text for text in page.text)
        mine = content.replace(page.scripts[1], "")
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", mine)
        drawn = json.dumps(page.figures)
        assert "<script" not in drawn and "<img" not in drawn


def test_a_page_says_what_ran() -> None:
    trace = trace_of(header(), run(3.0), run(1.0, "reorder", "jit:uni", "8x8"), sgemm(1.0))
    page = check(run_page(trace, "small.log"))
    text = " ".join(" ".join(page.text).split())
    assert "oneDNN 80.0 % 4.00 ms" in text and "oneMKL 20.0 % 1.00 ms" in text
    assert "cpulens record" in text  # for the wall time, which the log does not say
    assert "no time stamps" in text and "laid end to end" in text
    assert "No roofline: the run used 2 threads" in text
    assert "benchdnn --mode=P" in text and "No reproducer: a call of oneMKL" in text


def test_the_icicle_sums_to_the_whole() -> None:
    trace = trace_of(header(), run(3.0), run(1.0, "reorder", "jit:uni", "8x8"), moved(2.0, "4x4", "f32:ab", "f32:ba"))
    icicle = check(run_page(trace, "x")).figures["icicle"]["data"]
    assert isinstance(icicle, list)
    assert [one["name"] for one in icicle] == ["primitive", "implementation", "data type"]
    for one in icicle:
        assert sum(one["values"]) == pytest.approx(6.0)


def test_a_difference_tells_both_sides() -> None:
    base = trace_of(header(threads=1), *(run(1.0 + at / 100) for at in range(12)))
    new = trace_of(header(threads=2), *(run(3.0 + at / 100, implementation="ref:any") for at in range(12)))
    page = check(diff_page(base, new, ("a.log", "b.log"), Selection()))
    text = " ".join(" ".join(page.text).split())
    assert "a.log → b.log" in text
    assert "slower" in text and "brg_matmul:avx2 → ref:any" in text
    bars = page.figures["causes"]["data"]
    assert isinstance(bars, list)
    *steps, end = bars[0]["y"]
    assert sum(steps) == pytest.approx(end)


def test_a_million_records_make_a_small_page() -> None:
    lines = [run(0.01, problem=f"{n}x64:64x64", start_ms=n) for n in range(1, 3001)]
    small = trace_of(header(), *lines)
    events = small.events.collect()
    copies = 1_000_000 // len(events) + 1
    many = (
        pl.concat([events] * copies).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("seq")).head(1_000_000)
    )
    content = run_page(Trace(small.texts, many, small.facts), "long.log")
    assert len(content.encode()) <= 8_000_000
    page = check(content)
    drawn = sum(len(one["x"]) for one in page.figures["timeline"]["data"])  # type: ignore[attr-defined]
    assert drawn <= 2_300
    assert "2,000 longest slices" in " ".join(page.text) or "first 20,000" in " ".join(page.text)


def test_the_command_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_text(header() + run(1.0))
    assert main(["report", "a.log", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"schema": 1, "output": "report.html", "size_bytes": (tmp_path / "report.html").stat().st_size}
    assert main(["report", "a.log"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["report", "a.log", "a.log", "--force"]) == 0
    check((tmp_path / "report.html").read_text("utf-8"))
    assert main(["report", "a.log", "a.log", "a.log"]) == 2
    assert main(["report", "-", "-"]) == 2
    assert main(["report", "a.log", "-o", "-", "--open"]) == 2
