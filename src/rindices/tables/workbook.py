"""Tables in Excel workbooks: the values that are shown, never macros, links or formulas.

What a cell holds becomes what the table would have as CSV. Before anything is unpacked, a look at the archive tells
whether it is a workbook, and one that can be opened without fear.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rindices.errors import InputError, counted, did_you_mean, listed
from rindices.files import plain_cells
from rindices.schema.cells import MISSING_TEXT
from rindices.tables.text import LARGEST_RATIO, named_columns

if TYPE_CHECKING:
    from openpyxl.cell.read_only import ReadOnlyCell
    from openpyxl.workbook import Workbook as OpenWorkbook
    from openpyxl.worksheet._read_only import ReadOnlyWorksheet

__all__ = ["WORKBOOKS", "Workbook", "file_and_sheet"]

WORKBOOKS = (".xlsx", ".xlsm")
_OLD_OR_LOCKED = b"\xd0\xcf\x11\xe0"  # of .xls files, and of workbooks with a password
_SHEETS = "xl/worksheets/"
_SAVE_AGAIN = "Open it in the spreadsheet program and save it again, or save the table as 'CSV UTF-8'."
# Sheets are read row by row; all else, such as the list of texts, is held in memory. Excel's own files are far smaller.
_MOST_IN_SHEETS, _MOST_ELSEWHERE = 1_000_000_000, 100_000_000
_LARGE = 10_000_000
_LAST_ROW = 1_048_576  # of any workbook; a damaged one may claim more
_ERRORS = frozenset(
    {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!"}
    | {"#CONNECT!", "#UNKNOWN!", "#BUSY!", "#GETTING_DATA"}
)


def file_and_sheet(path: str | Path) -> tuple[Path, str | None]:
    """Return the file and the sheet that ``people.xlsx#Baseline`` names; a file of that very name comes first.

    Examples
    --------
    >>> file_and_sheet("people.xlsx#Baseline")[1], file_and_sheet("people.csv")[1]
    ('Baseline', None)
    """
    path = Path(path)
    named = re.fullmatch(r"(.+\.xls[xm])#(.+)", path.name, flags=re.IGNORECASE)
    if named is None or path.is_file():
        return path, None
    return path.with_name(named[1]), named[2]


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
        self._path = path
        with _failures_told(path):
            _check_archive(path)
            with _opened(path) as book:
                title = _sheet_of(book, path, sheet)
                self._where = f"sheet {title!r} of {path.name}"
                self._read(book[title], text_columns)
            if _has_formulas(path):
                with _opened(path, data_only=False) as book:
                    self._refuse_uncomputed(book[title])
            errors = [
                (number, position)
                for number, row in self._values.items()
                for position, value in enumerate(row)
                if isinstance(value, str) and value in _ERRORS
            ]
            found = self._at(*errors[0]) if errors else ""
            self._refuse(
                errors, f"the error {found}", "Correct the formula, or leave the cell empty where the value is missing"
            )

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield all rows at once; columns in which every cell is a number are float64."""
        columns = list(zip_longest(*self._values.values()))
        columns += [(None,) * len(self._values)] * (len(self.names) - len(columns))
        index = pd.Index(np.array(list(self._values), dtype=np.int64) - 2)
        cells = {name: _column(values, index) for name, values in zip(self.names, columns, strict=True)}
        yield 1.0, plain_cells(pd.DataFrame(cells))

    def _read(self, sheet: ReadOnlyWorksheet, text_columns: Collection[str]) -> None:
        rows = ((number, row) for number, row in _numbered(sheet) if row)
        self._header_row, cells = next(rows)
        header = [_text(cell.value) for cell in cells]
        self._values: dict[int, list[object]] = {}
        for number, row in rows:
            named = zip_longest(row, header[: len(row)], fillvalue="")
            values = [_shown(cell) if name in text_columns else cell.value for cell, name in named]
            if not all(value is None or str(value).strip() in MISSING_TEXT for value in values):
                self._values[number] = values
            if len(row) > len(header) or not all(header):
                self._refuse_nameless(number, row, header)
        self.names = named_columns(header, self._path)

    def _refuse_nameless(self, number: int, row: Sequence[ReadOnlyCell], header: Sequence[str]) -> None:
        """Refuse cells below no name: then the header is not where it should be, or its cells were merged."""
        for position, cell in enumerate(row):
            # A first column without a name is what programs write for row numbers.
            if not _is_empty(cell) and not any(header[position : position + 1]) and any(header[:position]):
                from openpyxl.utils import get_column_letter

                raise InputError(
                    f"Column {get_column_letter(position + 1)} of {self._where} has a cell in row {number}, but no "
                    f"name in row {self._header_row}, the first that is not empty.\nExpected the names of all columns "
                    "there: remove titles above them, undo merged cells, and name or delete the column."
                )

    def _refuse_uncomputed(self, sheet: ReadOnlyWorksheet) -> None:
        """Refuse formulas without a result, given the sheet with formulas instead of values."""
        cells = [
            (number, position)
            for number, row in _numbered(sheet)
            for position, cell in enumerate(row)
            if cell.data_type == "f" and number > self._header_row and self._at(number, position) is None
        ]
        self._refuse(
            cells, "a formula whose result is not in the file", "Open it in the spreadsheet program and save it again"
        )

    def _at(self, number: int, position: int) -> object:
        row = self._values.get(number, [])
        return row[position] if position < len(row) else None

    def _refuse(self, cells: list[tuple[int, int]], what: str, remedy: str) -> None:
        if not cells:
            return
        number, position = cells[0]
        columns = list(dict.fromkeys(self.names[place] for _, place in cells))
        more = f", and {counted(len(cells) - 1, 'more cell')} like it" if len(cells) > 1 else ""
        others = f" (columns {listed(columns)})" if len(columns) > 1 else ""
        raise InputError(
            f"Column {self.names[position]!r} of {self._where} has {what} in row {number}{more}{others}.\n{remedy}."
        )


