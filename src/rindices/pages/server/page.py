"""What all pages share: the opened folder, access to its files, uploads, and rendering."""

import filecmp
import os
import secrets
import shlex
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from subprocess import Popen
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse

from rindices import record
from rindices.model import read_header
from rindices.pages.layout import render
from rindices.problems import Blank, InputError, Remedy, Text, Value, Wording, quoted, worded
from rindices.settings import GatherSettings, SearchSettings, TableSettings, option_name
from rindices.tables import Part, Table, labelled_parts
from rindices.tables.text_and_workbook import TABLES
from rindices.value_kinds import settings_of

MOST_BYTES = 512 * 2**20  # of one uploaded file
_LONGEST = 255  # bytes of a file name, the limit of file systems
MODELS = (".safetensors",)
_DEEPEST = 2  # levels of subfolders that are searched
_DAY = "%Y-%m-%d %H:%M"
_PATIENCE, _KEPT = 0.2, 12  # seconds until a page says that it takes longer; number of results kept
_background = ThreadPoolExecutor(1)  # one thread only: figures and warnings use settings of the whole process
_results: dict[Hashable, Future[Any]] = {}
Made = TypeVar("Made")
# The name of each setting on the pages, as a role, a form field or a button.
_CALLED = {
    one.name: one.label for kind in (TableSettings, SearchSettings, GatherSettings) for one in settings_of(kind)
} | {
    "control": "controls",
    "patients": "patients",
    "features": "region",
    "join": "Join a table",
    "drop_missing": "Exclude these people",
    "drop_outliers": "Exclude outliers",
    "small_sites": "Exclude small sites",
    "complete_only": "Use only people with all regions",
    "missing": "Code for a missing value",
    "new_sites": "Score them without site correction",
    "out": "Name of the run",
}


def on_page(remedy: Remedy) -> str:
    """Return a setting by its name on the page, with the value that would help, or as an option if it has no such name.

    Examples
    --------
    >>> on_page(Remedy("clinical", ["weight"])), on_page(Remedy("n_repetitions", 10))
    ('“clinical score”', '“Repetitions”: 10')
    """
    name, value = remedy
    if not (called := _CALLED.get(name)):
        return f"--{option_name(name)}"
    helps = isinstance(value, int | str) and not isinstance(value, bool | Blank)
    return f"“{called}”: {value}" if helps else f"“{called}”"


