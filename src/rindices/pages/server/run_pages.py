"""Pages on runs: training, the list of runs, a result, its people, and the comparison of two runs.

Training is a separate process (`rindices fit`) that is started, watched, stopped and continued from here.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)

from rindices import record
from rindices.pages.layout import imbalanced_in, offline_policy, view_of
from rindices.pages.report import SECTIONS, cited_in, methods_of, section_html
from rindices.pages.server.page import (
    MODELS,
    Desk,
    address,
    background_result,
    files_with,
    free_name,
    page,
    process_of,
    row_of,
    runs_of,
)
from rindices.pages.server.query import form_of, guessed, options_of, pairs_of, read_query
from rindices.pages.server.table_page import checked, stamp_of
from rindices.problems import InputError, Remedy
from rindices.record.run_folder import log_of, progress_of
from rindices.run.compare_runs import compare_runs, shown_pairs
from rindices.run.plan import check_search, plan_of, time_needed
from rindices.settings import AUTO, OutputSettings, SearchSettings, TableSettings

_TIME_TO_STOP = 8.0  # seconds allowed for a process to stop
_PART = r"(?!(?:con|prn|aux|nul|(?:com|lpt)\d) *(?:[./]|$))\w[\w .-]*"  # Windows reserves some names for devices
_NAME = re.compile(f"(?i:{_PART}(/{_PART})?)")


def _check_idle(desk: Desk, name: str) -> None:
    if process_of(desk, name):
        raise InputError(f"A training run is already in progress in {name!r}.\nStop it first, or choose another name.")


def start(desk: Desk, name: str, words: list[str]) -> None:
    """Start a training unless one is running in that folder; it outlives the server."""
    _check_idle(desk, name)
    with log_of(desk.path(name)).open("wb") as log:
        desk.children[name] = subprocess.Popen(
            [*desk.program, *words],
            cwd=desk.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # Ctrl-C in the terminal ends the server, not the training (on POSIX, then on Windows).
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )


def train_page(desk: Desk, request: Request) -> Response:
    """Show the settings for training on a table, the time needed, and the equivalent command; or start the training."""
    asked, name = request.query_params, request.query_params.get("table", "")
    settings = read_query(TableSettings, asked, desk)
    if "chosen" not in asked:
        settings = guessed(settings, desk.table(name))
    stem = "-".join(part.label for part in desk.parts(name)) or Path(name).name.partition(".")[0]
    plain = re.sub(r"[^\w-]+", "-", stem).strip("-")
    out = asked.get("out", "").strip() or free_name(desk, f"{plain}-run".lstrip("-"), "")
    words, estimate, refused, there = list[str](), "", "", ""
    try:
        words, estimate = _planned(desk, name, settings, read_query(SearchSettings, asked, desk), out)
        if request.method == "POST":
            start(desk, out, words)
            return RedirectResponse(address("/run", ("run", out)), 303)
    except InputError as error:
        refused = desk.said(error.message)
        with contextlib.suppress(InputError):
            there = row_of(desk, out).name
    return page(
        desk,
        "train",
        f"Train on {name}",
        {
            "pairs": [("table", name), ("chosen", "yes"), *pairs_of(settings, desk)],
            "out": out,
            "fields": form_of(SearchSettings, asked),
            "refused": refused,
            "there": there,
            "estimate": estimate,
        },
        command=[word for word in words if word != desk.wording(Remedy("log_json", True))],
        status=400 if request.method == "POST" else 200,  # above the form, it says why
    )


def _planned(desk: Desk, name: str, settings: TableSettings, search: SearchSettings, out: str) -> tuple[list[str], str]:
    """Return the words of a training's command, and roughly how long it takes; refuse what training would refuse."""
    if not _NAME.fullmatch(out):
        raise InputError(
            "The name of a run must begin with a letter or digit; it may contain letters, digits, spaces, dots, - and "
            "_, and one / for a run in another folder. It must not be one of the names that Windows reserves, such as "
            f"CON. Got {out!r}."
        )
    desk.path(log_of(Path(out)).as_posix())  # the longest name that the run needs
    record.check_free(desk.path(out))
    if not desk.path(out).parent.is_dir():
        raise InputError(f"There is no folder {Path(out).parent.name!r}.\nCreate it, or choose another name.")
    _check_idle(desk, out)
    check_search(search)
    path, estimate = desk.table(name), ""
    if (cohort := checked(stamp_of(path, settings), path, settings).cohort) is not None:
        table = plan_of(cohort, path, desk.path(out), settings, search, OutputSettings()).table
        _check_same(desk, table, settings, search, desk.path(out))
        most = 3 if search.n_patterns == AUTO else max(search.n_patterns)
        estimate = str(time_needed(len(cohort.features), cohort.features.shape[1], most, search))
    options = options_of(settings, desk) | options_of(search, desk)
    return desk.words("fit", name, **options, out=out, log_json=True), estimate


