"""The addresses of the pages, and the server, which listens on loopback only and admits one browser with a token."""

import secrets
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rindices.pages.layout import page_script, page_style
from rindices.pages.server import apply_page, run_pages, table_page
from rindices.pages.server.page import Desk, NotYet, page, receive_file
from rindices.pages.server.query import buttons_of
from rindices.problems import InputError, Wording, joined, without_data
from rindices.run.check_table import fixes_in
from rindices.settings import TableSettings

ENTRANCE = "/enter"
_DAYS = 30  # for which the cookie is valid
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with no-referrer, forms would be sent with Origin: null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# A page of our own that loads the next: the cookie just set is sent along, wherever the first link was.
_ENTERED = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0; url=/"><title>rindices</title></html>'
)
Handler = Callable[[Desk, Request], Response | Awaitable[Response]]
_PAGES: dict[str, Handler] = {
    "/": run_pages.runs_page,
    "/table": table_page.table_page,
    "/table/checked": table_page.checked_part,
    "/table/look": table_page.look_part,
    "/gather": table_page.gather_page,
    "/train": run_pages.train_page,
    "/run": run_pages.run_page,
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
    "/train": run_pages.train_page,
    "/stop": run_pages.stop,
    "/continue": run_pages.resume,
    "/report": run_pages.write_again,
    "/apply": apply_page.score,
    "/person": apply_page.keep_person,
}


class Guard:
    """Middleware that admits only the browser that opened the address with the token.

    The token is valid for one browser: it is exchanged for a cookie that scripts cannot read and other sites cannot
    send. The cookie outlives the browser window, so whoever closes the window can come back while the server runs.
    Requests under another name of this machine (Host) and changes requested by another site (Origin) are refused.

    Parameters
    ----------
    app
        The application to guard.
    port
        The port of the server.
    token
        The token in the address that is opened first.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._tokens = app, {token}
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie, self._key = f"rindices_{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":  # there are no websockets
            return await self._app(scope, receive, send)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer: ASGIApp = self._answer(Request(scope)) or self._app
        return await answer(scope, receive, send_safely)

    def _answer(self, request: Request) -> Response | None:
        """Return a refusal, or the answer that sets the cookie; None if the request may pass."""
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse("Access denied: this is not the address printed by rindices open.", 403)
        known = secrets.compare_digest(request.cookies.get(self._cookie, ""), self._key)
        if request.url.path == ENTRANCE and request.method == "GET":
            given = request.query_params.get("token", "")
            if not known and not any(secrets.compare_digest(given, token) for token in self._tokens):
                return PlainTextResponse(
                    "Access denied: this address has already been used by another browser. Run rindices open again for "
                    "a new one.",
                    403,
                )
            self._tokens.clear()
            entered = HTMLResponse(_ENTERED)
            entered.set_cookie(self._cookie, self._key, max_age=_DAYS * 86_400, httponly=True, samesite="strict")
            return entered
        if not known:
            return PlainTextResponse("Access denied: open the address printed by rindices open.", 403)
        origins = {f"http://{host}" for host in self._hosts}
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") not in origins:
            return PlainTextResponse("Access denied: the request came from another website.", 403)
        return None


def make_app(folder: Path, port: int, token: str, *, wording: Wording, program: tuple[str, ...]) -> Guard:
    """Return the guarded application for a folder.

    Parameters
    ----------
    folder
        The folder of tables and runs.
    port, token
        As in `Guard`.
    wording
        How a setting is written on the command line.
    program
        Words that start the command line.
    """
    desk = Desk(folder.resolve(), wording, program)
    routes = [
        *(Route(path, partial(handler, desk)) for path, handler in _PAGES.items()),
        *(Route(path, partial(handler, desk), methods=["POST"]) for path, handler in _CHANGES.items()),
        Route("/upload", partial(_upload, desk), methods=["PUT"]),
        Route("/static/page.css", partial(_static, "text/css", page_style)),
        Route("/static/page.js", partial(_static, "text/javascript", page_script)),
    ]
    answers: dict[type[Exception], Callable[..., Response]] = {
        InputError: partial(_refused, desk),
        NotYet: lambda *_: page(desk, "busy", "One moment", {}, status=202),
        Exception: partial(_failed, desk),
    }
    return Guard(Starlette(routes=routes, exception_handlers=answers), port=port, token=token)


def _refused(desk: Desk, request: Request, error: InputError) -> Response:
    """Return a page, or JSON for an upload, that says why a request was refused."""
    if request.method == "PUT":  # the rest of the upload is not awaited
        return JSONResponse({"refused": desk.said(error.message)}, 400, {"connection": "close"})
    table = request.query_params.get("table", "")
    buttons = buttons_of(fixes_in([], error.sheets), TableSettings, table)
    text = joined((one.what for one in error.problems), "\n") if buttons else error.message  # buttons are the remedy
    shown = {"text": desk.said(text), "buttons": buttons, "query": urlencode({"table": table})}
    return page(desk, "trouble", "Choose a sheet" if buttons else "This is not possible", shown, status=400)


def _failed(desk: Desk, request: Request, error: Exception) -> Response:
    text = f"Internal error in rindices: {without_data(error)}. Please report it."
    return page(desk, "trouble", "This is not possible", {"text": text, "buttons": (), "query": ""}, status=500)


async def _upload(desk: Desk, request: Request) -> Response:
    said = request.headers.get("content-length", "")
    size = int(said) if said.isdecimal() else None
    return JSONResponse(
        {"name": await receive_file(desk, request.query_params.get("name", ""), size, request.stream())}
    )


def _static(kind: str, text: Callable[[], str], request: Request) -> Response:
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
        The port; a free one if not given.
    ready
        Called with the address to open, once the server runs.
    """
    try:
        listening = socket.create_server(("127.0.0.1", port or 0))
    except (OSError, OverflowError) as error:
        raise InputError(
            f"Port {port} cannot be used ({error}).\nChoose another port, or omit the port to use a free one."
        ) from error
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
