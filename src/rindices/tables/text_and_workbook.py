"""Tables as text (CSV, TSV, TXT, optionally gzipped) and in Excel workbooks, as written by spreadsheets in any country.

Text is read twice, in chunks: first for its encoding, which a single character may decide, then for its rows. Python's
own CSV reader keeps track of row numbers, and refuses an unterminated quotation.

From a workbook, displayed values are read, never macros, links or formulas; cells become what the table would contain
as CSV. Before anything is unpacked, the archive is checked to be one that can be opened safely.
"""

import csv
import gzip
import io
import re
import warnings
import zipfile
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
import pandas as pd

from rindices.files import plain_cells, plain_text
from rindices.problems import InputError, Problem, counted, did_you_mean, listed
from rindices.schema.cells import MISSING_TEXT, refuse_thousands

KINDS_OF_FILES = ".csv, .tsv, .txt, .xlsx or .parquet"
TEXT_KINDS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}  # and their usual separators
WORKBOOKS = (".xlsx", ".xlsm")
TABLES = (*TEXT_KINDS, *WORKBOOKS, ".parquet", *(f"{kind}.gz" for kind in TEXT_KINDS))
CELLS = 1_000_000  # in a batch
# Tables of measures compress to a half or a tenth, parts of workbooks to a fiftieth; anything beyond is malicious.
LARGEST_RATIO = 200
_MOST_UNPACKED = 200_000_000  # characters, unless the packed file is large as well
_SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
_FIRST_LINES = 20  # examined for the separator and for a title
# Lines without cells, and Excel's line sep=;.
_ABOVE = re.compile(r'(?:[ ,;\t]*\n)*(?:"?sep=[,;\t]"?[ ,;\t]*\n(?:[ ,;\t]*\n)*)?', flags=re.IGNORECASE)
_GAPS = MISSING_TEXT | {np.nan}


def named_columns(header: Sequence[str], path: Path) -> list[str]:
    """Return a name for every column, such as ``Unnamed: 0`` if the first has none; repeated names are refused.

    Examples
    --------
    >>> named_columns(["", "age"], Path("people.csv"))
    ['Unnamed: 0', 'age']
    """
    names = [plain_text(name.strip()) for name in header]  # as in the tables that we write
    if repeated := list(dict.fromkeys(name for name in names if name and names.count(name) > 1)):
        places = [position + 1 for position, name in enumerate(names) if name == repeated[0]]
        raise InputError(
            f"Column names must be unique, but {path.name} contains {listed(map(repr, repeated))} more than once "
            f"({repeated[0]!r} in columns {listed(places, joiner=' and ')}).\nRename or remove the repeated columns."
        )
    given = [name or f"Unnamed: {position}" for position, name in enumerate(names)]
    # A table that was saved twice already has such names from the first time.
    return [name if own or name not in names else f"{name}.1" for name, own in zip(given, names, strict=True)]


