"""From a run folder to one HTML file: the sections gathered for the template."""

from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from rindices.files import atomic_file
from rindices.report import results as sections
from rindices.report.pieces import joined
from rindices.report.read import RunResults, read_run
from rindices.report.search import search_section
from rindices.report.settings import settings, versions
from rindices.report.summary import read_summary
from rindices.report.verdict import verdict_section


def write_report(folder: Path, out: Path | None = None, *, summary: dict[str, Any] | None = None) -> Path:
    """Write the report of a run as one HTML file that needs nothing else, and return its path.

    The report of a run that failed or is not finished says so, with the reason and what to do, and shows no results.

    Parameters
    ----------
    folder
        A run folder with ``summary.json``; if its ``status`` is ``"done"``, also with ``r_indices.csv``,
        ``patterns.csv``, ``selection.csv`` and ``run.toml``.
    out
        The file to write; ``report.html`` in the run folder if not given.
    summary
        What ``summary.json`` is going to say, if it is not written yet.

    Raises
    ------
    ValueError
        If a file of the run folder is missing or damaged; the message names it and says what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> write_report(Path("no-such-run"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: The run folder no-such-run does not exist. Give the folder of a finished run, ...
    """
    folder = Path(folder)
    summary = read_summary(folder) if summary is None else summary
    if summary["status"] == "done":
        page = _render("results.html.j2", _results(read_run(folder, summary)))
    else:
        page = _render("stopped.html.j2", _stopped(folder, summary))
    path = folder / "report.html" if out is None else Path(out)
    with atomic_file(path) as beside:
        # A name may hold half a character (a lone surrogate), which no file can.
        beside.write_bytes(page.encode("utf-8", errors="replace"))
    return path


def _render(name: str, contents: dict[str, Any]) -> str:
    files = resources.files("rindices.report")
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda template: (files / "templates" / template).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["thousands"] = lambda number: f"{number:,}"
    style = Markup((files / "style.css").read_text(encoding="utf-8"))  # our own file, not the user's text
    return environment.get_template(name).render(style=style, **contents)


def _stopped(folder: Path, summary: dict[str, Any]) -> dict[str, Any]:
    path = folder / "run.toml"
    return {
        "failed": summary["status"] == "failed",
        "failure": summary.get("failure") or "",
        "warnings": summary.get("warnings") or [],
        "settings": settings(summary),
        "versions": versions(summary),
        # Whatever is left of a run that stopped must not stop its report.
        "run_toml": path.read_text(encoding="utf-8-sig", errors="replace") if path.is_file() else "",
    }


def _results(results: RunResults) -> dict[str, Any]:
    summary = results.summary
    used = summary.get("members_used")
    return {
        "summary": summary,
        "n_other": summary.get("n_other") or 0,
        "control_labels": joined(summary.get("control_labels")),
        "patient_labels": joined(summary.get("patient_labels")),
        "reliable_reason": summary.get("reliable_reason") or "",
        "warnings": summary["warnings"],
        "verdict": verdict_section(summary),
        "recovery": sections.recovery(results),
        "search": search_section(results),
        "agreement": sections.agreement(results),
        "distributions": sections.distributions(results),
        "groups": sections.group_table(results),
        "pairs": sections.pairs(results),
        "correlation": sections.correlation(results),
        "patterns": [sections.pattern(results, place) for place in range(1, results.n_patterns + 1)],
        "members_used": len(used) if isinstance(used, list) else used,
        "members_left_out": summary.get("members_left_out") or [],
        "spreads": sections.spreads(results),
        "settings": settings(summary),
        "versions": versions(summary),
        "run_toml": results.settings,
    }