def _check_same(
    desk: Desk, table: record.RunTable, settings: TableSettings, search: SearchSettings, folder: Path
) -> None:
    """Refuse settings that neither repeat nor extend the run in the folder."""
    if not (folder / record.SETTINGS).is_file():
        return
    try:
        before = record.read_settings(folder / record.SETTINGS)
        # Labels count as typed, and files by their contents; versions and the device are left to training itself.
        typed = {name: options_of(settings, desk).get(name) for name in ("control", "patients")}
        table = replace(table, join=before.table.join, dictionary=before.table.dictionary, **typed)  # type: ignore[arg-type]
        record.more_of(folder, before.model_copy(update={"table": table, "training": search}))
    except InputError as error:
        raise InputError(*(one.what for one in error.problems), "\nChoose another name for the run.") from error


def stop(desk: Desk, request: Request) -> Response:
    """Stop a training; what has been trained is kept."""
    name = request.query_params.get("run", "")
    if (process := process_of(desk, name)) is not None:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _TIME_TO_STOP
    while process_of(desk, name) and time.monotonic() < end:
        time.sleep(0.1)
    return RedirectResponse(address("/run", ("run", name)), 303)


def resume(desk: Desk, request: Request) -> Response:
    """Continue a training where it stopped, with its run.toml; if there is none yet, start again."""
    name = request.query_params.get("run", "")
    words = desk.words("fit", config=f"{name}/{record.SETTINGS}", out=name, log_json=True)
    if name in desk.children and record.status_of(desk.path(name)) is None:  # it had not begun: start again
        words = cast(list[str], desk.children[name].args)[len(desk.program) :]
    else:
        row_of(desk, name)
    start(desk, name, words)
    return RedirectResponse(address("/run", ("run", name)), 303)


_KNOWN = ("participant_id", "visit", "diagnosis", "group", "site", "first_visit")  # the explorer shows these itself
_MOST_PEOPLE = 6000  # in the explorer
_HEAD = 2000  # characters at the beginning of a report, which contain its policy
_TABLES = {
    record.R_INDICES: "R-indices and severities of all participants",
    record.PATTERNS: "effect of each pattern on each region",
    record.SELECTION: "agreement for each setting tried",
    record.PEOPLE: "who was included or excluded, and why",
    record.Z_SCORES: "corrected regional measures of all participants",
    record.MODEL: "the model, for scoring new people",
    record.REPORT: "the report as a single file; it contains individuals' scores",
    record.SETTINGS: "settings, sufficient to repeat the run",
}


def runs_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show the runs of the folder."""
    rows = runs_of(desk)
    done = [row.name for row in rows if row.status == record.DONE]
    return page(desk, "runs", "Runs", {"rows": rows, "done": done, "models": files_with(desk, MODELS)})


def read_run(desk: Desk, name: str) -> record.Run:
    """Return a finished run; an unchanged run is not read again."""
    folder = desk.path(name)
    if record.status_of(folder) != record.DONE:
        raise InputError(f"There is no finished run in {name!r}.")
    return background_result(("run", folder, stamp_of(folder / record.SUMMARY)), lambda: record.read_run(folder))


def run_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show a result, or the progress of a training."""
    name = request.query_params.get("run", "")
    training = progress_of(desk.path(name), running=process_of(desk, name) is not None)
    if training.state != record.DONE:
        begun = training.state == "running" or record.status_of(desk.path(name)) is not None
        if not begun and training.state != "refused" and name not in desk.children:
            raise InputError(f"There is no run {name!r} in this folder. It may have been renamed, moved or deleted.")
        row = row_of(desk, name) if begun else None
        if row is not None and row.status == "damaged":
            training = training._replace(state=row.status, said=row.trouble)
        has_settings = row.settings is not None if row else name in desk.children
        can_go_on = has_settings and training.state not in ("running", "refused")
        kept = any(desk.path(name).glob("*/*.safetensors"))  # in its journal, or from a run that it extends
        return page(desk, "running", name, {"run": name, "training": training, "can_go_on": can_go_on, "kept": kept})
    run = read_run(desk, name)
    sections = background_result(("result", run.folder, stamp_of(run.folder / record.SUMMARY)), lambda: _result(run))
    return page(
        desk,
        "result",
        name,
        {
            "run": name,
            "name": name,
            "refused": training.said,
            "summary": run.summary,
            "imbalanced": imbalanced_in(run.summary),
            **sections,
            "files": {file: words for file, words in _TABLES.items() if (run.folder / file).is_file()},
            "report": _state_of_report(run.folder / record.REPORT),
        },
        command=desk.words("report", name),
    )


