"""The command ``run_cpu``: what argparse needs, and nothing more until the options are known to be right."""

from __future__ import annotations

import argparse
import os
import sys

from run_cpu import options

DESCRIPTION = """\
Run a program on the right cores and memory of this host, once or as several
instances side by side, and stand by until all of them have ended."""

EPILOG = """\
examples:
  run_cpu script.py --batch 8                    one instance on all cores
  run_cpu --throughput-mode script.py            one instance on each NUMA node
  run_cpu --ninstances 4 -m package.module       four instances of equal size
  run_cpu --core-list 0-3,8-11 -- ./server -p 1  exactly these CPUs
  run_cpu --ninstances 4 --dry-run script.py     show the plan, start nothing

exit code: 0 when all instances ended well, else that of the first that failed
(128+n: ended by signal n; 127: not found; 126: can't be started); 2 for
options that can't go together and plans that can't be."""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help for a terminal's width; one spelling of each option, the others are in the documentation.

    argparse asks shutil for the width, whose import costs more than all of the help.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=_width())

    def _format_action_invocation(self, action: argparse.Action) -> str:
        names = [name for name in action.option_strings if "_" not in name]
        if not names:
            return super()._format_action_invocation(action)
        value = "" if action.nargs == 0 else " " + self._format_args(action, action.dest.upper())
        return ", ".join(names) + value


def _width() -> int:
    try:
        return max(40, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns) - 2)
    except (ValueError, OSError):
        return 78


def create_args(parser: argparse.ArgumentParser | None = None) -> argparse.ArgumentParser:
    """Return `parser` (default: a new one) with every option of the launcher, PROGRAM and its arguments."""
    if parser is None:
        parser = argparse.ArgumentParser(
            prog="run_cpu",
            usage="run_cpu [options] [--] PROGRAM [ARGS ...]",
            description=DESCRIPTION,
            epilog=EPILOG,
            formatter_class=Formatter,
        )
    options.add_options(parser)
    return parser


def split_command(argv: list[str]) -> tuple[list[str], list[str]]:
    """Return the launcher's own options, and PROGRAM with its arguments, byte for byte.

    argparse would take a ``--`` out of the program's arguments.
    """
    takes_value = options.takes_value()
    place = 0
    while place < len(argv):
        word = argv[place]
        if word == "--":
            return argv[:place], argv[place + 1 :]
        if not word.startswith("-") or word == "-":
            break
        name, equals, _ = word.partition("=")
        known = [name] if name in takes_value else [option for option in takes_value if option.startswith(name)]
        place += 2 if known and not equals and takes_value[known[0]] else 1
    return argv[:place], argv[place:]


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the options of a command line; usage errors leave through SystemExit(2), as argparse does."""
    own, command = split_command(argv)
    args = create_args().parse_args([*own, "--", *command[:1]] if command else own)
    args.program_args = command[1:]
    return args


def main(argv: list[str] | None = None) -> int:
    """Run the command line (default: this process's) and return its exit code."""
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    from cpulens.errors import CpulensError
    from run_cpu.text import complain

    try:
        from run_cpu.launch import launch

        return launch(args)
    except CpulensError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of a plan has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


if __name__ == "__main__":
    sys.exit(main())
