"""Runs that are there: all of them, one result, its people, and two of them compared."""

from __future__ import annotations

import subprocess
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response

from rindices import record
from rindices.pages.citations import cited_in
from rindices.pages.privacy import Curtain
from rindices.pages.report import gated, methods_of, report_policy, strip_of
from rindices.pages.sections.brain_section import has_outlines
from rindices.pages.sections.overview_section import region_names
from rindices.pages.sections.people_explorer import explorer_section, script_json
from rindices.pages.server.page import models_of, page, row_of, runs_of, soon, tables_of
from rindices.pages.server.query import Desk, address
from rindices.pages.server.train_page import training_of
from rindices.plots.brain_drawing import draw_brain, measures_of
from rindices.problems import InputError
from rindices.run.compare_runs import compare_runs, shown_pairs

_MOST_REGIONS = 14  # beside a brain
_BRAIN_WIDTH = 560
_KNOWN = ("participant_id", "visit", "diagnosis", "group", "site", "first_visit")  # of the explorer itself
_MOST_PEOPLE = 6000  # in the explorer
_HEAD = 2000  # characters of a report, in which its policy stands
_TABLES = {
    record.R_INDICES: "R-indices and severities of everybody",
    record.PATTERNS: "what each pattern does to each region",
    record.SELECTION: "agreement of each setting that was tried",
    record.PEOPLE: "who was used, who was left out, and why",
    record.Z_SCORES: "corrected regions of everybody",
    record.MODEL: "the model, to score new people",
    record.REPORT: "the report, one file to pass on",
    record.SETTINGS: "settings, enough to run the same again",
}


class Slide(NamedTuple):
    """A pattern that a slider moves: the brain, and which regions each of its pieces shows."""

    pattern: int
    measure: str
    svg: Markup
    pieces: list[list[str]]
    limit: float


def runs_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show the runs of the folder."""
    rows = runs_of(desk)
    done = [row.name for row in rows if row.status == record.DONE]
    return page(
        desk, "runs", "Runs", {"rows": rows, "done": done, "tables": tables_of(desk), "models": models_of(desk)}
    )


def _stamp(folder: Path) -> int:
    """Return what tells whether a run was changed since it was read; 0 where there is none."""
    path = folder / record.SUMMARY
    return path.stat().st_mtime_ns if path.is_file() else 0


@lru_cache(maxsize=3)
def _run_at(folder: Path, stamp: int) -> record.Run:
    return record.read_run(folder)


def read_run(desk: Desk, name: str) -> record.Run:
    """Return a finished run; one that did not change is read once."""
    folder = desk.path(name)
    stamp = _stamp(folder)
    if not stamp:
        raise InputError(f"There is no finished run in {name!r}.")
    return soon(("run", folder, stamp), lambda: _run_at(folder, stamp))


def run_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show a result, or how far a training is."""
    name = request.query_params.get("run", "")
    training = training_of(desk, name)
    if training.state != record.DONE:
        row = row_of(desk, name) if training.state != "refused" else None
        can_go_on = row is not None and row.settings is not None and training.state != "running"
        shown = {"training": training, "can_go_on": can_go_on, "row": row}
        return page(desk, "running", name, {"run": name, **shown})
    run = read_run(desk, name)
    slides = slides_of(run)
    return page(
        desk,
        "result",
        name,
        {
            "run": name,
            "summary": run.summary,
            "measure": run.results.measure,
            "gated": gated(run.summary),
            "strip": strip_of(run.summary),
            "slides": slides,
            "doses": _doses(run, slides),
            "files": {file: told for file, told in _TABLES.items() if (run.folder / file).is_file()},
            "report": _state_of_report(run.folder / record.REPORT),
        },
        command=desk.words("report", name),
    )


def _state_of_report(path: Path) -> str:
    """Say whether there is a report, and whether it is one of this version, whose script may run."""
    if not path.is_file():
        return "missing"
    with path.open(encoding="utf-8", errors="replace") as file:
        return "there" if escape(report_policy()) in file.read(_HEAD) else "old"


def slides_of(run: record.Run) -> list[Slide]:
    """Return each pattern at severity 1; the page's script moves it from there."""
    table, found = run.analyses.get("severities", run.results.patterns), []
    measures = measures_of(table["region"]) if has_outlines(run) else [""]
    for pattern, measure in product(range(1, run.summary.n_patterns + 1), measures):
        drawing = draw_brain(table, pattern, (1.0,), measure=measure, per_line=5, width=_BRAIN_WIDTH, bare=True)
        svg = "" if drawing is None or not has_outlines(run) else drawing.svg(f"slide{pattern}{measure}")
        pieces = [list(names) for names in drawing.piece_names] if svg and drawing is not None else []
        found.append(Slide(pattern, measure, Markup(svg), pieces, drawing.limit if svg and drawing else 0.0))
    return found


