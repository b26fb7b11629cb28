"""Tables in Excel workbooks: the values that are shown, never macros, links or formulas.

What a cell holds becomes what the table would have as CSV; all further rules are those of text tables.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rindices.cohort.archives import check_workbook, has_formulas
from rindices.cohort.headers import named_columns
from rindices.errors import InputError, counted, did_you_mean, listed

if TYPE_CHECKING:
    from openpyxl.workbook import Workbook as OpenWorkbook

__all__ = ["WORKBOOKS", "Workbook", "file_and_sheet"]

WORKBOOKS = (".xlsx", ".xlsm")
_DECIMAL_COMMA = re.compile(r"(?![+-]?[1-9]\d{0,2},\d{3}$)[+-]?\d+,\d+")  # 3,410 may be three thousand
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
    """A table in a workbook; the attributes are those of `rindices.cohort.kinds.RowSource`.

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

    def __init__(self, path: Path, sheet: str | None, text_columns: Collection[str]) -> None:
        check_workbook(path)
        self.zeros, self.decimal_comma, self.has_commas, self.is_text = list[str](), False, False, False
        with _failures_told(path):
            with _opened(path) as book:
                title = _sheet_of(book, path, sheet)
                rows = _Rows(book[title], path, text_columns)
            if has_formulas(path):
                with _opened(path, data_only=False) as book:
                    rows.refuse_uncomputed(book[title])
            rows.refuse_errors()
            self.names, self.unnamed = rows.names, rows.unnamed
            self._frame = rows.table()

    def frames(self, columns: Collection[str] | None = None, as_text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield all rows; what is a number in the workbook is one, also in `as_text`."""
        yield self._frame if columns is None else self._frame[list(columns)]


class _Rows:
    """The values of a sheet below its header, which is the first row that is not empty."""

    def __init__(self, sheet: Any, path: Path, text_columns: Collection[str]) -> None:
        self._where = f"sheet {sheet.title!r} of {path.name}"
        rows = ((number, row) for number, row in _numbered(sheet) if row)
        self._header_row, cells = next(rows)
        header = [_text(cell.value) for cell in cells]
        self._values: dict[int, list[Any]] = {}
        for number, row in rows:
            # The numbers of text columns are ids: 7 with the format 000 is 007.
            self._values[number] = [
                _shown(cell) if position < len(header) and header[position] in text_columns else cell.value
                for position, cell in enumerate(row)
            ]
            if len(row) > len(header) or not all(header):
                self._refuse_nameless(number, row, header)
        self.names, self.unnamed = named_columns(header, path)

    def _refuse_nameless(self, number: int, row: Sequence[Any], header: Sequence[str]) -> None:
        """Refuse cells below no name: then the header is not where it should be, or its cells were merged."""
        for position, cell in enumerate(row):
            # A first column without a name is what programs write for row numbers.
            if not _is_empty(cell) and not any(header[position : position + 1]) and any(header[:position]):
                from openpyxl.utils import get_column_letter

                letter = get_column_letter(position + 1)
                raise InputError(
                    f"Column {letter} of {self._where} has a cell in row {number}, but no name in row "
                    f"{self._header_row}, the first that is not empty.\nExpected the names of all columns there: "
                    "remove titles above them, undo merged cells, and name or delete the column."
                )

    def refuse_uncomputed(self, sheet: Any) -> None:
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

    def refuse_errors(self) -> None:
        """Refuse cells such as #DIV/0!."""
        cells = [
            (number, position)
            for number, row in self._values.items()
            for position, value in enumerate(row)
            if isinstance(value, str) and value in _ERRORS
        ]
        found = self._at(*cells[0]) if cells else ""
        self._refuse(
            cells, f"the error {found}", "Correct the formula, or leave the cell empty where the value is missing"
        )

    def _at(self, number: int, position: int) -> Any:
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

    def table(self) -> pd.DataFrame:
        """Return the rows; the index counts from 0 in row 2, as in text files."""
        columns = list(zip_longest(*self._values.values()))
        columns += [(None,) * len(self._values)] * (len(self.names) - len(columns))
        data = {name: _column(values) for name, values in zip(self.names, columns, strict=True)}
        return pd.DataFrame(data, index=pd.Index(np.array(list(self._values), dtype=np.int64) - 2))


def _numbered(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield each row with its number: its cells up to the last that is not empty."""
    sheet.reset_dimensions()  # what a file claims about its size may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_LAST_ROW), start=1):
        width = len(row)
        while width and _is_empty(row[width - 1]):
            width -= 1
        yield number, row[:width]


def _is_empty(cell: Any) -> bool:
    value = cell.value
    return value is None or (isinstance(value, str) and not value.strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _column(values: Sequence[Any]) -> np.ndarray:
    if all(value is None or _is_number(value) for value in values):
        return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    cells = [None if value is None else _text(value) for value in values]
    if any(isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()) for value in values):
        # Beside 70,5 the number 1.023 is no thousand: it is written as its neighbours are.
        cells = [
            cell.replace(".", ",") if cell and _is_number(value) else cell
            for cell, value in zip(cells, values, strict=True)
        ]
    return np.array(cells, dtype=object)


def _shown(cell: Any) -> str | None:
    value, form = cell.value, cell.number_format
    if _is_number(value) and re.fullmatch("0{2,}", form or "") and value == value // 1 >= 0:
        return f"{int(value):0{len(form)}d}"
    return None if value is None else _text(value)


def _text(value: Any) -> str:
    """Return a value as a spreadsheet program would write it into a CSV file."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if _is_number(value):
        return str(int(value)) if value == value // 1 else repr(value)
    if isinstance(value, datetime):
        return str(value.date()) if value.time() == time() else str(value)
    return str(value).strip()


def _sheet_of(book: OpenWorkbook, path: Path, wanted: str | None) -> str:
    """Return the name of the sheet that is meant."""
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if wanted is not None:
        if wanted not in sheets:
            raise InputError(
                f"{path.name} has no sheet {wanted!r}.{did_you_mean(wanted, list(sheets))}\n"
                f"Its sheets: {listed(map(repr, sheets), 12)}."
            )
        sheets = {wanted: sheets[wanted]}
    filled = [name for name, sheet in sheets.items() if any(row for _, row in _numbered(sheet))]
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
            f"{path.name} cannot be read as an Excel workbook: it is damaged ({type(error).__name__}).\n"
            "Open it in the spreadsheet program and save it again, or save the table as 'CSV UTF-8'."
        ) from error