class TextFile:
    """A table as text.

    Parameters
    ----------
    path
        The file.
    kind
        Its extension, without .gz.
    text_columns
        Columns that never contain numbers.

    Attributes
    ----------
    names
        Names of the columns.
    decimal_comma
        Whether numbers may have decimal commas, because commas do not separate the cells.

    Raises
    ------
    InputError
        If the file cannot be read as a table.
    """

    def __init__(self, path: Path, kind: str, text_columns: Collection[str]) -> None:
        self._path, self._text_columns = path, text_columns
        beginning = self._survey()
        above = _ABOVE.match(beginning)[0]  # type: ignore[index]  # it may match nothing, but it matches
        self._above = above.count("\n")
        lines = [line for line in beginning[len(above) :].split("\n", _FIRST_LINES) if line.strip(" ,;\t")]
        if not lines:
            raise InputError(f"{path.name} is empty.\nIt should contain a header and one row per person.")
        self._separator, self._has_blanks = _separator_of(lines, kind)
        self.decimal_comma = self._separator != ","
        with self._open() as (_, text):
            _, header = next(self._records(text))
        self.names = named_columns(header, path)

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield batches of rows as text, each with the proportion of the file read so far."""
        n_rows = max(1, CELLS // len(self.names))
        with self._open() as (raw, text):
            rows = self._rows(self._records(text))
            while batch := list(islice(rows, n_rows)):
                numbers, cells = zip(*batch, strict=True)
                frame = pd.DataFrame(list(cells), np.array(numbers, dtype=np.int64) - 2, self.names, dtype=object)
                if self.decimal_comma:
                    refuse_thousands(frame.drop(columns=list(self._text_columns), errors="ignore"))
                yield raw.tell() / self._path.stat().st_size, frame

    def _rows(self, records: Iterator[tuple[int, list[str]]]) -> Iterator[tuple[int, list[str | float]]]:
        """Yield the rows below the header that are not empty."""
        next(records)
        width = len(self.names)
        for number, record in records:
            cells: list[str | float] = list(map(str.strip, record))
            if "" in cells or "'" in "".join(record):  # most rows have neither
                cells = [plain_text(cell.strip()) or np.nan for cell in record]
            if not cells or (cells[0] in _GAPS and all(cell in _GAPS for cell in cells)):
                continue
            if len(cells) != width:
                others = sum(len(other) not in (0, width) for _, other in records)
                more = f", and {counted(others, 'more row has', 'more rows have')} the same problem" if others else ""
                comma = " If numbers have decimal commas, separate columns with semicolons."
                raise InputError(
                    f"Row {number} of {self._path.name} has {counted(len(cells), 'cell')}, but the header has {width} "
                    f"(separated by {_SEPARATOR_NAMES[self._separator]}){more}.\n"
                    "Check that row for a missing or extra separator or an unmatched quotation mark, and remove any "
                    "title above the column names."
                    f"{comma if self._separator == ',' else ''}"
                )
            yield number, cells

    def _records(self, text: TextIO) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of the header and of all rows below it, each with its row number in a spreadsheet."""
        lines, number = islice(text, self._above, None), self._above
        separated = ("\t".join(line.split()) for line in lines) if self._has_blanks else lines
        try:
            for number, record in enumerate(
                csv.reader(separated, delimiter=self._separator, strict=True), self._above + 1
            ):
                yield number, record
        except csv.Error as error:
            raise InputError(
                f"Row {number + 1} of {self._path.name} cannot be split into cells: {error}.\n"
                "Look for an unmatched quotation mark in or below that row."
            ) from error

    def _survey(self) -> str:
        """Find the encoding (UTF-8, UTF-16 by its byte order mark, or Latin-1), and return the start of the text."""
        self._encoding = "latin-1"
        with self._open() as (_, text):
            self._encoding = "utf-16" if text.read(2) in ("\xff\xfe", "\xfe\xff") else "utf-8-sig"
        try:
            deque(self._pieces(), maxlen=0)
        except UnicodeDecodeError:
            self._refuse_damage("".join(self._pieces("replace")))
            self._encoding = "latin-1"
        return next(self._pieces(), "")

    def _pieces(self, errors: str = "strict") -> Iterator[str]:
        """Yield the text in chunks, with line feeds as line endings."""
        left = max(_MOST_UNPACKED, LARGEST_RATIO * self._path.stat().st_size)
        with self._open(errors) as (_, text):
            while piece := text.read(4 * CELLS):
                left -= len(piece)
                if left < 0:
                    raise InputError(
                        f"{self._path.name} unpacks to more than {LARGEST_RATIO} times its size, which is "
                        "implausible for a table of measurements.\nUnpack the file, check its contents, and provide "
                        "the unpacked table."
                    )
                if "\0" in piece or piece.startswith(("%PDF", "PK\x03\x04")):
                    raise InputError(
                        f"{self._path.name} is not a text table: it seems to be another kind of "
                        "file (a PDF, an image, or an Excel workbook with the wrong extension).\n"
                        f"Save the table as 'CSV UTF-8', or provide another {KINDS_OF_FILES} file."
                    )
                yield piece

    def _refuse_damage(self, text: str) -> None:
        """Refuse text with characters invalid in its encoding, unless all others are ASCII: then it may be Latin-1."""
        before, damage, _ = text.partition("\ufffd")  # the replacement character
        if self._encoding == "utf-16" or not text.replace(damage, "").isascii():
            raise InputError(
                f"{self._path.name} is damaged: row {before.count(chr(10)) + 1} has a character that is not valid "
                f"{self._encoding.removesuffix('-sig').upper()}, unlike the rest of the file.\n"
                "Correct that row, and save the table as 'CSV UTF-8' in your spreadsheet program."
            )

    @contextmanager
    def _open(self, errors: str = "strict") -> Iterator[tuple[BinaryIO, TextIO]]:
        """Open the file, and the text inside it."""
        with self._path.open("rb") as raw:
            unpacked = gzip.GzipFile(fileobj=raw) if self._path.suffix.lower() == ".gz" else raw
            with io.TextIOWrapper(unpacked, self._encoding, errors) as text:
                yield raw, text


def _separator_of(lines: Sequence[str], kind: str) -> tuple[str, bool]:
    """Return the commonest separator in the header (the usual one in a tie), and whether spaces separate the cells."""
    candidates = (TEXT_KINDS[kind], ",", ";", "\t")
    outside_quotes = [re.sub(r'"[^"]*"', "", line) for line in lines]
    with_separator = [line for line in outside_quotes if any(sign in line for sign in candidates)]
    # A title above the header has no separator; in a .txt file, there may be only spaces.
    header = outside_quotes[0] if kind == ".txt" or not with_separator else with_separator[0]
    separator = max(candidates, key=header.count)
    return separator, kind == ".txt" and separator not in header and len(header.split()) > 1


# Sheets are read row by row; the rest, such as shared strings, is held in memory. Excel's own files are far smaller.
_MOST_IN_SHEETS, _MOST_ELSEWHERE = 1_000_000_000, 100_000_000
_LARGE = 10_000_000
_LAST_ROW = 1_048_576  # of any workbook; a damaged one may claim more
_ERRORS = frozenset(
    {"#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!"}
    | {"#CONNECT!", "#UNKNOWN!", "#BUSY!", "#GETTING_DATA"}
)


