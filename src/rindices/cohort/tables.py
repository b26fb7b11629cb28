"""Files into tables: text, Excel workbooks and Parquet files, whole or some rows at a time."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from rindices.cohort.kinds import RowSource, find_kinds
from rindices.cohort.parquet_files import ParquetFile
from rindices.cohort.text_files import TextFile
from rindices.cohort.text_rows import KINDS_OF_FILES, USUAL_SEPARATOR
from rindices.cohort.workbooks import WORKBOOKS, Workbook, file_and_sheet
from rindices.errors import InputError, listed
from rindices.files import plain_cells

__all__ = ["Table", "changed_meanwhile", "read_table"]

_OTHER_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
_AS_TEXT = ("participant_id", "diagnosis")


class Table:
    r"""A table of people in a file, of which is known what its columns hold; the rows are read when they are wanted.

    Parameters
    ----------
    path
        The file; see `read_table`.
    text_columns
        Columns that always stay text.
    ids
        The column of ids, if words such as ``NA`` in it are to be refused.

    Attributes
    ----------
    columns
        Names of the columns.
    n_rows
        Rows below the header, empty ones included.

    Raises
    ------
    InputError
        If the file cannot be read as a table.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("participant_id,age\n001,61\n002,72\n")
    ...     [len(block) for block in Table(path).blocks()]
    [2]
    """

    def __init__(self, path: str | Path, *, text_columns: Sequence[str] = _AS_TEXT, ids: str | None = None) -> None:
        self._ids = ids
        self._path, _ = file_and_sheet(path)
        self._stamp = self._state()
        self._source = _opened(path, text_columns)
        self._kinds, self.n_rows, self._rows = find_kinds(self._source, text_columns)
        self.columns = [name for name in self._source.names if name not in self._kinds.empty]

    def blocks(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Yield the rows, some at a time, as `read_table` gives them: all columns, or some of them.

        Rows without a single cell are left out.
        """
        n_people = 0
        for frame in self._frames(columns):
            block = plain_cells(self._kinds.convert(frame)).dropna(how="all")
            self._refuse_words(frame, block)
            n_people += len(block)
            if len(block):
                yield block
        if self._state() != self._stamp:
            raise changed_meanwhile(self._path)
        if not n_people and columns is None:
            raise InputError(f"{self._path.name} has a header but no people below it.\nExpected one row per person.")

    def _frames(self, columns: Sequence[str] | None) -> Iterator[pd.DataFrame]:
        if self._rows is None:
            return self._source.frames(columns, self._kinds.spelled)
        return iter([self._rows if columns is None else self._rows[list(columns)]])

    def _refuse_words(self, frame: pd.DataFrame, block: pd.DataFrame) -> None:
        """Refuse ids that are words for missing values, which the block has as gaps."""
        if self._ids not in block:
            return
        words = frame.loc[block.index[block[self._ids].isna()], self._ids].dropna().astype(str).str.strip()
        words = words[words != ""]
        if len(words):
            raise InputError(
                f"Every person needs an id, but column {self._ids!r} holds {words.iloc[0]!r} in row "
                f"{words.index[0] + 2}, which counts as empty.\nFill in the ids or remove these rows."
            )

    def _state(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_size, status.st_mtime_ns


def changed_meanwhile(path: Path) -> InputError:
    """Return the error of a file that is not what it was when it was opened."""
    return InputError(f"{path.name} changed while it was read.\nRepeat the command when nobody is writing to it.")


def read_table(path: str | Path, *, text_columns: Sequence[str] = _AS_TEXT, ids: str | None = None) -> pd.DataFrame:
    r"""Read a table of people from a .csv, .tsv, .txt (also with .gz), .xlsx or .parquet file.

    A column becomes numbers if every cell that is not missing reads as a number; otherwise it stays text.
    Semicolons and tabs instead of commas, and decimal commas beside them, are recognised.

    Parameters
    ----------
    path
        The file; its extension says the format. A sheet of a workbook is named after it: ``people.xlsx#Baseline``.
    text_columns
        Columns that always stay text, so that the id ``001`` does not become 1.
    ids
        The column of ids, if words such as ``NA`` in it are to be refused.

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
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     _ = path.write_text("participant_id;age\n001;61,5\n")
    ...     read_table(path).values.tolist()
    [['001', 61.5]]
    """
    blocks = list(Table(path, text_columns=text_columns, ids=ids).blocks())
    return blocks[0] if len(blocks) == 1 else pd.concat(blocks)


def _opened(path: str | Path, text_columns: Sequence[str]) -> RowSource:
    file, sheet = file_and_sheet(path)
    kind = _kind_of(file)
    if kind in WORKBOOKS:
        return Workbook(file, sheet, text_columns)
    return ParquetFile(file) if kind == ".parquet" else TextFile(file, kind)


def _kind_of(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"{path} is a folder, but a table was expected.\nName a {KINDS_OF_FILES} file.")
    if not path.is_file():
        raise InputError(f"There is no file {path}.\nCheck the name and the folder.{_similar_files(path)}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"] and len(suffixes) > 1
    kind = suffixes[-2] if packed else (suffixes or [""])[-1]
    if kind not in (*USUAL_SEPARATOR, *((".parquet", *WORKBOOKS) if not packed else ())):
        spreadsheet = (
            " In the spreadsheet program choose 'Save as', and 'Excel workbook (.xlsx)' or 'CSV UTF-8'."
            if kind in _OTHER_SPREADSHEETS
            else ""
        )
        raise InputError(
            f"{path.name} is not a kind of table that can be read (extension {''.join(suffixes[-1 - packed :])!r}).\n"
            f"Give a {KINDS_OF_FILES} file.{spreadsheet}"
        )
    return kind


def _similar_files(path: Path) -> str:
    if not path.parent.is_dir():
        return f" The folder {path.parent} does not exist either."
    same_stem = sorted(other.name for other in path.parent.glob(f"{glob.escape(path.stem)}.*") if other.is_file())
    return f" In that folder there is {listed(same_stem, 3)}." if same_stem else ""
