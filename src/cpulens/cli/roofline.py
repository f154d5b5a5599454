"""`cpulens roofline`: how near the kernels of a run came to what its host can do."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from typing import Final

from cpulens.analyze.attainable import choose
from cpulens.analyze.roofline import DEFAULT_BY, roofline
from cpulens.analyze.selection import covering, select
from cpulens.analyze.summary import columns
from cpulens.cli.selecting import add_selection, cumulative, selection
from cpulens.errors import UsageError
from cpulens.machine import peaks as known
from cpulens.machine.peaks import Peaks
from cpulens.report.roofline import roofline_object, roofline_text
from cpulens.verbose import load

_ROWS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "--peaks",
        metavar="FILE",
        help="what cpulens peak --json printed on the run's host (default: what the run carries, else what is known of "
        "this host where the run was recorded on it)",
    )
    parser.add_argument(
        "--by",
        metavar="COLUMNS",
        default=",".join(DEFAULT_BY),
        help="sum by these columns of the trace, joined by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--limit", type=int, metavar="N", default=_ROWS, help="rows to print at most; 0: all (default: %(default)s)"
    )
    add_selection(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every row")


def run(args: argparse.Namespace) -> int:
    """Print the kernels by the time they lost."""
    keys, chosen, wanted = columns(args.by), selection(args), cumulative(args)
    given = load_peaks(args.peaks) if args.peaks else None
    trace = select(load(*args.logs), chosen)
    peaks, origin = (given, f"from {args.peaks}") if given else choose(trace, known.known())
    result = roofline(trace, peaks, keys, origin=origin)
    if wanted is not None and result.lost_ms > 0:
        kept = covering((one.lost_ms / result.lost_ms for one in result.kernels), wanted)
        result = dataclasses.replace(result, kernels=result.kernels[:kept])
    if args.json:
        json.dump(roofline_object(result), sys.stdout, ensure_ascii=False)
        print()
        return 0
    width = shutil.get_terminal_size((120, 24)).columns
    print(roofline_text(result, limit=max(args.limit, 0) or None, width=max(width, 40)))
    return 0


def load_peaks(path: str) -> Peaks:
    """Read what `cpulens peak --json` printed. Raises UsageError where that is none."""
    found = known.load(path)
    if found is None:
        raise UsageError(f"{path} holds no peaks; make such a file on the run's host: cpulens peak --json > peaks.json")
    return found
