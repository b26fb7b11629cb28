"""The report of a run as one self-contained HTML file: the list of its sections, methods and settings.

To add a section, write a function that takes a view of a run, and a template, and add a line to the list.
"""

import html
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from rindices.pages.cards_section import cards_section, groups_section
from rindices.pages.clinical_section import associations_section, change_section, prognosis_section
from rindices.pages.elements import Gallery, write_page
from rindices.pages.layout import RunView, offline_page, render, view_of, without_ids
from rindices.pages.patterns_section import (
    dose_section,
    resemblance_section,
    subgroups_section,
    voxelwise_section,
)
from rindices.pages.people_section import (
    correlation_section,
    explorer_section,
    people_section,
    reading_section,
    recovery_section,
)
from rindices.pages.verdict_section import (
    agreement_section,
    search_section,
    verdict_section,
)
from rindices.problems import Curtain
from rindices.record import DONE, REPORT, SETTINGS, Run, Summary, read_run, read_summary


class Work(NamedTuple):
    """A cited work: its short citation, its authors (surname and initials), and where it appeared."""

    cited: str
    authors: str
    title: str
    journal: str
    year: int
    volume: str = ""
    pages: str = ""

    def __str__(self) -> str:
        """Return the reference as a line of text."""
        where = f"{self.journal} {self.volume}:{self.pages}" if self.volume else self.journal
        return f"{self.authors}. {self.title}. {where}, {self.year}.".replace("--", "–")

    @property
    def bibtex(self) -> str:
        """The reference as a BibTeX entry."""
        kind, where = ("article", "journal") if self.volume else ("inproceedings", "booktitle")
        people = [name.rsplit(" ", 1) for name in self.authors.removesuffix(", et al").split(", ")]
        authors = " and ".join(f"{surname}, {' '.join(f'{letter}.' for letter in first)}" for surname, first in people)
        fields = {
            "author": authors + (" and others" if self.authors.endswith("et al") else ""),
            "title": f"{{{self.title}}}",
            where: self.journal,
            "volume": self.volume,
            "pages": self.pages,
            "year": str(self.year),
        }
        known = ",\n".join(f"  {name} = {{{value}}}".replace("&", r"\&") for name, value in fields.items() if value)
        return f"@{kind}{{{people[0][0].lower()}{self.year},\n{known}\n}}"


WORKS = (
    Work(
        "Yang et al., 2022",
        "Yang Z, Wen J, Davatzikos C",
        "Surreal-GAN: Semi-Supervised Representation Learning via GAN for uncovering heterogeneous disease-related "
        "imaging patterns",
        "International Conference on Learning Representations (ICLR)",
        2022,
    ),
    Work(
        "Johnson et al., 2007",
        "Johnson WE, Li C, Rabinovic A",
        "Adjusting batch effects in microarray expression data using empirical Bayes methods",
        "Biostatistics",
        2007,
        "8",
        "118--127",
    ),
    Work(
        "Fortin et al., 2018",
        "Fortin JP, Cullen N, Sheline YI, et al",
        "Harmonization of cortical thickness measurements across scanners and sites",
        "NeuroImage",
        2018,
        "167",
        "104--120",
    ),
    Work(
        "Pomponio et al., 2020",
        "Pomponio R, Erus G, Habes M, et al",
        "Harmonization of large MRI datasets for the analysis of brain imaging patterns throughout the lifespan",
        "NeuroImage",
        2020,
        "208",
        "116450",
    ),
    Work(
        "Huh & Jhun, 2001",
        "Huh MH, Jhun M",
        "Random permutation testing in multiple linear regression",
        "Communications in Statistics - Theory and Methods",
        2001,
        "30",
        "2023--2032",
    ),
    Work(
        "Benjamini & Hochberg, 1995",
        "Benjamini Y, Hochberg Y",
        "Controlling the false discovery rate: a practical and powerful approach to multiple testing",
        "Journal of the Royal Statistical Society B",
        1995,
        "57",
        "289--300",
    ),
)


def cited_in(text: str) -> list[Work]:
    """Return the works that a text cites.

    Examples
    --------
    >>> [work] = cited_in("learned by Surreal-GAN (Yang et al., 2022)")
    >>> work.bibtex.splitlines()[:2]
    ['@inproceedings{yang2022,', '  author = {Yang, Z. and Wen, J. and Davatzikos, C.},']
    """
    return [work for work in WORKS if work.cited in text]


def methods_of(run: Run) -> str:
    """Return the methods paragraph for a paper, in plain text."""
    return " ".join(render("methods.txt.j2", run=run, summary=run.summary).split())


def methods_section(view: RunView) -> dict[str, object]:
    """Return the methods paragraph and the works that it cites."""
    text = methods_of(view.run)
    return {"text": text, "works": cited_in(text)}


def settings_section(view: RunView) -> dict[str, object]:
    """Return the settings of the run as recorded in its folder."""
    return {"run_toml": settings_text(view.run.folder, view.curtain)}


def settings_text(folder: Path, curtain: Curtain) -> str:
    """Return ``run.toml`` without ids; empty if it is missing, since a run that stopped still gets a report."""
    path = folder / SETTINGS
    return curtain(path.read_text("utf-8", errors="replace")) if path.is_file() else ""


class Section(NamedTuple):
    """A section of a page.

    Attributes
    ----------
    name
        Name of its template, and its anchor in the page.
    layer
        The layer that it belongs to, a key of `LAYERS`.
    title
        Its heading; no heading if empty.
    contents
        Returns what its template shows as ``data``; None leaves the section out.
    """

    name: str
    layer: str
    title: str
    contents: Callable[[RunView], dict[str, object] | None]


