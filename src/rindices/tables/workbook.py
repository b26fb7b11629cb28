"""Tables in Excel workbooks: the values that are shown, never macros, links or formulas.

What a cell holds becomes what the table would have as CSV. Before anything is unpacked, a look at the archive tells
whether it is a workbook, and one that can be opened without fear.
"""

import re
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.files import plain_cells
from rindices.problems import InputError, counted, did_you_mean, listed
from rindices.schema.cells import MISSING_TEXT
from rindices.tables.text import LARGEST_RATIO, named_columns

WORKBOOKS = (".xlsx", ".xlsm")
# Sheets are read row by row; all else, such as the list of texts, is held in memory. Excel's own files are far smaller.
_MOST_IN_SHEETS, _MOST_ELSEWHERE = 1_000_000_000, 100_000_000
_LARGE = 10_000_000
_LAST_ROW = 1_048_576  # of any workbook; a damaged one may claim more
_ERRORS = frozenset(
    {"#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!"}
    | {"#CONNECT!", "#UNKNOWN!", "#BUSY!", "#GETTING_DATA"}
)


class Workbook:
    """A table in a workbook; see `rindices.tables.text.TextFile`. The header is the first row that is not empty.

    Parameters
    ----------
    path
        The file.
    sheet
        Name of the sheet; the only one that is not empty, if it is None.
    text_columns
        Columns in which numbers are written as they are shown: 7 with the format 000 is the id 007.

    Raises
    ------
    InputError
        If it cannot be read, or if the sheet is not one table.
    """

    decimal_comma = False

    def __init__(self, path: Path, sheet: str | None, text_columns: Collection[str]) -> None:
        _check_archive(path)
        with _opened(path) as book:
            title = _sheet_of(book, path, sheet)
            self._where, self._values = f"sheet {title!r} of {path.name}", dict[int, list[Any]]()
            rows = ((number, row) for number, row in _numbered(book[title]) if row)
            first, header = next(rows)
            names = [_text(cell.value) for cell in header]
            for number, row in rows:
                self._refuse_nameless(row, first, names)
                named = zip(row, names, strict=False)
                self._values[number] = [_shown(cell) if name in text_columns else cell.value for cell, name in named]
        self.names = named_columns(names, path)
        formulas = []
        if any(len(row) < len(names) or None in row for row in self._values.values()):
            with _opened(path, data_only=False) as book:
                below = (row for number, row in _numbered(book[title]) if number > first)
                formulas = [cell for row in below for cell in row[: len(names)] if cell.data_type == "f"]
        self._refuse_errors(formulas)

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield all rows at once; columns in which every cell is a number are float64."""
        columns = zip_longest(*self._values.values(), self.names)  # the names make it as wide as the header
        cells = {name: _column(column[:-1]) for name, column in zip(self.names, columns, strict=True)}
        frame = pd.DataFrame(cells).set_axis(np.array(list(self._values), dtype=np.int64) - 2, axis=0)
        yield 1.0, plain_cells(frame[~frame.isin(MISSING_TEXT | {np.nan}).all(axis=1)])

    def _refuse_nameless(self, row: Sequence[Any], first: int, names: Sequence[str]) -> None:
        """Refuse cells below no name: then the header is not where it should be, or its cells were merged."""
        for cell, name in zip_longest(row, names[: len(row)]):
            # A first column without a name is what programs write for row numbers.
            if not name and _text(cell.value) and any(names[: cell.column - 1]):
                raise InputError(
                    f"The column of cell {cell.coordinate} of {self._where} has no name in row {first}, the first that "
                    "is not empty.\nThat row should contain the names of all columns: remove titles above them, "
                    "undo merged "
                    "cells, and name or delete the column."
                )

    def _refuse_errors(self, formulas: Sequence[Any]) -> None:
        """Refuse cells such as #DIV/0!, and formulas without a result."""
        bad = [
            (name, number, f"the error {value}")
            for number, row in self._values.items()
            for name, value in zip(self.names, row, strict=False)
            if isinstance(value, str) and value in _ERRORS
        ]
        bad += [
            (self.names[cell.column - 1], cell.row, "a formula whose result is not in the file")
            for cell in formulas
            if self._values.get(cell.row, [])[cell.column - 1 : cell.column] in ([], [None])
        ]
        if bad:
            columns = list(dict.fromkeys(name for name, _, _ in bad))
            more = f", and {counted(len(bad) - 1, 'more cell')} like it" if len(bad) > 1 else ""
            others = f" (columns {listed(columns)})" if len(columns) > 1 else ""
            raise InputError(
                f"Column {columns[0]!r} of {self._where} has {bad[0][2]} in row {bad[0][1]}{more}{others}.\n"
                "Correct the formula, or leave the cell empty if the value is missing; open the workbook in the "
                "spreadsheet program and save it again."
            )


