"""The command `cpulens`: one file per verb, loaded when it is called."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from typing import Any, Final

from cpulens._version import __version__
from cpulens.errors import CpulensError

#: Verb → what it does, so that `cpulens --help` loads none of them.
VERBS: Final = {
    "record": "run a command and record the oneDNN and oneMKL kernels it runs",
    "top": "show where the time of a run or log went",
    "findings": "say what is wrong with a run: evidence, what it costs, what to do",
    "roofline": "say how near the kernels of a run came to what its host can do, and where time is lost",
    "peak": "measure what this host can do: matrix products and passes over memory",
    "diff": "say what changed between two runs or logs, and what it comes from",
    "replay": "run the problems of a run again here, and say what is slow: the kernel or the program around it",
    "repro": "print command lines of oneDNN's benchdnn that run the problems of a run again",
    "report": "write a run, or the difference of two, as one HTML file to look at",
    "export": "write a run for other programs: Chrome trace (Perfetto), CSV, JSON, Parquet, Markdown",
    "convert": "read logs into one run file, or into a table for other tools",
    "bundle": "make one archive of a run for a bug report, without names, paths and addresses",
    "explain": "say in plain words what one log line means",
    "doctor": "show what decides how fast inference runs here, and what stands against it",
    "sql": "ask a run or log a question in SQL",
}


def _parser(verb: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cpulens",
        description="See which oneDNN and oneMKL kernels a CPU inference ran, how long, and why those.",
        epilog="cpulens VERB --help tells more. To launch on the right cores and memory: run_cpu --help.",
    )
    parser.add_argument("--version", action="version", version=f"cpulens {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, summary in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == verb:
            _module(name).add_arguments(sub)
    return parser


def _module(verb: str) -> Any:
    return importlib.import_module(f"cpulens.cli.{verb}")


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 ok, 1 failed or nothing found, 2 usage, 3 regression, or the child's."""
    arguments = sys.argv[1:] if argv is None else argv
    verb = next((word for word in arguments if not word.startswith("-")), None)
    args = _parser(verb).parse_args(arguments)
    try:
        code: int = _module(args.verb).run(args)
        sys.stdout.flush()
    except CpulensError as error:
        print(f"cpulens {args.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has left (`| head`): nothing more to say, and nothing more to flush.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130
    return code
