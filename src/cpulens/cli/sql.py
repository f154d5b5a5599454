"""`cpulens sql`: ask a run or log a question in SQL."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from typing import TYPE_CHECKING

from cpulens.verbose import load
from cpulens.verbose.visible import visible

if TYPE_CHECKING:
    import polars as pl

SUMMARY = "ask a run or log a question in SQL"
_ROWS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("logs", nargs="+", metavar="RUN", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "query",
        metavar="QUERY",
        help="such as \"select primitive, sum(duration_ms) from run where event = 'exec' group by primitive\"; "
        "tables are run (both joined), events and texts",
    )
    parser.add_argument(
        "--limit", type=int, default=_ROWS, metavar="N", help="rows to print at most; 0: all (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, with every row")


def run(args: argparse.Namespace) -> int:
    """Print the answer; 1 when it has no row."""
    found = load(*args.logs).sql(args.query)
    if args.json:
        answer = {"schema": 1, "columns": found.columns, "rows": found.rows()}
        json.dump(answer, sys.stdout, default=str, ensure_ascii=False)
        print()
    else:
        _print(found if args.limit <= 0 else found.head(args.limit))
        if len(found) > args.limit > 0:
            print(f"{args.limit:,} of {len(found):,} rows; --limit 0 prints all", file=sys.stderr)
    return 0 if len(found) else 1


def _print(found: pl.DataFrame) -> None:
    """Print a table: numbers to the right, text safe for a terminal, cells folded to its width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, dtype in found.schema.items():
        table.add_column(Text(visible(name)), justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in found.iter_rows():
        table.add_row(*(Text("–" if value is None else visible(_shown(value))) for value in row))
    console = Console(file=sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = shutil.get_terminal_size((120, 24)).columns
    console.print(table)


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
