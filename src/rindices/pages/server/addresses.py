"""The addresses of the pages, and the server: on this machine's own address, for one browser that has the token."""

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from rindices.pages.layout import page_script, page_style
from rindices.pages.server import apply_page, run_pages, table_page, train_page
from rindices.pages.server.page import NotYet, busy, trouble
from rindices.pages.server.query import Desk
from rindices.pages.server.safety import ENTRANCE, Guard, TooLarge, receive_file
from rindices.problems import InputError, Wording, without_data

Handler = Callable[[Desk, Request], Response] | Callable[[Desk, Request], Awaitable[Response]]
_PAGES: dict[str, Handler] = {
    "/": run_pages.runs_page,
    "/table": table_page.table_page,
    "/table/checked": table_page.checked_part,
    "/table/look": table_page.look_part,
    "/gather": table_page.gather_page,
    "/train": train_page.train_page,
    "/run": run_pages.run_page,
    "/events": train_page.watch,
    "/people": run_pages.people_page,
    "/compare": run_pages.compare_page,
    "/methods": run_pages.methods_answer,
    "/files/{name:path}": run_pages.file_answer,
    "/report/{name:path}": run_pages.report_answer,
    "/apply": apply_page.apply_page,
    "/scored": apply_page.scored_page,
    "/person": apply_page.person_page,
}
_CHANGES: dict[str, Handler] = {
    "/gather": table_page.gather,
    "/train": train_page.begin,
    "/stop": train_page.stop,
    "/continue": train_page.go_on,
    "/report": run_pages.write_again,
    "/apply": apply_page.score,
    "/person": apply_page.keep_person,
}


def make_app(folder: Path, port: int, token: str, *, wording: Wording, program: tuple[str, ...]) -> Guard:
    """Return the application for a folder, guarded.

    Parameters
    ----------
    folder
        The folder of tables and runs.
    port, token
        Where it is served, and what lets the first browser in.
    wording
        How a setting is written on the command line.
    program
        Words by which the command line is started.
    """
    desk = Desk(folder.resolve(), wording, program)
    routes = [Route(path, partial(handler, desk)) for path, handler in _PAGES.items()]
    routes += [Route(path, partial(handler, desk), methods=["POST"]) for path, handler in _CHANGES.items()]
    routes += [Route("/upload", partial(_upload, desk), methods=["PUT"])]
    routes += [Route("/static/{name}", _static)]
    answers: dict[type[Exception], Callable[[Request, Exception], Response]]
    answers = {InputError: partial(_refused, desk), NotYet: partial(_busy, desk), HTTPException: _not_found}
    answers[Exception] = partial(_failed, desk)
    app = Starlette(routes=routes, exception_handlers=answers)
    return Guard(app, port=port, token=token)


def _refused(desk: Desk, request: Request, error: Exception) -> Response:
    """Say what was wrong with what was asked for, as the command line would."""
    if not isinstance(error, InputError):
        raise error
    if request.method == "PUT":  # what is still being sent is not waited for
        status = 413 if isinstance(error, TooLarge) else 400
        return JSONResponse({"refused": desk.said(error.message)}, status, {"connection": "close"})
    return trouble(desk, error.message)


def _busy(desk: Desk, request: Request, error: Exception) -> Response:
    return busy(desk)


def _failed(desk: Desk, request: Request, error: Exception) -> Response:
    return trouble(desk, f"Internal error in rindices: {without_data(error)}. Please report it.", 500)


def _not_found(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return PlainTextResponse("This page does not exist.", status)


async def _upload(desk: Desk, request: Request) -> Response:
    said = request.headers.get("content-length", "")
    size = int(said) if said.isdecimal() else None
    name = await receive_file(desk.folder, request.query_params.get("name", ""), size, request.stream())
    return JSONResponse({"name": name})


def _static(request: Request) -> Response:
    files = {"page.css": ("text/css", page_style), "page.js": ("text/javascript", page_script)}
    kind, text = files.get(request.path_params["name"], ("", None))
    if text is None:
        raise HTTPException(404)
    return Response(text(), media_type=kind, headers={"cache-control": "private, max-age=60"})


def serve(
    folder: Path,
    port: int | None,
    *,
    ready: Callable[[str], None],
    wording: Wording,
    program: tuple[str, ...],
) -> None:
    """Serve a folder on the loopback address until Ctrl-C.

    Parameters
    ----------
    folder, wording, program
        As in `make_app`.
    port
        Where; a free one if not given.
    ready
        Called with the address to open, once it is served.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port or 0))
    except (OSError, OverflowError) as error:
        raise InputError(f"Port {port} cannot be used ({error}).\nChoose another port, or omit the option.") from error
    with listening:
        here, token = listening.getsockname()[1], secrets.token_urlsafe(24)
        app = make_app(folder, here, token, wording=wording, program=program)
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        threading.Timer(0.3, ready, [f"http://127.0.0.1:{here}{ENTRANCE}?token={token}"]).start()
        uvicorn.Server(config).run(sockets=[listening])
