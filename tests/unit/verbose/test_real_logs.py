"""Every real log: counts, sums, first and last record, against a reading of the raw text that shares no code with ours."""

# ruff: noqa: E501
from __future__ import annotations

import gzip
import re
from functools import lru_cache
from pathlib import Path

import polars as pl
import pytest

from cpulens.errors import LogError
from cpulens.trace import Trace
from cpulens.verbose import load as load_anew

DATA = Path(__file__).parents[2] / "data" / "logs"
LOGS = sorted(path for path in DATA.iterdir() if ".log" in path.name)
#: Logs of programs that never reached either library: they hold the program's last word only.
SILENT = {
    "torch213_conv3d_all_ts.log",
    "torch213_gru_all_ts.log",
    "torch213_lstm_mkl.log",
    "torch213_resnet_f16_all_ts.log",
    "torch213_sdpa_all_ts.log",
    "torch213_transformer_all_ts.log",
}
SPEAKING = [path for path in LOGS if path.name not in SILENT]
MARKERS = re.compile(r"(?=onednn_verbose,|dnnl_verbose,|onednn_graph_verbose,|MKL_VERBOSE )")
#: Pieces that two processes tore apart on one pipe: the heads of lines cut at 4096 bytes.
TORN = {"onednn_v3.2_torn_2proc_2thr_longlines.log.gz": 18}


@lru_cache
def load(path: Path) -> Trace:
    return load_anew(path)


@lru_cache
def raw_lines(path: Path) -> list[str]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return data.decode().split("\n")[:-1]


def pieces(path: Path) -> list[str]:
    """Records as a person would cut them: from each marker to the next one or the end of the line."""
    found = []
    for line in raw_lines(path):
        found += [piece for piece in MARKERS.split(line) if MARKERS.match(piece)]
    return found


def time_ms(piece: str, decimal_comma: bool) -> float | None:
    """The time of a whole line that has one, read off its end."""
    if piece.startswith("MKL_VERBOSE "):
        found = re.search(r"\|?\)? (\d+)[.,](\d+)(ns|us|ms|s) CNR:", piece)
        if not found:
            return None
        return float(f"{found[1]}.{found[2]}") * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[found[3]]
    words = piece.split(",")
    if decimal_comma and words[-2].isdigit() and words[-1].isdigit():
        return float(f"{words[-2]}.{words[-1]}")
    return float(words[-1])


def kind(piece: str) -> str:
    """exec, create, … from the first words of a line, after marker, version, stamp and component."""
    if piece.startswith("MKL_VERBOSE "):
        head = piece.split(" ")[1]
        if head.startswith(("Intel", "oneMKL")):
            return "info"
        if head == "BEGIN":
            return "begin"
        if head == "FFT:":
            return "create"
        return "query" if re.search(r"^[A-Z]+\(.*,-1,[^)]*\)", piece.split(" ", 1)[1]) else "exec"
    words = [word for word in piece.split(",")[1:8] if not re.fullmatch(r"v\d|[\d.e+]+|primitive|graph|common", word)]
    operation, _, state = words[0].partition(":")
    return state if state in ("dispatch", "check") else operation


def expected_counts(path: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in pieces(path):
        counts[kind(piece)] = counts.get(kind(piece), 0) + 1
    return counts


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: path.name)
def test_counts_are_those_of_the_raw_text(path: Path) -> None:
    trace = load(path)
    counted = trace.frame.group_by("event").len().collect()
    found = dict(counted.iter_rows())
    expected = expected_counts(path)
    torn = TORN.get(path.name, 0)
    assert found.pop("unknown", 0) == torn
    if torn:
        # A torn head may be a creation or an execution; together they are all there.
        assert sum(found.values()) + torn == sum(expected.values())
    else:
        assert found == expected


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: path.name)
def test_pieces_are_all_accounted_for(path: Path) -> None:
    lines = load(path).facts["lines"]
    assert lines["read"] == lines["records"] + lines["own"] + lines["unknown"]
    assert lines["records"] + lines["unknown"] == len(pieces(path))
    own = sum(bool(MARKERS.split(line)[0]) or not line for line in raw_lines(path) if not MARKERS.match(line))
    assert lines["own"] == own


@pytest.mark.parametrize("path", [path for path in SPEAKING if path.name not in TORN], ids=lambda path: path.name)
def test_times_are_those_of_the_raw_text(path: Path) -> None:
    spoken = [piece for piece in pieces(path) if kind(piece) not in ("info", "dispatch", "check")]
    timed = [time for piece in spoken if (time := time_ms(piece, "decimal_comma" in path.name)) is not None]
    events = load(path).events.filter(pl.col("duration_ms").is_not_null()).collect()
    assert events["duration_ms"].to_list() == pytest.approx(timed, rel=1e-15, abs=0)