def _numbered(sheet: ReadOnlyWorksheet) -> Iterator[tuple[int, Sequence[ReadOnlyCell]]]:
    """Yield each row with its number: its cells up to the last that is not empty."""
    sheet.reset_dimensions()  # what a file claims about its size may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_LAST_ROW), start=1):
        width = len(row)
        while width and _is_empty(row[width - 1]):
            width -= 1
        yield number, row[:width]


def _is_empty(cell: ReadOnlyCell) -> bool:
    return cell.value is None or (isinstance(cell.value, str) and not cell.value.strip())


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _column(values: Sequence[object], index: pd.Index) -> pd.Series:
    if all(value is None or _is_number(value) for value in values):
        return pd.Series(values, index=index, dtype=np.float64)
    return pd.Series([_text(value) or np.nan for value in values], index=index, dtype=object)


def _shown(cell: ReadOnlyCell) -> str | None:
    value, form = cell.value, cell.number_format or ""
    if _is_number(value) and re.fullmatch("0{2,}", form) and value == value // 1 >= 0:
        return f"{int(value):0{len(form)}d}"
    return None if value is None else _text(value)


def _text(value: object) -> str:
    """Return a value as a spreadsheet program would write it into a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(int(value)) if value == value // 1 else repr(value)
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else str(value)
    return str(value).strip()


def _sheet_of(book: OpenWorkbook, path: Path, wanted: str | None) -> str:
    """Return the name of the sheet that is meant."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if wanted is not None and wanted not in sheets:
        raise InputError(
            f"{path.name} has no sheet {wanted!r}.{did_you_mean(wanted, list(sheets))}\n"
            f"Its sheets: {listed(map(repr, sheets), 12)}."
        )
    filled = [
        name for name, sheet in sheets.items() if wanted in (None, name) and any(row for _, row in _numbered(sheet))
    ]
    # Lists to choose from are often kept in hidden sheets.
    seen = [name for name in filled if sheets[name].sheet_state == "visible"] or filled
    if not seen:
        where = path.name if wanted is None else f"The sheet {wanted!r} of {path.name}"
        raise InputError(f"{where} is empty.\nExpected a header and one row per person.")
    if len(seen) > 1:
        raise InputError(
            f"{path.name} has {len(seen)} sheets with cells: {listed(map(repr, seen), 12)}.\n"
            f"Name the one to be read after the file: '{path.name}#{seen[0]}'."
        )
    return seen[0]


def _check_archive(path: Path) -> None:
    """Refuse what is no workbook, or one that unpacks to more than any table of people."""
    with path.open("rb") as file:
        first = file.read(4)
    if first == _OLD_OR_LOCKED:
        raise InputError(
            f"{path.name} is protected by a password, or of Excel's old format (.xls).\n"
            "In the spreadsheet program remove the password, and save it as 'Excel workbook (.xlsx)'."
        )
    if first[:2] != b"PK":
        text = first and not any(sign < 9 for sign in first)
        raise InputError(
            f"{path.name} is no Excel workbook{', but looks like text' if text else ''}.\n"
            + ("Give it the extension of its kind: .csv, .tsv or .txt." if text else _SAVE_AGAIN)
        )
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
    if not any(part.filename.startswith("xl/") for part in parts):
        raise InputError(
            f"{path.name} is an archive, but no Excel workbook.\n"
            "Unpack it, or save the table as .xlsx or 'CSV UTF-8' in the spreadsheet program."
        )
    sheets = sum(part.file_size for part in parts if part.filename.startswith(_SHEETS))
    others = sum(part.file_size for part in parts) - sheets
    packed = [part.file_size > max(_LARGE, LARGEST_RATIO * part.compress_size) for part in parts]
    if sheets > _MOST_IN_SHEETS or others > _MOST_ELSEWHERE or any(packed):
        raise InputError(
            f"{path.name} unpacks to {(sheets + others) / 1e6:,.0f} MB, more than a table of people should need.\n"
            "Leave out pictures and other sheets, or save the table as 'CSV UTF-8' in the spreadsheet program."
        )


def _has_formulas(path: Path) -> bool:
    """Tell whether any sheet has a formula."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(_SHEETS) and name.endswith(".xml"):
                with archive.open(name) as sheet:
                    before = b""
                    while piece := sheet.read(1 << 20):
                        if re.search(rb"<(?:\w{1,20}:)?f[\s/>]", before + piece):
                            return True
                        before = piece[-30:]
    return False


@contextmanager
def _opened(path: Path, *, data_only: bool = True) -> Iterator[OpenWorkbook]:
    from openpyxl import load_workbook

    # The file is opened here, because the library leaves it open where it fails.
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # of features of workbooks that are no cells
        yield load_workbook(file, read_only=True, data_only=data_only, keep_links=False)


@contextmanager
def _failures_told(path: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a damaged file can lead a foreign reader anywhere
        raise InputError(
            f"{path.name} cannot be read as an Excel workbook: it is damaged ({type(error).__name__}).\n{_SAVE_AGAIN}"
        ) from error
