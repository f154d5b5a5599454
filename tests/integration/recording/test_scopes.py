"""Verbose scopes on the real libraries: what each prints shows which level it has."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests_support import Program

#: Each client runs one kernel when called; `say` marks the stream, in order with the libraries' flushed lines.
PRELUDE = """
import os, sys, warnings
import numpy as np
from cpulens.backends import mkl, mkldnn

def say(word):
    print("@" + word, flush=True)

def torch_client():
    import torch
    layer = torch.nn.Conv2d(16, 16, 3).eval()
    image = torch.randn(2, 16, 12, 12)
    def run():
        with torch.no_grad():
            layer(image)
    return run

def torch_gemm():
    import torch
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    return lambda: torch.mm(a, b)

def wheel_client():
    from cpulens.native import onednn
    a, b = np.ones((16, 16), "float32"), np.ones((16, 16), "float32")
    return lambda: onednn.matmul(a, b)

def mkl_client():
    from cpulens.native import mkl as native
    a = np.ones((16, 16), "float32")
    return lambda: native.sgemm(a, a)
"""

CLIENTS = {
    "torch": "torch_client()",
    "wheel": "wheel_client()",
    "mkl": "mkl_client()",
    "torch_gemm": "torch_gemm()",
}
ONEDNN = ["torch", "wheel"]
MKL = ["mkl", "torch_gemm"]


def lines_between_words(result: subprocess.CompletedProcess[bytes]) -> dict[str, list[str]]:
    """What was printed after each word, without headers."""
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in result.stdout.decode().splitlines():
        if line.startswith("@"):
            current = parts.setdefault(line[1:], [])
        elif ",info," not in line and "build" not in line:
            current.append(line)
    return parts


def levels(result: subprocess.CompletedProcess[bytes]) -> dict[str, int]:
    """The level that the lines after each word show: 2 where creations are printed, 1 for calls only, 0 for none."""
    found = {}
    for word, lines in lines_between_words(result).items():
        calls = [line for line in lines if re.search(r"(^|,)exec,|MKL_VERBOSE \w+\(", line)]
        creations = [line for line in lines if re.search(r",create(:\w+)?,", line)]
        assert calls or not creations
        found[word] = 2 if creations else 1 if calls else 0
    return found


@pytest.mark.parametrize("client", ONEDNN)
def test_each_level_prints_what_it_says(program: Program, client: str) -> None:
    code = (
        PRELUDE
        + f"""
run = {CLIENTS[client]}
run()
for level in ("OFF", "ON", "ON_CREATION", 0, 1, 2, mkldnn.VERBOSE_OFF, mkldnn.VERBOSE_ON, mkldnn.VERBOSE_ON_CREATION):
    with mkldnn.verbose(level):
        say(f"{{level}} in"); run()
    say(f"{{level}} out"); run()
"""
    )
    shown = levels(program(code))
    expected = {"OFF": 0, "ON": 1, "ON_CREATION": 2, "0": 0, "1": 1, "2": 2}
    assert shown == {f"{name} in": level for name, level in expected.items()} | {f"{name} out": 0 for name in expected}


@pytest.mark.parametrize("client", MKL)
def test_mkl_levels(program: Program, client: str) -> None:
    code = (
        PRELUDE
        + f"""
run = {CLIENTS[client]}
run()
for enable in ("OFF", "ON", True, False, mkl.VERBOSE_ON):
    with mkl.verbose(enable):
        say(f"{{enable}} in"); run()
    say(f"{{enable}} out"); run()
"""
    )
    expected = {"OFF": 0, "ON": 1, "True": 1, "False": 0, "1": 1}
    assert levels(program(code)) == {f"{name} in": level for name, level in expected.items()} | {
        f"{name} out": 0 for name in expected
    }


@pytest.mark.parametrize("environment", ["", "0", "1", "2"])
@pytest.mark.parametrize("client", ONEDNN)
def test_nested_overlapping_and_failing_scopes_restore(program: Program, client: str, environment: str) -> None:
    code = (
        PRELUDE
        + f"""
run = {CLIENTS[client]}
run()
def look(word):
    say(word); run()
look("start")
with mkldnn.verbose("ON"):
    look("outer 1")
    with mkldnn.verbose("ON_CREATION"):
        look("inner 2")
        with mkldnn.verbose("OFF"):
            look("innermost 0")
        look("inner again 2")
    look("outer again 1")
look("after nested")
first, second = mkldnn.verbose("ON"), mkldnn.verbose("ON_CREATION")
first.__enter__(); second.__enter__()
look("both 2")
first.__exit__(None, None, None)
look("newest stays 2")
second.__exit__(None, None, None)
look("after overlap")
try:
    with mkldnn.verbose("ON_CREATION"):
        raise RuntimeError
except RuntimeError:
    look("after exception")
one = mkldnn.verbose("ON")
with one, one:
    look("twice 1")
look("after twice")
@mkldnn.verbose(level=1)
def decorated():
    look("decorated 1")
