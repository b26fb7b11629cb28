"""Templates and style of all pages, and the small pages beside the report: one template each, without a script."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from rindices.files import atomic_file
from rindices.pages import elements
from rindices.plots.style import PALETTE

_ROOM = "rindices.pages"


def write_sheet(template: str, out: Path, *, title: str, **contents: object) -> Path:
    """Write a page from ``templates/sheet_NAME.html.j2``, whole or not at all, and return its path.

    Parameters
    ----------
    template
        Its name.
    out
        The file to write.
    title
        Of the page.
    contents
        What the template shows; everything is escaped.
    """
    html = render(f"sheet_{template}.html.j2", title=title, style=page_style(), **contents)
    with atomic_file(out) as beside:
        beside.write_bytes(html.encode("utf-8", errors="replace"))
    return out


def render(template: str, **contents: object) -> str:
    """Return a template with its contents, all of them escaped where it is a page."""
    return _environment().get_template(template).render(**contents)


def page_style() -> Markup:
    """Return the style of a page, with the palette of the figures on light paper and on dark."""
    light, dark = ("".join(f"--{name}: {two[place]}; " for name, two in PALETTE.items()) for place in (0, 1))
    colours = f":root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
    return Markup(colours + file_text("report.css"))  # our own files, not the user's text


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"thousands": "{:,}".format, "listed": elements.listed, "number": elements.number}
    environment.filters["line"] = _line
    made = (elements.Table, elements.words, elements.counts, elements.measures)
    said = (elements.counted, elements.duration, elements.p_words)
    environment.globals |= {one.__name__: one for one in (*made, *said)}
    return environment


def _line(text: str) -> str:
    """Return a user's text for a cell of Markdown: one line, without markup."""
    return "".join(f"\\{sign}" if sign in r"\`*_[]<>|#" else sign for sign in " ".join(text.split()))


def _template(name: str) -> str | None:
    file = resources.files(_ROOM) / "templates" / name
    return file.read_text(encoding="utf-8") if file.is_file() else None


def file_text(path: str) -> str:
    """Return a file of this room."""
    return (resources.files(_ROOM) / path).read_text(encoding="utf-8")
