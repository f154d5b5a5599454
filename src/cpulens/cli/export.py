"""`cpulens export`: a run for other programs."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from cpulens.analyze.selection import select
from cpulens.analyze.summary import DEFAULT_BY, columns, summarize
from cpulens.cli.progress import reading_progress
from cpulens.cli.selecting import add_selection, cumulative, selection
from cpulens.errors import UsageError
from cpulens.trace.writing import atomic
from cpulens.verbose import load

if TYPE_CHECKING:
    from cpulens.analyze.summary import Summary
    from cpulens.trace import Trace

#: Format → endings of names, the longest first where one is the end of another.
ENDINGS: Final = {
    "chrome": ("trace.json", "trace.json.gz"),
    "csv": (".csv", ".csv.gz"),
    "json": (".json", ".json.gz"),
    "parquet": (".parquet",),
    "markdown": (".md", ".markdown"),
}
_WHAT: Final = {
    "chrome": "Chrome trace, open it in Perfetto or chrome://tracing",
    "csv": "CSV",
    "json": "JSON table",
    "parquet": "Parquet",
    "markdown": "Markdown",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = (
        "The format goes by the ending: NAMEtrace.json is a Chrome trace (one track per instance and thread, layers "
        "around kernels), other .json a table; .csv, .parquet and .md. All but .parquet and .md may end in .gz. "
        "A table has a row for each record, or for each key of --by; Markdown has a summary."
    )
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="what to write; - is stdout, and needs --format"
    )
    parser.add_argument("--format", choices=list(ENDINGS), help="write this, whatever the ending")
    parser.add_argument("--by", metavar="COLUMNS", help="sum by these columns, joined by commas, as cpulens top does")
    add_selection(parser)
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    parser.add_argument("--json", action="store_true", help="print what was written as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write; 0 when it is there."""
    kind = args.format or _format(args.output)
    keys = columns(args.by) if args.by else None
    wanted, chosen = cumulative(args), selection(args)
    if kind == "chrome" and (keys or wanted is not None):
        raise UsageError("a Chrome trace has every slice: --by and --cumulative are for tables")
    if keys is None and wanted is not None and kind != "markdown":
        raise UsageError("--cumulative needs --by: it keeps the largest rows of a summary")
    if args.output == "-" and args.json:
        raise UsageError("--json tells what was written to a file; with -o - it would stand in the output")
    with reading_progress(sys.stderr) as progress:
        trace = select(load(*args.logs, progress=progress), chosen)
    summary = _summary(trace, kind, keys, wanted)
    with _opened(args.output, args.force) as file:
        note = _write(kind, trace, summary, file, Path(args.logs[0]).name if args.logs[0] != "-" else "standard input")
    _tell(args, kind, note)
    return 0


def _format(output: str) -> str:
    """The format that an ending asks for. Raises UsageError for an ending that asks for none."""
    if output == "-":
        raise UsageError(f"standard output has no ending to tell the format; give --format {'|'.join(ENDINGS)}")
    for kind, endings in ENDINGS.items():
        if output.endswith(endings):
            return kind
    known = ", ".join(ending for endings in ENDINGS.values() for ending in endings)
    raise UsageError(f"{output}: the format goes by the ending, one of {known}; or give --format")


def _summary(trace: Trace, kind: str, keys: tuple[str, ...] | None, wanted: float | None) -> Summary | None:
    if keys is None and kind != "markdown":
        return None
    from cpulens.analyze.summary import largest

    summary = summarize(trace, keys or DEFAULT_BY)
    return summary if wanted is None else largest(summary, wanted)


@contextlib.contextmanager
def _opened(output: str, force: bool) -> Iterator[IO[bytes]]:
    if output == "-":
        yield sys.stdout.buffer
        return
    with atomic(Path(output), force=force) as file:
        if output.endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield file


def _write(kind: str, trace: Trace, summary: Summary | None, file: IO[bytes], name: str) -> str:
    """Write, and give a sentence that the reader of the file should know; mostly empty."""
    if kind == "chrome":
        from cpulens.report.chrome import time_words, write_chrome

        laid = write_chrome(trace, file)
        return time_words(laid) if laid.laid else ""
    if kind == "markdown" and summary:
        from cpulens.analyze.findings import Thresholds, find
        from cpulens.configuration import settings
        from cpulens.report.markdown import summary_markdown

        found = find(trace, Thresholds.of(settings("findings")))
        file.write(summary_markdown(summary, found, name).encode())
        return ""
    from cpulens.report import table_formats as table
    from cpulens.trace.table_file import write_parquet

    if kind == "parquet":
        write_parquet(table.summary_frame(summary).lazy() if summary else trace.frame, trace.facts, file)
    elif summary:
        (table.write_summary_csv if kind == "csv" else table.write_summary_json)(summary, file)
    else:
        (table.write_csv if kind == "csv" else table.write_json)(trace, file)
    return ""


def _tell(args: argparse.Namespace, kind: str, note: str) -> None:
    if args.json:
        done = {"schema": 1, "output": args.output, "format": kind, "size_bytes": Path(args.output).stat().st_size}
        print(json.dumps({**done, "notes": [note] if note else []}, ensure_ascii=False))
    elif args.output != "-":
        print(f"{args.output}: {_WHAT[kind]}" + (f"; {note}" if note else ""), file=sys.stderr)
