"""In IPython and Jupyter: `%load_ext cpulens`, then `%%kernels` above a cell, or `%kernels` before a statement."""

from __future__ import annotations

import argparse
import ast
import shlex
from typing import TYPE_CHECKING, Any, Final, NoReturn

from IPython.core import magic
from IPython.core.error import UsageError
from IPython.display import display

from cpulens import errors
from cpulens.analyze.summary import DEFAULT_BY, columns
from cpulens.recording import Recording, Schedule, record

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_DESCRIPTION: Final = """\
%%kernels: record the oneDNN and oneMKL kernels of a cell, and show them below it.
%kernels STATEMENT: the same for one statement; it takes no options.
The value of the last expression is the cell's, as always."""


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics; IPython calls it for `%load_ext cpulens`."""

    def kernels(line: str, cell: str | None = None) -> Any:
        args = _parser().parse_args(shlex.split(line) if cell is not None else [])
        return _recorded(shell, args, line if cell is None else cell)

    kernels.__doc__ = _parser().format_help()
    magic.no_var_expand(kernels)
    # A semicolon at the end of the cell keeps its value from being shown, where IPython is new enough.
    getattr(magic, "output_can_be_silenced", lambda function: function)(kernels)
    shell.register_magic_function(kernels, "line_cell", "kernels")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong to the notebook, instead of ending its process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%%kernels: {message}")


def _parser() -> _Parser:
    parser = _Parser(
        prog="%%kernels",
        description=_DESCRIPTION.replace("%", "%%"),
        add_help=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", nargs="?", default="_kernels", help="variable that gets the Recording (default: _kernels)"
    )
    parser.add_argument(
        "--onednn", default="ON", metavar="LEVEL", help="OFF, ON (executions) or ON_CREATION (creations too)"
    )
    parser.add_argument("--mkl", default="ON", metavar="LEVEL", help="OFF or ON")
    parser.add_argument(
        "--by", default=",".join(DEFAULT_BY), metavar="COLUMNS", help="sum by these columns, joined by commas"
    )
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="rows at most; 0: all (default: 30)")
    parser.add_argument("--schedule", metavar="WORDS", help="record some iterations only, as in wait=2,active=5")
    parser.add_argument("--findings", action="store_true", help="show what the rules find wrong, too")
    parser.add_argument("--save", metavar="FILE", help="write the run (.cpulens), or the raw lines (.log, .txt)")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--quiet", action="store_true", help="show nothing: the variable has it all")
    return parser


def _recorded(shell: InteractiveShell, args: argparse.Namespace, source: str) -> Any:
    recording = _recording(args)
    codes = _compiled(shell, source)
    shell.user_ns[args.name] = recording
    try:
        with recording:
            value = _executed(codes, shell.user_ns)
    finally:  # after an error too: what ran until then
        _conclude(args, recording)
    return value


def _recording(args: argparse.Namespace) -> Recording:
    """The recording that the options ask for. What can't be is said before the cell runs."""
    if not args.name.isidentifier():
        raise UsageError(f"{args.name!r} can't be the name of a variable")
    try:
        columns(args.by)
        schedule = Schedule.parse(args.schedule) if args.schedule else None
        return record(args.onednn, args.mkl, schedule=schedule)
    except errors.UsageError as error:
        raise UsageError(str(error)) from None


def _compiled(shell: InteractiveShell, source: str) -> list[Any]:
    """Code objects: statements, then the last expression if there is one. Tracebacks show the cell's lines."""
    text = shell.transform_cell(source)
    name = shell.compile.cache(text, shell.execution_count, raw_code=source)
    body = shell.transform_ast(shell.compile.ast_parse(text, filename=name)).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    codes = [shell.compile(ast.Module(body, []), name, "exec")]
    return codes + ([shell.compile(ast.Expression(last.value), name, "eval")] if last else [])


def _executed(codes: list[Any], namespace: dict[str, Any]) -> Any:
    value = None
    for code in codes:
        value = eval(code, namespace)
    return value


def _conclude(args: argparse.Namespace, recording: Recording) -> None:
    """Write and show. What goes wrong here is a sentence: the cell itself has run."""
    try:
        if args.save:
            recording.save(args.save, force=args.force)
        if not args.quiet:
            _show(args, recording)
    except errors.CpulensError as error:
        from cpulens.report.notebook import sentence_html

        _display(str(error), sentence_html(str(error)))


def _show(args: argparse.Namespace, recording: Recording) -> None:
    from cpulens.report.notebook import html, summary_html
    from cpulens.report.terminal import summary_text

    summary, limit = recording.summary(args.by), max(args.limit, 0) or None
    _display(summary_text(summary, limit), summary_html(summary, limit))
    if args.findings:
        from cpulens.analyze.findings import Thresholds, find
        from cpulens.configuration import settings
        from cpulens.report.findings import findings_text

        found = find(recording.trace, Thresholds.of(settings("findings")))
        _display(findings_text(found), html(found))


def _display(text: str, html: str) -> None:
    display({"text/plain": text, "text/html": html}, raw=True)
