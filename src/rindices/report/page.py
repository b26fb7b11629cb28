"""From a run folder to one HTML file: the sections gathered, and templates with all text escaped."""

from __future__ import annotations

import base64
import hashlib
import html
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path

import jinja2
from markupsafe import Markup

from rindices.files import atomic_file
from rindices.record import DONE, REPORT, SETTINGS, Run, Summary, read_run, read_summary
from rindices.report import elements
from rindices.report.brain_section import brain_section
from rindices.report.cards import cards_section
from rindices.report.elements import Gallery
from rindices.report.evidence import agreement_section, repetitions_section, search_section, verdict_section
from rindices.report.participation import (
    correlation_section,
    distributions_section,
    pairs_section,
    people_section,
    reading_section,
    recovery_section,
)
from rindices.report.privacy import Curtain
from rindices.report.regions import dose_section, in_short, maps_section, subgroups_section
from rindices.report.relations import associations_section, change_section

_FILES = resources.files("rindices.report")
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_CITED = {
    "Yang et al., 2022": "Yang Z, Wen J, Davatzikos C. Surreal-GAN: Semi-Supervised Representation Learning via GAN "
    "for uncovering heterogeneous disease-related imaging patterns. International Conference on Learning "
    "Representations (ICLR), 2022.",
    "Johnson et al., 2007": "Johnson WE, Li C, Rabinovic A. Adjusting batch effects in microarray expression data "
    "using empirical Bayes methods. Biostatistics 8:118–127, 2007.",
    "Fortin et al., 2018": "Fortin JP, Cullen N, Sheline YI, et al. Harmonization of cortical thickness measurements "
    "across scanners and sites. NeuroImage 167:104–120, 2018.",
    "Pomponio et al., 2020": "Pomponio R, Erus G, Habes M, et al. Harmonization of large MRI datasets for the analysis "
    "of brain imaging patterns throughout the lifespan. NeuroImage 208:116450, 2020.",
    "Freedman & Lane, 1983": "Freedman D, Lane D. A nonstochastic interpretation of reported significance levels. "
    "Journal of Business & Economic Statistics 1:292–298, 1983.",
    "Benjamini & Hochberg, 1995": "Benjamini Y, Hochberg Y. Controlling the false discovery rate: a practical and "
    "powerful approach to multiple testing. Journal of the Royal Statistical Society B 57:289–300, 1995.",
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
    rindices.errors.InputError: In no-such-run, summary.json is missing. Give the folder of a finished run, ...
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
    gallery, methods = Gallery(), _methods(run)
    sections = _sections(run, gallery, curtain, show_ids=show_ids)
    page = _render(
        "results",
        run=run,
        summary=run.summary,
        run_toml=curtain(text),
        sections=sections,
        in_short=[] if run.summary.state in ("not reproducible", "not testable") else in_short(run),
        measure=run.results.measure,
        measures=run.results.measures,
        n_people=len(run.results.first_visits),
        methods=methods,
        references={cited: text for cited, text in _CITED.items() if cited in methods},
    )
    return Report(page, DONE, gallery)


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


def _sections(
    run: Run, gallery: Gallery, curtain: Curtain, *, show_ids: bool
) -> list[tuple[str, str, dict[str, object] | None]]:
    """Return the sections in their order: name of the template, which is also the anchor, title, and contents.

    Those without contents are left out.
    """
    applied, measure, measures = run.summary.applied, run.results.measure, run.results.measures
    grouped = not applied or set(run.results.r_indices["group"]) != {"other"}
    sections: list[tuple[str, str, dict[str, object] | None]] = [
        ("people", "Who took part", people_section(run, gallery, show_ids=show_ids)),
        (
            "verdict",
            "Could it be something else?" if applied else "Is there anything to find?",
            verdict_section(run, gallery),
        ),
        ("recovery", "Recovery of the known truth", recovery_section(run, gallery)),
        ("search", "How many patterns?", search_section(run, gallery)),
        ("agreement", "Agreement over training", agreement_section(run, gallery)),
        (
            "distributions",
            f"{measures.capitalize()}{' of controls and patients' if grouped else ''}",
            distributions_section(run, gallery),
        ),
        ("reading", f"How to read {'an' if measure == 'R-index' else 'a'} {measure}", reading_section(run)),
        ("pairs", f"Pairs of {measures}", pairs_section(run, gallery)),
        ("correlation", "Correlation of the patterns", correlation_section(run)),
        ("maps", "Regions of each pattern", maps_section(run, gallery)),
        ("brain", "Patterns on the brain", brain_section(run, gallery)),
        ("dose", "Regions by severity", dose_section(run, gallery)),
        ("associations", "Associations with clinical variables", associations_section(run, gallery)),
        ("subgroups", "Subgroups of patients", subgroups_section(run, gallery)),
        ("change", "Change per year", change_section(run, gallery)),
        ("cards", "Single people", cards_section(run, curtain, show_ids=show_ids)),
        ("methods", "Methods, for a paper", {}),
        ("limits", "Limits", {}),
        ("repetitions", "Repetitions used and left out", repetitions_section(run)),
        ("citing", "How to cite", {}),
        ("settings", "Settings and versions", {}),
    ]
    return [section for section in sections if section[-1] is not None]


def _methods(run: Run) -> str:
    """Return a paragraph for a paper in plain text."""
    text = _environment(autoescape=False).get_template("methods.txt.j2").render(run=run, summary=run.summary)
    return " ".join(text.split())


def _render(body: str, **contents: object) -> str:
    """Return a page; no script but ours can run in it, whatever the names of regions may hold."""
    code = "\n" + _text("script.js")
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    has_script = body == "results"
    return (
        _environment(autoescape=True)
        .get_template("page.html.j2")
        .render(
            body=f"{body}.html.j2",
            style=Markup(_text("style.css")),  # our own files, not the user's text
            script=Markup(f"<script>{code}</script>") if has_script else "",
            policy=f"{_POLICY}; script-src 'sha256-{digest}'" if has_script else _POLICY,
            **contents,
        )
    )


@cache
def _environment(*, autoescape: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda template: _text(f"templates/{template}")),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"thousands": "{:,}".format, "listed": elements.listed, "number": elements.number}
    environment.globals |= {
        "counted": elements.counted,
        "duration": elements.duration,
        "p_words": elements.p_words,
    }
    return environment


def _text(path: str) -> str:
    return (_FILES / path).read_text(encoding="utf-8")
