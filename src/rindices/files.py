"""Files written completely or not at all, arrays with a checksum, and cells that no spreadsheet executes.

To a spreadsheet, a cell that begins with ``=``, ``+``, ``-`` or ``@`` is a formula, and a formula can start programs or
send cells elsewhere. Such a cell is written with a leading apostrophe. The same applies to text that follows a
semicolon, tab or line break within a cell, because a spreadsheet that takes these for delimiters would start a cell
there. Quotation marks, spaces and invisible characters before the sign make no difference, nor does its width (``＝``).
Plain numbers (``-1``, ``+2.5``, ``-1e3``) and single signs (``+`` for "amyloid positive") are harmless and unchanged.

`plain_text` is the exact inverse of `guarded_text`, for every text. All tables are written guarded and read plain,
including those of users. What rindices wrote is thus read as it was, and an id that is already guarded in a table
(``'=x``) is read without the apostrophe and written with it again.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rindices.problems import InputError, Remedy

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

_HERE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]  # process ids are meaningful on one machine only
_LONGEST_NAME = 150  # of a file, in the name of its half-written version; file systems allow 255 bytes
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)  # seconds before renaming is tried again
_half_written: set[Path] = set()


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file next to `path` to write to; it becomes `path` only if nothing went wrong.

    The temporary file already exists and is empty; its name is unpredictable, and only this user may read it. When it
    becomes `path`, it gets the permissions of the file that it replaces, or those of any new file. Files left by killed
    processes are removed first. If `path` is a link that belongs to this user, its target is replaced, and the link
    remains.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder, "scores.csv")) as beside:
    ...         _ = beside.write_text("r1")
    ...     print(Path(folder, "scores.csv").read_text())
    r1
    """
    check_writable(Path(path))
    path = _link_target(Path(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    name = f".{path.name[:_LONGEST_NAME]}."
    _remove_abandoned(path.parent, name, ".partial")
    beside = path.with_name(f"{name}{_HERE}-{os.getpid()}-{secrets.token_hex(8)}.partial")
    _half_written.add(beside)
    try:
        rights = _make_private(beside, like=path)
        yield beside
        _flush(beside)
        with contextlib.suppress(OSError):  # some network drives have no permissions
            beside.chmod(rights)
        _rename(beside, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # a failed write, as on a full disk, does not name the file
        raise
    finally:
        beside.unlink(missing_ok=True)
        _half_written.discard(beside)


def write_text(path: Path, text: str) -> None:
    """Write a text file, completely or not at all."""
    with atomic_file(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Yield an empty folder that only this user may enter; it is removed at the end, or after a kill by the next run.

    Examples
    --------
    >>> with private_folder() as folder:
    ...     _ = Path(folder, "scores.csv").write_text("r1")
    >>> folder.exists()
    False
    """
    _remove_abandoned(Path(tempfile.gettempdir()), "rindices-", "")
    with tempfile.TemporaryDirectory(prefix=f"rindices-{_HERE}-{os.getpid()}-") as name:
        yield Path(name)


def remove_half_written() -> None:
    """Remove all files that are currently being written, for a process that ends at once."""
    for beside in tuple(_half_written):
        with contextlib.suppress(OSError):
            beside.unlink()


def _make_private(beside: Path, like: Path) -> int:
    """Create an empty file for this user only; return the permissions of the file it will replace, or of a new one."""
    replaced = like.exists() and not like.is_symlink()
    given = stat.S_IMODE(like.lstat().st_mode) if replaced else 0o666
    # Anyone who can open it while it is still empty may read the finished file anyway.
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, given))
    rights = given if replaced else stat.S_IMODE(beside.stat().st_mode)
    with contextlib.suppress(OSError):
        beside.chmod(0o600)
    return rights


def _remove_abandoned(folder: Path, beginning: str, end: str) -> None:
    """Remove files in a folder that were left half-written by processes of this machine that have ended."""
    if os.name == "nt":  # it is unknown which processes are alive
        return
    ours = re.compile(rf"{re.escape(beginning)}{_HERE}-(\d{{1,9}})-\w+{re.escape(end)}")
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = ours.fullmatch(entry.name)
            if match and entry.stat(follow_symlinks=False).st_uid == os.getuid() and not may_be_alive(int(match[1])):
                remove = shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink
                remove(entry.path)


def may_be_alive(process: int) -> bool:
    """Return whether there may be a process with this id; Windows has no harmless way to find out."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except OSError as error:
        return isinstance(error, PermissionError)  # it belongs to another user
    return True


def _flush(path: Path) -> None:
    """Flush a file to disk, so that even a power failure leaves either the old or the new file complete."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _rename(beside: Path, path: Path) -> None:
    """Replace a file, trying repeatedly: Windows and network drives refuse while somebody is reading it."""
    for pause in _PAUSES:
        with contextlib.suppress(PermissionError):
            beside.replace(path)
            return
        time.sleep(pause)
    beside.replace(path)


def write_arrays(path: Path, texts: Mapping[str, str], signed: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Write a safetensors file with a `checksum`; the same contents always give the same bytes.

    Parameters
    ----------
    path
        The file to write.
    texts, arrays
        The contents of the file.
    signed
        The text that the checksum covers in addition to the arrays.
    """
    from numpy import ascontiguousarray
    from safetensors.numpy import save

    arrays = {name: ascontiguousarray(array) for name, array in arrays.items()}
    content = save(arrays, {**texts, "sha256": checksum(signed, arrays)})
    start = 8 + int.from_bytes(content[:8], "little")
    # The library writes the header in arbitrary order. Arrays begin at a multiple of eight bytes.
    head = json.dumps(json.loads(content[8:start]), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % 8)
    with atomic_file(path) as beside:
        beside.write_bytes(len(head).to_bytes(8, "little") + head + content[start:])


def read_arrays(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Return the texts and arrays of a safetensors file; the caller compares the checksum.

    Raises
    ------
    OSError
        If the file cannot be read, because it is missing, damaged or of another type.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError) as error:
        raise OSError(f"{path} is not a complete safetensors file: {error}") from error


def checksum(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    """Return the checksum of a text and of the names, types, shapes and values of arrays."""
    digest = hashlib.sha256(text.encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()


def write_csv(table: pd.DataFrame, path: Path, *, digits: int = 6) -> Path:
    """Write a table without its index, completely or not at all, with `digits` significant digits; return its path.

    Text that a spreadsheet would execute gets a leading apostrophe, which rindices removes on reading (see above).
    """
    write_csv_parts([table], path, digits=digits)
    return path


def write_csv_parts(tables: Iterable[pd.DataFrame], path: Path, *, digits: int = 6) -> None:
    """Write tables with the same columns as one, each as it arrives; otherwise like `write_csv`."""
    with atomic_file(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
        for position, table in enumerate(tables):
            guarded(table).to_csv(
                file,
                index=False,
                header=position == 0,
                float_format=f"%.{digits}g",
                quoting=csv.QUOTE_ALL if _breaks_rows(table) else csv.QUOTE_MINIMAL,
                lineterminator="\n",
            )


def _breaks_rows(table: pd.DataFrame) -> bool:
    """Return whether a cell has a carriage return: to readers it ends a row, but Python 3.11 does not quote it."""
    texts = table.select_dtypes(exclude=["number", "bool"])
    return any("\r" in str(cell) for column in (table.columns, *(texts[name] for name in texts)) for cell in column)


def check_writable(path: Path, name: str = "out") -> None:
    """Refuse, before any work is done, a file that cannot be written; `name` is the setting that named it."""
    if path.exists() and not path.is_file():  # the temporary file would replace it
        what = "a folder" if path.is_dir() else "a device, a pipe or a socket"
        raise InputError(f"{path} is {what}, not a regular file.\nProvide a file name with ", Remedy(name), ".")
    parent = next((folder for folder in _link_target(path, name).absolute().parents if folder.exists()), None)
    if parent is None:
        raise InputError(
            f"The drive in the path {path} does not exist.\nChoose another location with ", Remedy(name), "."
        )
    if not parent.is_dir() or not _is_writable(parent):
        what = f"The folder {parent} is not writable" if parent.is_dir() else f"{parent} is a file, not a folder"
        raise InputError(f"{what}.\nChoose another location with ", Remedy(name), ".")


def _is_writable(folder: Path) -> bool:
    """Return whether a file can be created in a folder, by trying: not every disk reports true permissions."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return os.access(folder, os.W_OK)
    except OSError:
        return False


def _link_target(path: Path, name: str = "out", most_links: int = 40) -> Path:
    """Return the target of a link; refuse links of other users, which could lead to unintended files."""
    if not path.is_symlink():
        return path
    if os.name != "nt" and path.lstat().st_uid != os.getuid():
        raise InputError(
            f"{path} is a link created by another user.\nProvide the file that it points to with ", Remedy(name), "."
        )
    if not most_links:
        raise InputError(
            f"The link {path} does not point to a file, only to other links.\nChoose another file with ",
            Remedy(name),
            ".",
        )
    return _link_target(path.parent / path.readlink(), name, most_links - 1)


def check_folder(path: Path | None, name: str) -> None:
    """Refuse, before any work is done, a folder that cannot be created; `name` is the setting that named it."""
    if path is not None:
        check_writable(path / "figure.svg", name)


def refuse_same(out: Path, *inputs: Path, name: str = "out") -> None:
    """Refuse to overwrite an input; `name` is the setting that named `out`."""
    there = [path for path in inputs if path.exists() and out.exists()]  # on a Mac People.csv may be people.csv
    if out.resolve() in [path.resolve() for path in inputs] or any(map(out.samefile, there)):
        raise InputError(f"Writing {out} would overwrite an input file.\nChoose another file with ", Remedy(name), ".")


_BORDERS = "\t\r\n"
_UNSEEN = "\x00-\x08\x0b\x0c\x0e-\x20\x7f\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
_BEFORE = rf"[{_UNSEEN}\"']*"
_HARMLESS = r"(?:[=+\-@]|[+\-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?)"
_FORMULA = rf"(?={_BEFORE}[=+\-@＝＋－＠])(?!{_HARMLESS}(?:[;{_BORDERS}]|\Z))"
_EMPTY = rf"(?={_BEFORE}[{_BORDERS}])"  # nothing visible before the first border: the first cell is what follows it
_BEGIN = rf"(?<![^;{_BORDERS}])"
_TO_GUARD = re.compile(rf"\A{_EMPTY}|{_BEGIN}{_FORMULA}")
# The apostrophe is one of the signs that may precede a formula. A text that already has one therefore gets another, and
# only added ones are removed again.
_GUARDED = re.compile(rf"\A'{_EMPTY}|{_BEGIN}'{_FORMULA}")
_SUSPECT = re.compile(rf"\A[^0-9A-Za-z]|[;{_BORDERS}]")  # other text needs no closer look


def guarded_text(text: str) -> str:
    r"""Return a text that no spreadsheet executes.

    Examples
    --------
    >>> [guarded_text(text) for text in ("=1+1", "-1", "sub-01", "'=x", "+49 123", "AD;@x")]
    ["'=1+1", '-1', 'sub-01', "''=x", "'+49 123", "AD;'@x"]
    """
    return _TO_GUARD.sub("'", text) if _SUSPECT.search(text) else text


def plain_text(text: str) -> str:
    """Return a text as it was before `guarded_text`.

    Examples
    --------
    >>> [plain_text(text) for text in ("'=1+1", "-1", "''=x", "'quoted'")]
    ['=1+1', '-1', "'=x", "'quoted'"]
    """
    return _GUARDED.sub("", text) if "'" in text else text


def guarded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose text cells and column names contain nothing that a spreadsheet executes.

    Examples
    --------
    >>> import pandas as pd
    >>> guarded(pd.DataFrame({"@id": ["=1+1", "sub-01"], "r1": [-0.5, 0.5]})).to_csv(index=False).split()
    ["'@id,r1", "'=1+1,-0.5", 'sub-01,0.5']
    """
    return _everywhere(table, guarded_text)


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was before `guarded`.

    Examples
    --------
    >>> import pandas as pd
    >>> plain(pd.DataFrame({"'@id": ["'=1+1", "sub-01"]})).to_dict("list")
    {'@id': ['=1+1', 'sub-01']}
    """
    return _everywhere(table, plain_text)


def plain_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose cells are as before `guarded`, if its column names already are."""
    return _cells(table, plain_text)


def _everywhere(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    return _cells(table, change).rename(columns=lambda name: change(name) if isinstance(name, str) else name)


def _cells(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    changed = table.copy(deep=False)
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        if column.dtype.kind == "O":  # text, categories, or cells of several kinds
            new = {cell: change(cell) for cell in dict.fromkeys(column) if isinstance(cell, str)}
            if any(after != before for before, after in new.items()):
                cells = column.astype(object).map(lambda cell, new=new: new.get(cell, cell))
                changed.isetitem(position, cells.to_numpy(dtype=object))
    return changed
