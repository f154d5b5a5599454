"""Several processes read one log, and it is the same log."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from cpulens.errors import LogError
from cpulens.verbose import load, workers

DATA = Path(__file__).parents[2] / "data" / "logs"


@pytest.fixture(scope="module")
def long_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real logs of several eras one after another, some of them twice."""
    path = tmp_path_factory.mktemp("workers") / "long.log"
    names = (
        "onednn_v2.4_cpp_v2_ts.log",
        "mkl2026.2_all.log",
        "torch213_resnet_all_ts.log",
        "torch213_decimal_comma_de_DE.log",
    )
    texts = [(DATA / name).read_bytes() for name in names * 2]
    texts.append(gzip.decompress((DATA / "torch213_jit_llga_all_ts.log.gz").read_bytes())[:400_000])
    path.write_bytes(b"".join(texts))
    return path


@pytest.mark.parametrize("processes", [2, 5])
def test_processes_read_what_one_reads(long_log: Path, processes: int) -> None:
    one, several = load(long_log, workers=1), load(long_log, workers=processes)
    assert several.facts == one.facts
    assert several.frame.collect().equals(one.frame.collect())
    assert several.texts.equals(one.texts)


def test_more_processes_than_lines(tmp_path: Path) -> None:
    path = tmp_path / "short.log"
    path.write_text("onednn_verbose,exec,cpu,sum,jit,undef,,,,8,0.5\n" * 3)
    assert load(path, workers=7).facts["lines"] == {"read": 3, "records": 3, "own": 0, "unknown": 0}


def test_a_line_longer_than_a_range(tmp_path: Path) -> None:
    path = tmp_path / "wide.log"
    line = "onednn_verbose,exec,cpu,sum,jit,undef,,,,8,0.5\n"
    path.write_text(line + "x" * 100_000 + "\n" + line)
    trace = load(path, workers=6)
    assert trace.events.select("line").collect()["line"].to_list() == [1, 3]


def test_a_process_that_fails_is_told_and_nothing_is_left(
    long_log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("cpulens.verbose.workers.sys.executable", "/bin/false")
    with pytest.raises(LogError, match=r"A reading process ended with code 1: no word. Try again with one process"):
        load(long_log, workers=2)
    assert list(tmp_path.iterdir()) == []


def test_progress_comes_to_the_end(long_log: Path) -> None:
    told: list[tuple[int, int | None]] = []
    load(long_log, workers=1, progress=lambda done, size: told.append((done, size)))
    size = long_log.stat().st_size
    assert told[-1] == (size, size)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_how_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert workers.count(None) == 8
    assert workers.count(3) == 3


def test_the_temporary_files_go_with_the_trace(long_log: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("cpulens.verbose.events.PLAIN_ROWS", 0)
    monkeypatch.setattr("cpulens.verbose.events.MEMORY_ROWS", 0)
    trace = load(long_log, workers=2)
    assert [path.name for path in tmp_path.glob("cpulens-*/*")] == ["events.parquet"]
    assert trace.events.select(pl.len()).collect().item() == trace.facts["lines"]["records"]
    del trace
    assert list(tmp_path.iterdir()) == []
