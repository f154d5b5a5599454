"""`cpulens findings`: text, JSON, severities, settings, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from analyze_support import header, mark, run, trace_of

LINES = (
    header(),
    *(
        line
        for number in range(4)
        for line in (mark("iteration", at_ms=10 * number), run(8.0, start_ms=10 * number + 1))
    ),
    run(9.0, implementation="ref:any", problem="8x8:8x8", start_ms=60.0),
)


def findings(*words: str, folder: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cpulens", "findings", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, input=text, timeout=60)


def test_text_and_json_say_the_same(tmp_path: Path) -> None:
    trace_of(*LINES, exit_code=139).save(tmp_path / "run.cpulens")
    text = findings("run.cpulens", folder=tmp_path)
    assert text.returncode == 0, text.stderr
    assert text.stdout.startswith("iteration 0: 10.0 ms wall, 8.00 ms in oneDNN")
    assert max(map(len, text.stdout.splitlines())) <= 80
    found = json.loads(findings("run.cpulens", "--json", folder=tmp_path).stdout)
    assert found["schema"] == 1
    assert [one["code"] for one in found["findings"]][:2] == ["crash", "reference-kernel"]
    for number, one in enumerate(found["findings"], 1):
        assert f"{number}. " in text.stdout
        assert one["code"] in text.stdout
    assert found["findings"][1]["cost_ms"] == 9.0
    assert found["coverage"]["stretches"][0]["wall_ms"] == 10.0


def test_severities_and_settings(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("".join(LINES))
    assert "reference-kernel" in findings("run.log", folder=tmp_path).stdout
    least = findings("run.log", "--min-severity", "error", folder=tmp_path)
    assert least.stdout.endswith("Nothing found: no rule sees anything wrong with this run.\n")
    (tmp_path / "cpulens.toml").write_text('[findings]\ndisable = ["reference-kernel"]\n')
    assert "reference-kernel" not in findings("run.log", folder=tmp_path).stdout
    (tmp_path / "cpulens.toml").write_text("[findings]\nsome-share = 1\n")
    refused = findings("run.log", folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "some-share is no threshold" in refused.stderr


def test_standard_input_and_what_a_terminal_must_not_see(tmp_path: Path) -> None:
    bad = "onednn_verbose,v1,primitive,create:check,matmul,evil \x1b[31m red \x07 bell,src/common/matmul.cpp:69\n"
    result = findings("-", folder=tmp_path, text="".join(LINES) + bad)
    assert "failed-call" in result.stdout
    assert "\x07" not in result.stdout and "\x1b" not in result.stdout


def test_no_log(tmp_path: Path) -> None:
    result = findings("missing.log", folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "missing.log" in result.stderr
