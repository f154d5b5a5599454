"""`cpulens repro`: command lines of oneDNN's benchdnn for the problems of a run."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from cpulens.analyze.selection import covering, select
from cpulens.cli.progress import step_progress
from cpulens.cli.selecting import add_selection, cumulative, selection
from cpulens.measure import benchdnn
from cpulens.report.benchdnn.listing import chosen, listing_object, listing_text
from cpulens.report.benchdnn.reproducers import RUN_OPTIONS, Reproducer, reproducers
from cpulens.verbose import load

_PROBLEMS: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = (
        "One line for each distinct problem, by the time it took, grouped by driver; the output is a shell script. "
        "They follow the grammar that oneDNN 3.13 documents, and are checked against it. What can't be expressed is "
        "listed at the end with the reason."
    )
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "--top", type=int, metavar="N", default=_PROBLEMS, help="problems at most; 0: all (default: %(default)s)"
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="say the layouts that ran also where the program left them to the library (default: any there, so that "
        "the library chooses again)",
    )
    parser.add_argument(
        "--benchdnn", metavar="PATH", help="a benchdnn program: run each line with it, and say what it took"
    )
    add_selection(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the lines; 1 when nothing can be expressed."""
    only, wanted = selection(args), cumulative(args)
    result = reproducers(select(load(*args.logs), only), exact=args.exact)
    top = max(args.top, 0) or len(result.found)
    if wanted is not None:
        top = min(top, covering((one.share for one in result.found), wanted))
    ran = _run_all(args.benchdnn, chosen(result, top)) if args.benchdnn else None
    if args.json:
        said = None if ran is None else {line: one._asdict() for line, one in ran.items()}
        json.dump(listing_object(result, top, said), sys.stdout, ensure_ascii=False)
        print()
    else:
        print(listing_text(result, top, {line: one.sentence for line, one in (ran or {}).items()}))
    return 0 if result.found else 1


def _run_all(program: str, problems: list[Reproducer]) -> dict[str, benchdnn.Ran]:
    ran = {}
    with step_progress(sys.stderr) as say:
        for number, one in enumerate(problems, start=1):
            say(f"benchdnn {number} of {len(problems)}: {one.driver} {one.arguments[-1]}")
            ran[one.line] = benchdnn.run(program, RUN_OPTIONS, one.arguments)
    return ran
