"""Training: a process of its own (`rindices fit`), which is started, watched, stopped and continued from here."""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from rindices import record
from rindices.pages.layout import render
from rindices.pages.server.page import free_name, is_running, page, row_of, runs_of, tables_of
from rindices.pages.server.query import Desk, address, form_of, guessed, options_of, pairs_of, read_query
from rindices.pages.server.table_page import checked, stamp_of
from rindices.presets import get_preset
from rindices.problems import InputError, Remedy, roughly
from rindices.record.progress import Progress, log_of, progress_of
from rindices.settings import AUTO, SearchSettings, TableSettings

_PATIENCE = 8.0  # seconds that a process gets to stop
_NAME = re.compile(r"[\w][\w .-]*(/[\w][\w .-]*)?")


def training_of(desk: Desk, name: str) -> Progress:
    """Return how far a training is."""
    return progress_of(desk.path(name), running=is_running(desk, name))


def start(desk: Desk, name: str, words: list[str]) -> None:
    """Start a training, unless one is at work in that folder; it lives on without the page."""
    if not _NAME.fullmatch(name):
        raise InputError(f"A run name may contain only letters, digits, spaces, - and _, but {name!r} was given.")
    if is_running(desk, name):
        raise InputError(f"A training is already running in {name!r}.\nStop it first, or choose another name.")
    with log_of(desk.path(name)).open("wb") as log:
        desk.children[name] = subprocess.Popen(
            [*desk.program, *words],
            cwd=desk.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=os.name != "nt",  # Ctrl-C in the terminal ends the page, not the training
        )


def watch(desk: Desk, request: Request) -> Response:
    """Tell how far a training is, again and again until it ends."""
    name = request.query_params.get("run", "")
    desk.path(name)

    async def tell() -> AsyncIterator[str]:
        while True:
            now = await run_in_threadpool(training_of, desk, name)
            shown = now._asdict() | {"agreed": [one._asdict() for one in now.agreed]}
            shown["html"] = render("server/training.html.j2", training=now)
            yield f"data: {json.dumps(shown)}\n\n"
            if now.state != "running":
                return
            await asyncio.sleep(1)

    return StreamingResponse(tell(), media_type="text/event-stream")


def train_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show what can be chosen about a training of a table, what it would take, and the command that does it."""
    asked = request.query_params
    name = asked.get("table", "")
    if not name:
        return page(desk, "table", "Tables", {"table": "", "source": "", "tables": tables_of(desk)})
    settings = read_query(TableSettings, asked, desk)
    if "chosen" not in asked:
        settings = guessed(settings, desk, name)
    stem = "-".join(part.label for part in desk.parts(name)) or Path(name).name.partition(".")[0]
    out = asked.get("out", "").strip() or free_name(desk, f"{stem}-run", "")
    words, refused, estimate = list[str](), "", ""
    try:
        search = read_query(SearchSettings, asked, desk)
        words, estimate = _words(desk, name, settings, search, out), _estimate(desk, name, settings, search)
    except InputError as error:
        refused = desk.said(error.message)
    pairs = [("table", name), ("chosen", "yes"), *pairs_of(settings, desk)]
    return page(
        desk,
        "train",
        f"Train on {name}",
        {
            "table": name,
            "pairs": pairs,
            "out": out,
            "fields": form_of(SearchSettings, asked),
            "refused": refused,
            "estimate": estimate,
        },
        command=[word for word in words if word not in _read_along(desk)],
    )


def _read_along(desk: Desk) -> list[str]:
    return shlex.split(desk.wording(Remedy("log_json", True)))


def _words(desk: Desk, name: str, settings: TableSettings, search: SearchSettings, out: str) -> list[str]:
    desk.path(out)
    options = options_of(settings, desk) | options_of(search, desk)
    return desk.words("fit", name, **options, out=out, log_json=True)


def _estimate(desk: Desk, name: str, settings: TableSettings, search: SearchSettings) -> str:
    """Say about how long a training takes: by earlier ones of this folder, or by people and regions."""
    steps = search.max_steps or get_preset(search.preset).schedule.max_steps
    models = search.n_repetitions  # of one number of patterns, which is counted before
    earlier = [
        row.summary.seconds / (row.summary.search.models_trained * row.summary.step)
        for row in runs_of(desk)
        if row.summary and row.summary.seconds and row.summary.search.models_trained
        # The time that a short training takes is that of everything else.
        if row.summary.step and row.summary.step >= steps / 2
    ]
    if earlier:
        return f"about {roughly(models * steps * median(earlier))}, judging by earlier runs in this folder"
    path = desk.table(name)
    cohort = checked(stamp_of(path, settings), path, settings).cohort
    if cohort is None:
        return ""
    from rindices.run.first_look import time_needed  # the engine, which is loaded once

    most = 3 if search.n_patterns == AUTO else max(search.n_patterns)
    return str(time_needed(len(cohort.features), cohort.features.shape[1], most, search))


def begin(desk: Desk, request: Request) -> Response:
    """Start the training that the address describes."""
    asked = request.query_params
    settings, search = read_query(TableSettings, asked, desk), read_query(SearchSettings, asked, desk)
    out = asked.get("out", "").strip()
    start(desk, out, _words(desk, asked.get("table", ""), settings, search, out))
    return RedirectResponse(address("/run", ("run", out)), 303)


def stop(desk: Desk, request: Request) -> Response:
    """Stop a training; what is trained is kept."""
    name = request.query_params.get("run", "")
    child, worker = desk.children.get(name), record.worker_of(desk.path(name))
    process = worker if worker is not None else child.pid if child is not None and child.poll() is None else None
    if process is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _PATIENCE
    while is_running(desk, name) and time.monotonic() < end:
        time.sleep(0.1)
    return RedirectResponse(address("/run", ("run", name)), 303)


def go_on(desk: Desk, request: Request) -> Response:
    """Continue a training where it stopped, as its run.toml says."""
    name = request.query_params.get("run", "")
    row_of(desk, name)
    start(desk, name, desk.words("fit", config=f"{name}/{record.SETTINGS}", out=name, log_json=True))
    return RedirectResponse(address("/run", ("run", name)), 303)
