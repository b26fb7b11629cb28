"""Torch's zip archives read without torch, and without running anything that is in them.

Torch stores the entries of an archive as they are, never compressed. So is it demanded here: what is read can then
not be larger than the file, whatever sizes it claims.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from rindices.interop.pickle_machine import ArchiveError, plain, run_pickle
from rindices.interop.rebuild import rules

__all__ = ["ArchiveError", "read_archive"]

MOST_BYTES = 1 << 28  # a published checkpoint has about 300 kB
MOST_ENTRIES = 20_000
MOST_PICKLE_BYTES = 1 << 23
_ENCRYPTED = 0x1
_ZIP_START = b"PK\x03\x04"
_ZIP_TROUBLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


def read_archive(path: str | Path) -> Any:
    """Return what a torch checkpoint holds: dictionaries, lists, numbers, text and NumPy arrays.

    Parameters
    ----------
    path
        A file that ``torch.save`` of torch 1.6 or later wrote.

    Raises
    ------
    ArchiveError
        If the file holds anything but numbers and text in plain containers, is damaged, or is made to do harm.
        Nothing in it has been run then.
    """
    path = Path(path)
    _check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(archive, path.stat().st_size).load()
    except ArchiveError as error:
        raise ArchiveError(f"{path} was not read: {error}.\nNothing in it was run.") from error
    except _ZIP_TROUBLE as error:
        raise ArchiveError(
            f"{path} was not read: the archive is truncated or damaged ({plain(error)}).\nCopy it again."
        ) from error


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise ArchiveError(f"There is no checkpoint {path}.\nGive a file that torch.save wrote.")
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ArchiveError(f"{path} was not read: it has {size} bytes, more than {MOST_BYTES}.")
    with path.open("rb") as file:
        start = file.read(len(_ZIP_START))
    if start != _ZIP_START:
        raise ArchiveError(
            f"{path} is not a zip archive, as torch has written them since version 1.6.\n"
            "If it is an older checkpoint that you trust, load it in torch and save it again."
        )


class _Archive:
    """An open archive whose table of contents has been checked."""

    def __init__(self, archive: zipfile.ZipFile, size: int) -> None:
        self.archive = archive
        entries = archive.infolist()
        if len(entries) > MOST_ENTRIES:
            raise ArchiveError(f"it has {len(entries)} entries, more than {MOST_ENTRIES}")
        for entry in entries:
            _check_entry(entry)
        self.entries = {entry.filename: entry for entry in entries}
        if len(self.entries) != len(entries):
            raise ArchiveError("two of its entries have the same name")
        if sum(entry.file_size for entry in entries) > size:
            raise ArchiveError("its entries claim to be larger than the file")
        folders = {name.split("/", 1)[0] for name in self.entries}
        if len(folders) != 1:
            raise ArchiveError(f"it should hold one folder, found {len(folders)}")
        self.folder = folders.pop()

    def load(self) -> Any:
        """Read the pickle, and through it the stored tensors."""
        if f"{self.folder}/data.pkl" not in self.entries:
            raise ArchiveError("it is no torch checkpoint: it holds no data.pkl")
        if f"{self.folder}/constants.pkl" in self.entries:
            raise ArchiveError("it is a program (TorchScript), not a checkpoint")
        if f"{self.folder}/byteorder" in self.entries:
            order = self.read("byteorder", 16)
            if order != b"little":
                raise ArchiveError(
                    f"its numbers are in the byte order {plain(order.decode('latin1'))}, but only little is read"
                )
        return run_pickle(self.read("data.pkl", MOST_PICKLE_BYTES), rules(self.read_block))

    def read_block(self, key: str) -> bytes:
        """Return the bytes of a stored tensor."""
        if not (key.isascii() and key.isdigit()):
            raise ArchiveError(f"it looks for tensor data under the name {plain(key)}")
        return self.read(f"data/{key}", MOST_BYTES)

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of one entry; its checksum is compared by `zipfile`."""
        entry = self.entries.get(f"{self.folder}/{name}")
        if entry is None:
            raise ArchiveError(f"its entry {name} is missing")
        if entry.file_size > most:
            raise ArchiveError(f"its entry {name} has {entry.file_size} bytes, more than {most}")
        with self.archive.open(entry) as file:
            data = file.read(entry.file_size + 1)
        if len(data) != entry.file_size:
            raise ArchiveError(f"its entry {name} has {len(data)} bytes instead of {entry.file_size}")
        return data


def _check_entry(entry: zipfile.ZipInfo) -> None:
    name = plain(entry.filename)
    # The name as written: `zipfile` cuts it at a zero byte and turns separators.
    parts = entry.orig_filename.split("/")
    if "\\" in entry.orig_filename or "\0" in entry.orig_filename or ":" in entry.orig_filename:
        raise ArchiveError(f"its entry {name} has a name that no checkpoint has")
    if len(parts) < 2 or any(part in ("", ".", "..") for part in parts):
        raise ArchiveError(f"its entry {name} is not a file in a folder")
    if entry.flag_bits & _ENCRYPTED:
        raise ArchiveError(f"its entry {name} is encrypted")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise ArchiveError(f"its entry {name} is compressed, which torch never does")
