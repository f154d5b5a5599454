"""`cpulens bundle` on a real recording of a program whose surroundings are full of names."""

from __future__ import annotations

import getpass
import io
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from bundle_support import everything_in
from cpulens.trace import Trace

PROGRAM = """
import sys
import numpy as np
import cpulens
from cpulens.native import onednn

a = np.ones((48, 48), "float32")
onednn.matmul(a, a)
with cpulens.record() as recording, cpulens.region("prefect/zaphod"):
    onednn.matmul(a, a)
    onednn.reorder(a, "ba")
recording.notes.append("ask zaphod@heartofgold.example on prefect-01, 10.42.0.7, see /home/zaphod/notes.txt")
recording.save(sys.argv[1])
"""
#: What must not be found anywhere, whatever stands around it.
OURS = ("zaphod", "prefect-01", "heartofgold", "10.42.0.7", "improbability")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home" / "zaphod" / "improbability drive"
    folder.mkdir(parents=True)
    return folder


def command(home: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command as user zaphod on host prefect-01, as far as variables tell."""
    clean = {name: value for name, value in os.environ.items() if "VERBOSE" not in name}
    clean |= {
        "HOME": str(home.parent),
        "USER": "zaphod",
        "LOGNAME": "zaphod",
        "HOSTNAME": "prefect-01.heartofgold.example",
        "LD_LIBRARY_PATH": f"{home}/lib:/usr/lib",
        "OMP_WAIT_POLICY": "passive",
        **environ,
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=home, env=clean, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def recorded(home: Path) -> Path:
    (home / "improbable model.py").write_text(PROGRAM)
    run = home / "improbability.cpulens"
    done = command(home, "improbable model.py", str(run), "--token=hf_zaphodzaphodzaphod", "zaphod's")
    assert done.returncode == 0, done.stderr
    return run


def names_of_this_host() -> list[str]:
    """Real ones, as the system tells them; those of two letters or less stand in words of every language."""
    names = [getpass.getuser(), platform.node(), platform.node().partition(".")[0], os.path.expanduser("~")]
    return [name for name in names if len(name) > 1 and name not in ("/", "localhost")]


def test_nothing_of_us_is_in_it(home: Path, recorded: Path) -> None:
    original = json.dumps(Trace.open(recorded).facts).lower()
    assert all(name in original for name in OURS)
    done = command(home, "-m", "cpulens", "bundle", recorded.name)
    assert done.returncode == 0, done.stderr
    archive = home / "cpulens-bundle.zip"
    found = list(everything_in(archive))
    assert len(found) > 100  # the strings of the tables among them
    for place, text in found:
        for name in OURS:
            assert name not in text.lower(), (place, text)
    for place, text in found:
        if place.startswith(("texts.parquet:", "events.parquet:")) or place == "facts.json":
            for name in names_of_this_host():
                assert re.search(rf"(?<![^\W_]){re.escape(name)}(?![^\W_])", text) is None, (place, name, text)
        for path in re.findall(r"(?<![\w.<>/~-])/[\w.-]+(?:/[\w.-]+)*", text):
            assert re.match(r"/(usr|lib|lib64|proc|sys|dev|etc|bin|tmp$|src/)", path), (place, path)


def test_kernels_and_figures_are_the_same(home: Path, recorded: Path) -> None:
    assert command(home, "-m", "cpulens", "bundle", recorded.name, "-o", "b.zip").returncode == 0
    with zipfile.ZipFile(home / "b.zip") as archive:
        (home / "run.cpulens").write_bytes(archive.read("cpulens-bundle/run.cpulens"))
    before, after = Trace.open(recorded), Trace.open(home / "run.cpulens")
    people = ("message", "raw", "region")
    assert after.frame.collect().drop(people).equals(before.frame.collect().drop(people), null_equal=True)
    kernels = pl.col("event") == "exec"
    assert after.texts.filter(kernels)["raw"].to_list() == before.texts.filter(kernels)["raw"].to_list()
    assert set(after.frame.filter(kernels).collect()["region"]) == {"prefect/<user-1>"}
    for name in ("lines", "wall_ms", "levels", "machine", "libraries"):
        assert after.facts[name] == before.facts[name]
    tops = [command(home, "-m", "cpulens", "top", run, "--json") for run in (recorded.name, "run.cpulens")]
    rows = [json.loads(one.stdout)["rows"] for one in tops]
    assert rows[0] == rows[1] and rows[0]


def test_its_list_names_every_file(home: Path, recorded: Path) -> None:
    assert command(home, "-m", "cpulens", "bundle", recorded.name, "-o", "b.zip").returncode == 0
    with zipfile.ZipFile(home / "b.zip") as archive:
        names = archive.namelist()
        contents = archive.read("cpulens-bundle/CONTENTS.txt").decode()
        assert archive.testzip() is None
        assert {info.date_time[0] for info in archive.infolist()} == {1980}
        findings = json.loads(archive.read("cpulens-bundle/findings.json"))
        script = archive.read("cpulens-bundle/reproducers.sh").decode()
        top = archive.read("cpulens-bundle/top.txt").decode()
    listed = re.findall(r"^  (\S+)  ", contents, re.MULTILINE)
    assert {f"cpulens-bundle/{name}" for name in [*listed, "CONTENTS.txt"]} == set(names)
    assert "user name" in contents and "path" in contents
    assert findings["schema"] == 1
    assert re.search(r"^benchdnn .*--matmul .*48x48:48x48", script, re.MULTILINE)
    assert re.search(r"^onednn +matmul ", top, re.MULTILINE)


def test_a_dry_run_shows_originals_and_writes_nothing(home: Path, recorded: Path) -> None:
    done = command(home, "-m", "cpulens", "bundle", recorded.name, "--dry-run")
    assert done.returncode == 0 and not (home / "cpulens-bundle.zip").exists()
    assert re.search(r"^<user-1> +\d+ × zaphod$", done.stdout, re.MULTILINE)
    assert re.search(r"^<address-1> +\d+ × 10\.42\.0\.7$", done.stdout, re.MULTILINE)
    told: dict[str, Any] = json.loads(
        command(home, "-m", "cpulens", "bundle", recorded.name, "--dry-run", "--json").stdout
    )
    kinds = {one["kind"] for one in told["replaced"]}
    assert {"user", "path", "address", "email", "secret"} <= kinds
    assert told["output"] is None


def test_further_words_are_replaced(home: Path, recorded: Path) -> None:
    done = command(home, "-m", "cpulens", "bundle", recorded.name, "--replace", "Prefect", "--replace", "no such")
    assert done.returncode == 0
    for place, text in everything_in(home / "cpulens-bundle.zip"):
        assert "prefect" not in text.lower(), place


def test_raw_logs_and_several_of_them(home: Path) -> None:
    line = (
        "onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
        "dst:f32::blocked:ab::f0,,,8x8:8x8,1.5\n"
    )
    for name in ("zaphod1.log", "prefect-01.log"):
        (home / name).write_text(line)
    done = command(home, "-m", "cpulens", "bundle", "zaphod1.log", "prefect-01.log", "-o", "two.zip")
    assert done.returncode == 0, done.stderr
    for place, text in everything_in(home / "two.zip"):
        assert not any(name in text for name in ("zaphod1", "prefect-01")), (place, text)
    with (
        zipfile.ZipFile(home / "two.zip") as archive,
        zipfile.ZipFile(io.BytesIO(archive.read("cpulens-bundle/run.cpulens"))) as run,
    ):
        events = pl.read_parquet(io.BytesIO(run.read("events.parquet")))
    assert events["duration_ms"].to_list() == [1.5, 1.5]
    assert events["instance"].to_list() == ["<instance-1>", "<instance-2>"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["nothing.cpulens"], 1, "nothing.cpulens"),
        (["empty.log"], 1, "empty.log"),
        (["some.log", "-o", "x.tar.gz"], 2, "its name ends in .zip"),
        (["some.log", "-o", "there.zip"], 1, "there.zip exists and is not overwritten"),
        (["some.log", "-o", "no/such/x.zip"], 1, "can't be written"),
        (["some.log", "--replace", "a"], 2, "two letters or more"),
    ],
)
def test_what_can_not_be_done(home: Path, arguments: list[str], code: int, told: str) -> None:
    (home / "empty.log").touch()
    (home / "there.zip").write_bytes(b"kept")
    (home / "some.log").write_text(
        "onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,1.5\n"
    )
    done = command(home, "-m", "cpulens", "bundle", *arguments)
    assert done.returncode == code, done.stderr
    assert told in done.stderr and "Traceback" not in done.stderr
    assert (home / "there.zip").read_bytes() == b"kept"