@pytest.mark.parametrize("path", SPEAKING, ids=lambda path: path.name)
def test_first_and_last_record_stand_where_the_raw_text_has_them(path: Path) -> None:
    numbers = [number for number, line in enumerate(raw_lines(path), 1) if MARKERS.search(line)]
    lines = load(path).events.select("line").collect()["line"]
    assert (lines[0], lines[-1]) == (numbers[0], numbers[-1])
    assert sorted(set(lines)) == numbers


@pytest.mark.parametrize("name", sorted(SILENT))
def test_a_log_without_a_line_says_so(name: str) -> None:
    with pytest.raises(LogError, match=r"no verbose line of oneDNN or oneMKL: 1 lines? "):
        load(DATA / name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Read off the first lines of each file by eye.
        (
            "onednn_v2.0_cpp_v2_ts.log",
            [("onednn", "2.0.0", "28d31a28471e107508ff596c6b34440d434c6daa", "OpenMP", None)],
        ),
        ("onednn_v3.2_cpp_v1.log", [("onednn", "3.2.0", "40112196287e8866a7259df35f817229454d0c96", "OpenMP", 2)]),
        # The graph part repeats the header under its own marker: one copy of the library all the same.
        (
            "onednn_v3.2_graph_verbose2.log",
            [("onednn", "3.2.0", "40112196287e8866a7259df35f817229454d0c96", "OpenMP", 2)],
        ),
        (
            "torch213_resnet_mkl_and_onednn.log",
            [
                ("onednn", "3.12.0", "80afa71049cd69a3df32adcccb623b12cd7baa22", "OpenMP", 2),
                ("mkl", "2024.0 Update 2", None, None, None),
            ],
        ),
        ("mkl2026.2_all.log", [("mkl", "2026 Update 2", None, None, None)]),
    ],
)
def test_headers_tell_the_libraries(name: str, expected: list[tuple[object, ...]]) -> None:
    libraries = load(DATA / name).facts["libraries"]
    keys = ("library", "version", "commit", "runtime", "threads")
    assert [tuple(library[key] for key in keys) for library in libraries] == expected


def test_the_header_of_mkl_tells_build_interface_and_threading() -> None:
    (library,) = load(DATA / "mkl2018.0.3_gnu.log").facts["libraries"]
    assert (library["product"], library["build"]) == ("Intel(R) MKL 2018.0 Update 3", "20180406")
    assert (library["interface"], library["threading"]) == ("lp64", "gnu_thread")
    (library,) = load(DATA / "mkl2026.2_ilp64.log").facts["libraries"]
    assert (library["interface"], library["threading"]) == (None, "intel_thread")


def test_an_mkl_error_that_has_no_verbose_line_is_noted() -> None:
    notes = load(DATA / "mkl2024.2.2_gnu.log").facts["notes"]
    assert notes == [
        "oneMKL reported an error in line 15: Intel oneMKL ERROR: Parameter 9 was incorrect on entry to cblas_sgemm."
    ]


def test_resnet_as_its_readme_tells_it() -> None:
    """105 executions, 78 of them reorders with 21 % of the time; the first of the stem 9.7 ms, its median about 1.1."""
    frame = load(DATA / "torch213_resnet_all_ts.log").frame.filter(pl.col("event") == "exec").collect()
    reorders = frame.filter(pl.col("primitive") == "reorder")
    assert (len(frame), len(reorders)) == (105, 78)
    assert reorders["duration_ms"].sum() / frame["duration_ms"].sum() == pytest.approx(0.21, abs=0.005)
    stem = frame.filter(pl.col("problem").str.contains("kh7"))["duration_ms"]
    assert stem[0] == 9.74609


def test_a_storm_of_cache_misses_is_counted() -> None:
    """3163 misses and 1053 hits, as the log's description says."""
    creations = load(DATA / "torch213_cache_storm_v2.log.gz").frame.filter(pl.col("event") == "create")
    counts = dict(creations.group_by("cache").len().collect().iter_rows())
    assert counts == {"miss": 3163, "hit": 1053}


def test_inner_primitives_of_graph_partitions() -> None:
    """Each of the partitions ran primitives that started inside its own interval; the rest ran outside of any."""
    path = DATA / "torch213_jit_llga_all_ts.log.gz"
    executions = []
    for piece in pieces(path):
        words = piece.split(",")
        if words[4:5] == ["exec"]:
            executions.append((words[3], float(words[2]), float(words[-1])))
    graphs = [(start, start + time) for component, start, time in executions if component == "graph"]
    inside = [any(a <= start <= b for a, b in graphs) for component, start, _ in executions if component != "graph"]
    frame = load(path).frame.filter(pl.col("event") == "exec").collect()
    assert frame.filter(pl.col("component") == "primitive")["inner"].to_list() == inside
    assert not frame.filter(pl.col("component") == "graph")["inner"].any()
    assert sum(inside) == 51
