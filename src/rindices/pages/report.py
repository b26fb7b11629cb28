"""From a run folder to one HTML file: the sections gathered, and templates with all text escaped."""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from rindices.files import atomic_file
from rindices.pages import elements
from rindices.pages.citations import cited_in
from rindices.pages.elements import Gallery
from rindices.pages.layout import file_text, page_style, render
from rindices.pages.privacy import Curtain
from rindices.pages.sections.brain_section import voxelwise_section
from rindices.pages.sections.clinical_section import associations_section, change_section
from rindices.pages.sections.overview_section import overview_section, region_names
from rindices.pages.sections.people_explorer import explorer_section
from rindices.pages.sections.people_section import (
    correlation_section,
    distributions_section,
    people_section,
    reading_section,
    recovery_section,
)
from rindices.pages.sections.regions_section import dose_section, maps_section, subgroups_section
from rindices.pages.sections.verdict_section import (
    agreement_section,
    repetitions_section,
    search_section,
    verdict_section,
)
from rindices.record import DONE, REPORT, SETTINGS, Run, Summary, read_run, read_summary

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
# Of results that nobody should interpret, and of those that may have another reason than disease.
_STRIPS = {
    "not reproducible": "NOT REPRODUCIBLE: do not interpret",
    "not testable": "NOT TESTED: do not interpret before it is known whether this is reproducible",
    "confounded": "CONFOUNDED: the groups also differ in {}, so this may not be disease",
}


@dataclass(frozen=True)
class Report:
    """A report: one HTML page that needs nothing else.

    Attributes
    ----------
    html
        The page.
    status
        Whether the run is ``done``, ``failed`` or ``unfinished``; without results in the last two cases.
    gallery
        Its figures.
    height
        Height in a notebook, in pixels.

    Examples
    --------
    >>> Report("<p>R1 & R2</p>")._repr_html_().count("&amp;amp;")
    0
    """

    html: str = field(repr=False)
    status: str = DONE
    gallery: Gallery = field(default_factory=Gallery, repr=False)
    height: int = 700

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        path = Path(path)
        with atomic_file(path) as beside:
            # A name may hold half a character (a lone surrogate), which no file can.
            beside.write_bytes(self.html.encode("utf-8", errors="replace"))
        return path

    def save_figures(self, folder: Path | str) -> list[Path]:
        """Write every figure as SVG and PNG and return the paths."""
        return self.gallery.save(Path(folder))

    def _repr_html_(self) -> str:
        # A frame of its own: neither styles nor scripts of the page reach the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: {self.height}px; border: 0" title="R-indices report"></iframe>'
        )


def make_report(folder: Path | str, *, summary: Summary | None = None, show_ids: bool = False) -> Report:
    """Make the report of a run as one page that needs nothing else.

    The report of a run that failed or is not finished says so, with the reason and what to do, and shows no results.

    Parameters
    ----------
    folder
        A run folder.
    summary
        What ``summary.json`` is going to say, if it is not written yet.
    show_ids
        Whether people can be looked up by their id. Without, no id is anywhere in the page.

    Raises
    ------
    InputError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> make_report("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rindices.problems.InputError: In no-such-run, summary.json is missing. Give the folder of a finished run, ...
    """
    folder = Path(folder)
    summary = summary or read_summary(folder)
    toml = folder / SETTINGS
    # Whatever is left of a run that stopped must not stop its report.
    text = toml.read_text("utf-8", errors="replace") if toml.is_file() else ""
    if summary.status != DONE:
        curtain = Curtain((), active=not show_ids)  # nobody was scored, so ids are known by their mention only
        summary = curtain.summary(summary)
        return Report(_render("stopped", summary=summary, run_toml=curtain(text)), summary.status)
    run = read_run(folder, summary)
    curtain = Curtain({*run.results.people["participant_id"]}, active=not show_ids)
    run = replace(run, summary=curtain.summary(summary))
    strip, methods = strip_of(run.summary), methods_of(run)
    gallery = Gallery(strip)
    page = _render(
        "results",
        run=run,
        summary=run.summary,
        run_toml=curtain(text),
        layers=_layers(run, gallery, curtain, show_ids=show_ids),
        strip=strip,
        gated=gated(run.summary),
        measure=run.results.measure,
        measures=run.results.measures,
        n_people=len(run.results.first_visits),
        methods=methods,
        works=cited_in(methods),
    )
    return Report(page, DONE, gallery)


def gated(summary: Summary) -> bool:
    """Say whether results are folded, because nobody should interpret them."""
    return summary.state in ("not reproducible", "not testable")