def _result(run: record.Run) -> dict[str, Markup]:
    """Return the sections that take a while to draw; they are kept for those who come back to a run."""
    view = view_of(run, show_ids=True)
    return {name: section_html(SECTIONS[name], view) for name in ("groups", "cards")}


def _state_of_report(path: Path) -> str:
    """Return whether a report is missing, there, or old: only the script of this version may run."""
    if not path.is_file():
        return "missing"
    with path.open(encoding="utf-8", errors="replace") as file:
        return "there" if escape(offline_policy()) in file.read(_HEAD) else "old"


def people_page(desk: Desk, request: Request) -> Response:
    """Show the people of a run one by one."""
    name, show_ids = request.query_params.get("run", ""), request.query_params.get("ids") == "yes"
    run = read_run(desk, name)
    key = ("people", run.folder, stamp_of(run.folder / record.SUMMARY), show_ids)
    people = background_result(key, lambda: _people(run, show_ids))
    shown = {"run": name, "summary": run.summary, "people": people, "show_ids": show_ids}
    return page(desk, "people", f"People of {name}", shown)


def _people(run: record.Run, show_ids: bool) -> Markup:
    variables = [str(name) for name in run.results.variables if name not in _KNOWN]
    view = view_of(run, show_ids=show_ids, variables=variables, most_people=_MOST_PEOPLE)
    return section_html(SECTIONS["explorer"], view)


def compare_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show the comparison of two runs."""
    first, second = (request.query_params.get(name, "") for name in ("first", "second"))
    done = [row.name for row in runs_of(desk) if row.status == record.DONE]
    shown: dict[str, object] = {"done": done, "first": first, "second": second, "compared": None, "refused": ""}
    if first and second:
        try:
            folders = desk.path(first), desk.path(second)
            stamps = tuple((one, stamp_of(one / record.SUMMARY)) for one in folders)
            shown |= background_result(("compare", stamps), lambda: _compared(folders, (first, second)))
        except InputError as error:
            shown["refused"] = desk.said(error.message)
    command = desk.words("compare", first, second) if first and second else []
    return page(desk, "compare", "Comparison of two runs", {"show_ids": False, **shown}, command=command)


def _compared(folders: tuple[Path, Path], names: tuple[str, str]) -> dict[str, object]:
    compared = compare_runs(*folders)
    return {"compared": compared, "names": names, "shown": shown_pairs(compared, names)}


def write_again(desk: Desk, request: Request) -> Response:
    """Write the report of a run with the command line, on request with all figures as files."""
    name = request.query_params.get("run", "")
    row_of(desk, name)
    figures = f"{name}/{record.FIGURES}" if request.query_params.get("figures") else None
    call(desk, desk.words("report", name, figures=figures))
    return RedirectResponse(address("/run", ("run", name)), 303)


def call(desk: Desk, words: list[str]) -> None:
    """Run a short command of the command line; what it refuses is refused here."""
    done = subprocess.run(
        [*desk.program, *words], cwd=desk.folder, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode:
        raise InputError(done.stderr.strip().removeprefix("Error: ") or "The command failed without a message.")


def file_answer(desk: Desk, request: Request) -> Response:
    """Return a file of the folder as a download."""
    path = desk.file(request.path_params["name"], "file")
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


def report_answer(desk: Desk, request: Request) -> Response:
    """Return a report of the folder, isolated from these pages and without any script but that of reports."""
    path = desk.file(request.path_params["name"], "report", ".html")
    policy = f"sandbox allow-scripts allow-downloads allow-modals; {offline_policy()}; frame-ancestors 'self'"
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": policy})


def methods_answer(desk: Desk, request: Request) -> Response:
    """Return the methods paragraph of a run, or its references as BibTeX, as a download."""
    run = read_run(desk, request.query_params.get("run", ""))
    text, name = methods_of(run), "methods.txt"
    if request.query_params.get("as") == "bibtex":
        text, name = "\n\n".join(work.bibtex for work in cited_in(text)), "references.bib"
    return PlainTextResponse(f"{text}\n", headers={"content-disposition": f'attachment; filename="{name}"'})
