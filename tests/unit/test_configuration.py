"""Settings from the nearest file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cpulens.configuration import settings
from cpulens.errors import UsageError


def test_the_nearest_file_counts_and_cpulens_toml_wins(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert settings("findings", inner) == {}
    (tmp_path / "pyproject.toml").write_text("[tool.cpulens.findings]\nleast-ms = 1\n")
    assert settings("findings", inner) == {"least-ms": 1}
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1\n")  # says nothing of us: passed over
    assert settings("findings", inner) == {"least-ms": 1}
    (tmp_path / "a" / "cpulens.toml").write_text("[findings]\nleast-ms = 2\n")
    assert settings("findings", inner) == {"least-ms": 2}
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.cpulens.findings]\nleast-ms = 3\n")
    assert settings("findings", inner) == {"least-ms": 2}
    assert settings("diff", inner) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpulens.toml", "findings = 3\n"),
        ("cpulens.toml", "findings = [\n"),
        ("pyproject.toml", "[tool]\ncpulens = 3\n"),
        ("cpulens.toml", "a = '\udc80'\n"),
    ],
)
def test_a_file_that_is_no_table_of_settings_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=name):
        settings("findings", tmp_path)
