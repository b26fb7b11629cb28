"""From a run folder to one HTML file: the sections gathered for the template."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rindices.report import results as scores
from rindices.report.associations import associations_section
from rindices.report.brain import brain_section
from rindices.report.cards import cards_section
from rindices.report.citations import SURREAL_GAN
from rindices.report.document import Report
from rindices.report.maps import dose_section, maps_section
from rindices.report.methods import methods_section
from rindices.report.notices import sort_warnings
from rindices.report.people import people_section
from rindices.report.pieces import Gallery, joined
from rindices.report.privacy import Curtain
from rindices.report.read import RunResults, read_run
from rindices.report.render import render
from rindices.report.search import search_section
from rindices.report.settings import settings, versions
from rindices.report.subgroups import change_section, subgroups_section
from rindices.report.summary import read_summary
from rindices.report.verdict import verdict_section
from rindices.report.words import model_words, summary_words


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, which is also the name of its template, its title and what it shows."""

    name: str
    title: str
    data: Any
    warnings: tuple[str, ...] = ()


def make_report(folder: Path | str, *, summary: dict[str, Any] | None = None, show_ids: bool = False) -> Report:
    """Make the report of a run as one page that needs nothing else.

    The report of a run that failed or is not finished says so, with the reason and what to do, and shows no results.

    Parameters
    ----------
    folder
        A run folder with ``summary.json``. If its ``status`` is ``"done"``, also with ``r_indices.csv``,
        ``patterns.csv``, ``selection.csv`` and ``run.toml``; if ``applied`` is true, ``r_indices.csv`` will do.
        Tables in ``analysis`` are shown where they are there.
    summary
        What ``summary.json`` is going to say, if it is not written yet.
    show_ids
        Whether people can be looked up by their id. Without, no id is anywhere in the page.

    Raises
    ------
    ValueError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> make_report("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: The run folder no-such-run does not exist. Give the folder of a finished run, ...
    """
    folder = Path(folder)
    summary = read_summary(folder) if summary is None else summary
    if summary["status"] != "done":
        return Report(render("stopped.html.j2", _stopped(folder, summary, show_ids=show_ids), script=False))
    results = read_run(folder, summary)
    curtain = Curtain(_ids(results), active=not show_ids)
    results = replace(results, summary=curtain.summary(summary), settings=curtain(results.settings))
    gallery = Gallery()
    contents = _results(results, gallery, curtain, folder, show_ids=show_ids)
    return Report(render("results.html.j2", contents, script=True), gallery)


def write_report(
    folder: Path | str,
    out: Path | str | None = None,
    *,
    summary: dict[str, Any] | None = None,
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

    Examples
    --------
    >>> write_report("no-such-run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: The run folder no-such-run does not exist. Give the folder of a finished run, ...
    """
    report = make_report(folder, summary=summary, show_ids=show_ids)
    path = report.save(Path(folder) / "report.html" if out is None else out)
    if figures is not None:
        report.save_figures(figures)
    return path


def _ids(results: RunResults) -> set[str]:
    people = results.analyses.people
    return set(results.r_indices["participant_id"]) | (set() if people is None else set(people["participant_id"]))


def _stopped(folder: Path, summary: dict[str, Any], *, show_ids: bool) -> dict[str, Any]:
    path = folder / "run.toml"
    curtain = Curtain((), active=not show_ids)  # nobody was scored, so ids are known by their mention only
    summary = curtain.summary(summary)
    return {
        "failed": summary["status"] == "failed",
        "failure": summary.get("failure") or "",
        "warnings": summary.get("warnings") or [],
        "data": {
            "settings": settings(summary),
            "versions": versions(summary),
            # Whatever is left of a run that stopped must not stop its report.
            "run_toml": curtain(path.read_text("utf-8-sig", errors="replace")) if path.is_file() else "",
        },
    }


def _results(
    results: RunResults, gallery: Gallery, curtain: Curtain, folder: Path, *, show_ids: bool
) -> dict[str, Any]:
    summary = results.summary
    sections = [Section(*one) for one in _sections(results, gallery, curtain, folder, show_ids) if one[2] is not None]
    warnings = sort_warnings(summary["warnings"], {section.name for section in sections})
    return {
        "summary": summary,
        "applied": results.applied,
        "model": model_words(summary.get("model")),
        "n_people": len(results.first),
        "n_other": summary.get("n_other") or 0,
        "control_labels": joined(summary.get("control_labels")),
        "patient_labels": joined(summary.get("patient_labels")),
        "reliable": summary.get("reliable"),
        "reliable_reason": summary.get("reliable_reason") or "",
        "judged": any(section.name == "verdict" for section in sections),
        "words": summary_words(results),
        "warnings": warnings[""],
        "elsewhere": [section for section in sections if section.name in warnings],
        "sections": [replace(one, warnings=tuple(warnings.get(one.name, ()))) for one in sections],
    }


def _sections(
    results: RunResults, gallery: Gallery, curtain: Curtain, folder: Path, show_ids: bool
) -> list[tuple[str, str, Any]]:
    """Return anchor, title and contents of each section, in their order; those without contents are left out."""
    summary = results.summary
    people = people_section(results, gallery, show_ids=show_ids)
    verdict = verdict_section(results, gallery)
    recovery = scores.recovery_section(results, gallery)
    search = search_section(results, gallery)
    grouped = "" if results.applied and set(results.r_indices["group"]) == {"other"} else " of controls and patients"
    facts = {"settings": settings(summary), "versions": versions(summary), "run_toml": results.settings}
    return [
        ("people", "Who took part", people),
        ("verdict", "Could it be something else?" if results.applied else "Is there anything to find?", verdict),
        ("recovery", "Recovery of the known truth", recovery),
        ("search", "How many patterns?", search),
        ("agreement", "Agreement over training", scores.agreement_section(results, gallery, searched=bool(search))),
        ("distributions", f"R-indices{grouped}", scores.distributions_section(results, gallery)),
        ("reading", "How to read an R-index", scores.reading_section(results)),
        ("pairs", "Pairs of R-indices", scores.pairs_section(results, gallery)),
        ("correlation", "Correlation of the patterns", scores.correlation_section(results)),
        ("maps", "Regions of each pattern", maps_section(results, gallery)),
        ("brain", "Patterns on the brain", brain_section(results, gallery, folder)),
        ("dose", "Regions by severity", dose_section(results, gallery)),
        ("associations", "Associations with clinical variables", associations_section(results, gallery)),
        ("subgroups", "Subgroups of patients", subgroups_section(results, gallery)),
        ("change", "Change per year", change_section(results, gallery)),
        ("cards", "Single people", cards_section(results, curtain, show_ids=show_ids)),
        ("methods", "Methods, for a paper", methods_section(results)),
        ("limits", "Limits", {"analyses": results.analyses, "summary": summary, "applied": results.applied}),
        ("repetitions", "Repetitions used and left out", scores.repetitions_section(results)),
        ("citing", "How to cite", SURREAL_GAN),
        ("settings", "Settings and versions", facts),
    ]
