"""What all pages share: templates, style, script, and what a browser may do in a page that is a file."""

import base64
import hashlib
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from rindices.files import atomic_file
from rindices.pages import elements
from rindices.pages.run_view import VERDICT_LOOKS
from rindices.plots.style import PALETTE
from rindices.problems import duration, roughly

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def offline_page(template: str, *, script: bool = False, **contents: object) -> str:
    """Return a page that needs nothing else; everything in it is escaped, and no script but ours can run in it.

    Parameters
    ----------
    template
        Its template, which extends ``layout.html.j2``.
    script
        Whether it has the script.
    contents
        What the template shows.
    """
    policy = offline_policy() if script else _POLICY
    return render(template, style=page_style(), policy=policy, script=page_script() if script else "", **contents)


def write_sheet(template: str, out: Path, *, title: str, **contents: object) -> Path:
    """Write a page without a script from a template, see `offline_page`, and return its path."""
    return write_page(out, offline_page(f"{template}.html.j2", script=False, title=title, **contents))


def write_page(out: Path, html: str) -> Path:
    """Write a page, whole or not at all, and return its path."""
    with atomic_file(out) as beside:
        # A name may hold half a character (a lone surrogate), which no file can.
        beside.write_bytes(html.encode("utf-8", errors="replace"))
    return out


def offline_policy() -> str:
    """Return what a browser is allowed in a page with a script: no script but ours, and nothing from anywhere."""
    digest = base64.b64encode(hashlib.sha256(page_script().encode("utf-8")).digest()).decode("ascii")
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def page_style() -> Markup:
    """Return the style of a page, with the palette of the figures on light paper and on dark."""
    light, dark = ("".join(f"--{name}: {two[place]}; " for name, two in PALETTE.items()) for place in (0, 1))
    colours = f":root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
    return Markup(colours + _file_text("page.css"))  # our own files, not the user's text


def page_script() -> Markup:
    """Return the script of a page."""
    return Markup("\n" + _file_text("page.js"))


def render(template: str, **contents: object) -> str:
    """Return a template with its contents, all of them escaped where it is a page."""
    return _environment().get_template(template).render(**contents)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _file_text(f"templates/{name}")),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"thousands": "{:,}".format, "listed": elements.listed, "number": elements.number}
    environment.filters["line"] = _line
    made = (elements.Table, elements.words, elements.counts, elements.measures)
    said = (elements.counted, duration, roughly, elements.p_words)
    environment.globals |= {one.__name__: one for one in (*made, *said)} | {"looks": VERDICT_LOOKS}
    environment.globals |= vars(environment.get_template("macros.html.j2").module)
    return environment


def _line(text: str) -> str:
    """Return a user's text for a cell of Markdown: one line, without markup."""
    return "".join(f"\\{sign}" if sign in r"\`*_[]<>|#" else sign for sign in " ".join(text.split()))


def _file_text(path: str) -> str:
    return (resources.files("rindices.pages") / path).read_text(encoding="utf-8")
