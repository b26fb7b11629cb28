"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rindices.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["atomic_file", "check_folder", "check_writable", "refuse_same", "write_csv"]


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a place beside `path` to write to; it becomes `path` only if nothing went wrong.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "scores.csv")) as beside:
    ...         _ = beside.write_text("r1")
    ...     print(Path(folder, "scores.csv").read_text())
    r1
    """
    path = Path(path)
    check_writable(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        yield beside
        _flush(beside)
        beside.replace(path)
        with contextlib.suppress(OSError):  # the file is there; some network drives cannot flush a folder
            _flush(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """See that a file, or the names in a folder, outlive a loss of power."""
    if path.is_dir() and os.name == "nt":  # folders cannot be opened there
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_csv(table: pd.DataFrame, path: Path, *, index: bool = True, digits: int = 6) -> None:
    """Write a table beside `path`, then rename; numbers have so many significant digits."""
    with atomic_file(path) as beside:
        table.to_csv(beside, float_format=f"%.{digits}g", index=index, encoding="utf-8")


def check_writable(path: Path) -> None:
    """Refuse, before any work is done, a file that cannot be written."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, but a file is needed.\nGive the name of a file with --out.")
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise InputError(f"{parent} is a file, so {path} cannot be made below it.\nChoose another place with --out.")
    if not os.access(parent, os.W_OK):
        raise InputError(f"The folder {parent} cannot be written to.\nChoose another place with --out.")


def check_folder(path: Path | None, option: str) -> None:
    """Refuse, before any work is done, a folder that cannot be made."""
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, but {option} needs a folder.\nGive the name of a folder.")
    check_writable(path / "figure.svg")


def refuse_same(out: Path, *inputs: Path) -> None:
    """Refuse to write over what is read."""
    for path in inputs:
        if out.resolve() == path.resolve():
            raise InputError(f"{out} would replace the file that is read.\nChoose another file with --out.")