class Workbook:
    """A table in a workbook; see `TextFile`. The header is the first row that is not empty.

    Parameters
    ----------
    path
        The file.
    sheet
        Name of the sheet; if None, the only one that is not empty.
    text_columns
        Columns in which numbers are kept as displayed: 7 with the format 000 is the id 007.

    Raises
    ------
    InputError
        If it cannot be read, or if the sheet is not a single table.
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
                self._values[number] = [
                    _cell_text(cell) if name in text_columns else cell.value
                    for cell, name in zip(row, names, strict=False)
                ]
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
        """Refuse cells in a column without a name: the header is in another row, or its cells were merged."""
        for cell, name in zip_longest(row, names[: len(row)]):
            # Programs write row numbers as a first column without a name.
            if not name and _text(cell.value) and any(names[: cell.column - 1]):
                raise InputError(
                    f"Cell {cell.coordinate} in {self._where} contains a value, but its column has no name in row "
                    f"{first}, the first row that is not empty.\n"
                    "That row should contain all column names: remove titles above the names, unmerge merged cells, "
                    "and name the column or delete it."
                )

    def _refuse_errors(self, formulas: Sequence[Any]) -> None:
        """Refuse cells such as #DIV/0!, and formulas without a result."""
        bad = [
            *(
                (name, number, f"the error {value}")
                for number, row in self._values.items()
                for name, value in zip(self.names, row, strict=False)
                if isinstance(value, str) and value in _ERRORS
            ),
            *(
                (self.names[cell.column - 1], cell.row, "a formula whose result is not stored in the file")
                for cell in formulas
                if self._values.get(cell.row, [])[cell.column - 1 : cell.column] in ([], [None])
            ),
        ]
        if bad:
            columns = list(dict.fromkeys(name for name, _, _ in bad))
            others = f", in columns {listed(columns)}" if len(columns) > 1 else ""
            more = f" ({counted(len(bad), 'such cell')} in all{others})" if len(bad) > 1 else ""
            raise InputError(
                f"Column {columns[0]!r} of {self._where} contains {bad[0][2]} in row {bad[0][1]}{more}.\n"
                "Open the workbook in your spreadsheet program, correct the formula (or leave the cell empty if the "
                "value is missing), and save the workbook again."
            )


def _numbered(sheet: Any) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the number of each row, and its cells up to the last that is not empty."""
    sheet.reset_dimensions()  # what a file claims about its size may be wrong
    for number, row in enumerate(sheet.iter_rows(max_row=_LAST_ROW), start=1):
        width = next((last for last in range(len(row), 0, -1) if _text(row[last - 1].value)), 0)
        yield number, row[:width]


def _column(values: Sequence[Any]) -> pd.Series:
    if {type(value) for value in values} - {type(None)} in ({int}, {float}, {int, float}):
        return pd.Series(values, dtype=np.float64)
    return pd.Series([_text(value) or np.nan for value in values], dtype=object)


def _cell_text(cell: Any) -> str | None:
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
    """Return the name of the sheet to read."""
    sheets = {sheet.title: sheet for sheet in book.worksheets if wanted in (None, sheet.title)}
    if not book.worksheets:  # old versions of openpyxl read a damaged file as a workbook without any
        raise InputError(f"{path.name} is not a readable Excel workbook: it has no sheets.\nSave it again as .xlsx.")
    if not sheets:
        raise InputError(
            f"{path.name} has no sheet {wanted!r}.{did_you_mean(str(wanted), book.sheetnames)}\n"
            f"Available sheets: {listed(map(repr, book.sheetnames), 12)}."
        )
    filled = [name for name, sheet in sheets.items() if any(row for _, row in _numbered(sheet))]
    # Lists for drop-down menus are often kept in hidden sheets.
    seen = [name for name in filled if sheets[name].sheet_state == "visible"] or filled
    if not seen:
        raise InputError(
            f"{path.name} contains no data in sheet{'s' if len(sheets) > 1 else ''} {listed(map(repr, sheets))}.\n"
            "It should contain a header and one row per person."
        )
    if len(seen) > 1:
        raise InputError(
            what := f"{path.name} has {len(seen)} non-empty sheets: {listed(map(repr, seen), 12)}.",
            f"\nAppend the name of the sheet to the file name, as in '{path.name}#{seen[0]}'.",
            problems=[Problem(what)],  # a page has a button for each sheet
            sheets=[f"{path.name}#{name}" for name in seen],
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
            f"{path.name} unpacks to {total / 1e6:,.0f} MB, which is implausible for a table of people.\n"
            "Remove pictures and other sheets, or save the table as 'CSV UTF-8' in your spreadsheet program."
        )


@contextmanager
def _opened(path: Path, *, data_only: bool = True) -> Iterator[Any]:
    from openpyxl import load_workbook

    # The file is opened here, because the library leaves it open if it fails.
    with warnings.catch_warnings(), path.open("rb") as file:
        warnings.simplefilter("ignore")  # about features of workbooks other than cells
        yield load_workbook(file, read_only=True, data_only=data_only, keep_links=False)
