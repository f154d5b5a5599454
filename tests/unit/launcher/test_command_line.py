"""The options: their names, what contradicts, what is refused, and how little is loaded to say so."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launcher_hosts import regular, write_root
from run_cpu.cli import create_args, main, parse, split_command

TORCH = {
    "--ninstances": "ninstances",
    "--ncores-per-instance": "ncores_per_instance",
    "--rank": "rank",
    "--core-list": "core_list",
    "--node-id": "node_id",
    "--log-path": "log_path",
    "--log-file-prefix": "log_file_prefix",
}
TORCH_FLAGS = (
    *("--multi-instance", "--module", "--no-python", "--enable-tcmalloc", "--enable-jemalloc"),
    *("--use-default-allocator", "--disable-iomp", "--skip-cross-node-cores", "--latency-mode", "--throughput-mode"),
    *("--use-logical-core", "--disable-numactl", "--disable-taskset"),
)
IPEX = {
    "--nodes-list": "node_id",
    "--cores-list": "core_list",
    "--log-dir": "log_path",
    "--instance-idx": "instance_idx",
}


@pytest.mark.parametrize("name", [*TORCH, *IPEX])
def test_options_with_a_value_under_both_spellings(name: str) -> None:
    destination = {**TORCH, **IPEX}[name]
    for spelling in (name, "--" + name[2:].replace("-", "_")):
        for words in ([spelling, "7"], [f"{spelling}=7"]):
            args = create_args().parse_args([*words, "prog", "--x"])
            assert str(getattr(args, destination)) == "7"
            assert (args.program, args.program_args) == ("prog", ["--x"])


@pytest.mark.parametrize("name", TORCH_FLAGS)
def test_flags_under_both_spellings(name: str) -> None:
    for spelling in (name, "--" + name[2:].replace("-", "_")):
        assert getattr(create_args().parse_args([spelling, "prog"]), name[2:].replace("-", "_")) is True
    assert getattr(create_args().parse_args(["prog"]), name[2:].replace("-", "_")) is False


def test_ipexruns_choices() -> None:
    words = "--memory-allocator jemalloc --omp-runtime intel --strategy close --bind-numa-node --use-e-cores"
    args = parse([*words.split(), "--multi-task-manager", "taskset", "--use-logical-cores", "prog"])
    assert (args.memory_allocator, args.omp_runtime, args.strategy) == ("jemalloc", "intel", "close")
    assert args.skip_cross_node_cores and args.use_e_cores and args.use_logical_core


def test_options_are_added_to_a_parser_of_somebody_else() -> None:
    own = argparse.ArgumentParser()
    own.add_argument("--mine")
    assert create_args(own) is own
    args = own.parse_args(["--mine", "1", "--ninstances", "2", "script.py", "a"])
    assert (args.mine, args.ninstances, args.program, args.program_args) == ("1", 2, "script.py", ["a"])


def test_the_same_command_under_torchs_name() -> None:
    import cpulens

    assert cpulens.backends.xeon.run_cpu.create_args is create_args
    command = [sys.executable, "-m", "cpulens.backends.xeon.run_cpu", "--", "echo", "--", "hello"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stdout) == (0, "-- hello\n")


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["prog", "--ninstances", "2"], ["prog", "--ninstances", "2"]),
        (["--ninstances", "2", "prog", "--", "x"], ["prog", "--", "x"]),
        (["--ninstances=2", "--", "--prog", "--", "x"], ["--prog", "--", "x"]),
        (["--ninst", "2", "prog"], ["prog"]),
        (["--dry-run", "prog", "-m"], ["prog", "-m"]),
        (["-m", "mod", "-m"], ["mod", "-m"]),
        (["--node-id", "-1", "prog"], ["prog"]),
        (["--core_list", "0-3,8", "-", "x"], ["-", "x"]),
        (["--log-path", "--", "prog"], ["prog"]),
        ([], []),
    ],
)
def test_where_the_program_begins(argv: list[str], command: list[str]) -> None:
    if argv[:1] == ["--log-path"]:
        with pytest.raises(SystemExit):  # a value is missing
            parse(argv)
        return
    assert split_command(argv)[1] == command
    args = parse(argv)
    assert [args.program, *args.program_args] == command or not command


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("--latency-mode",), ("--throughput-mode",)),
        (("--latency-mode",), ("--ninstances", "2")),
        (("--throughput-mode",), ("--ncores-per-instance", "2")),
        (("--l3-mode",), ("--package-mode",)),
        (("--core-list", "0"), ("--node-id", "0")),
        (("--rank", "0"), ("--instance-idx", "0")),
        (("--enable-tcmalloc",), ("--enable-jemalloc",)),
        (("--enable-jemalloc",), ("--use-default-allocator",)),
        (("--memory-allocator", "jemalloc"), ("--enable-tcmalloc",)),
        (("--omp-runtime", "intel"), ("--disable-iomp",)),
        (("--membind",), ("--interleave",)),
        (("--membind",), ("--disable-numactl",)),
        (("--multi-task-manager", "none"), ("--disable-numactl",)),
        (("--skip-cross-node-cores",), ("--allow-cross-node",)),
        (("--fill",), ("--ncores-per-instance", "2")),
        (("-m",), ("--no-python",)),
    ],
)
def test_contradictions_name_both_options(
    one: tuple[str, ...], other: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ((*one, *other), (*other, *one)):
        assert main([*words, "false"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert one[0] in captured.err and other[0] in captured.err
        assert captured.err.count("\n") == 1


def test_values_that_mean_not_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Torch's defaults, and ipexrun's, given in so many words."""
    root = write_root(regular(2, 1, 4), tmp_path)
    options = "--ninstances -1 --ncores-per-instance 0 --rank -1 --node-id -1 --instance-idx -1 --throughput-mode"
    assert main(["--sysroot", str(root), "--dry-run", "--json", *options.split(), "prog"]) == 0
    assert len(json.loads(capsys.readouterr().out)["instances"]) == 2


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["--core-list", "0-x", "prog"], "--core-list '0-x'"),
        (["--core-list", ",", "prog"], "names nothing"),
        (["--node-id", "3-1", "prog"], "runs backwards"),
        (["--instance-idx", "a", "prog"], "--instance-idx 'a'"),
        (["--grace", "soon", "prog"], "--grace 'soon'"),
        (["--grace", "-1", "prog"], "--grace '-1'"),
        (["--grace", "nan", "prog"], "--grace 'nan'"),
        (["--json", "prog"], "--json only goes with --dry-run"),
        (["--sysroot", "/", "prog"], "--sysroot only goes with --dry-run"),
        (["--dry-run", "--sysroot", "/no/such/root", "prog"], "is not a directory"),
        (["--plan-from", "/no/such/plan", "prog"], "--plan-from /no/such/plan"),
        (["--plan-from", "x", "--ninstances", "2", "prog"], "--ninstances can't go together"),
        ([], "nothing to run"),
        (["--ninstances", "2"], "nothing to run"),
        (["--no-such-option", "prog"], "--no-such-option"),
        (["--ninstances", "two", "prog"], "invalid int value"),
        (["--strategy", "wild", "prog"], "invalid choice"),
    ],
)
def test_bad_input_gets_a_sentence_and_exit_code_2(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert what in captured.err
    assert "Traceback" not in captured.err


def test_help_names_every_option_once_and_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    for name in (*TORCH, *TORCH_FLAGS, *IPEX, "--fill", "--dry-run", "--membind", "--l3-mode"):
        assert text.count(f"{name} ") + text.count(f"{name},") + text.count(f"{name}\n") >= 1, name
    assert "_" not in text.replace("run_cpu", "").replace("NAME_instance_0", "")


def test_help_loads_argparse_and_nothing_else() -> None:
    code = (
        "import sys, argparse; from gettext import gettext; gettext(''); before = set(sys.modules)\n"
        "from run_cpu.cli import main\n"
        "code = main(['--help'])\n"
        "print(sorted(set(sys.modules) - before), file=sys.stderr)\n"
        "raise SystemExit(code)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0
    loaded = eval(result.stderr)
    assert set(loaded) <= {
        "run_cpu",
        "run_cpu.cli",
        "run_cpu.options",
        "textwrap",
        "locale",
        "_locale",
        "errno",
        "__future__",
    }


def test_a_launch_needs_only_the_standard_library() -> None:
    code = (
        "import sys\n"
        "from run_cpu.cli import main\n"
        "main(['true'])\n"
        "foreign = {name.partition('.')[0] for name in sys.modules} - set(sys.stdlib_module_names)\n"
        "print(sorted(foreign), file=sys.stderr)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    result = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, timeout=60, env=environ)
    assert set(eval(result.stderr)) <= {"__main__", "cpulens", "run_cpu", "sitecustomize", "usercustomize"}
