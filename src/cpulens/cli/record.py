"""`cpulens record`: a command's kernels, by its environment and its output."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time

from cpulens.errors import CpulensError, LogError, TraceFileError, UsageError
from cpulens.recording.command import RecordedCommand
from cpulens.recording.recorder import DEFAULT_MAX_BYTES
from cpulens.recording.schedule import Schedule


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.usage = "cpulens record [-o FILE] [--onednn LEVEL] [--mkl LEVEL] -- COMMAND [ARG …]"
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write the run (.cpulens), or the raw lines (.log, .txt); default: COMMAND-TIME.cpulens here",
    )
    parser.add_argument(
        "--onednn",
        metavar="LEVEL",
        help="OFF, ON (executions), ON_CREATION (creations too), and what oneDNN takes beside: ON,dispatch,check "
        "(default: ON, or the environment's setting where that holds more than a number)",
    )
    parser.add_argument("--mkl", metavar="LEVEL", help="OFF or ON (default: ON)")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument(
        "--max-bytes",
        type=int,
        default=DEFAULT_MAX_BYTES,
        metavar="N",
        help="stop recording when the lines reach N bytes (default: %(default)s)",
    )
    parser.add_argument(
        "--schedule",
        metavar="WORDS",
        help="record only some of the iterations that the program marks with cpulens.iteration(), such as "
        "wait=2,active=5,repeat=1 (default: everything)",
    )
    parser.add_argument("--json", action="store_true", help="say the closing word on stderr as one JSON object")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND", help="the program and its arguments")


def run(args: argparse.Namespace) -> int:
    """Run the command; its own exit code is ours."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("no command to record; write it after --, as in: cpulens record -- python model.py")
    output = args.output or f"{_stem(command)}-{time.strftime('%Y%m%d-%H%M%S')}.cpulens"
    if os.path.exists(output) and not args.force:
        raise TraceFileError(f"{output} exists; choose another name, or --force to replace it")
    schedule = Schedule.parse(args.schedule) if args.schedule else None
    recorded = RecordedCommand(command, args.onednn, args.mkl, args.max_bytes, schedule)
    code = recorded.run()
    try:
        word = _save(recorded, output)
    except CpulensError as error:
        sentence = str(error)
        if recorded.spill.size():  # something was caught that can't be stored as asked: it is not thrown away
            recorded.spill.keep()
            sentence += f"; the raw lines are in {recorded.spill.path}"
        word = {"error": sentence}
    _say(word, recorded, args.json)
    return code


def _stem(command: list[str]) -> str:
    """A name for the run: the script, where the command is an interpreter with one."""
    script = next((word for word in command[1:] if word.endswith((".py", ".sh"))), command[0])
    return os.path.splitext(os.path.basename(script))[0] or "run"


def _save(recorded: RecordedCommand, output: str) -> dict[str, object]:
    if not recorded.started:
        raise LogError(recorded.notes[-1])
    recorded.require_lines()
    if output.endswith((".log", ".txt")):
        with open(output, "wb") as file:
            file.write(recorded.raw())
        return {"output": output, "bytes": recorded.spill.size()}
    trace = recorded.trace
    trace.save(output, force=True)
    return {"output": output, "lines": trace.facts["lines"]}


def _say(word: dict[str, object], recorded: RecordedCommand, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"schema": 1, **word, "facts": recorded.facts}, ensure_ascii=False), file=sys.stderr)
        return
    for note in recorded.notes if recorded.started else ():
        print(f"cpulens record: note: {note}", file=sys.stderr)
    if "error" in word:
        print(f"cpulens record: {word['error']}", file=sys.stderr)
    elif "lines" in word:
        lines = word["lines"]
        assert isinstance(lines, dict)
        print(
            f"cpulens record: {lines['records']:,} records in {word['output']}; see them: cpulens top {word['output']}",
            file=sys.stderr,
        )
    else:
        print(f"cpulens record: {word['bytes']:,} bytes of lines in {word['output']}", file=sys.stderr)
