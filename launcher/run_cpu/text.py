"""What is said to people: on stderr, one line each, without anything that a terminal would act on."""

from __future__ import annotations

import sys


def printable(text: str) -> str:
    """Return `text` with control characters and undecodable bytes as escapes."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def complain(text: str) -> None:
    """Write a line to stderr, if there is one."""
    if sys.stderr is not None:
        print(f"run_cpu: {printable(text)}", file=sys.stderr)
