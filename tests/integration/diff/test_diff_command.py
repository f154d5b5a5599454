"""`cpulens diff` and the selections of `cpulens top`: exit codes, words, JSON."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from comparison_support import HEADER, cpulens, diff_json, matmul, quantised, reorder
from cpulens.cli import main

LOGS = Path(__file__).parents[2] / "data" / "logs"
NCHW, NHWC = LOGS / "torch213_resnet_all_ts.log", LOGS / "torch213_resnet_cl_all_ts.log"


def real(name: str) -> str:
    """The path of a recorded log."""
    return str(next(LOGS.glob(f"{name}.log*")))


def times_of(path: str, kind: str) -> list[float]:
    """The times of the executions of a primitive, by cutting the lines at their commas."""
    content = Path(path).read_bytes()
    text = gzip.decompress(content) if path.endswith(".gz") else content
    fields = [line.split(",") for line in text.decode().splitlines()]
    return [
        float(line[-1]) for line in fields if ",exec,cpu," in ",".join(line) and line[line.index("cpu") + 1] == kind
    ]


def write(path: Path, calls: list[tuple[str, float]], header: str = HEADER) -> str:
    path.write_text("\n".join([header, *(f"{text}{time:g}" for text, time in calls)]) + "\n")
    return str(path)


def slowed(tmp_path: Path, factor: float, seed: int = 1) -> tuple[str, str]:
    """Two logs of three kernels, of which one takes `factor` times as long in the second."""
    rng = np.random.default_rng(seed)
    paths = []
    for name, times in (("base", (1.0, 0.5, 0.2)), ("new", (1.0, 0.5 * factor, 0.2))):
        calls = [
            (matmul(f"{number}x8:8x8"), time)
            for number, median in enumerate(times, 1)
            for time in quantised(median * rng.normal(1, 0.08, 201))
        ]
        paths.append(write(tmp_path / f"{name}.log", calls))
    return paths[0], paths[1]


def test_channels_last_is_told_as_fewer_reorders_and_another_implementation() -> None:
    base, new = real("torch213_resnet_all_ts"), real("torch213_resnet_cl_all_ts")
    code, found = diff_json(base, new)
    assert code == 0
    assert found["schema"] == 1
    assert found["differences"] == []
    reorders = next(cause for cause in found["causes"] if cause["text"].startswith("reorder"))
    before, after = times_of(base, "reorder"), times_of(new, "reorder")
    assert f"{len(before)} → {len(after)} calls" in reorders["text"]
    assert reorders["delta_ms"] < 0
    changed = next(cause for cause in found["causes"] if cause["kind"] == "changed")
    assert "jit:avx512_core → brg_conv_fwd:avx512_core, layout" in changed["text"]
    whole = sum(
        times_of(base, kind)[at] for kind in ("convolution", "reorder") for at in range(len(times_of(base, kind)))
    )
    assert found["total"]["base_ms"] + found["first_ms"]["base"] == pytest.approx(whole)
    assert sum(cause["delta_ms"] for cause in found["causes"]) == pytest.approx(found["total"]["delta_ms"])


def test_versions_are_said_first(tmp_path: Path) -> None:
    result = cpulens("diff", real("onednn_v2.4_cpp_v2_ts"), real("onednn_v3.2_cpp_all_ts"))
    assert result.returncode == 0, result.stderr
    lines = result.stdout.decode().splitlines()
    assert re.fullmatch(r"oneDNN version\s+2\.4\.0 → 3\.2\.0", lines[0])
    assert "rnn: implementation ref:any → brgemm:avx512_core, 1 kernel" in result.stdout.decode()


def test_mkl_versions_match_by_problem() -> None:
    _, found = diff_json(real("mkl2024.2.2_gnu"), real("mkl2026.2_all"))
    kinds = {(kernel["primitive"], kernel["problem"]): kernel["kind"] for kernel in found["kernels"]}
    for routine in ("sgemm", "dgemm", "cgemm"):
        assert kinds[routine, "m64n64k64"] == "matched"
    assert kinds["fft", "1024"] == "matched"


def test_a_slowdown_fails_and_its_opposite_does_not(tmp_path: Path) -> None:
    base, new = slowed(tmp_path, 1.05)
    failing = cpulens("diff", "--fail-over", "5%", base, new)
    assert failing.returncode == 3
    assert re.search(
        r"regression over 5%: matmul 2x8:8x8 f32 is 1\.\d\d× slower, up to \d+\.\d %", failing.stderr.decode()
    )
    assert "slower" in failing.stdout.decode()
    assert cpulens("diff", base, new).returncode == 0
    assert cpulens("diff", "--fail-over", "5%", new, base).returncode == 0
    assert cpulens("diff", "--fail-over", "20%", base, new).returncode == 0
    code, found = diff_json("--fail-over", "0.05", base, new)
    assert code == 3
    assert [
        found["kernels"][one["kernel"]]["problem"] for one in found["regressions"] if one["kernel"] is not None
    ] == ["2x8:8x8"]


def test_the_same_log_twice_changes_nothing() -> None:
    log = real("torch213_resnet_all_ts")
    code, found = diff_json("--fail-over", "0%", log, log)
    assert code == 0
    assert found["total"]["verdict"] == "no significant change"
    assert found["total"]["delta_ms"] == 0


def test_several_runs_a_side(tmp_path: Path) -> None:
    base, new = slowed(tmp_path, 1.3)
    code, found = diff_json("--base", base, base, "--new", new, new, new)
    assert (code, found["runs"]) == (0, {"base": 2.0, "new": 3.0})
    assert found["basis"]["base"] == 2
    assert found["total"]["new_ms"] == pytest.approx(diff_json(base, new)[1]["total"]["new_ms"])


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_it_fits_the_width(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(["diff", real("torch213_resnet_all_ts"), real("torch213_resnet_cl_all_ts")]) == 0
    lines = capsys.readouterr().out.splitlines()
    numbers = [line for line in lines if re.match(r"\s*[−+]?\d[\d.]*\s\s.*\d", line)]
    assert numbers
    # The figures of a kernel stand on one line, however narrow; all else is folded.
    assert all(len(line) <= max(width, 80) for line in lines), max(lines, key=len)


def test_logs_that_command_a_terminal_do_not(tmp_path: Path) -> None:
    evil = matmul("8x8:8x8", implementation="ref\x07\u202eany")
    base = write(tmp_path / "a.log", [(matmul("8x8:8x8"), 1.0)] * 10)
    new = write(tmp_path / "b.log", [(evil, 2.0)] * 10)
    result = cpulens("diff", "--fail-over", "1%", base, new)
    assert result.returncode == 3
    assert b"\x07" not in result.stdout + result.stderr
    assert "\u202e" not in (result.stdout + result.stderr).decode()
    assert r"ref\x07\u202eany" in result.stdout.decode()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name two runs"),
        (("A",), "name two runs"),
        (("A", "B", "C"), "name two runs"),
        (("A", "--base", "B"), "name two runs"),
        (("--base", "A"), "name two runs"),
        (("-", "-"), "only one of the runs"),
        (("A", "A", "--fail-over", "5"), "--fail-over '5' is no share"),
        (("A", "A", "--cumulative", "x"), "--cumulative 'x' is no share"),
        (("A", "A", "--min-effect", "x"), "--min-effect 'x' is no share"),
        (("A", "A", "--where", "primitiv = 1"), "'primitiv', which is not a column"),
        (("A", "A", "--iterations", "x"), "is no slice"),
        (("A", "A", "--by", "nonsense"), "nonsense is not a column"),
        (("A", "A", "--by", "seq"), "can't be matched by seq"),
        (("A", "A", "--alpha", "2"), "alpha must lie between 0 and 1"),
    ],
)
def test_wrong_use_gets_one_sentence_and_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write(tmp_path / "a.log", [(matmul(), 1.0)] * 3)
    assert main(["diff", *(log if word == "A" else word for word in arguments)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert said.err.count("\n") == 1


def test_a_missing_log_and_an_empty_choice_fail_with_1(tmp_path: Path) -> None:
    log = write(tmp_path / "a.log", [(matmul(), 1.0)] * 3)
    for arguments in ((log, str(tmp_path / "none.log")), (log, log, "--where", "primitive == 'pooling'")):
        result = cpulens("diff", *arguments)
        assert (result.returncode, result.stdout) == (1, b"")
        assert result.stderr.count(b"\n") == 1, result.stderr


def test_one_side_from_standard_input(tmp_path: Path) -> None:
    base, new = slowed(tmp_path, 1.5)
    result = cpulens("diff", "--json", base, "-", stdin=Path(new).read_bytes())
    assert json.loads(result.stdout)["kernels"] == diff_json(base, new)[1]["kernels"]


def test_diff_of_a_part(tmp_path: Path) -> None:
    calls = [(matmul("8x8:8x8"), 1.0), (reorder("ab", "ba"), 0.5)]
    lines = "".join(
        f"cpulens,v1,iteration,1,{number}\n"
        + "".join(f"{text}{time * (10 if number < 3 else 1):g}\n" for text, time in calls)
        for number in range(12)
    )
    log = tmp_path / "a.log"
    log.write_text(HEADER + "\n" + lines)
    _, whole = diff_json(str(log), str(log))
    _, warm = diff_json("--iterations", "3:", str(log), str(log))
    _, reorders = diff_json("--iterations=-5:", "--where", "primitive == 'reorder'", str(log), str(log))
    assert whole["total"]["base_ms"] > 1.5 and warm["total"]["base_ms"] == pytest.approx(1.5)
    assert warm["basis"]["per"] == "iteration" and warm["basis"]["base"] == 9
    assert [kernel["primitive"] for kernel in reorders["kernels"]] == ["reorder"]
    assert reorders["basis"]["base"] == 5


def test_the_largest_differences_only() -> None:
    arguments = (real("torch213_resnet_all_ts"), real("torch213_resnet_cl_all_ts"))
    _, whole = diff_json(*arguments)
    _, part = diff_json("--cumulative", "70%", *arguments)
    assert 0 < len(part["kernels"]) < len(whole["kernels"])
    assert part["kernels"] == whole["kernels"][: len(part["kernels"])]
    assert part["total"] == whole["total"]


def test_top_takes_the_same_selections(tmp_path: Path) -> None:
    log = real("torch213_resnet_all_ts")
    reorders = json.loads(cpulens("top", "--json", "--where", "primitive == 'reorder'", log).stdout)
    assert [row["primitive"] for row in reorders["rows"]] == ["reorder"] * len(reorders["rows"])
    assert reorders["total_ms"] == pytest.approx(sum(times_of(log, "reorder")))
    shares = json.loads(cpulens("top", "--json", "--by", "primitive,problem", "--cumulative", "90%", log).stdout)[
        "rows"
    ]
    assert shares[-1]["cumulative"] >= 0.9 > (shares[-2]["cumulative"] if len(shares) > 1 else 0)
    by_layer = cpulens("top", "--by", "layer,primitive", log)
    assert by_layer.returncode == 0, by_layer.stderr
    for arguments, words in (
        (("--where", "primitiv = 1"), "not a column"),
        (("--iterations", "x"), "is no slice"),
        (("--cumulative", "90"), "is no share"),
    ):
        result = cpulens("top", *arguments, log)
        assert (result.returncode, result.stdout) == (2, b"")
        assert words in result.stderr.decode() and result.stderr.count(b"\n") == 1
    assert cpulens("top", "--where", "primitive == 'lrn'", log).returncode == 1
