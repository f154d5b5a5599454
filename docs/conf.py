"""How Sphinx builds these pages: `make docs`."""

from cpulens import __version__

project = "cpulens"
author = "The cpulens authors"
release = version = __version__
extensions = ["myst_parser"]
myst_heading_anchors = 3
html_theme = "alabaster"
exclude_patterns = ["_build"]
