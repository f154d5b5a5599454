"""`cpulens replay`: run the problems of a run again on this host."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import Final

from cpulens.analyze.selection import select
from cpulens.cli.progress import step_progress
from cpulens.cli.selecting import selection
from cpulens.errors import UsageError
from cpulens.measure.replay import VARIANTS, replay
from cpulens.report.replay import replay_object, replay_text
from cpulens.verbose import load

_PROBLEMS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = (
        "oneDNN's matmul, convolution, inner product, reorder, eltwise and softmax, and oneMKL's matrix products, "
        "batches of them and Fourier transforms run again through the libraries of this environment, and are timed by "
        "the lines that these print, as in the run. So one sees whether a kernel is slow or the program around it. "
        "What can't be run again is listed with the reason."
    )
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "--top", type=int, metavar="N", default=_PROBLEMS, help="problems to run; 0: all (default: %(default)s)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads to use (default: as many as in the run where this process may use them, else one for each "
        "physical core)",
    )
    parser.add_argument(
        "--variants",
        metavar="KINDS",
        default=",".join(VARIANTS),
        help="what else to try, joined by commas: layout (left to the library), type (other data types), threads; or "
        "none (default: %(default)s)",
    )
    parser.add_argument("--where", metavar="CONDITION", help="only records for which this SQL condition holds")
    parser.add_argument("--iterations", metavar="SLICE", help="only these iterations, as a slice of Python such as 3:")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Replay and print; 1 when nothing could be run again."""
    if args.threads is not None and args.threads < 1:
        raise UsageError(f"--threads {args.threads}: it takes at least 1")
    kinds = () if args.variants == "none" else tuple(name.strip() for name in args.variants.split(","))
    trace = select(load(*args.logs), selection(args))
    with step_progress(sys.stderr) as say:
        result = replay(trace, top=max(args.top, 0) or None, threads=args.threads, kinds=kinds, say=say)
    if args.json:
        json.dump(replay_object(result), sys.stdout, ensure_ascii=False)
        print()
    else:
        width = min(shutil.get_terminal_size((120, 24)).columns, 120)
        print(replay_text(result, max(width, 40)))
    return 0 if result.replayed else 1
