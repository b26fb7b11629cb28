"""Runs that are there: all of them, one result, its people, and two of them compared."""

import subprocess
from pathlib import Path

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response

from rindices import record
from rindices.pages.layout import offline_policy
from rindices.pages.run_view import view_of
from rindices.pages.sections import section_html
from rindices.pages.sections.cards_section import cards_section, groups_section
from rindices.pages.sections.methods_section import cited_in, methods_of
from rindices.pages.sections.people_section import explorer_section
from rindices.pages.server.page import models_of, page, row_of, runs_of, soon, tables_of
from rindices.pages.server.query import Desk, address
from rindices.pages.server.train_page import training_of
from rindices.problems import InputError
from rindices.run.compare_runs import compare_runs, shown_pairs

_KNOWN = ("participant_id", "visit", "diagnosis", "group", "site", "first_visit")  # of the explorer itself
_MOST_PEOPLE = 6000  # in the explorer
_HEAD = 2000  # characters of a report, in which its policy stands
_TABLES = {
    record.R_INDICES: "R-indices and severities of all participants",
    record.PATTERNS: "effect of each pattern on each region",
    record.SELECTION: "agreement for each setting tried",
    record.PEOPLE: "who was included or excluded, and why",
    record.Z_SCORES: "corrected regions of all participants",
    record.MODEL: "the model, for scoring new people",
    record.REPORT: "the report, a single file to share",
    record.SETTINGS: "settings, sufficient to repeat the run",
}


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


def read_run(desk: Desk, name: str) -> record.Run:
    """Return a finished run; one that did not change is read once."""
    folder = desk.path(name)
    stamp = _stamp(folder)
    if not stamp:
        raise InputError(f"There is no finished run in {name!r}.")
    return soon(("run", folder, stamp), lambda: record.read_run(folder))


def run_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show a result, or how far a training is."""
    name = request.query_params.get("run", "")
    training = training_of(desk, name)
    if training.state != record.DONE:
        if training.state == "refused" and not training.said and name not in desk.children:
            raise InputError(f"There is no run {name!r} in this folder. It may have been renamed, moved or deleted.")
        row = row_of(desk, name) if training.state != "refused" else None
        can_go_on = row is not None and row.settings is not None and training.state != "running"
        shown = {"training": training, "can_go_on": can_go_on, "row": row}
        return page(desk, "running", name, {"run": name, **shown})
    run = read_run(desk, name)
    sections = soon(("result", run.folder, _stamp(run.folder)), lambda: _result(run))
    return page(
        desk,
        "result",
        name,
        {
            "run": name,
            "name": name,
            "summary": run.summary,
            "measure": run.results.measure,
            **sections,
            "files": {file: words for file, words in _TABLES.items() if (run.folder / file).is_file()},
            "report": _state_of_report(run.folder / record.REPORT),
        },
        command=desk.words("report", name),
    )


def _result(run: record.Run) -> dict[str, Markup]:
    """Return what takes a while to draw: it is kept, so that whoever comes back to a run need not wait."""
    view = view_of(run, show_ids=True)
    return {
        "groups": section_html("groups", view, groups_section(view)),
        "cards": section_html("cards", view, cards_section(view)),
    }


def _state_of_report(path: Path) -> str:
    """Say whether there is a report, and whether it is one of this version, whose script may run."""
    if not path.is_file():
        return "missing"
    with path.open(encoding="utf-8", errors="replace") as file:
        return "there" if escape(offline_policy()) in file.read(_HEAD) else "old"


def people_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show everybody of a run one by one."""
    name, show_ids = request.query_params.get("run", ""), request.query_params.get("ids") == "yes"
    run = read_run(desk, name)
    people = soon(("people", run.folder, _stamp(run.folder), show_ids), lambda: _people(run, show_ids))
    shown = {"run": name, "summary": run.summary, "people": people, "show_ids": show_ids}
    return page(desk, "people", f"People of {name}", shown)


def _people(run: record.Run, show_ids: bool) -> Markup:
    variables = [str(name) for name in run.results.variables if name not in _KNOWN]
    view = view_of(run, show_ids=show_ids, variables=variables, most_people=_MOST_PEOPLE)
    return section_html("explorer", view, explorer_section(view))


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
    return page(desk, "compare", "Comparison of two runs", {"show_ids": False, **shown}, command=command)


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
        raise InputError(done.stderr.strip().removeprefix("Error: ") or "The process printed nothing.")


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
    policy = f"sandbox allow-scripts allow-downloads allow-modals; {offline_policy()}; frame-ancestors 'self'"
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": policy})


def methods_answer(desk: Desk, request: Request) -> Response:
    """Give the methods paragraph of a run, or its references as BibTeX, to be kept."""
    run = read_run(desk, request.query_params.get("run", ""))
    text, name = methods_of(run), "methods.txt"
    if request.query_params.get("as") == "bibtex":
        text, name = "\n\n".join(work.bibtex for work in cited_in(text)), "references.bib"
    return PlainTextResponse(f"{text}\n", headers={"content-disposition": f'attachment; filename="{name}"'})
