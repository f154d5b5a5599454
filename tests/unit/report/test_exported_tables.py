"""CSV, JSON, Parquet and Markdown: what they hold, and that text of a log does nothing in them."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import cpulens
from analyze_support import F32, header, run, sgemm, trace_of
from cpulens.cli import main
from cpulens.report.markdown import code, text
from cpulens.report.table_formats import safe_cell
from cpulens.trace import Trace
from cpulens.trace.schema import EVENT_COLUMNS, TEXT_COLUMNS

EVIL = ("<script>alert(1)</script>", "=cmd()", '"quoted"', "\u2028\x07\u202e", "a|b`c")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    lines = [header(), run(1.5), run(0.5), sgemm(2.0)]
    lines += [run(1.0, "matmul", evil, problem=evil, descriptors=F32) for evil in EVIL]
    return trace_of(*lines).save(tmp_path / "run.cpulens")


def export(run_file: Path, name: str, *options: str) -> bytes:
    target = run_file.parent / name
    assert main(["export", str(run_file), "-o", str(target), *options]) == 0
    return target.read_bytes()


def rows(run_file: Path) -> list[dict[str, Any]]:
    return Trace.open(run_file).frame.collect().to_dicts()


def test_csv_has_every_record(saved: Path) -> None:
    found = list(csv.DictReader(export(saved, "run.csv").decode().splitlines()))
    expected = rows(saved)
    assert len(found) == len(expected)
    for got, row in zip(found, expected, strict=True):
        assert got.keys() == row.keys()
        assert got["line"] == str(row["line"])
        assert (float(got["duration_ms"]) if got["duration_ms"] else None) == row["duration_ms"]
        assert got["primitive"] == (row["primitive"] or "")


def test_no_cell_of_csv_is_a_formula_or_a_command(saved: Path) -> None:
    content = export(saved, "run.csv").decode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", content)
    cells = [cell for row in csv.reader(content.splitlines()) for cell in row]
    assert not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "@")) or re.match(r"\s*-\D", cell)]
    assert "'=cmd()" in cells


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1"])
def test_formulas_get_an_apostrophe(start: str) -> None:
    assert safe_cell(start).startswith("'")
    assert safe_cell("brg_matmul:avx2") == "brg_matmul:avx2"


def test_json_has_every_record_and_is_ascii(saved: Path) -> None:
    content = export(saved, "run.json")
    assert all(32 <= byte < 127 or byte == 10 for byte in content)
    document = json.loads(content)
    expected = [{name: value for name, value in row.items() if value is not None} for row in rows(saved)]
    assert document["rows"] == expected
    assert document["schema"] == 1
    assert document["facts"]["libraries"][0]["version"] == "3.12.0"


def test_parquet_is_the_joined_table(saved: Path) -> None:
    export(saved, "run.parquet")
    assert pl.read_parquet(saved.parent / "run.parquet").equals(Trace.open(saved).frame.collect())
    facts = json.loads(pl.read_parquet_metadata(saved.parent / "run.parquet")["cpulens.facts"])
    assert facts["libraries"][0]["threads"] == 2


def test_a_summary_in_each_format(saved: Path) -> None:
    by = ("--by", "library,primitive", "--where", "implementation == 'brg_matmul:avx2' or library == 'mkl'")
    expected = [("mkl", "sgemm", 1, 2.0), ("onednn", "matmul", 2, 2.0)]
    document = json.loads(export(saved, "sum.json", *by))["rows"]
    table = list(csv.DictReader(gzip.decompress(export(saved, "sum.csv.gz", *by)).decode().splitlines()))
    export(saved, "sum.parquet", *by)
    frame = pl.read_parquet(saved.parent / "sum.parquet").to_dicts()
    for found in (document, table, frame):
        got = [(one["library"], one["primitive"], int(one["calls"]), float(one["total_ms"])) for one in found]
        assert sorted(got) == expected


@pytest.mark.parametrize("column", [*TEXT_COLUMNS, *EVENT_COLUMNS])
def test_a_summary_by_any_column(column: str, saved: Path) -> None:
    found = json.loads(export(saved, "sum.json", "--by", column))["rows"]
    # By event the three lines of the header count too.
    assert sum(one["calls"] for one in found) == (11 if column == "event" else 8)


def test_markdown_shows_text_as_text(saved: Path) -> None:
    content = export(saved, "run.md", "--by", "implementation").decode()
    table = [line for line in content.splitlines() if line.startswith("|")]
    assert len(table) == 2 + 7  # title, rule, five of EVIL, one of oneDNN, one of oneMKL
    # Unescaped pipes make the cells: all rows have as many.
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {10}
    assert "| `<script>alert(1)</script>` |" in content
    assert "<script>" not in re.sub(r"(`+).*?\1", "", content)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", content)


def test_markup_of_markdown_is_escaped() -> None:
    assert text("<b>*x*_y_[l](http://e)`") == r"&lt;b&gt;\*x\*\_y\_\[l\](http:\//e)" + r"\`"
    assert code("a``b|") == "```a``b\\|```"
    assert code(None) == "–"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x.xlsx"], "the format goes by the ending"),
        (["-o", "-"], "give --format"),
        (["-o", "x.trace.json", "--by", "primitive"], "every slice"),
        (["-o", "x.csv", "--cumulative", "90%"], "needs --by"),
        (["-o", "x.csv", "--by", "nonsense"], "not a column"),
    ],
)
def test_what_cannot_be_is_said(
    arguments: list[str], words: str, saved: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(saved.parent)
    assert main(["export", str(saved), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert sorted(path.name for path in saved.parent.iterdir()) == ["run.cpulens"]


def test_nothing_is_overwritten_unasked(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = export(saved, "run.csv")
    assert main(["export", str(saved), "-o", str(saved.parent / "run.csv"), "--by", "primitive"]) == 1
    assert "not overwritten" in capsys.readouterr().err
    assert (saved.parent / "run.csv").read_bytes() == first
    assert export(saved, "run.csv", "--by", "primitive", "--force") != first


def test_what_was_written_as_json(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = export(saved, "run.trace.json", "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["format"], told["size_bytes"]) == (1, "chrome", len(content))
    assert "end to end" in told["notes"][0]


def test_a_raw_log_is_exported_too(tmp_path: Path) -> None:
    log = tmp_path / "raw.log"
    log.write_text(header() + run(1.0))
    assert cpulens.load(log).frame.collect().height == len(json.loads(export(log, "raw.json"))["rows"])
