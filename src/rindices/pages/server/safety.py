"""Who is served, what of the folder can be reached, and how much can be put into it."""

import hashlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rindices.problems import InputError

ENTRANCE = "/enter"
_DAYS = 30  # that a browser may stay away
MOST_BYTES = 512 * 2**20  # of one file that is put into the folder
TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".parquet", ".csv.gz", ".tsv.gz")
MODELS = (".safetensors",)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # without any, browsers say of no form where it comes from
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
# A page of our own that asks for the next: a cookie that was just set goes along, wherever the first link was.
_ENTERED = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0; url=/"><title>rindices</title></html>'
)


class Guard:
    """Lets in whoever came with the token, from this machine's own address only.

    The token is good for one browser: it is exchanged for a cookie that no script can read and that no other site can
    send along. It outlives the browser's window, so whoever closes that can come back while this is served. Another
    name of this machine (Host) or another site that asks for a change (Origin) is refused.

    Parameters
    ----------
    app
        What is guarded.
    port
        Where it is served.
    token
        What the address that is opened first ends in.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app, self._tokens = app, {token}
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._cookie, self._key = f"rindices_{port}", secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        answer: ASGIApp = self._answer(Request(scope)) or self._app
        return await answer(scope, receive, send_safely)

    def _answer(self, request: Request) -> Response | None:
        """Return a refusal, or what the token is exchanged for; None where the request may pass."""
        if request.headers.get("host") not in self._hosts:
            return PlainTextResponse("Refused: this is not the address that rindices open printed.", 403)
        known = secrets.compare_digest(request.cookies.get(self._cookie, ""), self._key)
        if request.url.path == ENTRANCE and request.method == "GET":
            given = request.query_params.get("token", "")
            if not known and not any(secrets.compare_digest(given, token) for token in self._tokens):
                return PlainTextResponse(
                    "Refused: this address has already been used by another browser. Run rindices open again for "
                    "a new one.",
                    403,
                )
            self._tokens.clear()
            entered = HTMLResponse(_ENTERED)
            entered.set_cookie(self._cookie, self._key, max_age=_DAYS * 86_400, httponly=True, samesite="strict")
            return entered
        if not known:
            return PlainTextResponse("Refused: open the address that rindices open printed.", 403)
        origins = {f"http://{host}" for host in self._hosts}
        if request.method not in ("GET", "HEAD") and request.headers.get("origin") not in origins:
            return PlainTextResponse("Refused: the request came from another site.", 403)
        return None


def inside(folder: Path, name: str) -> Path:
    """Return a file or folder below `folder`; anything else is refused, also where a link leads out of it.

    Examples
    --------
    >>> inside(Path("/data"), "runs/first").as_posix()
    '/data/runs/first'
    >>> inside(Path("/data"), "../secret.csv")
    Traceback (most recent call last):
    ...
    rindices.problems.InputError: '../secret.csv' is not in the folder that was opened.
    """
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith(".") for part in parts)
    path = folder.joinpath(*parts) if parts and "\0" not in name and "\\" not in name else folder.parent
    if hidden or not path.resolve().is_relative_to(folder.resolve()) or path.resolve() == folder.resolve():
        raise InputError(f"{name!r} is not in the folder that was opened.")
    return path


class TooLarge(InputError):
    """A file has more bytes than are taken."""


async def receive_file(folder: Path, name: str, size: int | None, stream: AsyncIterator[bytes]) -> str:
    """Write what is sent into the folder as it comes, whole or not at all, and return the name that it got.

    No file is replaced: another one of that name gets a number; the very same one is taken as it is.

    Parameters
    ----------
    folder
        Where to.
    name
        What the file is called.
    size
        How long it is said to be, if that is known.
    stream
        Its contents.
    """
    plain = PurePosixPath(name.replace("\\", "/")).name.lstrip(".")
    if not plain.casefold().endswith((*TABLES, *MODELS)):
        raise InputError(f"{plain!r} is neither a table ({', '.join(TABLES)}) nor a model ({', '.join(MODELS)}).")
    too_large = TooLarge(f"{plain!r} is larger than {MOST_BYTES // 2**20} MB.\nCopy it into the folder yourself.")
    if size is not None and size > MOST_BYTES:
        raise too_large
    stem, dot, ending = plain.partition(".")
    path, received, digest = inside(folder, plain), 0, hashlib.sha256()
    beside = folder / f".{secrets.token_hex(8)}.partial"
    try:
        with beside.open("xb") as file:
            async for part in stream:
                received += len(part)
                if received > MOST_BYTES:
                    raise too_large
                digest.update(part)
                file.write(part)
        number = 1
        while path.exists() and not _same(path, received, digest.hexdigest()):
            number += 1
            path = inside(folder, f"{stem}-{number}{dot}{ending}")
        if not path.exists():
            beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)
    return path.name


def _same(path: Path, size: int, digest: str) -> bool:
    if not path.is_file() or path.stat().st_size != size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest
