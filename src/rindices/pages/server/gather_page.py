"""The folder of a segmentation program becomes a table; this is `rindices gather`."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rindices import record
from rindices.pages.server.page import free_name, page
from rindices.pages.server.query import Desk, form_of, options_of, posted, read_query
from rindices.problems import InputError
from rindices.run.gather_folder import gather_folder
from rindices.settings import GatherSettings

_HERE = "."
_MOST = 200  # folders that are offered


def gather_page(desk: Desk, request: Request) -> HTMLResponse:
    """Show what can be chosen."""
    return _form(desk, request.query_params)


async def gather(desk: Desk, request: Request) -> Response:
    """Gather what a form names, and say what came of it; what is refused is said above the same form."""
    asked = QueryParams(await posted(request))
    try:
        return await run_in_threadpool(_gathered, desk, asked)
    except InputError as error:
        return _form(desk, asked, desk.said(error.message))


def _gathered(desk: Desk, asked: QueryParams) -> HTMLResponse:
    settings = read_query(GatherSettings, asked, desk)
    folder, out = asked.get("folder", "").strip(), asked.get("out", "").strip()
    path = desk.path(out)
    beside = path.with_suffix(".json")
    if path.suffix != ".csv" or path.exists() or beside.exists():
        raise InputError(f"The table should have a new name that ends in .csv, found {out!r}.")
    found = gather_folder(desk.folder if folder == _HERE else desk.path(folder), path, settings)
    notes = [*found.notes, *(f"Left out: {where}: {problem}." for where, problem in found.left_out.items())]
    shown = {"table": "", "gathered": found, "out": out, "dictionary": desk.name(beside), "notes": notes}
    command = ["gather", folder, *desk.words("", **options_of(settings, desk), out=out)[1:]]
    return page(desk, "gather", "A table was made", shown, command=command)


def _form(desk: Desk, asked: QueryParams, refused: str = "") -> HTMLResponse:
    inside = (path for path in sorted(desk.folder.iterdir()) if path.is_dir() and not path.name.startswith("."))
    folders = [_HERE, *(path.name for path in inside if record.status_of(path) is None)][:_MOST]
    shown = {
        "table": "",
        "gathered": None,
        "refused": refused,
        "folder": asked.get("folder", ""),
        "folders": folders,
        "out": asked.get("out") or free_name(desk, "gathered", ".csv"),
        "fields": form_of(GatherSettings, asked),
    }
    return page(desk, "gather", "Gather a table", shown, status=400 if refused else 200)
