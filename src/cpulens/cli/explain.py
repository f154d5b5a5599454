"""`cpulens explain`: one log line in plain words, field by field."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from typing import Final

from cpulens.errors import LogError
from cpulens.verbose.explain import Explanation, explain
from cpulens.verbose.visible import visible

SUMMARY = "say in plain words what one log line means"
_NAME_WIDTH: Final = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument("line", nargs="*", metavar="LINE", help="the line, in quotes; without it, or with -: stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Explain each line; 0 when at least one piece was a verbose line that is understood."""
    if args.line and args.line != ["-"]:
        lines = " ".join(args.line).encode("utf-8", "surrogateescape").splitlines()
    else:
        lines = sys.stdin.buffer.read().splitlines()
    found = [piece for line in lines if line.strip() for piece in explain(line)]
    if not found:
        raise LogError("There is no line to explain. Give one in quotes, or pipe lines into this command.")
    if args.json:
        print(json.dumps({"schema": 1, "pieces": [_json(piece) for piece in found]}, ensure_ascii=False))
    else:
        width = min(shutil.get_terminal_size((80, 24)).columns, 120)
        print("\n\n".join(_text(piece, width) for piece in found))
    understood = any(piece.columns.get("event", "unknown") != "unknown" for piece in found)
    return 0 if understood else 1


def _json(piece: Explanation) -> dict[str, object]:
    return {
        "sentence": piece.sentence,
        "columns": piece.columns,
        "fields": [field._asdict() for field in piece.fields],
    }


def _text(piece: Explanation, width: int) -> str:
    lines = textwrap.wrap(visible(piece.sentence), width)
    for field in piece.fields:
        shown = visible(f"{field.value} – {field.meaning}" if field.meaning else field.value)
        wrapped = textwrap.wrap(shown, max(width - _NAME_WIDTH - 2, 20), break_on_hyphens=False) or [""]
        lines.append(f"  {field.name:<{_NAME_WIDTH}}{wrapped[0]}")
        lines += [" " * (_NAME_WIDTH + 2) + more for more in wrapped[1:]]
    return "\n".join(lines)
