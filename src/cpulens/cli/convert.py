"""`cpulens convert`: read logs into one run file, or into a table for other tools."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpulens.cli.progress import reading_progress
from cpulens.errors import UsageError
from cpulens.trace.iterations import MODES, mark
from cpulens.trace.table_file import SUFFIXES, write
from cpulens.verbose import load
from cpulens.verbose.visible import visible

if TYPE_CHECKING:
    from cpulens.trace import Trace

SUMMARY = "read logs into one run file, or into a table for other tools"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="raw logs (plain, gzip, zstd, xz, UTF-16) or run files; - is stdin; several become instances of one run",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        type=Path,
        metavar="FILE",
        help="run.cpulens for a run file; run.parquet for one table with the facts in its metadata",
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    parser.add_argument("--strict", action="store_true", help="fail at the first piece that is not understood")
    parser.add_argument(
        "--follow",
        nargs="?",
        type=float,
        const=True,
        default=False,
        metavar="SECONDS",
        help="keep reading while the log grows, until Ctrl-C, or until it has not grown for so many seconds",
    )
    parser.add_argument(
        "--iterations",
        choices=MODES,
        default="marked",
        help="marked: by the iteration markers in the log; auto: where there are none, by the repeating period of the "
        "kernels (default: %(default)s)",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that read one long log (default: one per CPU, at most 8)"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read, and write the output; 0 when it is there."""
    if args.output.suffix not in SUFFIXES:
        raise UsageError(f"{args.output}: the format goes by the ending, and it has to be {' or '.join(SUFFIXES)}")
    if args.workers is not None and args.workers < 1:
        raise UsageError(f"--workers {args.workers}: at least one has to read")
    if args.follow is not False and len(args.logs) > 1:
        raise UsageError(f"--follow reads one log, and {len(args.logs)} were named")
    with reading_progress(sys.stderr) as progress:
        trace = load(*args.logs, follow=args.follow, strict=args.strict, workers=args.workers, progress=progress)
    trace = mark(trace, args.iterations)
    write(trace, args.output, force=args.force)
    _report(args, trace)
    return 0


def _report(args: argparse.Namespace, trace: Trace) -> None:
    facts: dict[str, Any] = trace.facts
    lines = facts["lines"]
    if args.json:
        done = {"schema": 1, "output": str(args.output), "lines": lines, "texts": len(trace.texts)}
        print(json.dumps({**done, "iterations": facts.get("iterations"), "notes": facts["notes"]}, ensure_ascii=False))
        return
    print(
        f"{args.output}: {lines['read']:,} pieces read = {lines['records']:,} records + {lines['own']:,} of other text "
        f"+ {lines['unknown']:,} not understood; {len(trace.texts):,} distinct texts",
        file=sys.stderr,
    )
    if lines["unknown"]:
        first = facts["first_unknown"]
        print(f"first not understood, line {first['line']}: {visible(first['text'][:120])}", file=sys.stderr)
    for note in facts["notes"]:
        print(f"note: {visible(note)}", file=sys.stderr)
