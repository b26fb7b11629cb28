"""Rows of a table as text: where they end, how many cells they have, and how numbers are written in them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rindices.errors import InputError, counted

__all__ = [
    "KINDS_OF_FILES",
    "USUAL_SEPARATOR",
    "RowLengths",
    "end_of_rows",
    "has_decimal_comma",
    "separator_of",
    "split_header",
    "zeros_in",
]

KINDS_OF_FILES = ".csv, .tsv, .txt, .xlsx or .parquet"
USUAL_SEPARATOR = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_DIGIT, _BEFORE_NUMBER = np.zeros((2, 256), dtype=bool)
_DIGIT[list(b"0123456789")] = True
_BEFORE_NUMBER[list(b'\n\t,;" +-')] = True


def separator_of(text: str, kind: str) -> tuple[str, bool]:
    """Return the commonest candidate in the header, the usual one in a tie; and whether blanks separate the cells."""
    outside_quotes = re.sub(r'"[^"]*"', "", next(line for line in text.split("\n") if line.strip()))
    separator = max((USUAL_SEPARATOR[kind], ",", ";", "\t"), key=outside_quotes.count)
    if kind == ".txt" and separator not in outside_quotes and len(outside_quotes.split()) > 1:
        return "\t", True
    return separator, False


def split_header(body: str, separator: str) -> tuple[list[str], int]:
    """Return the cells of the first row, and how many characters it has."""
    lines = _Lines(body)
    header = next(csv.reader(lines, delimiter=separator))
    return [name.strip() for name in header], lines.taken


def end_of_rows(text: str, separator: str | None) -> int:
    """Return where the last row ends that is certainly complete; without a separator, every line is a row."""
    if separator is None or '"' not in text:
        return text.rfind("\n") + 1
    before, end, lines = 0, 0, _Lines(text)
    for _ in csv.reader(lines, delimiter=separator):
        before, end = end, lines.taken  # the last row may go on in what comes next
    return before


class _Lines:
    """The lines of a text, and how many characters of it were taken."""

    def __init__(self, text: str) -> None:
        self._lines, self.taken = io.StringIO(text, newline="\n"), 0

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.taken += len(line)
            yield line


class RowLengths:
    """Refuses rows with more or fewer cells than the header; pandas would shift or pad them without a word.

    Parameters
    ----------
    width
        Cells of the header.
    row
        Its number, as a spreadsheet shows it.
    """

    def __init__(self, width: int, row: int) -> None:
        self._width, self._row = width, row
        self._first: tuple[int, int] | None = None
        self._n_ragged, self._quoted = 0, False

    def add(self, body: bytes, separator: str) -> None:
        """Count the cells of some more rows."""
        lengths = _lengths(body, separator)
        ragged = np.flatnonzero((lengths != self._width) & (lengths != 0))
        if len(ragged) and self._first is None:
            self._first = self._row + 1 + int(ragged[0]), int(lengths[ragged[0]])
            self._quoted = b'"' in body
        self._n_ragged += len(ragged)
        self._row += len(lengths)

    def check(self, path: Path, separator: str) -> None:
        """Raise an InputError that names the first ragged row, if there was one."""
        if self._first is None:
            return
        row, length = self._first
        others = self._n_ragged - 1
        more = f", and {counted(others, 'more row is', 'more rows are')} like it" if others else ""
        mark = ", or a quotation mark without its partner" if self._quoted else ""
        comma = " Numbers with decimal commas need semicolons between the columns." if separator == "," else ""
        raise InputError(
            f"Row {row} of {path.name} has {counted(length, 'cell')}, but the header has {self._width} (separated by "
            f"{_SEPARATOR_NAMES[separator]}){more}.\n"
            f"Look for a missing or additional separator in that row{mark}.{comma}"
        )


def _lengths(body: bytes, separator: str) -> NDArray[np.int64]:
    """Return the number of cells of each row, 0 for an empty line."""
    if not body:
        return np.zeros(0, dtype=np.int64)
    if b'"' in body:
        rows = csv.reader(_Lines(body.decode()), delimiter=separator)
        return np.fromiter((0 if len(row) == 1 and not row[0].strip(" ") else len(row) for row in rows), np.int64)
    sign = separator.encode()
    lines = body.removesuffix(b"\n").split(b"\n")
    return np.fromiter((line.count(sign) + 1 if line.strip(b" ") else 0 for line in lines), np.int64, len(lines))


def has_decimal_comma(body: bytes, separator: str) -> bool:
    """Tell whether any cell is a number with a decimal comma."""
    if re.search(rb",[0-9]", body) is None:  # a hundred times faster than what follows
        return False
    edge = re.escape(separator.encode())
    return (
        re.search(rb'(?:^|[\n" ]|' + edge + rb")[+-]?[0-9]+,[0-9]+" + rb'(?=["\n ]|$|' + edge + rb")", body) is not None
    )


def zeros_in(body: bytes, separator: str, n_columns: int) -> set[int]:
    """Return the positions of the columns that may have whole numbers with leading zeros, such as the code 007.

    With quotation marks it is not known which columns they are: where there are such numbers at all, it is all.
    """
    signs = np.frombuffer(b"\n" + body, dtype=np.uint8)
    found = np.flatnonzero((signs[1:-1] == ord("0")) & _DIGIT[signs[2:]] & _BEFORE_NUMBER[signs[:-2]]) + 1
    if not len(found) or b'"' in body:
        return set(range(n_columns)) if len(found) else set()
    borders, ends = (np.flatnonzero(signs == ord(sign)) for sign in (separator, "\n"))
    starts = ends[np.searchsorted(ends, found) - 1]
    return set(np.unique(np.searchsorted(borders, found) - np.searchsorted(borders, starts)).tolist())
