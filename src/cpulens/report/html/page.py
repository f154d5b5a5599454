"""From what a page shows to its HTML: templates, style, scripts, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from cpulens._version import __version__
from cpulens.report.text import cell, count, milliseconds, percent, rate, visible


def render(template: str, figures: dict[str, Any], **shown: Any) -> str:
    """Fill a template; `figures` are what plotly draws, by the id of their place. All text of a log is escaped."""
    scripts = [_file("page.js")] if not figures else [_plotly(), _file("page.js")]
    return (
        _environment()
        .get_template(template)
        .render(
            **shown,
            version=__version__,
            style=Markup(_file("page.css")),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(scripts),
            figures=figures,
            data=_data(figures),
        )
    )


def fragment(template: str, **shown: Any) -> str:
    """Fill a template that is a part of somebody else's page, such as a notebook's: no script, nothing fetched."""
    return _environment().get_template(template).render(**shown)


def _data(figures: dict[str, Any]) -> Markup:
    """JSON that can stand in a script element: no character in it ends the element, or is more than ASCII."""
    text = json.dumps(figures, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _policy(scripts: list[str]) -> str:
    """Content-Security-Policy: exactly these scripts run, and nothing is fetched from anywhere."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _file(name: str) -> str:
    return (resources.files("cpulens.report.html") / "templates" / name).read_text("utf-8")


def _plotly() -> str:
    """plotly.js as its Python package brings it. It has no partial bundle: 4.8 MB."""
    return (resources.files("plotly") / "package_data" / "plotly.min.js").read_text("utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("cpulens.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        cell=cell, ms=milliseconds, percent=percent, rate=rate, visible=visible, pretty=_pretty, wbr=_breakable
    )
    environment.globals["count"] = count
    return environment


def _pretty(value: Any) -> str:
    return visible_lines(json.dumps(value, indent=2, ensure_ascii=False))


def visible_lines(text: str) -> str:
    """As `visible`, but the ends of lines stay."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _breakable(value: Any) -> Markup:
    """A name that may be broken where its parts meet."""
    escaped = str(Markup.escape(cell(value)))
    for mark in ("_", ":", "/"):
        escaped = escaped.replace(mark, f"{mark}<wbr>")
    return Markup(escaped)
