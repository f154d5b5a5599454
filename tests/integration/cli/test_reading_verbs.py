"""The verbs that read: convert, sql, explain, as commands."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from cpulens.trace import Trace

DATA = Path(__file__).parents[2] / "data" / "logs"
RESNET = str(DATA / "torch213_resnet_all_ts.log")
TORN = str(DATA / "onednn_v3.2_torn_2proc_2thr_longlines.log.gz")

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cpulens(tmp_path: Path) -> Command:
    def run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "cpulens", *arguments], input=stdin, capture_output=True, cwd=tmp_path
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


def test_convert_to_a_run_file_and_back(cpulens: Command, tmp_path: Path) -> None:
    done = cpulens("convert", RESNET, "-o", "run.cpulens")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "run.cpulens: 341 pieces read = 340 records + 1 of other text + 0 not understood; 39 distinct texts\n"
    )
    trace = Trace.open(tmp_path / "run.cpulens")
    assert trace.facts["lines"]["records"] == 340
    done = cpulens("convert", "run.cpulens", "-o", "run.parquet", "--json")
    assert json.loads(done.stdout)["lines"] == {"read": 341, "records": 340, "own": 1, "unknown": 0}
    assert pl.read_parquet(tmp_path / "run.parquet").equals(trace.frame.collect())


def test_convert_several_logs_and_stdin(cpulens: Command, tmp_path: Path) -> None:
    done = cpulens("convert", RESNET, "-", "-o", "run.cpulens", stdin=Path(RESNET).read_bytes())
    assert done.returncode == 0
    instances = Trace.open(tmp_path / "run.cpulens").events.group_by("instance").len().collect()
    assert sorted(instances.rows()) == [("stdin", 340), ("torch213_resnet_all_ts.log", 340)]


def test_convert_does_not_overwrite(cpulens: Command, tmp_path: Path) -> None:
    (tmp_path / "run.cpulens").write_text("precious")
    done = cpulens("convert", RESNET, "-o", "run.cpulens")
    assert (done.returncode, done.stderr) == (
        1,
        "cpulens convert: run.cpulens exists and is not overwritten. Give another name, or --force to replace it.\n",
    )
    assert cpulens("convert", RESNET, "-o", "run.cpulens", "--force").returncode == 0


def test_convert_says_what_was_not_understood(cpulens: Command) -> None:
    done = cpulens("convert", TORN, "-o", "run.cpulens")
    assert done.returncode == 0
    assert "330 pieces read = 282 records + 30 of other text + 18 not understood" in done.stderr
    assert "first not understood, line 152: onednn_verbose,exec,cpu,concat" in done.stderr
    done = cpulens("convert", TORN, "-o", "strict.cpulens", "--strict")
    assert done.returncode == 1
    assert done.stderr.startswith("cpulens convert: 18 pieces were not understood; the first is in line 152: ")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["convert", "nowhere.log", "-o", "run.cpulens"], 1, "There is no file nowhere.log"),
        (["convert", RESNET, "-o", "run.xlsx"], 2, "has to be .cpulens or .parquet"),
        (["convert", RESNET, RESNET, "--follow", "1", "-o", "run.cpulens"], 2, "--follow reads one log"),
        (["convert", RESNET, "--workers", "0", "-o", "run.cpulens"], 2, "at least one has to read"),
        (["convert", ".", "-o", "run.cpulens"], 1, "is a directory"),
        (["sql", RESNET, "selec 1"], 2, "The query can't be run"),
        (["explain"], 1, "There is no line to explain"),
    ],
)
def test_what_can_not_be_is_one_sentence(cpulens: Command, arguments: list[str], code: int, words: str) -> None:
    done = cpulens(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_convert_finds_iterations(cpulens: Command) -> None:
    done = cpulens("convert", RESNET, "-o", "run.cpulens", "--iterations", "auto", "--json")
    told = json.loads(done.stdout)
    assert told["schema"] == 1
    assert told["iterations"]["count"] == 3
    assert told["iterations"]["warm_up"] == 1


def test_convert_follows_a_log_until_it_rests(cpulens: Command, tmp_path: Path) -> None:
    assert cpulens("convert", RESNET, "--follow", "0.3", "-o", "run.cpulens").returncode == 0
    assert Trace.open(tmp_path / "run.cpulens").facts["lines"]["records"] == 340


def test_convert_follows_a_log_until_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "growing.log"
    log.write_bytes(Path(RESNET).read_bytes())
    command = [sys.executable, "-c", _FOLLOW, str(log), str(tmp_path / "run.cpulens")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert Trace.open(tmp_path / "run.cpulens").facts["lines"]["records"] == 340


#: Interrupts itself, as Ctrl-C would, when the reader waits at the end of the file.
_FOLLOW = """
import os, signal, sys
from cpulens.verbose import follow
signal.signal(signal.SIGINT, signal.default_int_handler)
sleep = follow.time.sleep
def interrupted(seconds):
    os.kill(os.getpid(), signal.SIGINT)
    sleep(seconds)
