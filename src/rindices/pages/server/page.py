"""What all pages share: the opened folder, what can be reached in it or put into it, and how pages are rendered."""

import hashlib
import os
import secrets
import shlex
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
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
from rindices.value_kinds import settings_of

MOST_BYTES = 512 * 2**20  # of one file that is put into the folder
_LONGEST = 255  # bytes of a name, as file systems have it
_NUMBER = 15  # of them are kept free: another file of the same name gets a number
TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".xlsm", ".parquet", ".csv.gz", ".tsv.gz")
MODELS = (".safetensors",)


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
    if any(len(os.fsencode(part)) > _LONGEST for part in parts):
        raise InputError(f"The name {name[:20]!r} ... is too long.\nChoose a shorter one.")
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
    if len(os.fsencode(plain)) > (longest := _LONGEST - _NUMBER):
        raise InputError(f"The file name {plain[:20]!r} ... is longer than {longest} bytes.\nRename the file.")
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
            await run_in_threadpool(_check_received, path)
    finally:
        beside.unlink(missing_ok=True)
    return path.name


def _check_received(path: Path) -> None:
    """Refuse, and remove, a file that cannot be read; of several sheets one can still be chosen."""
    try:
        (read_header if path.name.casefold().endswith(MODELS) else Table)(path)
    except InputError as error:
        if not error.sheets:
            path.unlink()
            raise


def _same(path: Path, size: int, digest: str) -> bool:
    if not path.is_file() or path.stat().st_size != size:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == digest


_DEEPEST = 2  # folders of folders are looked into
_DAY = "%Y-%m-%d %H:%M"


_PATIENCE, _KEPT = 0.2, 12  # seconds until a page says that it takes longer; results that are kept
_beside = ThreadPoolExecutor(1)  # pictures and warnings have settings of the process, which two would change
_soon: dict[Hashable, Future[Any]] = {}
Made = TypeVar("Made")


# What a page calls each setting: a role, a field of a form, or one of its buttons.
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
    """Write a setting as the page calls it, with a number that would help; one that it does not have is an option.

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
    """The folder that was opened, and how the command line is spoken and called.

    Attributes
    ----------
    folder
        Where tables and runs are.
    wording
        How a setting is written on the command line.
    program
        Words by which the command line is started.
    children
        Processes that were started from here, by the name of their run.
    """

    folder: Path
    wording: Wording
    program: tuple[str, ...]
    children: dict[str, Popen[bytes]] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """Return a file or folder of the folder; all else is refused."""
        return inside(self.folder, name)

    def parts(self, name: str) -> tuple[Part, ...]:
        """Return the tables of the folder that a name stands for, each with its label; none where it is one table."""
        can_be_one = len(os.fsencode(name)) <= _LONGEST  # several may be longer together than a file can be called
        named = () if can_be_one and self.path(name).exists() else labelled_parts(name)
        return tuple(Part(label, self.path(path.as_posix())) for label, path in named)

    def table(self, name: str) -> Path:
        """Return a table of the folder, or what stands for several of them."""
        parts = self.parts(name)
        return Path(",".join(f"{label}={path}" for label, path in parts)) if parts else self.path(name)

    def name(self, path: str | Path) -> str:
        """Return what a file of the folder is called here."""
        return Path(path).relative_to(self.folder).as_posix()

    def words(self, command: str, *names: str, **settings: Value) -> list[str]:
        """Return the words of a command with some settings; those that are None are left out.

        Files come first; one that is called like an option is not taken for one.
        """
        apart = [[f"{label}={self.name(path)}" for label, path in self.parts(name)] or [name] for name in names]
        files = [f"./{name}" if name.startswith("-") else name for several in apart for name in several]
        given = {name: value for name, value in settings.items() if value is not None}
        options = (self.wording(Remedy(*pair)) for pair in given.items())
        return [command, *files, *(word for option in options for word in shlex.split(option))]

    def said(self, text: Text) -> str:
        """Return a message as the page says it."""
        return worded(text, on_page)


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return an address of ours with a query."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


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
    shown = {"title": title, "desk": desk, "address": address, "endings": ", ".join(TABLES)} | dict(contents)
    shown["command"] = " ".join(map(quoted, ["rindices", *command])) if command else ""
    return HTMLResponse(render(f"server/{template}.html.j2", **shown), status)


def trouble(desk: Desk, message: Text, status: int = 400, **more: object) -> HTMLResponse:
    """Return a page that says what was wrong with what was asked for, and may have buttons that help."""
    return page(
        desk,
        "trouble",
        "This is not possible",
        {"text": desk.said(message), "buttons": (), "query": ""} | more,
        status=status,
    )


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
    if future not in wait([future], timeout=_PATIENCE).done:
        raise NotYet
    if future.exception():  # what went wrong may be mended by then, so it is tried again
        _soon.pop(key, None)
    return future.result()


def busy(desk: Desk) -> HTMLResponse:
    """Return a page that asks again."""
    return page(desk, "busy", "One moment", {}, status=202)


def files_of(desk: Desk, endings: tuple[str, ...]) -> list[str]:
    """Return the names of the files of the folder that end so; of those that a run wrote, its finished model."""
    found = []
    for folder in _folders(desk.folder):
        status = record.status_of(folder)
        for path in sorted(folder.iterdir()):
            named = path.name.casefold().endswith(endings) and not path.name.startswith(".")
            if named and path.is_file() and (status is None or (status, path.name) == (record.DONE, record.MODEL)):
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


def free_name(desk: Desk, stem: str, *endings: str) -> str:
    """Return a stem that no file of the folder has with any of these endings."""
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in range(1, 10_000))
    return next(name for name in numbered if not any(desk.path(f"{name}{ending}").exists() for ending in endings))


def _folders(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Give a folder and those in it; not those of runs, which have none that matter, nor hidden ones."""
    yield folder
    if depth < _DEEPEST and (depth == 0 or record.status_of(folder) is None):
        with os.scandir(folder) as entries:
            inner = sorted(one.path for one in entries if one.is_dir(follow_symlinks=False) and one.name[0] != ".")
        for path in inner:
            yield from _folders(Path(path), depth + 1)
