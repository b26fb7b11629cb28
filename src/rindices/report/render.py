"""From contents to HTML: templates with all text escaped, and a page that may run its own script only."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

_FILES = resources.files("rindices.report")


def render(name: str, contents: dict[str, Any], *, script: bool) -> str:
    """Return the page that a template makes of its contents.

    Parameters
    ----------
    name
        The template.
    contents
        What it shows; all text is escaped.
    script
        Whether the page has our script. No other can run in it, whatever the names of regions may hold.
    """
    code = f"\n{_text('script.js')}" if script else ""
    return (
        _environment()
        .get_template(name)
        .render(
            style=Markup(_text("style.css")),  # our own files, not the user's text
            script=Markup(code),
            policy=_policy(code),
            **contents,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda template: _text(f"templates/{template}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    return environment


def _text(path: str) -> str:
    return (_FILES / path).read_text(encoding="utf-8")


def _policy(code: str) -> str:
    allowed = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    if not code:
        return allowed
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    return f"{allowed}; script-src 'sha256-{digest}'"