def strip_of(summary: Summary) -> str:
    """Return the warning above every figure of a result; none where it can be taken as it is."""
    differing = [str(row["variable"]) for row in summary.balance or () if row["imbalanced"]]
    return _STRIPS.get(summary.state or "", "").format(elements.listed(differing[:3]) or "something else")


def write_report(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    summary: Summary | None = None,
    show_ids: bool = False,
    figures: Path | str | None = None,
) -> Path:
    """Write the report of a run as one HTML file, see `make_report`, and return its path.

    Parameters
    ----------
    folder, summary, show_ids
        As in `make_report`.
    out
        The file to write; ``report.html`` in the run folder if not given.
    figures
        A folder for all figures as SVG and PNG files.
    """
    report = make_report(folder, summary=summary, show_ids=show_ids)
    if figures is not None:
        report.save_figures(figures)
    return report.save(Path(folder) / REPORT if out is None else out)


class Section(NamedTuple):
    """A section: the name of its template, which is also its anchor, its title, and what the template shows."""

    name: str
    title: str
    contents: dict[str, object] | None


class Layer(NamedTuple):
    """One of the three layers of a report."""

    name: str
    title: str
    sections: list[Section]


def _layers(run: Run, gallery: Gallery, curtain: Curtain, *, show_ids: bool) -> list[Layer]:
    """Return the layers of the page in their order; sections without contents are left out.

    Of people whom a model was applied to, they come first and the model after them.
    """
    applied, measure, measures = run.summary.applied, run.results.measure, run.results.measures
    names = region_names(run)
    people = Section("explorer", "People", explorer_section(run, curtain, names, show_ids=show_ids))
    title = "These people among those of the training" if applied else ""
    overview = Section("overview", title, overview_section(run, gallery, names))
    maps = Section("maps", "Regions of each pattern", maps_section(run, gallery, names))
    relations = [
        Section("associations", "Clinical variables", associations_section(run, gallery)),
        Section("change", "Change between visits", change_section(run, gallery)),
        Section("voxelwise", "Voxel by voxel", voxelwise_section(run, gallery)),
    ]
    question = "Could it be something else?" if applied else "Is there anything to find?"
    checks = [
        Section("verdict", question, verdict_section(run, gallery)),
        Section("recovery", "Recovery of the known truth", recovery_section(run, gallery)),
        Section("search", "How many patterns?", search_section(run, gallery)),
        Section("people", "Who took part", people_section(run, gallery, show_ids=show_ids)),
    ]
    details = [
        Section("reading", f"How to read {'an' if measure == 'R-index' else 'a'} {measure}", reading_section(run)),
        Section("distributions", f"{measures.capitalize()} of every person", distributions_section(run, gallery)),
        Section("dose", "Regions by severity", dose_section(run, gallery)),
        Section("subgroups", "Subgroups of patients", subgroups_section(run, gallery)),
        Section("agreement", "Agreement over training", agreement_section(run, gallery)),
        Section("correlation", "Correlation of the patterns", correlation_section(run)),
        Section("methods", "Methods, for a paper", {}),
        Section("limits", "Limits", {}),
        Section("repetitions", "Repetitions used and left out", repetitions_section(run)),
        Section("glossary", "Glossary", {}),
        Section("settings", "Settings and versions", {}),
    ]
    first = [people, overview, *relations] if applied else [overview, maps, people, *relations]
    layers = [Layer("result", "Result", first), Layer("checks", "Checks", checks), Layer("details", "Details", details)]
    if applied:
        layers.insert(1, Layer("model", "The model", [maps]))
    return [layer._replace(sections=[one for one in layer.sections if one.contents is not None]) for layer in layers]


def methods_of(run: Run) -> str:
    """Return a paragraph for a paper in plain text."""
    text = render("methods.txt.j2", run=run, summary=run.summary)
    return " ".join(text.split())


def report_policy() -> str:
    """Return what a browser is allowed in a report: no script but ours, and nothing from anywhere."""
    digest = base64.b64encode(hashlib.sha256(_script().encode("utf-8")).digest()).decode("ascii")
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def _script() -> str:
    return "\n" + file_text("report.js")


def _render(body: str, **contents: object) -> str:
    """Return a page; no script but ours can run in it, whatever the names of regions may hold."""
    has_script = body == "results"
    return render(
        "page.html.j2",
        body=f"{body}.html.j2",
        style=page_style(),
        script=Markup(f"<script>{_script()}</script>") if has_script else "",
        policy=report_policy() if has_script else _POLICY,
        **contents,
    )
