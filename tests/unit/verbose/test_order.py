"""What only the order of lines tells: regions, iterations, primitives inside graph partitions, preambles."""

# ruff: noqa: E501
from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from cpulens.verbose import events, load

GRAPH = (
    "graph,exec,cpu,1,misc,relu,,in0_f32:0:strided:undef:4:1 out0_f32:1:strided:undef:4:1,fpm:strict,k_t,dnnl_backend"
)


def run(time: float, stamp: str = "") -> str:
    return f"onednn_verbose,v1,{stamp}primitive,exec,cpu,sum,jit:uni,undef,src:f32::blocked:a::f0,,,8,{time}"


def graph(time: float, stamp: str = "") -> str:
    return f"onednn_verbose,v1,{stamp}{GRAPH},{time}"


def mark(event: str, name: str = "", thread: int = 1) -> str:
    return f"cpulens,v1,{event},{thread},{name}"


@pytest.fixture(params=["lists", "numpy", "file"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The three ways in which a table of events is made: by size, otherwise."""
    if request.param != "lists":
        monkeypatch.setattr(events, "PLAIN_ROWS", 0)
        monkeypatch.setattr("cpulens.verbose.reader.PLAIN_ROWS", 0)
        monkeypatch.setattr("cpulens.verbose.parts.CHUNK_ROWS", 3)
    if request.param == "file":
        monkeypatch.setattr(events, "MEMORY_ROWS", 0)
    return str(request.param)


def table(lines: list[str], **options: Any) -> tuple[pl.DataFrame, dict[str, Any]]:
    trace = load("\n".join(lines).encode(), **options)
    return trace.frame.collect(), trace.facts


@pytest.mark.usefixtures("way")
class TestOrder:
    def test_regions_nest(self) -> None:
        frame, facts = table(
            [
                run(1),
                mark("begin", "model"),
                run(2),
                mark("begin", "layer 1"),
                run(3),
                mark("end", "layer 1"),
                run(4),
                mark("end", "model"),
                run(5),
            ]
        )
        runs = frame.filter(pl.col("event") == "exec")
        assert runs["region"].to_list() == [None, "model", "model/layer 1", "model", None]
        markers = frame.filter(pl.col("component") == "marker")
        assert markers["message"].to_list() == ["model", "layer 1", "layer 1", "model"]
        assert markers["thread"].to_list() == [1, 1, 1, 1]
        assert markers["library"].unique().to_list() == ["cpulens"]
        assert facts["notes"] == []
        assert "regions_ambiguous" not in facts

    def test_a_name_may_hold_commas(self) -> None:
        frame, _ = table([mark("begin", "a,b, c"), run(1), mark("end", "a,b, c")])
        assert frame.filter(pl.col("event") == "exec")["region"].to_list() == ["a,b, c"]

    def test_regions_of_two_threads_are_ambiguous_and_counted(self) -> None:
        frame, facts = table(
            [
                mark("begin", "a", 1),
                run(1),
                mark("begin", "b", 2),
                run(2),
                run(3),
                mark("end", "a", 1),
                run(4),
                mark("end", "b", 2),
                run(5),
            ]
        )
        assert frame.filter(pl.col("event") == "exec")["region"].to_list() == ["a", None, None, "b", None]
        assert facts["regions_ambiguous"] == 2

    def test_iterations_count_from_their_markers(self) -> None:
        frame, _ = table([run(1), mark("iteration"), run(2), run(3), mark("iteration"), run(4)])
        assert frame.filter(pl.col("event") == "exec")["iteration"].to_list() == [None, 0, 0, 1]

    def test_an_end_without_a_beginning_and_a_beginning_without_an_end_are_noted(self) -> None:
        frame, facts = table([mark("end", "x"), run(1), mark("begin", "y"), run(2)])
        assert frame.filter(pl.col("event") == "exec")["region"].to_list() == [None, "y"]
        assert facts["notes"] == [
            "A region ends that did not begin: x.",
            "Regions still open at the end of the log: y.",
        ]

    def test_an_end_closes_what_was_left_open_inside(self) -> None:
        frame, _ = table([mark("begin", "a"), mark("begin", "b"), run(1), mark("end", "a"), run(2)])
        assert frame.filter(pl.col("event") == "exec")["region"].to_list() == ["a/b", None]

    def test_each_rank_has_regions_and_iterations_of_its_own(self) -> None:
        frame, _ = table(
            [
                f"[0] {mark('begin', 'a')}",
                f"[1] {run(1)}",
                f"[0] {run(2)}",
                f"[1] {mark('iteration')}",
                f"[0] {run(3)}",
                f"[1] {run(4)}",
                f"[0] {mark('end', 'a')}",
            ]
        )
        runs = frame.filter(pl.col("event") == "exec").select("instance", "region", "iteration")
        assert runs.rows() == [("1", None, None), ("0", "a", None), ("0", "a", None), ("1", None, 0)]

    def test_primitives_inside_a_partition_by_stamps(self) -> None:
        """The partition began at 1000 ms; what began later and is printed before it lies inside, whatever it took."""
        at = "17000000{:05d}.000000,".format
        frame, _ = table(
            [
                run(5, at(990)),
                run(2, at(1000)),
                f"onednn_verbose,v1,{at(1002)}primitive,exec:check,x,y,a.cpp:1",
                run(3, at(1003)),
                graph(10, at(1000)),
                run(1, at(1020)),
            ]
        )
        runs = frame.filter(pl.col("event") == "exec")
        assert runs["inner"].to_list() == [False, True, True, False, False]

    def test_a_primitive_of_another_thread_that_began_before_does_not_hide_others(self) -> None:
        at = "17000000{:05d}.000000,".format
        frame, _ = table([run(2, at(1001)), run(30, at(980)), run(2, at(1005)), graph(10, at(1000))])
        assert frame["inner"].to_list() == [True, False, True, False]

    def test_primitives_inside_a_partition_without_stamps(self) -> None:
        """Those right before it whose sum its time can hold."""
        frame, _ = table([run(4), run(3), run(2), graph(5.5), run(1), graph(0.5)])
        assert frame["inner"].to_list() == [False, True, True, False, False, False]

    def test_a_compilation_or_another_partition_ends_the_look_back(self) -> None:
        compiled = graph(3).replace("graph,exec,", "graph,compile:cache_miss,")
        frame, _ = table([run(1), compiled, run(1), graph(9), graph(9)])
        assert frame["inner"].to_list() == [False, False, True, False, False]

    def test_a_partition_with_hundreds_of_primitives(self) -> None:
        at = "17000000{:05d}.000000,".format
        frame, _ = table(
            [run(1, at(10))] + [run(0.001, at(1000 + number)) for number in range(500)] + [graph(600, at(1000))]
        )
        assert frame["inner"].sum() == 500
        assert not frame["inner"][0]

    def test_a_preamble_is_known_but_counts_for_nothing(self) -> None:
        preamble = f"onednn_verbose,v1,info,oneDNN v3.9.1 (commit abc)\n{mark('begin', 'outer')}\n"
        frame, facts = table([run(1), mark("end", "outer"), run(2)], preamble=preamble.encode(), own=3)
        assert frame.filter(pl.col("event") == "exec")["region"].to_list() == ["outer", None]
        assert [library["version"] for library in facts["libraries"]] == ["3.9.1"]
        assert facts["lines"] == {"read": 6, "records": 3, "own": 3, "unknown": 0}
        assert frame["seq"].to_list() == [0, 1, 2]

    def test_sparse_pairs_and_threads(self) -> None:
        frame, _ = table(
            [
                "MKL_VERBOSE BEGIN mkl_sparse_d_mv(A:[fmt:csr,dims:3x4,nnz:5])",
                "MKL_VERBOSE DDOT(8,0x7f781ca11e30,1,0x7f781ca12030,1) 2.00us CNR:OFF Dyn:1 FastMM:1 TID:5  NThr:2",
                "MKL_VERBOSE END mkl_sparse_d_mv() 67.01us CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2",
            ]
        )
        assert frame["problem"].to_list() == ["3x4nnz5", "n8", "3x4nnz5"]
        assert frame["thread"].to_list() == [None, 5, 0]
        assert frame["duration_ms"].to_list() == [None, 0.002, 0.06701]


def test_the_three_ways_make_the_same_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        mark("begin", "a"),
        run(1),
        "own",
        graph(3),
        f"[1] {run(2)}",
        mark("iteration"),
        run(float("nan")),
        "onednn_verbose,exec,torn",
    ]
    tables = [table(lines)[0]]
    monkeypatch.setattr(events, "PLAIN_ROWS", 0)
    monkeypatch.setattr("cpulens.verbose.reader.PLAIN_ROWS", 0)
    tables.append(table(lines)[0])
    monkeypatch.setattr(events, "MEMORY_ROWS", 0)
    tables.append(table(lines)[0])
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


def test_several_headers_are_several_segments() -> None:
    header = "onednn_verbose,v1,info,oneDNN v3.{}.0 (commit N/A)\nonednn_verbose,v1,info,cpu,runtime:TBB,nthr:{}\n"
    facts = load((header.format(1, 4) + run(1) + "\n" + header.format(2, 8) + run(1)).encode()).facts
    assert [
        (library["version"], library["commit"], library["runtime"], library["threads"])
        for library in facts["libraries"]
    ] == [
        ("3.1.0", None, "TBB", 4),
        ("3.2.0", None, "TBB", 8),
    ]


def test_a_log_that_begins_within_a_header() -> None:
    (library,) = load(f"onednn_verbose,v1,info,cpu,isa:Intel AVX2\n{run(1)}".encode()).facts["libraries"]
    assert (library["version"], library["isa"]) == (None, "Intel AVX2")


@pytest.mark.parametrize(
    ("lines", "version", "isa"),
    [
        (["mkldnn_verbose,info,Intel(R) MKL-DNN v0.20.0 (Git Hash abc),Intel(R) AVX-512 with AVX512BW, AVX512VL"], "0.20.0", "Intel(R) AVX-512 with AVX512BW, AVX512VL"),
        (["mkldnn_verbose,info,Intel MKL-DNN v0.21.0 (commit abc)", "mkldnn_verbose,info,Detected ISA is Intel AVX2"], "0.21.0", "Intel AVX2"),
        (["dnnl_verbose,info,DNNL v1.1.0 (commit abc)", "dnnl_verbose,info,Detected ISA is Intel AVX2"], "1.1.0", "Intel AVX2"),
    ],
)  # fmt: skip
def test_headers_of_old_versions(lines: list[str], version: str, isa: str) -> None:
    (library,) = load("\n".join(lines).encode()).facts["libraries"]
    assert (library["version"], library["commit"], library["isa"], library["header"]) == (version, "abc", isa, lines)
