"""`cpulens peak`: what this host can do at best."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from cpulens.errors import UsageError
from cpulens.machine import peaks as known
from cpulens.measure import peak
from cpulens.report.peaks import peaks_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = (
        "The fastest matrix products that oneDNN and oneMKL have here for each data type, and copy, triad and read "
        "over sizes from a core's cache to beyond all caches. It takes half a minute on an idle host, and is "
        "kept for each host, number of threads, libraries and variables. Recordings carry the figures of their host "
        "from then on."
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads to use (default: one for each physical core that this process may use)",
    )
    parser.add_argument("--refresh", action="store_true", help="measure again, and keep the better figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the peaks, measured now or kept from before."""
    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads {args.threads}: it takes at least 1")
    tell = sys.stderr.isatty()
    found = peak(args.threads, refresh=args.refresh, say=_say if tell else lambda _: None)
    if tell:
        sys.stderr.write("\r\x1b[K")
    if args.json:
        json.dump(found.record(), sys.stdout, ensure_ascii=False)
        print()
        return 0
    path = known.path_of(found.threads, found.conditions)
    kept = path if known.load(path) is not None else None
    print(peaks_text(found, kept, width=min(shutil.get_terminal_size((100, 24)).columns, 120)))
    return 0


def _say(what: str) -> None:
    sys.stderr.write(f"\r\x1b[Kmeasuring {what}")
    sys.stderr.flush()