@dataclass(frozen=True)
class Desk:
    """The opened folder, and how the command line is worded and started.

    Attributes
    ----------
    folder
        Where tables and runs are.
    wording
        How a setting is written on the command line.
    program
        Words that start the command line.
    children
        Processes started from here, by the name of their run.
    """

    folder: Path
    wording: Wording
    program: tuple[str, ...]
    children: dict[str, Popen[bytes]] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return a file or folder inside the opened folder; refuse anything else, including links that lead out of it.

        Examples
        --------
        >>> desk = Desk(Path("/data"), on_page, ())
        >>> desk.path("runs/first").as_posix()
        '/data/runs/first'
        >>> desk.path("../secret.csv")
        Traceback (most recent call last):
        ...
        rindices.problems.InputError: '../secret.csv' is not in the folder that was opened.
        """
        parts = PurePosixPath(name).parts
        if any(len(os.fsencode(part)) > _LONGEST for part in parts):
            raise InputError(f"The name {name[:20]!r} ... is too long.\nChoose a shorter one.")
        hidden, home = any(part.startswith(".") for part in parts), self.folder.resolve()
        path = self.folder.joinpath(*parts) if "\0" not in name and "\\" not in name else home
        if hidden or home not in path.resolve().parents:
            raise InputError(f"{name!r} is not in the folder that was opened.")
        return path

    def file(self, name: str, what: str, ending: str = "") -> Path:
        """Return a file of the folder; a refusal says what is not there."""
        path = self.path(name)
        if not path.is_file() or not name.endswith(ending):
            raise InputError(f"There is no {what} {name!r} in the folder.")
        return path

    def parts(self, name: str) -> tuple[Part, ...]:
        """Return the labelled tables of the folder that a name stands for; none if it names a single table."""
        named = () if os.path.exists(self.folder / name) else labelled_parts(name)
        return tuple(Part(label, self.path(path.as_posix())) for label, path in named)

    def table(self, name: str) -> Path:
        """Return the path of a table; several are given as one path, ``label=path,label=path``."""
        parts = self.parts(name)
        return Path(",".join(f"{label}={path}" for label, path in parts)) if parts else self.path(name)

    def name(self, path: str | Path) -> str:
        """Return the name of a file relative to the folder."""
        return Path(path).relative_to(self.folder).as_posix()

    def words(self, command: str, *names: str, **settings: Value) -> list[str]:
        """Return the words of a command with its settings; those that are None are left out.

        Files come first; a file name that looks like an option is not taken for one.
        """
        apart = [[f"{label}={self.name(path)}" for label, path in self.parts(name)] or [name] for name in names]
        files = [f"./{name}" if name.startswith("-") else name for several in apart for name in several]
        options = (self.wording(Remedy(*pair)) for pair in settings.items() if pair[1] is not None)
        return [command, *files, *(word for option in options for word in shlex.split(option))]

    def said(self, text: Text) -> str:
        """Return a message in the wording of the pages."""
        return worded(text, on_page)


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return an address of these pages with a query."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


# The places in the bar above all pages: address, words, and the pages that belong there.
_PLACES = {
    "/": ("Runs", ("runs", "running", "result", "people")),
    "/table": ("Table and training", ("table", "train", "gather")),
    "/apply": ("Score new people", ("apply", "scored", "person")),
    "/compare": ("Compare", ("compare",)),
}
_PARTS = ("checked", "looked")  # of a page, loaded after it


class RunRow(NamedTuple):
    """A run of the folder: name, status, summary if done, settings, time of the last change, error if damaged."""

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
    """Return a page with its contents escaped; `command` holds the words of the equivalent command."""
    everywhere = {
        "title": title,
        "desk": desk,
        "address": address,
        "endings": ", ".join(TABLES),
        "places": _PLACES,
        "page_name": template,
        "command": " ".join(map(quoted, ["rindices", *command])) if command else "",
    }
    frame = template if template in _PARTS else "frame"
    return HTMLResponse(render(f"server/{frame}.html.j2", **everywhere, **contents), status)


class NotYet(Exception):
    """The result takes a while; the page asks again."""


def background_result(key: Hashable, work: Callable[[], Made]) -> Made:
    """Return the result of some work, or raise `NotYet` while slow work continues in the background.

    Parameters
    ----------
    key
        What the result depends on; work with the same key is not done twice.
    work
        Returns the result.
    """
    if key not in _results:
        _results[key] = _background.submit(work)
        for old in [*_results][:-_KEPT]:
            _results.pop(old, None)
    future: Future[Made] = _results[key]
    if future not in wait([future], timeout=_PATIENCE).done:
        raise NotYet
    if future.exception():  # the next request tries again
        _results.pop(key, None)
    return future.result()


def files_with(desk: Desk, endings: tuple[str, ...]) -> list[str]:
    """Return the names of the files with these endings; of the files in a run folder, only the finished model."""
    found = []
    for folder in _folders(desk.folder):
        status = record.status_of(folder)
        for path in sorted(folder.iterdir()):
            named = path.name.casefold().endswith(endings) and not path.name.startswith(".")
            if named and path.is_file() and (status is None or (status, path.name) == (record.DONE, record.MODEL)):
                found.append(desk.name(path))
    return found


def runs_of(desk: Desk) -> list[RunRow]:
    """Return the runs of the folder, latest first."""
    inner = (path for path in _folders(desk.folder) if path != desk.folder and record.status_of(path))
    names = {*map(desk.name, inner), *(name for name in desk.children if process_of(desk, name))}
    return sorted((row_of(desk, name) for name in names), key=lambda row: (row.when, row.name), reverse=True)


def row_of(desk: Desk, name: str) -> RunRow:
    """Return what is known of a run from its folder."""
    folder = desk.path(name)
    status = "running" if process_of(desk, name) else record.status_of(folder)
    if status is None:
        raise InputError(f"There is no run in {name!r}.")
    files = [path for path in (folder / record.SUMMARY, folder / record.SETTINGS, folder) if path.exists()]
    when = time.strftime(_DAY, time.localtime(files[0].stat().st_mtime if files else time.time()))
    try:
        summary = record.read_summary(folder) if (folder / record.SUMMARY).is_file() else None
        settings = record.read_settings(folder / record.SETTINGS) if (folder / record.SETTINGS).is_file() else None
    except InputError as error:
        return RunRow(name, status if status == "running" else "damaged", None, None, when, desk.said(error.message))
    return RunRow(name, status, summary if status == record.DONE else None, settings, when)


def process_of(desk: Desk, name: str) -> int | None:
    """Return the id of the process on this machine that is working on a run, whether or not it was started here."""
    child = desk.children.get(name)
    own = child.pid if child is not None and child.poll() is None else None
    return record.worker_of(desk.path(name)) or own


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    yield from (f"{stem}-{number}" for number in count(2))


def free_name(desk: Desk, stem: str, *endings: str) -> str:
    """Return a file name without ending that is not taken in the folder with any of these endings."""
    names = _numbered(stem)
    return next(name for name in names if not any(desk.path(f"{name}{ending}").exists() for ending in endings))


async def receive_file(desk: Desk, name: str, size: int | None, stream: AsyncIterator[bytes]) -> str:
    """Stream an upload into a file of the folder, whole or not at all, and return the name of the file.

    No file is replaced: if the name is taken, the upload gets a number; an identical file is used as it is.

    Parameters
    ----------
    desk
        The folder to write to.
    name
        Name of the uploaded file.
    size
        Its announced size in bytes, if known.
    stream
        Its contents.
    """
    plain = PurePosixPath(name.replace("\\", "/")).name.lstrip(".")
    if not plain.casefold().endswith((*TABLES, *MODELS)):
        raise InputError(f"{plain!r} is neither a table ({', '.join(TABLES)}) nor a model ({', '.join(MODELS)}).")
    too_large = InputError(f"{plain!r} is larger than {MOST_BYTES // 2**20} MB.\nCopy it into the folder yourself.")
    if size is not None and size > MOST_BYTES:
        raise too_large
    stem, dot, ending = plain.partition(".")
    paths = (desk.path(f"{free}{dot}{ending}") for free in _numbered(stem))  # which refuses names that are too long
    beside = desk.folder / f".{secrets.token_hex(8)}.partial"
    try:
        with beside.open("xb") as file:
            async for part in stream:
                file.write(part)
                if file.tell() > MOST_BYTES:
                    raise too_large
        path = next(path for path in paths if not path.exists() or filecmp.cmp(beside, path, shallow=False))
        if not path.exists():
            beside.rename(path)
            await run_in_threadpool(_check_received, path)
    finally:
        beside.unlink(missing_ok=True)
    return path.name


def _check_received(path: Path) -> None:
    """Remove and refuse a file that cannot be read; a workbook is kept if a sheet can still be chosen."""
    try:
        (read_header if path.name.casefold().endswith(MODELS) else Table)(path)
    except InputError as error:
        if not error.sheets:
            path.unlink()
            raise


def _folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Yield a folder and its subfolders, except hidden ones and those inside runs, where nothing of interest lies."""
    yield folder
    if depth < _DEEPEST and (depth == 0 or record.status_of(folder) is None):
        with os.scandir(folder) as entries:
            inner = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False) and one.name[0] != ".")
        for path in inner:
            yield from _folders(Path(path), depth + 1)
