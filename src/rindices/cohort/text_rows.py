"""Rows of a table as text: where they end, how many cells they have, and how numbers are written in them."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
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
    "lines_above",
    "separator_of",
    "split_header",
    "zeros_in",
]

KINDS_OF_FILES = ".csv, .tsv, .txt, .xlsx or .parquet"
USUAL_SEPARATOR = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_EXCEL = re.compile(r'"?sep=[,;\t]"?[ ,;\t]*\n', flags=re.IGNORECASE)
_MOST_LENGTHS = 12  # of rows, of which the first is kept
_NEARLY_ALL = 0.8  # of the rows, with another number of cells than the first line: then that is no header
_DIGIT, _BEFORE_NUMBER = np.zeros((2, 256), dtype=bool)
_DIGIT[list(b"0123456789")] = True
_BEFORE_NUMBER[list(b'\n\t,;" +-')] = True


def lines_above(text: str) -> int:
    r"""Return how many characters stand above the header: lines without a cell, and the line ``sep=;`` of Excel.

    Examples
    --------
    >>> lines_above(";;\nparticipant_id;age")
    3
    """
    above = _end_of_empty_lines(text, 0)
    excel = _EXCEL.match(text, above)
    return _end_of_empty_lines(text, excel.end()) if excel else above


def _end_of_empty_lines(text: str, start: int) -> int:
    cell = re.compile(r"[^ ,;\t\n]").search(text, start)
    return max(start, text.rfind("\n", start, cell.start() if cell else len(text)) + 1)


def separator_of(text: str, kind: str) -> tuple[str, bool]:
    """Return the commonest candidate in the header, the usual one in a tie; and whether blanks separate the cells.

    ``text`` begins with the header, or with a title above it, which has no separator.
    """
    lines = [re.sub(r'"[^"]*"', "", line) for line in text.split("\n", 20)[:20] if line.strip()]
    candidates = (USUAL_SEPARATOR[kind], ",", ";", "\t")
    split = [line for line in lines if kind != ".txt" and any(sign in line for sign in candidates)]
    outside_quotes = split[0] if len(split) > len(lines) / 2 else lines[0]
    separator = max(candidates, key=outside_quotes.count)
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
        self._width, self._row, self._header = width, row, row
        self._first: tuple[int, int] | None = None
        self._counts, self._quoted = Counter[int](), False
        self._starts: dict[int, tuple[int, list[str]]] = {}

    def add(self, body: bytes, separator: str) -> None:
        """Count the cells of some more rows."""
        lengths = _lengths(body, separator)
        ragged = np.flatnonzero((lengths != self._width) & (lengths != 0))
        if len(ragged) and self._first is None:
            self._first = self._row + 1 + int(ragged[0]), int(lengths[ragged[0]])
            self._quoted = b'"' in body
        for length, first, number in zip(*np.unique(lengths, return_index=True, return_counts=True), strict=True):
            self._counts[int(length)] += int(number)
            if len(ragged) and length not in self._starts and len(self._starts) < _MOST_LENGTHS:
                rows = csv.reader(_Lines(body.decode()), delimiter=separator)
                self._starts[int(length)] = self._row + 1 + int(first), next(islice(rows, int(first), None))
        self._row += len(lengths)

    def check(self, path: Path, separator: str) -> None:
        """Raise an InputError that names the first ragged row, if there was one."""
        if self._first is None:
            return
        row, length = self._first
        del self._counts[0]  # empty lines
        self._refuse_title(path, separator)
        others = self._counts.total() - self._counts[self._width] - 1
        more = f", and {counted(others, 'more row is', 'more rows are')} like it" if others else ""
        mark = ", or a quotation mark without its partner" if self._quoted else ""
        comma = " Numbers with decimal commas need semicolons between the columns." if separator == "," else ""
        raise InputError(
            f"Row {row} of {path.name} has {counted(length, 'cell')}, but the header has {self._width} (separated by "
            f"{_SEPARATOR_NAMES[separator]}){more}.\n"
            f"Look for a missing or additional separator in that row{mark}.{comma}"
        )

    def _refuse_title(self, path: Path, separator: str) -> None:
        """Refuse a first line that is no header: nearly all rows are of another length, the first of them of names."""
        length, number = self._counts.most_common(1)[0]
        row, cells = self._starts.get(length, (0, []))
        names = [cell for cell in cells if not re.fullmatch(r"\s*[+-]?[\d.,]+\s*", cell)]
        if length in (1, self._width) or len(names) < length or number < max(2, _NEARLY_ALL * self._counts.total()):
            return
        above = f"row {self._header}" if row == self._header + 1 else f"rows {self._header} to {row - 1}"
        raise InputError(
            f"Row {self._header} of {path.name} is no header: it has {counted(self._width, 'cell')}, but nearly all "
            f"rows below have {length} (separated by {_SEPARATOR_NAMES[separator]}).\n"
            f"Remove {above}, so that the names of the columns, which seem to be in row {row}, come first."
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
