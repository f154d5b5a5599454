"""`cpulens doctor`: what decides how fast inference runs here, and what stands against it."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
from typing import Any

from cpulens.backends import doctor, requirements
from cpulens.machine.cpuinfo import request_amx
from cpulens.report.doctor import Line, doctor_lines
from cpulens.report.text import visible

_WIDEST = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the verb."""
    parser.add_argument(
        "--import",
        dest="imports",
        metavar="MODULES",
        default="",
        help="load these Python modules first, joined by commas, then look: torch,openvino",
    )
    parser.add_argument(
        "--require",
        metavar="NAMES",
        default="",
        help="for scripts: no page, but exit with 1 and the reason unless all of these can be used: backends (mkldnn, "
        "mkl, openmp, acl, …) and extensions of the processor (amx, avx512_bf16, sve, …), joined by commas",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the report; 1 when a module can't be imported or a requirement is not met."""
    request_amx()  # in this process of our own, so that the kernel's answer is its last word
    wanted = _names(args.require)
    requirements.refuse_unknown(wanted)
    facts = doctor.gather(_names(args.imports))
    checked = requirements.check(wanted)
    if args.json:
        report = {"schema": 1, **facts, "requirements": [requirement._asdict() for requirement in checked]}
        json.dump(report, sys.stdout, ensure_ascii=False)
        print()
    elif not wanted:
        _print(doctor_lines(facts, _width()))
    failed = [f"{one['module']} can't be imported: {one['error']}" for one in facts["imports"] if one["error"]]
    failed += [f"{one.name} is required and can't be used: {one.reason}" for one in checked if not one.met]
    for sentence in failed:
        print(f"cpulens doctor: {visible(sentence)}", file=sys.stderr)
    if wanted and not args.json:
        for one in checked:
            if one.met:
                print(visible(f"{one.name}: {one.reason}"))
    return 1 if failed else 0


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _width() -> int:
    return min(shutil.get_terminal_size((80, 24)).columns, _WIDEST) if sys.stdout.isatty() else 80


def _print(lines: list[Line]) -> None:
    """In colour on a terminal where rich is installed, else plain: the report needs no package."""
    console: Any = None
    if sys.stdout.isatty():
        with contextlib.suppress(ImportError):
            from rich.console import Console

            console = Console(highlight=False)
    for line in lines:
        if console is None:
            print(line.text)
        else:
            console.print(line.text, style=line.style or None, markup=False, soft_wrap=True)
