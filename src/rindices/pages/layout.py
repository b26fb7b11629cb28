"""What all pages share: a view of a run with ids hidden, templates, style, script and content security policy."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import jinja2
from markupsafe import Markup

from rindices.pages import elements
from rindices.pages.elements import Gallery, listed, write_page
from rindices.plots.style import PALETTE
from rindices.problems import Curtain, counted, duration, roughly
from rindices.record import Run, Summary
from rindices.regions import known_regions
from rindices.settings import State

MOST_PEOPLE = 3000  # in the explorer of a report
FEWEST_CONTROLS = 20  # for centiles


class VerdictLook(NamedTuple):
    """How a verdict looks: the class of its box, a warning above every figure, and whether results are folded away."""

    colour: str = ""
    strip: str = ""
    folded: bool = False


VERDICT_LOOKS: dict[State | None, VerdictLook] = {
    "reproducible": VerdictLook("good"),
    "confounded": VerdictLook("warnings", "CONFOUNDED: the groups also differ in {}"),
    "weak": VerdictLook("weak", "WEAK: for comparing groups, not individuals"),
    "not reproducible": VerdictLook("bad", "NOT REPRODUCIBLE: do not interpret", folded=True),
    "no difference": VerdictLook("nothing", "NO DIFFERENCE FOUND: do not interpret", folded=True),
    "not testable": VerdictLook("untested", "NOT TESTED: do not interpret", folded=True),
    None: VerdictLook(),
}


def imbalanced_in(summary: Summary) -> str:
    """Return the variables in which the groups differ, at most three of them."""
    return listed([row["variable"] for row in summary.balance or () if row["imbalanced"]][:3]) or "something else"


@dataclass(frozen=True)
class RunView:
    """A run and how it is shown; every section is made from such a view.

    Attributes
    ----------
    run
        The run; its texts contain no ids if these are hidden.
    gallery
        Draws and keeps the figures.
    curtain
        Hides ids in texts.
    show_ids
        Whether people can be looked up by their id.
    variables
        Variables shown for each person besides the severities.
    most_people
        Maximum number of people in the explorer.
    """

    run: Run
    gallery: Gallery
    curtain: Curtain
    show_ids: bool
    variables: Sequence[str]
    most_people: int

    @cached_property
    def region_names(self) -> dict[str, str]:
        """The full name of each region, from the table's dictionary or otherwise from its atlas."""
        regions = self.run.results.patterns["region"].unique()
        known = {name: region.title for name, region in known_regions(regions).items()} | self.run.summary.region_names
        return {name: known.get(name, name) for name in regions}

    @cached_property
    def reference(self) -> Sequence[Sequence[float]]:
        """5th, 50th and 95th centile of each severity in held-out controls, or else in these; empty if they are few."""
        people = self.run.results.first_visits
        controls = people.loc[people["group"] == "control", self.run.results.score_names]
        few = len(controls) < FEWEST_CONTROLS
        return self.run.summary.reference or (() if few else controls.quantile([0.05, 0.5, 0.95]).T.to_numpy().tolist())


def without_ids(summary: Summary, curtain: Curtain) -> Summary:
    """Return a summary with the ids in its free texts hidden."""
    texts = {name: curtain(getattr(summary, name)) for name in ("failure", "reliable_reason", "source")}
    model = {name: curtain(text) for name, text in summary.model.items()}
    return summary.updated(**texts, model=model, warnings=[*map(curtain, summary.warnings)])


def view_of(
    run: Run, *, show_ids: bool = False, variables: Sequence[str] | None = None, most_people: int = MOST_PEOPLE
) -> RunView:
    """Return the view of a run for pages, see `RunView`; `variables` default to the clinical scores."""
    curtain = Curtain({*run.results.people["participant_id"]}, active=not show_ids)
    run = replace(run, summary=without_ids(run.summary, curtain))
    shown = run.summary.clinical if variables is None else variables
    strip = VERDICT_LOOKS[run.summary.verdict].strip.format(imbalanced_in(run.summary))
    return RunView(run, Gallery(strip), curtain, show_ids, shown, most_people)


_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def offline_page(template: str, *, script: bool = False, **contents: object) -> str:
    """Return a self-contained page; its contents are escaped, and no script but ours can run in it.

    Parameters
    ----------
    template
        A template that extends ``layout.html.j2``.
    script
        Whether to include our script.
    contents
        Variables of the template.
    """
    policy = offline_policy() if script else _POLICY
    return render(template, style=page_style(), policy=policy, script=page_script() if script else "", **contents)


def write_sheet(template: str, out: Path, *, title: str, **contents: object) -> Path:
    """Write a page without a script (see `offline_page`) and return its path."""
    return write_page(out, offline_page(f"{template}.html.j2", script=False, title=title, **contents))


def offline_policy() -> str:
    """Return the content security policy of a page with our script: no other script, and no network access."""
    digest = base64.b64encode(hashlib.sha256(page_script().encode("utf-8")).digest()).decode("ascii")
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def page_style() -> Markup:
    """Return the style sheet of a page, with the palette of the figures for light and dark mode."""
    light, dark = ("".join(f"--{name}: {two[place]}; " for name, two in PALETTE.items()) for place in (0, 1))
    colours = f":root {{ {light}}}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark}}} }}\n"
    return Markup(colours + _file_text("page.css"))  # our own files, not the user's text


def page_script() -> Markup:
    """Return the script of a page."""
    return Markup("\n" + _file_text("page.js"))


def render(template: str, **contents: object) -> str:
    """Return a rendered template; its contents are escaped if it is HTML."""
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
    environment.filters |= {
        "thousands": "{:,}".format,
        "listed": elements.listed,
        "number": elements.number,
        "line": _line,
    }
    shared = (
        *(elements.Table, elements.words, elements.counts, elements.measures, elements.harmless),
        *(elements.p_words, counted, duration, roughly),
    )
    environment.globals |= {one.__name__: one for one in shared} | {"looks": VERDICT_LOOKS}
    environment.globals |= vars(environment.get_template("macros.html.j2").module)
    return environment


def _line(text: str) -> str:
    """Return a user's text for a Markdown cell: on one line, with markup escaped."""
    return "".join(f"\\{sign}" if sign in r"\`*_[]<>|#" else sign for sign in " ".join(text.split()))


def _file_text(path: str) -> str:
    return (resources.files("rindices.pages") / path).read_text(encoding="utf-8")