follow.time.sleep = interrupted
from cpulens.cli import main
sys.exit(main(["convert", sys.argv[1], "--follow", "-o", sys.argv[2]]))
"""


def test_sql_prints_a_table(cpulens: Command) -> None:
    query = (
        "select primitive, count(*) as n, sum(duration_ms) as ms from run "
        "where event = 'exec' group by primitive order by ms desc"
    )
    done = cpulens("sql", RESNET, query)
    assert done.returncode == 0
    words = [line.split() for line in done.stdout.splitlines() if line.strip()]
    assert words[0] == ["primitive", "n", "ms"]
    assert words[2:] == [["convolution", "27", "36.46"], ["reorder", "78", "9.64965"]]
    done = cpulens("sql", RESNET, query, "--json")
    answer = json.loads(done.stdout)
    assert (answer["schema"], answer["columns"]) == (1, ["primitive", "n", "ms"])
    assert [row[:2] for row in answer["rows"]] == [["convolution", 27], ["reorder", 78]]


def test_sql_prints_no_more_than_asked_and_no_commands(cpulens: Command, tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("cpulens,v1,begin,1,a\x1b]0;b\x07\n" + Path(RESNET).read_text())
    done = cpulens("sql", "x.log", "select message from run where component = 'marker'")
    assert "a\\x1b]0;b\\x07" in done.stdout
    assert "\x1b" not in done.stdout
    done = cpulens("sql", RESNET, "select line from run", "--limit", "3")
    assert done.stderr == "3 of 340 rows; --limit 0 prints all\n"


def test_sql_without_an_answer_ends_with_1(cpulens: Command) -> None:
    assert cpulens("sql", RESNET, "select * from run where primitive = 'rnn'", "--json").returncode == 1


LINE = (
    "onednn_verbose,v1,1796113276328.277100,primitive,exec,cpu,matmul,brg_matmul:avx512_core_amx,undef,"
    "src:bf16:a:blocked:ab::f0 wei:bf16:ap:blocked:BA16a32b2a::f0 bia:undef::undef::: dst:bf16::blocked:ab::f0,"
    "attr-scratchpad:user attr-post-ops:sum:0.5+eltwise_relu:0.1,,8x64:64x128,0.0390625"
)


def test_explain_says_every_field_in_words(cpulens: Command) -> None:
    done = cpulens("explain", LINE)
    assert done.returncode == 0
    text = " ".join(done.stdout.split())
    for words in (
        "oneDNN ran matmul on cpu in 0.0390625 ms.",
        "1796113276328.277100 ms – 2026-12-01 08:21:16.328277 UTC",
        "brgemm – batch-reduce GEMM kernels, generated at run time",
        "bfloat16, dimensions in the order 1, 0, in blocks of 16 of dimension 0 x 32 of dimension 1 x 2 of dimension 0",
        "bia:undef::undef::: – absent",
        "add the earlier destination, times 0.5, then relu (alpha 0.1)",
        "rows of the result 8, columns of the result 128, length of the sums 64",
        "39.0625 microseconds; oneDNN's clock counts in steps of 0.000244 ms",
    ):
        assert words in text, words
    assert all(len(line) <= 80 for line in done.stdout.splitlines())


def test_explain_reads_stdin_and_gives_json(cpulens: Command) -> None:
    done = cpulens("explain", "--json", stdin=f"own text\n{LINE}\n".encode())
    answer = json.loads(done.stdout)
    assert answer["schema"] == 1
    assert [piece["columns"].get("primitive") for piece in answer["pieces"]] == [None, "matmul"]
    assert answer["pieces"][1]["columns"]["duration_ms"] == 0.0390625


def test_explain_of_what_is_no_line_ends_with_1(cpulens: Command) -> None:
    done = cpulens("explain", "onednn_verbose,v1,primitive,exec,cpu,mat\x1b[31m")
    assert done.returncode == 1
    assert "not a whole one of any version" in done.stdout
    assert "\x1b" not in done.stdout
    assert cpulens("explain", "just text").returncode == 1
