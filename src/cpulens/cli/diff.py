"""`cpulens diff`: what changed between two runs or logs, how sure that is, and what it comes from."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Final

from cpulens.analyze.compare.basis import PER
from cpulens.analyze.selection import covering, share
from cpulens.cli.progress import reading_progress
from cpulens.cli.selecting import add_selection, cumulative, selection
from cpulens.errors import UsageError
from cpulens.report.comparison_json import comparison_object

if TYPE_CHECKING:
    from cpulens.analyze.compare import Comparison
    from cpulens.trace import Trace

_ROWS: Final = 20
REGRESSION: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.usage = "cpulens diff [OPTIONS] BASE NEW\n       cpulens diff [OPTIONS] --base FILE … --new FILE …"
    parser.epilog = (
        "Exit code 3: --fail-over found a regression. It counts when it is significant and its interval reaches the "
        "limit, in the total or in one of the kernels that make up 99 % of the time of either side."
    )
    parser.add_argument("logs", nargs="*", metavar="FILE", help="two run files (*.cpulens) or raw logs: base, then new")
    parser.add_argument(
        "--base", nargs="+", action="extend", metavar="FILE", help="the runs of one side, several of them"
    )
    parser.add_argument("--new", nargs="+", action="extend", metavar="FILE", help="the runs of the other side")
    parser.add_argument(
        "--by",
        metavar="COLUMNS",
        help="match kernels by these columns, joined by commas, such as layer,primitive (default: by problem)",
    )
    add_selection(parser)
    parser.add_argument(
        "--per",
        choices=PER,
        help="what totals are divided by (default: iteration where every run has marks of them, else calls: a run of "
        "base's length, as the calls of the shared kernels tell it)",
    )
    parser.add_argument(
        "--alpha", type=float, metavar="P", help="chance of a false alarm in the whole diff (default: 0.01)"
    )
    parser.add_argument(
        "--min-effect", metavar="SHARE", help="differences below this are never significant (default: 1%%)"
    )
    parser.add_argument(
        "--fail-over", metavar="SHARE", help="exit with 3 when a regression may be over this, such as 5%%"
    )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        default=_ROWS,
        help="kernels and causes to print at most; 0: all (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every kernel")


def run(args: argparse.Namespace) -> int:
    """Compare; 0 when that could be done, 3 when --fail-over found a regression."""
    limit = None if args.fail_over is None else share(args.fail_over, "--fail-over")
    wanted = cumulative(args)
    base, new = _sides(args)
    comparison = _compared(args, base, new)
    if wanted is not None:
        comparison = _largest(comparison, wanted)
    if args.json:
        json.dump(comparison_object(comparison, limit), sys.stdout, ensure_ascii=False, allow_nan=False)
        print()
    else:
        from cpulens.report.comparison import show_comparison

        show_comparison(sys.stdout, comparison, max(args.limit, 0) or None)
    return REGRESSION if limit is not None and _failed(comparison, limit, args.fail_over) else 0


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    if args.base and args.new and not args.logs:
        return args.base, args.new
    if args.base or args.new or len(args.logs) != 2:
        raise UsageError(
            "name two runs (cpulens diff BASE NEW), or several a side: cpulens diff --base A1 A2 --new B1 B2"
        )
    return args.logs[:1], args.logs[1:]


def _compared(args: argparse.Namespace, base: list[str], new: list[str]) -> Comparison:
    from cpulens.analyze.compare import ALPHA, MIN_EFFECT, compare
    from cpulens.analyze.compare.calls import check_columns
    from cpulens.analyze.summary import columns

    selection(args)  # a condition that can't be used is said before long logs are read
    if args.by is not None:
        check_columns(columns(args.by))
    if [*base, *new].count("-") > 1:
        raise UsageError("- is standard input, which can be only one of the runs")
    loaded: dict[str, Trace] = {}
    from cpulens.verbose import load

    for name in dict.fromkeys([*base, *new]):
        with reading_progress(sys.stderr) as progress:
            loaded[name] = load(name, progress=progress)
    return compare(
        [loaded[name] for name in base],
        [loaded[name] for name in new],
        by=args.by,
        where=args.where,
        iterations=args.iterations,
        per=args.per,
        alpha=ALPHA if args.alpha is None else args.alpha,
        min_effect=MIN_EFFECT if args.min_effect is None else share(args.min_effect, "--min-effect"),
    )


def _largest(comparison: Comparison, wanted: float) -> Comparison:
    """Only the kernels whose differences are the largest part of all differences."""
    whole = sum(abs(kernel.delta_ms) for kernel in comparison.kernels)
    kept = covering((abs(kernel.delta_ms) / whole for kernel in comparison.kernels), wanted) if whole else 0
    note = (
        f"only the kernels that make up {100 * wanted:g} % of all differences: {kept:,} of {len(comparison.kernels):,}"
    )
    return dataclasses.replace(comparison, kernels=comparison.kernels[:kept], notes=(*comparison.notes, note))


def _failed(comparison: Comparison, limit: float, asked: str) -> bool:
    from cpulens.report.comparison import verdict
    from cpulens.report.text import visible

    found = comparison.regressions(limit)
    for one in found:
        name = visible(one.kernel.label) if one.kernel else "the total"
        up_to = f"up to {100 * ((one.effect.high or 1) - 1):.1f} %"
        print(f"cpulens diff: regression over {asked}: {name} is {verdict(one.effect)}, {up_to}", file=sys.stderr)
    return bool(found)
