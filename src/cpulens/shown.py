"""How results show themselves in a notebook.

What draws them, `cpulens.report.notebook`, stands above all of them; it is found by its name when a notebook asks, so
that no layer depends on one above it.
"""

from __future__ import annotations

import importlib


class Shown:
    """Base of what a notebook shows as a table instead of its `repr`."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """HTML for a cell's output; None, for which a notebook takes the `repr`, where packages for it are missing."""
        try:
            drawing = importlib.import_module("cpulens.report.notebook")
        except ImportError:
            return None
        text: str = drawing.html(self)
        return text