def _numbered(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield each row with its number: its cells up to the last that is not empty."""
    sheet.reset_dimensions()  # what a file claims about its size may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_LAST_ROW), start=1):
        width = len(row)
        while width and not _text(row[width - 1].value):
            width -= 1
        yield number, row[:width]


def _column(values: Sequence[Any]) -> pd.Series:
    if {type(value) for value in values} - {type(None)} in ({int}, {float}, {int, float}):
        return pd.Series(values, dtype=np.float64)
    return pd.Series([_text(value) or np.nan for value in values], dtype=object)


def _shown(cell: Any) -> str | None:
    form = cell.number_format or ""
    zeros = len(form) if re.fullmatch("0{2,}", form) and type(cell.value) in (int, float) else 0
    return None if cell.value is None else _text(cell.value).zfill(zeros)


def _text(value: Any) -> str:
    """Return a value as a spreadsheet program would write it into a CSV file."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        return str(value.date())
    return "" if value is None else str(value).strip()


def _sheet_of(book: Any, path: Path, wanted: str | None) -> str:
    """Return the name of the sheet that is meant."""
    sheets = {sheet.title: sheet for sheet in book.worksheets if wanted in (None, sheet.title)}
    if not book.worksheets:  # old versions of openpyxl read what is damaged as a book without any
        raise InputError(f"{path.name} is not a readable Excel workbook: it has no sheets.\nSave it again as .xlsx.")
    if not sheets:
        raise InputError(
            f"{path.name} has no sheet {wanted!r}.{did_you_mean(str(wanted), book.sheetnames)}\n"
            f"Its sheets: {listed(map(repr, book.sheetnames), 12)}."
        )
    filled = [name for name, sheet in sheets.items() if any(row for _, row in _numbered(sheet))]
    # Lists to choose from are often kept in hidden sheets.
    seen = [name for name in filled if sheets[name].sheet_state == "visible"] or filled
    if not seen:
        raise InputError(f"{listed(sheets)} of {path.name} is empty.\nExpected a header and one row per person.")
    if len(seen) > 1:
        raise InputError(
            f"{path.name} has {len(seen)} sheets with cells: {listed(map(repr, seen), 12)}.\n"
            f"Name the one to be read after the file: '{path.name}#{seen[0]}'."
        )
    return seen[0]


def _check_archive(path: Path) -> None:
    """Refuse an archive that unpacks to more than any table of people."""
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    total = sum(part.file_size for part in parts)
    sheets = sum(part.file_size for part in parts if part.filename.startswith("xl/worksheets/"))
    bombs = [part for part in parts if part.file_size > max(_LARGE, LARGEST_RATIO * part.compress_size)]
    if bombs or sheets > _MOST_IN_SHEETS or total - sheets > _MOST_ELSEWHERE:
        raise InputError(
            f"{path.name} unpacks to {total / 1e6:,.0f} MB, more than a table of people should need.\n"
            "Remove pictures and other sheets, or save the table as 'CSV UTF-8' in the spreadsheet program."
        )


@contextmanager
def _opened(path: Path, *, data_only: bool = True) -> Iterator[Any]:
    from openpyxl import load_workbook

    # The file is opened here, because the library leaves it open where it fails.
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # of features of workbooks that are no cells
        yield load_workbook(file, read_only=True, data_only=data_only, keep_links=False)
