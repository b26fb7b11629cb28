"""A table in a file of any supported kind: read once, in batches or as a whole."""

import glob
import os
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.files import plain_cells
from rindices.problems import Blank, InputError, Remedy, Text, did_you_mean, listed
from rindices.schema.cells import numbers_of, text_of, typed
from rindices.schema.role_guesses import kind_of
from rindices.settings import TableSettings
from rindices.tables.text_and_workbook import (
    CELLS,
    KINDS_OF_FILES,
    TABLES,
    TEXT_KINDS,
    WORKBOOKS,
    TextFile,
    Workbook,
    named_columns,
)

AS_TEXT = (TableSettings.id, TableSettings.diagnosis)
# A second header row: words above at least this many numeric columns with at least this many rows, nearly all of them
# units or most of them distinct.
_FEWEST_DESCRIBED, _FEWEST_BELOW, _MOST = 3, 3, 0.8
_UNITS = frozenset(
    {"mm3", "mm^3", "mm³", "ml", "cm3", "cm^3", "cm³", "cc", "mm", "cm", "mm2", "mm^2", "mm²", "z", "sd"}
)
A_ROW = 0.5  # a header with a larger share of numbers is a row of values
_OTHER_SPREADSHEETS = dict.fromkeys(
    (".xls", ".xlsb", ".ods", ".numbers"),
    " In your spreadsheet program, save it as 'Excel workbook (.xlsx)' or 'CSV UTF-8'.",
)
_LABELLED = re.compile(r"([^=,/\\]+)=(.+)")
_BETWEEN = re.compile(r",(?=[^=,/\\]+=)")  # a comma followed by a label; others are in folder names


def file_and_sheet(path: str | Path) -> tuple[Path, str | None]:
    """Return the file and the sheet that ``people.xlsx#Baseline`` names; a file of exactly that name comes first.

    Examples
    --------
    >>> file_and_sheet("people.xlsx#Baseline")[1], file_and_sheet("people.csv")[1]
    ('Baseline', None)
    """
    path = Path(path)
    named = re.fullmatch(r"(.+\.xls[xm])#(.+)", path.name, flags=re.IGNORECASE)
    return (path, None) if named is None or path.is_file() else (path.with_name(named[1]), named[2])


class Part(NamedTuple):
    """One of several tables: the label of its people, and the file."""

    label: str
    path: Path


def labelled_parts(path: str | Path) -> tuple[Part, ...]:
    """Return the labelled tables that a path consists of; empty for a single table.

    Examples
    --------
    >>> [part.label for part in labelled_parts("CN=controls.csv,SCZ=patients.csv")], labelled_parts("people.csv")
    (['CN', 'SCZ'], ())
    """
    found = [_LABELLED.fullmatch(text.strip()) for text in _BETWEEN.split(str(path))]
    if os.path.exists(path) or None in found:
        return ()
    parts = tuple(Part(one[1].strip(), Path(one[2].strip())) for one in found if one is not None)
    if len({part.label for part in parts}) == 1:
        raise InputError(
            f"All tables have the label {parts[0].label!r}, so there are no groups to compare.\n"
            "Give controls and patients different labels, as in CN=controls.csv AD=patients.csv."
        )
    return parts


def files_of(path: str | Path) -> tuple[Path, ...]:
    """Return the files of one or several tables, without sheet names."""
    return tuple(file_and_sheet(part.path)[0] for part in labelled_parts(path)) or (file_and_sheet(path)[0],)


def path_of_tables(tables: list[Path]) -> Path:
    """Return a path that stands for one table, or for several labelled tables of different people."""
    if len(tables) > 1 and (plain := [table for table in tables if "=" not in str(table)]):
        raise InputError(
            f"If several tables are given, each needs a label, but {plain[0]} has none.\n"
            f"Write CN={plain[0]} if it contains controls; to join tables of the same people, use ",
            Remedy("join", Blank("FILE")),
            ".",
        )
    return Path(",".join(map(str, tables)))


