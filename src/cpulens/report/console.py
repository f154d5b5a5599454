"""One way to a stream for everything that rich draws: colours on a terminal, plain text elsewhere."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console

Draw = Callable[[Console], None]

#: Columns of plain text where neither a terminal nor COLUMNS says otherwise.
_PLAIN_WIDTH: Final = 120


def show(stream: Any, draw: Draw) -> None:
    """Draw on a terminal in its width (NO_COLOR is respected), else as plain text 120 or COLUMNS wide."""
    console = Console(file=stream, highlight=False, force_jupyter=False)
    if console.is_terminal:
        draw(console)
    else:
        stream.write(as_text(draw, shutil.get_terminal_size((_PLAIN_WIDTH, 24)).columns) + "\n")


def as_text(draw: Draw, width: int) -> str:
    """What `draw` draws as plain text, `width` columns wide, without colours or blanks at line ends."""
    target = io.StringIO()
    draw(Console(file=target, width=width, color_system=None, highlight=False, force_jupyter=False))
    return "\n".join(line.rstrip() for line in target.getvalue().splitlines()).rstrip("\n")
