"""The options that choose records, shared by the verbs that analyse."""

from __future__ import annotations

import argparse

from cpulens.analyze.selection import Selection, share


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add --where, --iterations and --cumulative."""
    parser.add_argument(
        "--where",
        metavar="CONDITION",
        help="only records for which this holds, such as \"primitive == 'matmul' and duration_ms > 0.1\": an SQL "
        "condition over the columns of the trace",
    )
    parser.add_argument(
        "--iterations",
        metavar="SLICE",
        help="only these iterations, as a slice of Python: 3: (all but the first three), --iterations=-5: (the last "
        "five), 2:10:2, or one number; where none is marked, they are found by the period of the kernels",
    )
    parser.add_argument(
        "--cumulative", metavar="SHARE", help="only the largest rows that make up this share together, such as 90%%"
    )


def selection(args: argparse.Namespace) -> Selection:
    """What --where and --iterations choose. Raises UsageError for what is no condition or slice."""
    return Selection(args.where, args.iterations)


def cumulative(args: argparse.Namespace) -> float | None:
    """What --cumulative asks for. Raises UsageError for what is no share."""
    return None if args.cumulative is None else share(args.cumulative, "--cumulative")
