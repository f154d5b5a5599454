"""The run file: complete or not there, older ones read, newer ones refused, damage told."""

# ruff: noqa: E501
from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest

from cpulens.errors import TraceFileError, UsageError
from cpulens.trace import Trace
from cpulens.trace.schema import EVENT_COLUMNS, SCHEMA_VERSION, TEXT_COLUMNS
from cpulens.trace.table_file import write
from cpulens.verbose import events, load

LINE = "onednn_verbose,v1,1796113262148.625000,primitive,exec,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,8,0.5"
TEXT = f"own\n{LINE}\n{LINE}\nonednn_verbose,v1,primitive,create:cache_hit,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,8,0.25\n"


@pytest.fixture
def trace() -> Trace:
    return load(TEXT.encode(), facts={"command": ["python", "model.py"]})


def test_what_is_saved_is_opened_again(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    again = Trace.open(path)
    assert again.facts == trace.facts
    assert again.texts.equals(trace.texts)
    assert again.events.collect().equals(trace.events.collect())
    assert again.frame.collect().equals(trace.frame.collect())


def test_long_runs_are_scanned_from_a_file_that_goes_with_them(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    monkeypatch.setattr("cpulens.trace.run_file._IN_MEMORY_BYTES", 0)
    again = Trace.open(path)
    assert again.backing is not None
    folder = again.backing.folder
    assert again.events.collect().equals(trace.events.collect())
    again.save(tmp_path / "copy.cpulens")
    assert Trace.open(tmp_path / "copy.cpulens").events.collect().equals(trace.events.collect())
    del again
    assert not folder.exists()


def test_a_long_log_is_saved_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = load(TEXT.encode()).events.collect()
    monkeypatch.setattr(events, "PLAIN_ROWS", 0)
    monkeypatch.setattr(events, "MEMORY_ROWS", 0)
    monkeypatch.setattr("cpulens.verbose.reader.PLAIN_ROWS", 0)
    long = load(TEXT.encode())
    assert long.backing is not None
    assert Trace.open(long.save(tmp_path / "run.cpulens")).events.collect().equals(whole)


def test_columns_are_those_of_the_schema(trace: Trace) -> None:
    assert trace.texts.columns == list(TEXT_COLUMNS)
    assert trace.events.collect_schema().names() == list(EVENT_COLUMNS)
    for table, columns in ((trace.texts, TEXT_COLUMNS), (trace.events.collect(), EVENT_COLUMNS)):
        assert {name: str(dtype) for name, dtype in table.schema.items()} == {
            name: kind for name, (kind, _) in columns.items()
        }


def test_the_file_is_a_plain_zip(trace: Trace, tmp_path: Path) -> None:
    with zipfile.ZipFile(trace.save(tmp_path / "run.cpulens")) as archive:
        assert archive.namelist() == ["facts.json", "texts.parquet", "events.parquet"]
        content = json.loads(archive.read("facts.json"))
        assert (content["format"], content["schema"]) == ("cpulens run", SCHEMA_VERSION)
        assert len(pl.read_parquet(io.BytesIO(archive.read("events.parquet")))) == 3


def test_nothing_is_overwritten_without_force(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.cpulens"
    path.write_text("precious")
    with pytest.raises(TraceFileError, match="exists and is not overwritten"):
        trace.save(path)
    assert path.read_text() == "precious"
    trace.save(path, force=True)
    assert len(Trace.open(path).texts) == 2


def test_a_failed_write_leaves_nothing(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cpulens.trace.run_file._write_events", full)
    with pytest.raises(TraceFileError, match="can't be written: No space left on device"):
        trace.save(tmp_path / "run.cpulens")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(trace: Trace, tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="can't be written: No such file or directory"):
        trace.save(tmp_path / "no" / "run.cpulens")


def test_the_file_has_the_usual_permissions(trace: Trace, tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        path = trace.save(tmp_path / "run.cpulens")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def rewritten(path: Path, **changes: object) -> Path:
    """A copy of a run file with other members."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    copy = path.with_name("other.cpulens")
    with zipfile.ZipFile(copy, "w") as archive:
        for name, content in members.items():
            changed = changes.get(name.partition(".")[0], content)
            if changed is not None:
                archive.writestr(name, changed)  # type: ignore[arg-type]
    return copy


def test_a_newer_schema_is_refused_with_its_number(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    newer = rewritten(path, facts=json.dumps({"format": "cpulens run", "schema": SCHEMA_VERSION + 1, "facts": {}}))
    with pytest.raises(
        TraceFileError, match=f"has schema {SCHEMA_VERSION + 1}, and this cpulens reads up to schema {SCHEMA_VERSION}"
    ):
        Trace.open(newer)


def test_an_older_schema_is_read_and_its_missing_columns_are_null(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    table = io.BytesIO()
    trace.texts.drop("source", "bytes").with_columns(extra=pl.lit(1)).write_parquet(table)
    older = rewritten(path, facts=json.dumps({"schema": 0, "facts": {"lines": {}}}), texts=table.getvalue())
    texts = Trace.open(older).texts
    assert texts.columns == list(TEXT_COLUMNS)
    assert texts["source"].null_count() == len(texts)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"facts": "no json"}, "facts.json can't be read"),
        ({"facts": "[]"}, "facts.json can't be read"),
        ({"facts": json.dumps({"schema": "1", "facts": {}})}, "no schema number"),
        ({"facts": None}, "not a whole run file"),
        ({"events": b"PAR1 not really"}, "damaged"),
    ],
)
def test_damage_is_told(trace: Trace, tmp_path: Path, change: dict[str, object], words: str) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    with pytest.raises(TraceFileError, match=words):
        Trace.open(rewritten(path, **change))


def test_a_file_that_was_cut(trace: Trace, tmp_path: Path) -> None:
    path = trace.save(tmp_path / "run.cpulens")
    cut = tmp_path / "cut.cpulens"
    cut.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(TraceFileError, match="not a whole run file"):
        Trace.open(cut)
    with pytest.raises(TraceFileError, match="There is no run file"):
        Trace.open(tmp_path / "nowhere.cpulens")


def test_one_parquet_table_carries_the_facts(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    write(trace, path)
    assert pl.read_parquet(path).equals(trace.frame.collect())
    metadata = pl.read_parquet_metadata(path)
    assert json.loads(metadata["cpulens.facts"]) == trace.facts
    assert metadata["cpulens.schema"] == str(SCHEMA_VERSION)
    with pytest.raises(TraceFileError, match="exists"):
        write(trace, path)
    with pytest.raises(UsageError, match=r"\.cpulens or \.parquet"):
        write(trace, tmp_path / "run.xlsx")


def test_other_dataframes(trace: Trace) -> None:
    assert trace.to_pandas()["duration_ms"].tolist() == [0.5, 0.5, 0.25]
    assert trace.to_arrow().column("event").to_pylist() == ["exec", "exec", "create"]


def test_sql(trace: Trace) -> None:
    found = trace.sql("select event, count(*) as n, sum(duration_ms) as ms from run group by event order by event")
    assert found.rows() == [("create", 1, 0.25), ("exec", 2, 1.0)]
    assert trace.sql("select count(*) from events").item() == 3
    assert trace.sql("select count(*) from texts").item() == 2
    with pytest.raises(UsageError, match=r"The query can't be run: .*nothing"):
        trace.sql("select nothing from run")


def test_a_forked_child_leaves_the_folder_to_its_parent(trace: Trace, tmp_path: Path) -> None:
    """The child only inherited it."""
    code = (
        "import os, sys\nfrom cpulens.trace.backing import Backing\nbacking = Backing()\n"
        "if os.fork() == 0: sys.exit(0)\nos.wait()\nassert backing.folder.is_dir()\nprint(backing.folder)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_importing_loads_no_table_library_and_its_lack_is_told() -> None:
    code = (
        "import sys, cpulens.trace, cpulens.verbose\n"
        "assert not {'polars', 'numpy', 'pandas'} & set(sys.modules)\n"
        "sys.modules['polars'] = None\n"
        "try:\n    cpulens.verbose.load(b'onednn_verbose,exec,cpu,sum,jit,undef,,,,8,0.5')\n"
        "except cpulens.errors.BackendUnavailable as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", "import cpulens.errors\n" + code], capture_output=True, text=True, check=True
    )
    assert "pip install cpulens" in done.stdout


def test_a_small_log_is_read_without_numpy() -> None:
    code = (
        f"import sys\nfrom cpulens.verbose import load\ntrace = load({TEXT.encode()!r})\ntrace.frame.collect()\n"
        "trace.sql('select count(*) from run')\nassert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
