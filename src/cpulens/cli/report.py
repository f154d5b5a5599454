"""`cpulens report`: a run, or two of them, as one HTML file."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings import Thresholds
from cpulens.analyze.selection import select
from cpulens.cli.progress import reading_progress
from cpulens.cli.selecting import selection
from cpulens.configuration import settings
from cpulens.errors import UsageError
from cpulens.trace.writing import atomic
from cpulens.verbose import load

if TYPE_CHECKING:
    from cpulens.trace import Trace

_DEFAULT: Final = "report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.usage = "cpulens report [OPTIONS] RUN\n       cpulens report [OPTIONS] BASE NEW"
    parser.epilog = "The file is complete: it loads nothing, and can be mailed. Without JavaScript it shows its tables."
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="FILE",
        help="a run file (*.cpulens) or raw log; two: what changed from the first to the second; - is stdin",
    )
    parser.add_argument(
        "-o",
        "--output",
        default=_DEFAULT,
        metavar="FILE",
        help="the HTML file; - is stdout (default: %(default)s)",
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    parser.add_argument("--open", action="store_true", help="show it in the browser")
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="only records for which this holds: an SQL condition over the columns of the trace",
    )
    parser.add_argument(
        "--iterations", metavar="SLICE", help="only these iterations, as a slice of Python, such as 3: or -5:"
    )
    parser.add_argument(
        "--peaks", metavar="FILE", help="for the roofline: what cpulens peak --json printed on the run's host"
    )
    parser.add_argument("--json", action="store_true", help="print what was written as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the page; 0 when it is there."""
    if len(args.logs) > 2:
        raise UsageError(f"a report shows one run, or two as a difference, and {len(args.logs)} were named")
    if args.output == "-" and (args.open or args.json):
        raise UsageError("--open and --json need a file: give -o report.html")
    if args.logs.count("-") > 1:
        raise UsageError("- is standard input, which can be only one of the runs")
    page = _page(args)
    if args.output == "-":
        sys.stdout.buffer.write(page)
        return 0
    output = Path(args.output)
    with atomic(output, force=args.force) as file:
        file.write(page)
    _tell(args, output, len(page))
    return 0


def _page(args: argparse.Namespace) -> bytes:
    from cpulens.report.html import diff_page, run_page

    thresholds = Thresholds.of(settings("findings"))
    chosen = selection(args)
    names = [Path(log).name if log != "-" else "standard input" for log in args.logs]
    if len(args.logs) == 2:
        base, new = map(_load, args.logs)
        page = diff_page(base, new, (names[0], names[1]), chosen, thresholds=thresholds)
    else:
        from cpulens.cli.roofline import load_peaks
        from cpulens.machine.peaks import known

        peaks = (load_peaks(args.peaks), f"from {args.peaks}") if args.peaks else None
        trace = select(_load(args.logs[0]), chosen)
        page = run_page(trace, names[0], thresholds=thresholds, peaks=peaks, known_peaks=known())
    return page.encode()


def _load(log: str) -> Trace:
    with reading_progress(sys.stderr) as progress:
        return load(log, progress=progress)


def _tell(args: argparse.Namespace, output: Path, size_bytes: int) -> None:
    if args.json:
        print(json.dumps({"schema": 1, "output": str(output), "size_bytes": size_bytes}, ensure_ascii=False))
    else:
        print(f"{output}: {size_bytes / 1e6:.1f} MB", file=sys.stderr)
    if args.open:
        import webbrowser

        if not webbrowser.open(output.resolve().as_uri()):
            print(f"no browser could be started; open {output} in one", file=sys.stderr)
