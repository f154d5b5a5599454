"""Bad input to `cpulens top`: one clear sentence on stderr, exit code 1, nothing on stdout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def top(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "cpulens", "top", *arguments], input=stdin, capture_output=True)


def one_sentence(result: subprocess.CompletedProcess[bytes], code: int = 1) -> str:
    assert result.returncode == code, result.stderr
    assert result.stdout == b""
    text = result.stderr.decode()
    assert text.count("\n") == 1, text
    assert "Traceback" not in text
    return text


@pytest.mark.parametrize("flag", [(), ("--json",)])
def test_each_bad_file(tmp_path: Path, flag: tuple[str, ...]) -> None:
    empty, binary, plain = tmp_path / "empty.log", tmp_path / "binary.log", tmp_path / "plain.log"
    empty.write_bytes(b"")
    binary.write_bytes(bytes(range(256)) * 40)
    plain.write_text("epoch 1\nepoch 2\nset MKL_VERBOSE=1 to see more\n")
    sentences = {
        name: one_sentence(top(str(path), *flag))
        for name, path in {
            "missing": tmp_path / "nowhere.log",
            "folder": tmp_path,
            "empty": empty,
            "binary": binary,
            "plain": plain,
        }.items()
    }
    assert len(set(sentences.values())) == len(sentences), "each says its own"
    for name, path in {
        "missing": "nowhere.log",
        "empty": "empty.log",
        "binary": "binary.log",
        "plain": "plain.log",
    }.items():
        assert path in sentences[name]


def test_empty_standard_input() -> None:
    one_sentence(top("-"))


def test_a_damaged_run_file(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.cpulens"
    damaged.write_bytes(b"PK\x03\x04" + b"\0" * 100)
    one_sentence(top(str(damaged)))


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    """As root every file can be read; a symbolic link to itself can't be by anybody."""
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    one_sentence(top(str(loop)))


def test_a_column_that_is_none(tmp_path: Path) -> None:
    log = tmp_path / "one.log"
    log.write_text("onednn_verbose,v1,primitive,exec,cpu,matmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n")
    assert "layout" in one_sentence(top(str(log), "--by", "primitive,layout"), code=2)
    assert top(str(log), "--by", "primitive").returncode == 0


def test_control_characters_of_a_log_never_reach_the_terminal(tmp_path: Path) -> None:
    log = tmp_path / "evil.log"
    log.write_bytes(
        b"onednn_verbose,v1,info,oneDNN v3.12.0\x1b]0;title\x07 (commit \x1b[31mred)\n"
        b"onednn_verbose,v1,primitive,exec,cpu,mat\x1b[2Jmul,ref:\x1b[31many,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n"
        b"onednn_verbose,v1,primitive,exec,cpu,m\xe2\x80\xaeatmul,ref:any,undef,src:f32::blocked:ab::f0,,,8x8:8x8,0.5\n"
    )
    for columns in ("primitive,implementation", "raw", "tensors"):
        result = top(str(log), "--by", columns)
        assert result.returncode == 0, result.stderr
        assert not set(result.stdout) & (set(range(32)) - {10}), columns
        assert "\u202e" not in result.stdout.decode()
