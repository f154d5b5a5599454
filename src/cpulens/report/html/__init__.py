"""A run, or the difference of two, as one HTML file: nothing is loaded, and without JavaScript it can be read."""

from __future__ import annotations

from cpulens.report.html.diff import diff_page
from cpulens.report.html.run import run_page

__all__ = ["diff_page", "run_page"]
