"""What happens to logs on their way: glue, tears, prefixes, encodings, compression, locales, look-alikes."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from cpulens.errors import LogError
from cpulens.verbose import load, source
from cpulens.verbose.explain import explain
from cpulens.verbose.visible import visible

EXEC = "onednn_verbose,v1,primitive,exec,cpu,matmul,jit:avx2,undef,src:f32::blocked:ab::f0,,,2x3:3x4,"
MKL = "MKL_VERBOSE SGEMM(N,N,64,64,64,0x7ffd2b8b68b8,0x55b4cd604330,64) 94.85us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2"


def rows(text: str | bytes, **options: Any) -> list[dict[str, Any]]:
    data = text if isinstance(text, bytes) else text.encode()
    return load(data, **options).frame.collect().rows(named=True)


def lines_of(text: str | bytes) -> dict[str, int]:
    counts: dict[str, int] = load(text if isinstance(text, bytes) else text.encode()).facts["lines"]
    return counts


# --- pieces of a line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "before",
    ["progress: 10% \r", "no newline before marker>", "\x1b[32mgreen\x1b[0m", "12 it/s, eta 3", "src_f32::block"],
)
def test_a_marker_in_the_middle_of_a_line(before: str) -> None:
    assert lines_of(f"{before}{EXEC}0.5\n") == {"read": 2, "records": 1, "own": 1, "unknown": 0}


def test_two_records_on_one_line() -> None:
    found = rows(f"{EXEC}0.5{EXEC}0.25{MKL}\n")
    assert [(row["duration_ms"], row["line"]) for row in found] == [(0.5, 1), (0.25, 1), (0.09485, 1)]


def test_a_torn_head_is_kept_with_its_text() -> None:
    head = EXEC[:70]
    trace = load(f"{head}{EXEC}0.5\nocked:ab:f0,,,1x2,0.1\n".encode())
    assert trace.facts["lines"] == {"read": 3, "records": 1, "own": 1, "unknown": 1}
    torn = trace.frame.filter(pl.col("event") == "unknown").collect().row(0, named=True)
    assert (torn["raw"], torn["message"], torn["library"], torn["line"]) == (head, head, "onednn", 1)
    assert trace.facts["first_unknown"] == {"line": 1, "text": head}


def test_text_behind_a_record_is_the_programs_own() -> None:
    assert lines_of(f"{EXEC}0.5 and more\n{EXEC}0.5[INFO] x\n{MKL} hello\n") == {
        "read": 6,
        "records": 3,
        "own": 3,
        "unknown": 0,
    }


def test_text_with_commas_behind_a_record() -> None:
    trace = load(f"{EXEC}0.5 loss 0.1, step 2, done\n".encode())
    assert trace.events.collect()["duration_ms"].to_list() == [0.5]
    assert trace.facts["lines"] == {"read": 2, "records": 1, "own": 1, "unknown": 0}


def test_a_line_cut_before_its_time_is_no_record() -> None:
    """The problem is a plain number, but it is not the time."""
    whole = "onednn_verbose,v1,primitive,exec,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,1000,0.5"
    for cut in range(len("onednn_verbose,v1,p"), len(whole) - 3):
        assert lines_of(f"{whole[:cut]}\n{EXEC}0.5\n") == {"read": 2, "records": 1, "own": 0, "unknown": 1}, whole[:cut]


def test_colours_around_a_record() -> None:
    (row,) = rows(f"\x1b[1m{EXEC}0.5\x1b[0m\n")
    assert row["duration_ms"] == 0.5


def test_empty_lines_are_own_pieces() -> None:
    assert lines_of(f"\n\n{EXEC}0.5\n\n") == {"read": 4, "records": 1, "own": 3, "unknown": 0}


@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_ends_of_lines(end: str) -> None:
    (row,) = rows(f"{EXEC}0.5{end}")
    assert (row["duration_ms"], row["raw"]) == (0.5, EXEC.rstrip(","))


@pytest.mark.parametrize(
    "line",
    [
        "ov_cpu_verbose,exec,cpu,conv:Convolution:ConvolutionDirect,jit_avx512,,,0.5",
        "xft_verbose,exec,cpu,api,xdnn_sgemm_f32f16f32_compute,m1k4096n22016,5.28777",
        "run with MKL_VERBOSE=1 python model.py",
        "set MKL_VERBOSE to 1, and see onednn_verbose, which is the marker",
        "cpulens,v1,banner,1,hello",
        "onednn_verbose",
    ],
)
def test_look_alikes_are_left_alone(line: str) -> None:
    assert lines_of(f"{line}\n{EXEC}0.5\n") == {"read": 2, "records": 1, "own": 1, "unknown": 0}


@pytest.mark.parametrize(
    ("printed", "duration_ms"),
    [
        ("1e-05", 1e-05),
        ("1.23457e+06", 1234570.0),
        ("0", 0.0),
        ("-0.5", -0.5),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("1.#INF", math.inf),
    ],
)
def test_odd_times(printed: str, duration_ms: float) -> None:
    (row,) = rows(f"{EXEC}{printed}\n")
    assert row["duration_ms"] == duration_ms


@pytest.mark.parametrize("printed", ["nan", "-nan", "-nan(ind)", "1.#QNAN", "-1.#IND"])
def test_times_that_are_no_numbers(printed: str) -> None:
    (row,) = rows(f"{EXEC}{printed}\n")
    assert math.isnan(row["duration_ms"])


def test_a_decimal_comma_in_time_and_stamp() -> None:
    line = "onednn_verbose,v1,1796113559848,066895,primitive,exec,cpu,sum,jit,undef,src:f32::blocked:a::f0,,,{},{}"
    found = rows(
        "\n".join(
            line.format(problem, time)
            for problem, time in (("2x16", "0,0690918"), ("2x16", "0"), ("1000", "15,385"), ("1000", "0"))
        )
    )
    assert [(row["problem"], row["duration_ms"], row["start_ns"]) for row in found] == [
        ("2x16", 0.0690918, 1796113559848066895),
        ("2x16", 0.0, 1796113559848066895),
        ("1000", 15.385, 1796113559848066895),
        ("1000", 0.0, 1796113559848066895),
    ]


# --- prefixes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prefix", "instance"),
    [
        ("[3] ", "3"),
        ("\x1b[33m[4]\x1b[0m ", "4"),
        ("[1,2]<stdout>:", "2"),
        (" 7: ", "7"),
        ("[default0]:", "default0"),
        ("worker-1  | ", "worker-1"),
        ("[pod/model-0/server] ", "pod/model-0/server"),
        ("Dec  1 10:00:00 host model[4711]: ", "model[4711]"),
        ("[prterun-host-12@1,5]<stdout>: ", "5"),
        ("\x1b[36mworker-2  | \x1b[0m", "worker-2"),
        ("2026-01-01T00:00:00+0000 host model[4711]: ", "model[4711]"),
        ("build\tRun tests\t2026-01-01T00:00:00.1234567Z ", None),
        ("2026-01-01T00:00:00.123456789Z stdout F ", None),
        ("2026-01-01T00:00:00.1234567Z ", None),
        ("[2026-01-01 12:00:00.000] [oneDNN] [info] ", None),
        ("2026-01-01T00:00:00.123456789Z stdout F [3] ", "3"),
    ],
)
@pytest.mark.parametrize("record", [f"{EXEC}0.5", MKL])
def test_prefixes_tell_the_instance_and_are_no_text(prefix: str, instance: str | None, record: str) -> None:
    trace = load(f"{prefix}{record}\n".encode())
    assert trace.events.select("instance").collect()["instance"].to_list() == [instance]
    assert trace.facts["lines"] == {"read": 1, "records": 1, "own": 0, "unknown": 0}


def test_docker_json_lines() -> None:
    text = "".join(
        json.dumps({"log": line + "\n", "stream": "stdout", "time": "2026-01-01T00:00:00Z"}) + "\n"
        for line in (f"{EXEC}0.5", "own <text>")
    )
    assert lines_of(text) == {"read": 2, "records": 1, "own": 1, "unknown": 0}


def test_ranks_in_one_log_have_headers_and_records_of_their_own() -> None:
    text = (
        "".join(f"[{rank}] onednn_verbose,v1,info,oneDNN v3.{rank}.0 (commit abc)\n" for rank in (1, 2))
        + f"[2] {EXEC}0.5\n[1] {EXEC}0.25\n"
    )
    trace = load(text.encode())
    assert [(library["instance"], library["version"]) for library in trace.facts["libraries"]] == [
        ("1", "3.1.0"),
        ("2", "3.2.0"),
    ]
    runs = trace.frame.filter(pl.col("event") == "exec").select("instance", "duration_ms").collect()
    assert runs.rows() == [("2", 0.5), ("1", 0.25)]
    assert len(trace.texts.filter(pl.col("event") == "exec")) == 1


def test_a_colon_before_other_text_is_no_rank() -> None:
    assert lines_of(f"12: some text\n{EXEC}0.5\n")["own"] == 1


# --- files -------------------------------------------------------------------------------------------------------

PLAIN = f"before\n{EXEC}0.5\n{MKL}\n".encode()


def zstd(data: bytes) -> bytes:
    if os.sys.version_info >= (3, 14):  # type: ignore[attr-defined]
        from compression.zstd import compress
    else:
        from backports.zstd import compress
    return compress(data)


FORMS = {
    "plain": PLAIN,
    "gzip": gzip.compress(PLAIN),
    "xz": lzma.compress(PLAIN),
    "zstd": zstd(PLAIN),
    "UTF-16": b"\xff\xfe" + PLAIN.decode().encode("utf-16-le"),
    "UTF-16 the other way": b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + PLAIN,
    "gzip of UTF-16": gzip.compress(b"\xff\xfe" + PLAIN.decode().encode("utf-16-le")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("way", ["path", "bytes", "file"])
def test_every_form_of_a_file(tmp_path: Path, form: str, way: str) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(FORMS[form])
    with path.open("rb") as file:
        trace = load({"path": path, "bytes": FORMS[form], "file": file}[way])
    assert trace.facts["lines"] == {"read": 3, "records": 2, "own": 1, "unknown": 0}
    assert trace.events.select("line").collect()["line"].to_list() == [2, 3]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(PLAIN))
    writer.start()
    trace = load(pipe)
    writer.join()
    assert trace.facts["lines"]["records"] == 2


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FORMS["gzip"])))
    assert load("-").facts["lines"]["records"] == 2


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstd])
def test_a_compressed_log_that_is_cut_off_is_read_as_far_as_it_goes(compress: Any) -> None:
    whole = compress("".join(f"{EXEC}{at / 7:.6g}\n{at * 7919}\n" for at in range(20_000)).encode())
    trace = load(whole[: len(whole) // 2])
    assert 100 < trace.facts["lines"]["records"] < 20_000
    assert any(
        note.startswith("Only the beginning was read: the compressed data are damaged") for note in trace.facts["notes"]
    )


def test_several_logs_become_instances(tmp_path: Path) -> None:
    (tmp_path / "one.log").write_text(f"{EXEC}0.5\nown\n")
    (tmp_path / "two.log").write_text(f"[0] {EXEC}0.25\n[1] {EXEC}0.125\n")
    load(tmp_path / "one.log").save(tmp_path / "three.cpulens")
    trace = load(tmp_path / "one.log", tmp_path / "two.log", tmp_path / "three.cpulens")
    events = trace.events.collect()
    assert events["instance"].to_list() == ["one.log", "two.log/0", "two.log/1", "three.cpulens"]
    assert events["seq"].to_list() == [0, 1, 2, 3]
    assert events["duration_ms"].to_list() == [0.5, 0.25, 0.125, 0.5]
    assert len(trace.texts) == 1
    assert trace.facts["lines"] == {"read": 6, "records": 4, "own": 2, "unknown": 0}


def test_the_same_name_twice_gets_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"{EXEC}0.5\n")
    assert load(path, path).events.collect()["instance"].to_list() == ["a.log", "a.log#2"]


# --- what can't be read ------------------------------------------------------------------------------------------


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"There is no file .*nowhere\.log"):
        load(tmp_path / "nowhere.log")


def test_a_directory(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"is a directory. Name the log files in it"):
        load(tmp_path)


def test_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    with pytest.raises(LogError, match=r"empty\.log is empty: nothing was printed into it"):
        load(tmp_path / "empty.log")


def test_a_binary_file(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\x7fELF\x02\x01\x01\x00\x00\x00")
    with pytest.raises(LogError, match=r"program: This is a binary file"):
        load(tmp_path / "program")


def test_only_torn_lines() -> None:
    with pytest.raises(
        LogError, match="1 pieces that begin like verbose lines, and none is whole; the first is in line 2"
    ):
        load(f"text\n{EXEC[:60]}\n".encode())


def test_only_markers() -> None:
    with pytest.raises(LogError, match="has markers, but no line of oneDNN or oneMKL between them"):
        load(b"cpulens,v1,begin,1,a\ncpulens,v1,end,1,a\n")


def test_strict_names_the_first_piece_that_is_not_understood() -> None:
    text = f"{EXEC}0.5\n{EXEC[:60]}\x1b[31m\n".encode()
    load(text)
    with pytest.raises(LogError, match=r"1 pieces were not understood; the first is in line 2: onednn_verbose,v1"):
        load(text, strict=True)


def test_messages_show_control_characters_and_do_not_send_them() -> None:
    with pytest.raises(LogError) as caught:
        load(b"onednn_verbose,\x07exec,\x1b]0;title\x07\n" + b"onednn_verbose,exec\x9b31m\n")
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in str(caught.value))


# --- limits ------------------------------------------------------------------------------------------------------


def test_a_line_beyond_the_limit_is_cut_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    with path.open("wb") as file:
        file.write(f"{EXEC}0.5\n".encode())
        for _ in range(40):
            file.write(b"x" * (1 << 20))
        file.write(f"\n{EXEC}0.25\n".encode())
        file.write(f"{EXEC}1.5 {'y' * (3 << 20)}".encode())
    trace = load(path)
    assert trace.events.collect()["duration_ms"].to_list() == [0.5, 0.25, 1.5]
    assert trace.events.collect()["line"].to_list() == [1, 3, 4]
    assert trace.facts["lines_cut"] == 2
    assert "2 lines are longer than 1,048,576 bytes; only so much of each was read." in trace.facts["notes"]


def test_a_line_just_within_the_limit_is_whole() -> None:
    before = "z" * (source.MAX_LINE_BYTES - len(EXEC) - 3)
    trace = load(f"{before}{EXEC}0.5\n".encode())
    assert trace.facts["lines"] == {"read": 2, "records": 1, "own": 1, "unknown": 0}


def test_texts_beyond_the_limit_are_timed_without_their_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpulens.verbose.keys.MAX_TEXTS", 10)
    text = "".join(f"{EXEC.replace('2x3', f'{at}x3')}1\n" for at in range(1, 101))
    trace = load(text.encode())
    assert trace.frame.select(pl.col("duration_ms").sum()).collect().item() == 100
    by = (
        trace.frame.group_by("primitive", "implementation")
        .agg(pl.len(), pl.col("problem").is_null().sum().alias("without"))
        .collect()
    )
    assert by.rows() == [("matmul", "jit:avx2", 100, 90)]
    assert len(trace.texts) == 11
    assert trace.texts.filter(pl.col("problem").is_null())["raw"].to_list() == [None]
    assert any("texts beyond the limit" in note for note in trace.facts["notes"])
    assert trace.events.collect()["line"].to_list() == list(range(1, 101))


def test_markers_beyond_the_limit_lose_their_names_but_not_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpulens.verbose.keys.MAX_TEXTS", 2)
    marks = "".join(f"cpulens,v1,begin,1,r{at}\n{EXEC}{at}\ncpulens,v1,end,1,r{at}\n" for at in range(5))
    frame = load(f"{EXEC}9\n{marks}".encode()).frame.filter(pl.col("event") == "exec").collect()
    assert frame["region"].to_list() == [None, "r0", "", "", "", ""]


def test_unknown_pieces_beyond_the_limit_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cpulens.verbose.keys.MAX_UNKNOWN", 5)
    text = "".join(f"onednn_verbose,exec,{at}\n" for at in range(50)) + f"{EXEC}0.5\n"
    trace = load(text.encode())
    assert trace.facts["lines"] == {"read": 51, "records": 1, "own": 0, "unknown": 50}
    assert trace.frame.filter(pl.col("event") == "unknown").select(pl.len()).collect().item() == 50
    assert len(trace.texts.filter(pl.col("event") == "unknown")) == 6


# --- files that grow ---------------------------------------------------------------------------------------------


def test_a_growing_log_is_followed_until_it_rests(tmp_path: Path) -> None:
    path = tmp_path / "growing.log"
    path.write_text(f"{EXEC}0.5\n{EXEC}0.2")

    def write() -> None:
        for at in range(3):
            time.sleep(0.15)
            with path.open("a") as file:
                file.write(f"5\n{EXEC}0.{at}")

    writer = threading.Thread(target=write)
    writer.start()
    trace = load(path, follow=1.0)
    writer.join()
    assert trace.events.collect()["duration_ms"].to_list() == [0.5, 0.25, 0.05, 0.15, 0.2]


def test_a_log_that_is_replaced_ends_the_following(tmp_path: Path) -> None:
    path = tmp_path / "rotated.log"
    path.write_text(f"{EXEC}0.5\n")
    other = tmp_path / "new"
    other.write_text("other")
    timer = threading.Timer(0.3, lambda: other.replace(path))
    timer.start()
    trace = load(path, follow=True)
    timer.join()
    assert trace.facts["lines"]["records"] == 1


def test_facts_given_are_merged_and_their_notes_come_first() -> None:
    trace = load(f"{EXEC}0.25\n".encode(), facts={"command": ["a"], "notes": ["b"]})
    assert trace.events.collect()["duration_ms"].to_list() == [0.25]
    assert (trace.facts["command"], trace.facts["notes"]) == (["a"], ["b"])


def test_visible_text_has_no_commands() -> None:
    assert visible("a\x1b[31mb\u202ec\td") == "a\\x1b[31mb\\u202ec\\td"


def test_explaining_a_prefixed_line_tells_the_instance() -> None:
    (piece,) = explain(f"[3] {EXEC}0.5\n".encode())
    assert piece.fields[0][:2] == ("instance", "3")
    assert piece.sentence == "oneDNN ran matmul on cpu in 0.5 ms."
