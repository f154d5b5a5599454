"""Findings of real logs, with figures counted from their raw text."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

import cpulens
from analyze_support import found_in
from cpulens.analyze.findings import Finding

LOGS = Path(__file__).parents[2] / "data" / "logs"


def path_of(name: str) -> Path:
    return next(path for path in LOGS.iterdir() if path.name.startswith(name))


def raw(name: str) -> list[str]:
    data = path_of(name).read_bytes()
    return (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode().split("\n")


def findings(name: str) -> dict[str, Finding]:
    return found_in(cpulens.load(path_of(name)))


def executions(name: str) -> list[tuple[str, float]]:
    """Kind and time of each execution."""
    found = [re.search(r",exec,cpu,(\w+),.*,([\d.e-]+)$", line) for line in raw(name)]
    return [(one[1], float(one[2])) for one in found if one]


def test_reorders_of_a_network_in_plain_layout() -> None:
    ran = executions("torch213_resnet_all_ts")
    reorders = [time for kind, time in ran if kind == "reorder"]
    found = findings("torch213_resnet_all_ts")
    assert found["reorder-share"].numbers["calls"] == len(reorders) == 78
    assert found["reorder-share"].cost_ms == pytest.approx(sum(reorders))
    assert found["reorder-share"].numbers["share"] == pytest.approx(sum(reorders) / sum(time for _, time in ran))
    assert "layout-ping-pong" in found
    assert "cold-start" in found


def test_channels_last_has_no_reorder_finding() -> None:
    found = findings("torch213_resnet_cl_all_ts")
    assert not {"reorder-share", "layout-ping-pong", "weights-reordered"} & set(found)


def test_the_cache_storm_is_counted_as_it_was_planted() -> None:
    found = findings("torch213_cache_storm_v2")["cache-misses"]
    created = [re.search(r",create:cache_miss,(.*),[\d.e-]+$", line) for line in raw("torch213_cache_storm_v2")]
    problems = [one[1] for one in created if one]
    assert found.numbers["misses_again"] == len(problems) - len(set(problems)) == 1581
    assert found.numbers["capacity"] == 1024


def test_matcher_noise() -> None:
    found = findings("torch213_jit_llga_all_ts")["verbose-noise"]
    assert found.numbers["share"] > 0.98


def test_refusals_stand_beside_the_reference_kernels() -> None:
    found = findings("onednn_v3.2_cpp_all_ts")
    refused = [piece for piece in found["reference-kernel"].evidence if piece.sentence.startswith("refused: ")]
    assert refused
    lines = raw("onednn_v3.2_cpp_all_ts")
    for piece in refused:
        (line,) = piece.lines
        assert "create:dispatch" in lines[line - 1]
    assert "failed-call" in found


@pytest.mark.parametrize("name", ["mkl2018.0.3_gnu", "mkl2024.2.2_gnu", "mkl2026.2_all"])
def test_errors_of_mkl_come_with_their_line(name: str) -> None:
    found = findings(name)["failed-call"]
    (line,) = found.evidence[0].lines
    assert "ERROR" in raw(name)[line - 1]
