"""`cpulens top`: where the time of a run or log went."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from cpulens.analyze.selection import select
from cpulens.analyze.summary import DEFAULT_BY, columns, largest, summarize
from cpulens.cli.selecting import add_selection, cumulative, selection
from cpulens.report.json_text import summary_object
from cpulens.verbose import load

_ROWS: Final = 30


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "--by",
        metavar="COLUMNS",
        default=",".join(DEFAULT_BY),
        help="sum by these columns of the trace, joined by commas (default: %(default)s); only executions are summed, "
        "unless event is among them",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", default=_ROWS, help="rows to print at most; 0: all (default: %(default)s)"
    )
    add_selection(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every row")


def run(args: argparse.Namespace) -> int:
    """Print the summary; 0 when there is one."""
    keys, chosen, wanted = columns(args.by), selection(args), cumulative(args)
    summary = summarize(select(load(*args.logs), chosen), by=keys)
    if wanted is not None:
        summary = largest(summary, wanted)
    if args.json:
        json.dump(summary_object(summary), sys.stdout, ensure_ascii=False)
        print()
        return 0
    from cpulens.report.terminal import show_summary

    show_summary(sys.stdout, summary, limit=max(args.limit, 0) or None)
    return 0
