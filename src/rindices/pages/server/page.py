"""What all pages share: how they are rendered, and which tables, models and runs the folder has."""

import os
import shlex
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from starlette.responses import HTMLResponse

from rindices import record
from rindices.pages.layout import render
from rindices.pages.server.query import Desk, address
from rindices.pages.server.safety import MODELS, TABLES
from rindices.problems import InputError, Text

_DEEPEST = 2  # folders of folders are looked into
_DAY = "%Y-%m-%d %H:%M"


_PATIENCE, _KEPT = 0.2, 12  # seconds until a page says that it takes longer; results that are kept
_beside = ThreadPoolExecutor(2)
_soon: dict[Hashable, Future[Any]] = {}
Made = TypeVar("Made")


class RunRow(NamedTuple):
    """A run of the folder: its name, how far it got, what came of it, what was asked for, and when it was touched."""

    name: str
    status: str  # done, failed, unfinished, running or damaged
    summary: record.Summary | None
    settings: record.RunSettings | None
    when: str
    trouble: str = ""


def page(
    desk: Desk,
    template: str,
    title: str,
    contents: Mapping[str, object],
    *,
    command: Sequence[str] = (),
    status: int = 200,
) -> HTMLResponse:
    """Return a page of ours, all of it escaped; `command` are the words of the one that does the same."""
    shown = {"title": title, "desk": desk, "address": address} | dict(contents)
    shown["command"] = shlex.join(["rindices", *command]) if command else ""
    return HTMLResponse(render(f"server/{template}.html.j2", **shown), status)


def trouble(desk: Desk, message: Text, status: int = 400) -> HTMLResponse:
    """Return a page that says what was wrong with what was asked for."""
    return page(desk, "trouble", "This is not possible", {"text": desk.said(message)}, status=status)


class NotYet(Exception):
    """What was asked for takes a while: the page asks again."""


def soon(key: Hashable, work: Callable[[], Made]) -> Made:
    """Return what some work gives; where that takes long it goes on beside, and whoever asks again gets it.

    Parameters
    ----------
    key
        What the work depends on; the same is not done twice.
    work
        Does it.
    """
    if key not in _soon:
        _soon[key] = _beside.submit(work)
        for old in [*_soon][:-_KEPT]:
            _soon.pop(old, None)
    future: Future[Made] = _soon[key]
    try:
        return future.result(timeout=_PATIENCE)
    except TimeoutError:
        raise NotYet from None
    except InputError:
        _soon.pop(key, None)
        raise


def busy(desk: Desk) -> HTMLResponse:
    """Return a page that asks again."""
    return page(desk, "busy", "One moment", {}, status=202)


def files_of(desk: Desk, endings: tuple[str, ...]) -> list[str]:
    """Return the names of the files of the folder that end so, but for those that a run wrote."""
    found = []
    for folder in _folders(desk.folder):
        ours = record.status_of(folder) is not None
        for path in sorted(folder.iterdir()):
            named = path.name.casefold().endswith(endings) and not path.name.startswith(".")
            if named and path.is_file() and (not ours or path.name == record.MODEL):
                found.append(path.relative_to(desk.folder).as_posix())
    return found


def tables_of(desk: Desk) -> list[str]:
    """Return the names of the tables of the folder."""
    return files_of(desk, TABLES)


def models_of(desk: Desk) -> list[str]:
    """Return the names of the models of the folder."""
    return files_of(desk, MODELS)


def runs_of(desk: Desk) -> list[RunRow]:
    """Return the runs of the folder, the latest first."""
    names = {path.relative_to(desk.folder).as_posix() for path in _folders(desk.folder) if record.status_of(path)}
    names -= {"."}
    rows = [row_of(desk, name) for name in {*names, *(name for name in desk.children if is_running(desk, name))}]
    return sorted(rows, key=lambda row: (row.when, row.name), reverse=True)


def row_of(desk: Desk, name: str) -> RunRow:
    """Return what a run folder says of its run."""
    folder = desk.path(name)
    status = "running" if is_running(desk, name) else record.status_of(folder)
    if status is None:
        raise InputError(f"There is no run in {name!r}.")
    files = [path for path in (folder / record.SUMMARY, folder / record.SETTINGS, folder) if path.exists()]
    when = time.strftime(_DAY, time.localtime(files[0].stat().st_mtime if files else time.time()))
    settings = summary = None
    try:
        if status == record.DONE or (folder / record.SUMMARY).is_file():
            summary = record.read_summary(folder)
        if (folder / record.SETTINGS).is_file():
            settings = record.read_settings(folder / record.SETTINGS)
    except InputError as error:
        return RunRow(name, status if status == "running" else "damaged", None, None, when, desk.said(error.message))
    return RunRow(name, status, summary, settings, when)


def is_running(desk: Desk, name: str) -> bool:
    """Say whether a process is at work on a run, here or started elsewhere on this machine."""
    child = desk.children.get(name)
    return (child is not None and child.poll() is None) or record.worker_of(desk.path(name)) is not None


def free_name(desk: Desk, stem: str, ending: str) -> str:
    """Return a name that no file of the folder has."""
    numbers = (f"{stem}{ending}" if number == 1 else f"{stem}-{number}{ending}" for number in range(1, 10_000))
    return next(name for name in numbers if not desk.path(name).exists())


def _folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Give a folder and those in it; not those of runs, which have none that matter, nor hidden ones."""
    yield folder
    if depth < _DEEPEST and (depth == 0 or record.status_of(folder) is None):
        with os.scandir(folder) as entries:
            inner = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False) and one.name[0] != ".")
        for path in inner:
            yield from _folders(Path(path), depth + 1)
