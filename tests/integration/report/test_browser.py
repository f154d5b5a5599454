"""The page in a real browser: nothing is asked for, nothing complains, and it does what it offers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyze_support import F32, header, mark, moved, run, sgemm, trace_of
from browser_support import Browser, find_chromium
from cpulens.analyze.selection import Selection
from cpulens.report.html import diff_page, run_page
from cpulens.trace import Trace

EVIL = "<script>window.evil=1</script><img src=x onerror=window.evil=1>"
SETTINGS = [(scheme, width) for scheme in ("light", "dark") for width in (1280, 480)]
PROGRAM = find_chromium()
#: In CI its absence is a failure.
pytestmark = pytest.mark.skipif(
    PROGRAM is None and not os.environ.get("CI"), reason="no Chromium on this host; make test installs it for root"
)


def example(factor: float = 1.0) -> Trace:
    """Four iterations of two layers, of both libraries, with text that would like to be more."""
    lines = [header()]
    for number in range(4):
        at = number * 50.0
        lines += [
            mark("iteration", at_ms=at),
            mark("layer", "encoder.fc1", at_ms=at),
            moved(0.5, "64x64", "f32:ab", "f32:ba"),
            run(8.0 * factor + number / 10, start_ms=at + 2),
            mark("layer", "encoder.fc2", at_ms=at + 12),
            run(4.0, "convolution", "jit:avx512_core", "mb8_ic32oc32_ih32oh32kh3", F32, start_ms=at + 13),
            sgemm(2.0),
            run(1.0, "eltwise", EVIL, "8x256", F32, EVIL, start_ms=at + 25),
        ]
    peaks = {
        "schema": 1,
        "threads": 2,
        "gemm": {
            "f32": {"gflops_per_s": 200.0, "library": "onednn", "implementation": "brg", "n": 2048, "settled": True}
        },
        "stream": [
            {"kernel": "read", "size_bytes": size, "gbytes_per_s": rate, "library": "onednn", "settled": True}
            for size, rate in ((1 << 15, 90.0), (1 << 28, 10.0))
        ],
        "conditions": {},
        "measured": "2026-01-01T00:00:00",
    }
    return trace_of(*lines, command=["python", EVIL], peaks=[peaks], wall_ms=200.0)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None, "CI needs Chromium: make test installs it for root"
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "run.html"
    path.write_text(run_page(example(), f"run {EVIL}"), "utf-8")
    return path


@pytest.fixture(scope="module")
def difference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "diff.html"
    path.write_text(diff_page(example(), example(2.0), ("base", f"new {EVIL}"), Selection()), "utf-8")
    return path


def draw_all(browser: Browser) -> list[str]:
    """Come near each plot, so that it is drawn; their ids."""
    plots: list[str] = browser.js("[...document.querySelectorAll('.plot')].map(one => one.id)")
    for plot in plots:
        browser.js(f"document.getElementById('{plot}').scrollIntoView()")
        browser.wait(f"document.getElementById('{plot}').hasAttribute('data-drawn')")
    return plots


def check(browser: Browser, width: int) -> None:
    """Nothing was said, asked for or run, and nothing is wider than the window."""
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.js("window.evil") is None
    assert browser.js("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("scheme", "width"), SETTINGS)
def test_a_run_in_every_light(browser: Browser, page: Path, scheme: str, width: int) -> None:
    browser.open(page, scheme=scheme, width=width)
    assert draw_all(browser) == ["icicle", "timeline", "roofline", "spread"]
    check(browser, width)
    # What is written in a plot can be told from what is behind it.
    ink = browser.js("getComputedStyle(document.querySelector('#timeline .xtick text')).fill")
    assert (sum(map(int, ink[4:-1].split(","))) > 384) == (scheme == "dark")
    # No button of a plot sends it anywhere.
    titles = browser.js("[...document.querySelectorAll('.modebar-btn')].map(one => one.dataset.title)")
    assert bool(titles) == (width > 700) and not [
        title for title in titles if "loud" in title or "link" in title.lower()
    ]


@pytest.mark.parametrize(("scheme", "width"), SETTINGS)
def test_a_difference_in_every_light(browser: Browser, difference: Path, scheme: str, width: int) -> None:
    browser.open(difference, scheme=scheme, width=width)
    assert draw_all(browser) == ["causes"]
    check(browser, width)
    assert browser.js("getComputedStyle(document.querySelector('section')).borderRadius") != ""
    assert browser.js("getComputedStyle(document.body).fontFamily").startswith("system-ui")


@pytest.mark.parametrize("width", [1280, 480])
def test_no_text_lies_on_other_text(browser: Browser, page: Path, width: int) -> None:
    browser.open(page, width=width)
    draw_all(browser)
    overlaps = browser.js("""(() => {
        const boxes = [...document.querySelectorAll('h1, h2, h3, p, dt, dd, .legend li, .tools label, .tools button')]
            .filter(one => one.checkVisibility() && one.textContent.trim() && !one.closest('.plot'))
            .map(one => [one, one.getBoundingClientRect()]);
        const found = [];
        boxes.forEach(([a, p], i) => boxes.slice(i + 1).forEach(([b, q]) => {
            if (a.contains(b) || b.contains(a)) return;
            const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
            const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
            if (x > 1 && y > 1) found.push([a.textContent, b.textContent]);
        }));
        return found;
    })()""")
    assert overlaps == []
    written = browser.js("""[...document.querySelectorAll('.plot')].flatMap(plot => {
        const words = '.xtick text, .ytick text, .xtitle, .ytitle, .legendtext, .modebar-group';
        const boxes = [...plot.querySelectorAll(words)]
            .map(one => [one.textContent, one.getBoundingClientRect()]).filter(([, box]) => box.width);
        return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) =>
            Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1
            && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 2).map(([b]) => [plot.id, a, b]));
    })""")
    assert written == []
    cut = browser.js("""[...document.querySelectorAll('.plot svg text')].filter(one => {
        const box = one.getBoundingClientRect(), plot = one.closest('.plot').getBoundingClientRect();
        return box.width && (box.left < plot.left - 1 || box.right > plot.right + 1);
    }).map(one => one.textContent)""")
    assert cut == []


def column(browser: Browser, number: int) -> list[float]:
    """The values of a column of the table of kernels, of the rows that are shown."""
    found: list[float] = browser.js(
        "[...document.querySelector('#kernel-table').tBodies[0].rows].filter(row => !row.hidden)"
        f".map(row => Number(row.cells[{number}].dataset.value))"
    )
    return found


def test_the_table_sorts(browser: Browser, page: Path) -> None:
    browser.open(page)
    total = 3
    assert column(browser, total) == sorted(column(browser, total), reverse=True)
    browser.click("#kernel-table th button", 5)
    assert column(browser, 5) == sorted(column(browser, 5), reverse=True)
    browser.click("#kernel-table th button", total)
    assert column(browser, total) == sorted(column(browser, total), reverse=True)
    browser.click("#kernel-table th button", total)
    assert column(browser, total) == sorted(column(browser, total))
    assert browser.js("document.querySelectorAll('#kernel-table th')[3].ariaSort") == "ascending"
    browser.click("#kernel-table th button", 1)
    names = browser.js("[...document.querySelectorAll('#kernel-table .kernel b')].map(one => one.textContent)")
    assert names == sorted(names)
    check(browser, 1280)


def test_the_table_searches_and_filters(browser: Browser, page: Path) -> None:
    browser.open(page)
    rows = len(column(browser, 0))
    browser.type_into(".tools input", "AVX512_core conv")
    assert len(column(browser, 0)) == 1
    assert browser.js("document.querySelector('.tools output').textContent") == f"1 of {rows}"
    browser.type_into(".tools input", " nothing")
    assert column(browser, 0) == []
    browser.js("(() => { const one = document.querySelector('.tools input'); one.value = '';"
               "one.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert len(column(browser, 0)) == rows
    browser.js("(() => { const one = document.querySelector('[data-filter=primitive]'); one.value = 'sgemm';"
               "one.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert len(column(browser, 0)) == 1
    check(browser, 1280)


def test_lines_and_reproducers_are_copied(browser: Browser, page: Path) -> None:
    browser.open(page)
    # A headless browser has no clipboard to read: what is given to it is watched.
    browser.js("navigator.clipboard.writeText = async text => { window.copied = text; }")
    browser.click("#kernel-table summary")
    browser.click("#kernel-table tr details[open] button.copy", 0)
    browser.wait("window.copied")
    assert browser.js("window.copied").startswith("onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx2")
    browser.click("#kernel-table tr details[open] button.copy", 1)
    browser.wait("window.copied.startsWith('benchdnn')")
    assert browser.js("window.copied").endswith("64x64:64x64")
    check(browser, 1280)


def test_the_icicle_is_drilled(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.js("document.getElementById('icicle').scrollIntoView()")
    browser.wait("document.getElementById('icicle').hasAttribute('data-drawn')")
    labels = "[...document.querySelectorAll('#icicle .slice text')].map(one => one.textContent)"
    before = browser.js(labels)
    assert any("matmul" in one for one in before) and any("convolution" in one for one in before)
    browser.js(
        "document.getElementById('icicle').on('plotly_icicleclick', event => { window.into = event.nextLevel; })"
    )
    browser.click("#icicle .slice", browser.js(f"{labels}.findIndex(one => one.startsWith('matmul'))"))
    browser.wait("window.into !== undefined")
    browser.wait(f"!{labels}.some(one => one.startsWith('convolution'))")
    browser.click("#ways button", 3)
    browser.wait(f"{labels}.some(one => one.startsWith('encoder'))")
    assert browser.js("document.querySelectorAll('#ways button')[3].getAttribute('aria-pressed')") == "true"
    check(browser, 1280)


def test_dark_comes_while_it_is_open(browser: Browser, page: Path) -> None:
    browser.open(page)
    draw_all(browser)
    ink = "getComputedStyle(document.querySelector('#timeline .xtick text')).fill"
    before = browser.js(ink)
    browser.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.wait(f"{ink} !== {json.dumps(before)}")
    check(browser, 1280)


def test_it_is_read_without_scripts(browser: Browser, page: Path) -> None:
    browser.open(page, scripts=False)
    root = browser.command("DOM.getDocument")["root"]["nodeId"]
    found = browser.command("DOM.querySelector", nodeId=root, selector="body")["nodeId"]
    html = browser.command("DOM.getOuterHTML", nodeId=found)["outerHTML"]
    assert "The picture needs JavaScript" in html and 'class="tools" data-for="kernel-table" hidden' in html
    assert browser.requests() == []
    assert len(browser.screenshot()) > 20_000
