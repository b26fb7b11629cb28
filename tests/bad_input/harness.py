"""One bad input per row: its files, the command, what its message must say, and what may be left behind."""

import functools
import io
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

MOST_LINES, MOST_CHARACTERS = 6, 900
FOLDER = object()  # in place of a file's content
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_INNER_NAMES = re.compile(r"\b[A-Z]\w*(?:Error|Exception|Warning|Interrupt)\b|Traceback|PosixPath|<class|0x[0-9a-f]{6}")
_JARGON = re.compile(
    r"(?i:\b(?:nan|dtype|dataframe|numpy|pandas|ndarray|float64|int64|errno|codec|unicode|tensor|keyword argument)\b)"
    r"|\bNone\b|\bshape \("
)

Content = Any  # text, bytes, a table, a path, FOLDER, None, or a function that makes one of these from the table


@dataclass(frozen=True)
class Case:
    """A bad input.

    Attributes
    ----------
    name
        The name of the test.
    line
        The command line after ``rindices``, which runs in its own folder.
    found
        What the message must say about the problem: column, row, value.
    remedy
        What the message must say about the remedy.
    files
        Files in the folder besides the usual table ``people.csv``, which may be replaced (None: absent).
    code
        The exit code: 2 for bad input, 3 for internal errors, 0 for accepted input, where the message is the output.
    spoil
        A function that makes part of the system fail.
    writes
        Files that may be created or changed.
    """

    name: str
    line: str
    found: tuple[str, ...] | str = ()
    remedy: str = ""
    files: Mapping[str, Content] = field(default_factory=dict)
    code: int = 2
    spoil: Callable[[pytest.MonkeyPatch], None] | None = None
    writes: tuple[str, ...] = ()


def cases(*rows: Case) -> pytest.MarkDecorator:
    """Return the parametrization of a table of cases."""
    return pytest.mark.parametrize("case", rows, ids=[row.name for row in rows])


def fit(name: str, change: Content, found: tuple[str, ...] | str, remedy: str, options: str = "", **rest: Any) -> Case:
    """Return a case of `rindices fit` with a changed table."""
    files = dict(rest.pop("files", {})) | ({} if change is None else {"people.csv": change})
    return Case(name, f"fit people.csv --out run {options}", found, remedy, files, **rest)


def cell(column: str, position: int, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that changes one cell; person 0 is row 2."""

    def change(people: pd.DataFrame) -> pd.DataFrame:
        people = people.astype({column: object})
        people.loc[position, column] = value
        return people

    return change


def assigned(**columns: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that assigns columns, each a value or computed from the table."""
    return lambda people: people.assign(**columns)


def both(*changes: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that makes several changes."""

    def change(people: pd.DataFrame) -> pd.DataFrame:
        for one in changes:
            people = one(people)
        return people

    return change


def as_text(people: pd.DataFrame, **options: Any) -> str:
    """Return the table as CSV."""
    return people.to_csv(index=False, **options)


def refuse_opening(error: int, name: str, modes: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a function that makes opening fail for files with `name` in their path and one of `modes` in the mode."""

    def spoil(monkeypatch: pytest.MonkeyPatch) -> None:
        usual = io.open

        def opened(file: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
            if isinstance(file, str | Path) and name in str(file) and any(letter in mode for letter in modes):
                raise OSError(error, os.strerror(error), str(file))
            return usual(file, mode, *rest, **options)

        monkeypatch.setattr("io.open", opened)
        monkeypatch.setattr("builtins.open", opened)

    return spoil


def write(path: Path, content: Content, people: pd.DataFrame) -> None:
    """Write a file or folder of a case."""
    if callable(content):
        content = content(people.copy())
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is FOLDER:
        path.mkdir()
    elif isinstance(content, Path):
        (shutil.copytree if content.is_dir() else shutil.copy)(content, path)
    elif isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def listing(folder: Path) -> dict[str, bytes | None]:
    """Return all files and folders in a folder, with the files' content."""
    return {
        str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def attempt(app: typer.Typer, case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[str]]:
    """Run the command of a case in its folder; return its message and everything that is wrong with it."""
    scratch = folder.parent / f"{folder.name}-scratch"
    scratch.mkdir()
    before, arguments = listing(folder), shlex.split(case.line)
    with monkeypatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(tempfile, "tempdir", str(scratch))
        if case.spoil is not None:
            case.spoil(patched)
        result = CliRunner().invoke(app, arguments)
    told = {arguments[0], *re.findall(r"rindices ([a-z-]+)", result.output)}  # a remedy may be another command
    complaints = _complaints(case, result, set().union({"--help"}, *(_options(app).get(name, set()) for name in told)))
    after = listing(folder)
    touched = sorted({*before, *after} - {*case.writes})
    changed = [name for name in touched if before.get(name, b"?") != after.get(name, b"?")]
    complaints += [f"left behind or changed: {name}" for name in changed]
    complaints += [f"left in the temporary folder: {path.name}" for path in scratch.iterdir()]
    return result.stderr if case.code else result.output, complaints


@functools.cache
def _options(app: typer.Typer) -> dict[str, set[str]]:
    commands: Any = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {
        name: {option for parameter in command.params for option in parameter.opts}
        for name, command in commands.items()
    }


def _complaints(case: Case, result: Any, options: set[str]) -> list[str]:
    message = result.stderr if case.code else result.output
    words = " ".join(message.split())
    found = (case.found,) if isinstance(case.found, str) else case.found
    complaints = [] if result.exit_code == case.code else [f"exit code {result.exit_code}, expected {case.code}"]
    complaints += [f"does not say {part!r}" for part in (*found, case.remedy) if part not in words]
    complaints += [f"has the inner name {name!r}" for name in _INNER_NAMES.findall(result.output)]
    typed = case.line.casefold()
    complaints += [f"has the jargon {name!r}" for name in _JARGON.findall(message) if name.casefold() not in typed]
    unknown = [name for name in _OPTION.findall(message) if name not in options and name not in case.line]
    if case.code:
        complaints += [f"names {name}, which the command has not" for name in unknown]
        lines = [line for line in message.splitlines() if line.strip()]
        complaints += [f"has {len(lines)} lines"] if len(lines) > MOST_LINES else []
        complaints += [f"has {len(message)} characters"] if len(message) > MOST_CHARACTERS else []
        complaints += [] if case.remedy else ["no remedy is asked for"]
    return complaints
