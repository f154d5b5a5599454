"""`cpulens bundle`: one archive to attach to a bug report."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cpulens.analyze.findings import Thresholds
from cpulens.cli.progress import reading_progress
from cpulens.configuration import settings
from cpulens.errors import TraceFileError, UsageError
from cpulens.verbose import load

if TYPE_CHECKING:
    from cpulens.report.bundle import Bundle

_DEFAULT: Final = "cpulens-bundle.zip"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.epilog = (
        "Replaced are the names of this host and its users, those of home folders and instances in the run, paths, "
        "URLs, network and e-mail addresses, and what looks like a secret. Names of layers and regions stay; give "
        "further words with --replace. Look before you send: --dry-run, and CONTENTS.txt in the archive."
    )
    parser.add_argument("logs", nargs="+", metavar="FILE", help="run files (*.cpulens) or raw logs; - is stdin")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(_DEFAULT), metavar="FILE", help="the zip file (default: %(default)s)"
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="WORD",
        help="replace this word too, wherever it stands by itself (a project, a customer); may be given several times",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="write nothing: show what would be replaced, and by what"
    )
    parser.add_argument("--json", action="store_true", help="print what was done as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Write the archive, or show what would be replaced; 0 when that is done."""
    from cpulens.report.bundle import bundle, here

    if args.output.suffix != ".zip":
        raise UsageError(f"{args.output}: a bundle is a zip file, so its name ends in .zip")
    if args.output.exists() and not args.force and not args.dry_run:
        raise TraceFileError(f"{args.output} exists and is not overwritten. Give another name, or --force.")
    if any(len(word.strip()) < 2 for word in args.replace):
        raise UsageError("--replace takes words of two letters or more: shorter ones stand everywhere")
    thresholds = Thresholds.of(settings("findings"))
    with reading_progress(sys.stderr) as progress:
        trace = load(*args.logs, progress=progress)
    made = bundle(trace, here(args.replace), thresholds=thresholds)
    if not args.dry_run:
        made.write(args.output, force=args.force)
    _tell(args, made)
    return 0


def _tell(args: argparse.Namespace, made: Bundle) -> None:
    if args.json:
        print(json.dumps(_object(args, made), ensure_ascii=False))
        return
    from cpulens.report.bundle.contents import replaced_words
    from cpulens.report.text import visible

    if args.dry_run:
        for _, original, placeholder, times in made.replaced:
            print(f"{placeholder:<15} {times:>6,} × {visible(original)}")
    else:
        size = args.output.stat().st_size
        names = ", ".join(member.name for member in made.members)
        print(f"{args.output}: {names} and run.cpulens; {size / 1e3:,.0f} kB", file=sys.stderr)
    print(replaced_words(Counter(kind for kind, *_ in made.replaced)), file=sys.stderr)
    for name, times in made.left.items():
        print(f"note: {visible(name)} is also a word of the libraries and stays in {times:,} places", file=sys.stderr)
    if not args.dry_run:
        print("Look before you send it: cpulens bundle --dry-run shows each original.", file=sys.stderr)


def _object(args: argparse.Namespace, made: Bundle) -> dict[str, object]:
    names = ("kind", "original", "placeholder", "texts")
    return {
        "schema": 1,
        "output": None if args.dry_run else str(args.output),
        "files": [member.name for member in made.members] + ["run.cpulens"],
        "replaced": [dict(zip(names, one, strict=True)) for one in made.replaced],
        "left": dict(made.left),
    }