def _doses(run: record.Run, slides: list[Slide]) -> Markup:
    """Return the change of each region at each severity that is known, for the page's script."""
    table, names = run.analyses.get("severities"), region_names(run)
    if table is None:  # a run of an early version
        table = run.results.patterns.assign(severity=1.0)
    table = table[table["severity"] > 0]
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in table.to_dict("records"):
        regions = found.setdefault(str(row["pattern"]), {})
        regions.setdefault(str(row["region"]), {})[f"{row['severity']:g}"] = round(float(row["change_sd"]), 4)
    ends = [min(0.0, float(table["change_sd"].min())), max(0.0, float(table["change_sd"].max()))]
    brains = [{"pieces": one.pieces, "limit": one.limit} for one in slides]
    return script_json({"patterns": found, "names": names, "ends": ends, "shown": _MOST_REGIONS, "brains": brains})


def _explored(folder: Path, stamp: int, show_ids: bool) -> dict[str, object] | None:
    run = _run_at(folder, stamp)
    curtain = Curtain({*run.results.people["participant_id"]}, active=not show_ids)
    variables = [str(name) for name in run.results.variables if name not in _KNOWN]
    return explorer_section(run, curtain, region_names(run), show_ids=show_ids, variables=variables, most=_MOST_PEOPLE)


def people_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show everybody of a run one by one."""
    name, show_ids = request.query_params.get("run", ""), request.query_params.get("ids") == "yes"
    run = read_run(desk, name)
    stamp = _stamp(run.folder)
    data = soon(("people", run.folder, stamp, show_ids), lambda: _explored(run.folder, stamp, show_ids))
    return page(
        desk,
        "people",
        f"People of {name}",
        {
            "run": name,
            "summary": run.summary,
            "data": data,
            "show_ids": show_ids,
            "gated": gated(run.summary),
            "strip": strip_of(run.summary),
            "measures": run.results.measures,
            "n_people": len(run.results.first_visits),
        },
    )


def compare_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show what two runs have in common."""
    first, second = (request.query_params.get(name, "") for name in ("first", "second"))
    done = [row.name for row in runs_of(desk) if row.status == record.DONE]
    shown: dict[str, object] = {"done": done, "first": first, "second": second, "compared": None, "refused": ""}
    if first and second:
        try:
            folders = desk.path(first), desk.path(second)
            stamps = tuple((one, _stamp(one)) for one in folders)
            shown |= soon(("compare", stamps), lambda: _compared(folders, (first, second)))
        except InputError as error:
            shown["refused"] = desk.said(error.message)
    command = desk.words("compare", first, second) if first and second else []
    return page(desk, "compare", "Two runs compared", {"show_ids": False, **shown}, command=command)


def _compared(folders: tuple[Path, Path], names: tuple[str, str]) -> dict[str, object]:
    compared = compare_runs(*folders)
    return {"compared": compared, "names": names, "shown": shown_pairs(compared, names)}


def write_again(desk: Desk, request: Request) -> Response:
    """Let the command line write the report of a run, which has none, or with all figures as files."""
    name = request.query_params.get("run", "")
    row_of(desk, name)
    figures = f"{name}/{record.FIGURES}" if request.query_params.get("figures") else None
    call(desk, desk.words("report", name, figures=figures))
    return RedirectResponse(address("/run", ("run", name)), 303)


def call(desk: Desk, words: list[str]) -> None:
    """Let the command line do something that takes no more than moments; what it refuses is refused here."""
    done = subprocess.run(
        [*desk.program, *words], cwd=desk.folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise InputError(done.stderr.strip().removeprefix("Error: ") or "The command line said nothing.")


def file_answer(desk: Desk, request: Request) -> Response:
    """Give a file of the folder to be kept."""
    path = desk.path(request.path_params["name"])
    if not path.is_file():
        raise InputError(f"There is no file {request.path_params['name']!r} in the folder.")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


def report_answer(desk: Desk, request: Request) -> Response:
    """Show a report that lies in the folder: apart from our pages, and without any script but that of reports."""
    path = desk.path(request.path_params["name"])
    if not path.is_file() or path.suffix != ".html":
        raise InputError(f"There is no report {request.path_params['name']!r} in the folder.")
    policy = f"sandbox allow-scripts allow-downloads allow-modals; {report_policy()}; frame-ancestors 'self'"
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": policy})


def methods_answer(desk: Desk, request: Request) -> Response:
    """Give the methods paragraph of a run, or its references as BibTeX, to be kept."""
    run = read_run(desk, request.query_params.get("run", ""))
    text, name = methods_of(run), "methods.txt"
    if request.query_params.get("as") == "bibtex":
        text, name = "\n\n".join(work.bibtex for work in cited_in(text)), "references.bib"
    return PlainTextResponse(f"{text}\n", headers={"content-disposition": f'attachment; filename="{name}"'})