decorated()
look("after decorated")
"""
    )
    shown = levels(program(code, **({"ONEDNN_VERBOSE": environment} if environment else {})))
    base = int(environment or 0)
    assert shown == {word: int(word[-1]) if word[-1].isdigit() else base for word in shown}
    assert len(shown) == 15


def test_both_copies_of_onednn_in_one_process_are_switched(program: Program) -> None:
    code = (
        PRELUDE
        + """
one, other = torch_client(), wheel_client()
one(); other()
with mkldnn.verbose("ON"):
    say("torch in"); one()
    say("wheel in"); other()
    with mkldnn.verbose("OFF"):
        say("torch quiet"); one()
        say("wheel quiet"); other()
say("torch out"); one()
say("wheel out"); other()
"""
    )
    expected = {"torch in": 1, "wheel in": 1, "torch quiet": 0, "wheel quiet": 0, "torch out": 0, "wheel out": 0}
    assert levels(program(code)) == expected


def test_libraries_do_not_touch_each_other(program: Program) -> None:
    code = (
        PRELUDE
        + """
dnn, blas = wheel_client(), mkl_client()
dnn(); blas()
with mkl.verbose(1):
    say("onednn 0"); dnn()
    say("mkl 1"); blas()
    with mkldnn.verbose(1):
        say("onednn in 1"); dnn()
        say("mkl in 1"); blas()
"""
    )
    shown = levels(program(code))
    assert shown == {word: int(word[-1]) for word in shown}


@pytest.mark.parametrize("setting", ["dispatch,profile_exec", "all", "filter=matmul"])
@pytest.mark.parametrize("client", ONEDNN)
def test_a_finer_setting_of_the_environment_is_left_alone_and_said_once(
    program: Program, client: str, setting: str
) -> None:
    code = (
        PRELUDE
        + f"""
run = {CLIENTS[client]}
run()
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    say("before"); run()
    for _ in range(2):
        with mkldnn.verbose("OFF"):
            say("inside"); run()
    say("after"); run()
print("@said", flush=True)
for warning in said:
    print(warning.category.__name__, warning.message, warning.filename == "<string>", flush=True)
"""
    )
    result = program(code, ONEDNN_VERBOSE=setting)
    parts = lines_between_words(result)
    kinds = {word: {re.sub(r"[\d.]+", "#", line) for line in lines} for word, lines in parts.items()}
    assert kinds["before"] == kinds["inside"] == kinds["after"]
    assert len(parts["said"]) == 1
    assert f"CpulensWarning ONEDNN_VERBOSE={setting} holds more than a number" in parts["said"][0]
    assert parts["said"][0].endswith("True")  # it points at the user's line


def test_threads_each_with_a_scope_end_at_the_base_level(program: Program) -> None:
    code = (
        PRELUDE
        + """
import threading, random
run = wheel_client()
run()
def work(seed):
    chance = random.Random(seed)
    for _ in range(200):
        with mkldnn.verbose(chance.choice((0, 1, 2))):
            pass
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
say("after"); run()
"""
    )
    assert levels(program(code, ONEDNN_VERBOSE="1")) == {"after": 1}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("mkldnn.verbose(3)", "ON_CREATION (2)"),
        ("mkldnn.verbose('LOUD')", "LOUD"),
        ("mkldnn.verbose(None)", "None"),
        ("mkl.verbose(2)", "ON (1)"),
        ("mkl.verbose('ON_CREATION')", "OFF (0), ON (1)"),
    ],
)
def test_a_level_that_is_none_is_refused(program: Program, wrong: str, words: str) -> None:
    result = program(f"from cpulens.backends import mkl, mkldnn\n{wrong}")
    assert result.returncode == 1
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("cpulens.errors.UsageError: ")
    assert words in last


def test_coroutines_and_generators_run_inside_a_decorating_scope(program: Program) -> None:
    code = (
        PRELUDE
        + """
import asyncio
run = wheel_client()
run()
@mkldnn.verbose("ON")
async def answer():
    await asyncio.sleep(0)
    say("coroutine 1"); run()
@mkldnn.verbose("ON")
def answers():
    say("generator 1"); run()
    yield
asyncio.run(answer())
list(answers())
say("after 0"); run()
"""
    )
    shown = levels(program(code))
    assert shown == {"coroutine 1": 1, "generator 1": 1, "after 0": 0}


def test_a_hidden_copy_is_named_with_what_can_be_done(program: Program) -> None:
    code = (
        PRELUDE
        + """
import ctranslate2
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(2):
        with mkldnn.verbose("ON"):
            pass
for warning in said:
    print(warning.message)
"""
    )
    result = program(code)
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr, result.stderr.decode()
    (sentence,) = result.stdout.decode().splitlines()
    assert "CTranslate2" in sentence
    assert "ONEDNN_VERBOSE before the process starts" in sentence


def test_a_warning_made_an_error_leaves_no_level_behind(program: Program) -> None:
    code = (
        PRELUDE
        + """
run = wheel_client()
run()
import ctranslate2
warnings.simplefilter("error")
try:
    with mkldnn.verbose("ON"):
        pass
except Warning:
    say("refused 0"); run()
"""
    )
    assert levels(program(code)) == {"refused 0": 0}