class ParquetFile:
    """A table in a Parquet file, which requires pyarrow; see `rindices.tables.text_and_workbook.TextFile`."""

    decimal_comma = False

    def __init__(self, path: Path, text_columns: Collection[str]) -> None:
        from pyarrow import parquet

        self._file, self._text_columns = parquet.ParquetFile(path, memory_map=True), text_columns
        # pandas stores the index as columns; one without a name is not part of the table.
        self._stored = [name for name in self._file.schema_arrow.names if not name.startswith("__index_level_")]
        self.names = named_columns(self._stored, path)

    def frames(self) -> Iterator[tuple[float, pd.DataFrame]]:
        """Yield batches of rows, each with the proportion of the file read so far."""
        start = 0
        for batch in self._file.iter_batches(max(1, CELLS // max(1, len(self.names))), columns=self._stored):
            batch.validate(full=True)  # otherwise, damaged text would be found only when it is used
            given = batch.to_pandas(ignore_metadata=True).set_axis(self.names, axis=1)
            given.index = pd.RangeIndex(start, start + len(given))
            frame = pd.DataFrame({name: self._cells(given[name]) for name in self.names})
            start += len(given)
            yield start / max(1, self._file.metadata.num_rows), plain_cells(frame.dropna(how="all"))

    def _cells(self, column: pd.Series) -> pd.Series:
        is_text = column.name in self._text_columns or is_bool_dtype(column) or not is_numeric_dtype(column)
        return text_of(column) if is_text else pd.Series(numbers_of(column), index=column.index)


class Table:
    r"""A table in a file, read once, in batches.

    Parameters
    ----------
    path
        A .csv, .tsv, .txt (also with .gz), .xlsx or .parquet file. A workbook sheet is appended to the file name:
        ``people.xlsx#Baseline``.
    text_columns
        Columns that stay text: in workbooks, 7 with the format 000 is 007.

    Attributes
    ----------
    file
        The file, without the name of a sheet.
    columns
        Names of the columns; those without one are called ``Unnamed: 0`` and so on.
    decimal_comma
        Whether numbers may have decimal commas, because commas do not separate the cells.
    progress
        Proportion of the file read so far, from 0 to 1.
    notes
        Messages about the rows read so far: that the row below the names describes the columns and is left out.

    Raises
    ------
    InputError
        If the file cannot be read as a table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("participant_id,age\n001,61\n002,NA\n")
    ...     [batch.to_numpy().tolist() for batch in Table(path).batches()]
    [[['001', '61'], ['002', 'NA']]]
    """

    def __init__(self, path: str | Path, *, text_columns: Collection[str] = ()) -> None:
        (self.file, sheet), self.progress = file_and_sheet(path), 0.0
        self.notes: tuple[str, ...] = ()
        self._text_columns, self._kind = text_columns, _kind_of(self.file)
        with _failures_told(self.file.name, self._kind):
            if self._kind in TEXT_KINDS:
                self._reader: TextFile | Workbook | ParquetFile = TextFile(self.file, self._kind, text_columns)
            elif self._kind in WORKBOOKS:
                self._reader = Workbook(self.file, sheet, text_columns)
            else:
                self._reader = ParquetFile(self.file, text_columns)
        self.columns, self.decimal_comma = self._reader.names, self._reader.decimal_comma

    def batches(self) -> Iterator[pd.DataFrame]:
        """Yield batches of rows, with columns of text as written, or of float64 if the file stores numbers.

        Empty cells are NaN; words such as ``NA`` are kept. The index counts the lines below the header from 0; empty
        rows are left out, but counted.

        Raises
        ------
        InputError
            If a row is invalid; batches that were yielded before should then be discarded.
        """
        n_rows = 0
        with _failures_told(self.file.name, self._kind):
            for share, frame in self._reader.frames():
                self.progress = share
                if not n_rows and _describes_columns(frame):
                    frame = frame.iloc[1:]
                    self.notes = (
                        f"The row below the column names in {self.file.name} describes the columns and is skipped.",
                    )
                n_rows += len(frame)
                yield frame
        if not n_rows:
            raise InputError(f"{self.file.name} has a header but no rows below it.\nIt should have one row per person.")

    def read(self, text_columns: Collection[str] = ()) -> pd.DataFrame:
        """Return all rows; a column is numeric if every cell that is not missing parses as a number, otherwise text.

        Further `text_columns` stay text. Columns with neither a name nor any values are left out.
        """
        cells = pd.concat(list(self.batches()))
        unnamed = [name for name in self.columns if name.startswith("Unnamed: ") and cells[name].isna().all()]
        as_text = {*self._text_columns, *text_columns}
        return typed(cells.drop(columns=unnamed), as_text, decimal_comma=self.decimal_comma)


def _describes_columns(frame: pd.DataFrame) -> bool:
    """Return whether the first row contains words or units above purely numeric columns.

    A person for whom processing failed has the same word in many cells, and no units.
    """
    first = text_of(frame.iloc[0]).dropna() if len(frame) > _FEWEST_BELOW else pd.Series(dtype=object)
    words = first.index[np.isnan(numbers_of(first))].tolist()
    rest = {name: text_of(frame[name].iloc[1:]).dropna() for name in words}
    above = [name for name, cells in rest.items() if len(cells) and not np.isnan(numbers_of(cells)).any()]
    if len(above) < _FEWEST_DESCRIBED or len(first) - len(words) > len(above) / 10:
        return False
    units = first[above].str.casefold().isin(_UNITS).mean()
    return bool(units > _MOST or first[above].nunique() > len(above) / 2)


def read_table(path: str | Path, *, text_columns: Collection[str] = AS_TEXT) -> pd.DataFrame:
    r"""Read a whole table; see `Table.read`.

    Parameters
    ----------
    path, text_columns
        As in `Table`.

    Returns
    -------
    pandas.DataFrame
        Columns of float64 or text; the index counts the lines below the header from 0 (empty lines leave gaps).

    Raises
    ------
    InputError
        If the file cannot be read as a table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("participant_id;age\n001;61,5\n")
    ...     read_table(path).values.tolist()
    [['001', 61.5]]
    """
    return Table(path, text_columns=text_columns).read()


def require_column(names: Collection[str], name: str, role: str, remedy: Text) -> None:
    """Refuse a table whose column names do not include ``name``."""
    if name in names:
        return
    columns = [str(column) for column in names]
    numbers = pd.to_numeric(pd.Series(columns, dtype=object), errors="coerce").notna().mean()
    if len(columns) == 1:
        remedy = "Only one column was found. Columns must be separated by commas, semicolons or tabs."
    elif numbers > A_ROW:
        remedy = "The first line should contain the column names, but it contains numbers."
    shortened = listed(column if len(column) < 60 else f"{column[:60]}..." for column in columns)
    # icv and eTIV mean the same, but hardly share letters.
    sizes = [repr(one) for one in columns if kind_of(one).suspicion == kind_of(name).suspicion == "head size"][:2]
    alike = did_you_mean(name, columns) or (f" Did you mean {' or '.join(sizes)}?" if sizes else "")
    raise InputError(
        f"The table has no column {name!r} for {role}.{alike}\nColumns found: {shortened}.\n",
        remedy,
    )


@contextmanager
def _failures_told(name: str, kind: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise InputError(
            f"Reading {name} requires the pyarrow package, which is not installed.\n"
            "Install it with: pip install 'rindices[parquet]', or save the table as .csv."
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{name} cannot be opened: {getattr(error, 'strerror', None) or error}.\n"
            "Check that the file is complete and not locked, and that you have permission to read it."
        ) from error
    except Exception as error:  # a damaged file can make a third-party reader raise anything
        if kind in TEXT_KINDS or isinstance(error, InputError):
            raise
        raise InputError(
            f"{name} is not a readable {'Parquet file' if kind == '.parquet' else 'Excel workbook'}: it is damaged, "
            "password-protected, or a different kind of file.\n"
            "Open it in the program that created it and save it again without a password, or "
            "save the table as .csv. A text table needs the extension .csv, .tsv or .txt."
        ) from error


def _kind_of(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a table.\nProvide a {KINDS_OF_FILES} file.")
    if not path.is_file():
        others = sorted(other.name for other in path.parent.glob(f"{glob.escape(path.stem)}.*") if other.is_file())
        similar = f" That folder contains {listed(others, 3)}." if others else ""
        raise InputError(f"There is no file {path}.\nCheck the name and the folder.{similar}")
    packed = path.suffix.lower() == ".gz"
    kind = Path(path.stem if packed else path.name).suffix.lower()
    if kind + ".gz" * packed not in TABLES:
        raise InputError(
            f"{path.name} is not in a supported table format (extension {kind + '.gz' * packed!r}).\n"
            f"Provide a {KINDS_OF_FILES} file.{_OTHER_SPREADSHEETS.get(kind, '')}"
        )
    return kind