SECTIONS = {
    one.name: one
    for one in (
        Section("groups", "difference", "", groups_section),
        Section("cards", "result", "", cards_section),
        Section("explorer", "result", "People", explorer_section),
        Section("associations", "result", "Clinical variables", associations_section),
        Section("resemblance", "result", "What the patterns resemble", resemblance_section),
        Section("prognosis", "result", "Follow-up and prognosis", prognosis_section),
        Section("change", "result", "Change between visits", change_section),
        Section("voxelwise", "result", "Voxel-wise maps", voxelwise_section),
        Section("verdict", "checks", "Is there anything to find?", verdict_section),
        Section("recovery", "checks", "Recovery of the known truth", recovery_section),
        Section("search", "checks", "How many patterns?", search_section),
        Section("people", "checks", "Participants", people_section),
        Section("reading", "details", "How to read a severity", reading_section),
        Section("dose", "details", "Regions by severity", dose_section),
        Section("subgroups", "details", "Subgroups of patients", subgroups_section),
        Section("agreement", "details", "Repetitions and their agreement", agreement_section),
        Section("correlation", "details", "Correlation of the patterns", correlation_section),
        Section("methods", "details", "Methods paragraph", methods_section),
        Section("limits", "details", "Limits", lambda _: {}),
        Section("glossary", "details", "Glossary", lambda _: {}),
        Section("settings", "details", "Settings and versions", settings_section),
    )
}

LAYERS = {"difference": "Patients versus controls", "result": "Patterns", "checks": "Checks", "details": "Details"}


def layers_of(view: RunView) -> dict[str, list[tuple[Section, Markup]]]:
    """Return the sections of each layer of a report as they are shown, without those that have nothing to show.

    If a model was applied to new people, they come first and the model after them.
    """
    sections = dict(SECTIONS)
    if view.run.summary.applied:
        sections = {"explorer": sections["explorer"]} | sections
        sections |= {
            "cards": sections["cards"]._replace(title="These people compared with the training sample"),
            "groups": sections["groups"]._replace(layer="checks", title=LAYERS["difference"]),
            "verdict": sections["verdict"]._replace(title="Could other variables explain it?"),
        }
    made = [(one, section_html(one, view)) for one in sections.values()]
    layers = {layer: [(one, html) for one, html in made if html and one.layer == layer] for layer in LAYERS}
    return {layer: shown for layer, shown in layers.items() if shown}


def section_html(section: Section, view: RunView) -> Markup:
    """Return a section of a run as HTML; empty if there is nothing to show."""
    data, run = section.contents(view), view.run
    if data is None:
        return Markup("")
    shown = {"run": run, "summary": run.summary, "n_people": len(run.results.first_visits), "strip": view.gallery.strip}
    return Markup(render(f"{section.name}.html.j2", data=data, **shown))  # escaped by the template


@dataclass(frozen=True)
class Report:
    """A report: a single, self-contained HTML page.

    Attributes
    ----------
    html
        The page.
    status
        Whether the run is ``done``, ``failed`` or ``unfinished``; there are no results in the last two cases.
    gallery
        Its figures.

    Examples
    --------
    >>> Report("<p>R1 & R2</p>")._repr_html_().count("&amp;amp;")
    0
    """

    html: str = field(repr=False)
    status: str = DONE
    gallery: Gallery = field(default_factory=Gallery, repr=False)

    def save(self, path: Path | str) -> Path:
        """Write the page to a file, whole or not at all, and return its path."""
        return write_page(Path(path), self.html)

    def save_figures(self, folder: Path | str) -> list[Path]:
        """Write every figure as SVG and PNG and return the paths."""
        return self.gallery.save(Path(folder))

    def _repr_html_(self) -> str:
        # In its own frame, the page's styles and scripts do not affect the notebook.
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'style="width: 100%; height: 700px; border: 0" title="R-indices report"></iframe>'
        )


def make_report(folder: Path | str, *, summary: Summary | None = None, show_ids: bool = False) -> Report:
    """Return the report of a run as a single, self-contained page.

    The report of a run that failed or is not finished says so, with the reason and what to do, and shows no results.

    Parameters
    ----------
    folder
        A run folder.
    summary
        The contents of ``summary.json``, if it has not been written yet.
    show_ids
        Whether people can be looked up by id; otherwise, the page contains no ids.

    Raises
    ------
    InputError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> make_report("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    rindices.problems.InputError: In no-such-run, summary.json is missing. Provide the folder of a finished run, ...
    """
    folder = Path(folder)
    summary = summary or read_summary(folder)
    if summary.status != DONE:
        curtain = Curtain((), active=not show_ids)  # without scores, only ids marked as such can be hidden
        data = {"run_toml": settings_text(folder, curtain)}
        return Report(offline_page("stopped.html.j2", summary=without_ids(summary, curtain), data=data), summary.status)
    view = view_of(read_run(folder, summary), show_ids=show_ids)
    page = offline_page(
        "results.html.j2",
        script=True,
        name="R-indices",
        summary=view.run.summary,
        layers=layers_of(view),
        titles=LAYERS | ({"result": "Result"} if view.run.summary.applied else {}),
        n_people=len(view.run.results.first_visits),
    )
    return Report(page, DONE, view.gallery)


def write_report(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    summary: Summary | None = None,
    show_ids: bool = False,
    figures: Path | str | None = None,
) -> Path:
    """Write the report of a run as a single HTML file (see `make_report`) and return its path.

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
