"""Cells of a table as text or as numbers, and who sits in which row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from rindices.errors import InputError, counted, did_you_mean, listed

__all__ = [
    "MISSING_TEXT",
    "Roster",
    "has_numbers",
    "read_roster",
    "require_column",
    "share_of_numbers",
    "spreadsheet_rows",
    "text_of",
    "tidy_table",
    "with_numbers",
    "with_points",
]

MISSING_TEXT = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "."})
# A text column with at least this share of numbers was meant as numbers: its other cells are mistakes.
MOSTLY_NUMBERS = 0.8
MOST_LEVELS = 6  # of a category whose names look like numbers: <65 and >=65, 3 mm, the genotypes 3,3 and 3,4
_LONG_NAME = 60  # of a column, in a message
_A_ROW = 0.5  # a header with a larger share of numbers is a row of values


def text_of(column: pd.Series) -> pd.Series:
    """Return the cells as stripped text, missing cells as NaN; whole numbers lose their ``.0``.

    Examples
    --------
    >>> text_of(pd.Series([1.0, 2.0])).tolist(), text_of(pd.Series([" AD ", "."])).tolist()
    (['1', '2'], ['AD', nan])
    """
    missing = column.isna().to_numpy(dtype=bool)
    if is_numeric_dtype(column) and not is_bool_dtype(column) and not is_integer_dtype(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        words = [f"{value:.0f}" if value.is_integer() else str(value) for value in numbers.tolist()]
    else:
        words = [str(cell).strip() for cell in column.tolist()]
    cells = np.array(
        [np.nan if gone or word in MISSING_TEXT else word for gone, word in zip(missing, words, strict=True)],
        dtype=object,
    )
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)


def with_numbers(frame: pd.DataFrame, keep_text: Collection[str] = (), *, decimal_comma: bool = False) -> pd.DataFrame:
    """Return the table with every column as float64 whose cells all read as numbers, the others as text.

    Columns named in ``keep_text``, codes with leading zeros (``007``), truth values and empty columns stay text.

    Examples
    --------
    >>> with_numbers(pd.DataFrame({"code": ["01", "02"], "age": ["61", " 72"]})).dtypes.astype(str).tolist()
    ['object', 'float64']
    """
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if is_numeric_dtype(column) and not is_bool_dtype(column):
            numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
            columns[name] = text_of(column) if name in keep_text else pd.Series(numbers, index=frame.index)
        else:
            text = text_of(column)
            columns[name] = text if name in keep_text else _as_numbers(text, decimal_comma)
    return pd.DataFrame(columns, index=frame.index)


def _as_numbers(text: pd.Series, decimal_comma: bool) -> pd.Series:
    if not text.notna().any() or text.str.fullmatch(r"[+-]?0\d+").any():
        return text
    if decimal_comma:
        points = with_points(text)
        text = points if share_of_numbers(points) >= MOSTLY_NUMBERS else text
    if pd.to_numeric(text, errors="coerce").notna().sum() < text.notna().sum():
        return text
    # Python's own reading of numbers is exact; that of pandas 2 may be off in the last digit.
    return pd.Series(text.to_numpy(dtype=object, na_value=np.nan).astype(np.float64), index=text.index, name=text.name)


def with_points(text: pd.Series) -> pd.Series:
    """Return cells of text, those that are numbers with a decimal comma with a point instead.

    Examples
    --------
    >>> with_points(pd.Series(["61,5", "a,b"])).tolist()
    ['61.5', 'a,b']
    """
    return text.str.replace(r"^([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)$", r"\1.\2", regex=True)


def tidy_table(frame: pd.DataFrame, text_columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a table of people with its columns as numbers or text; the first text column may also be the index."""
    if frame.index.name == text_columns[0] and text_columns[0] not in frame.columns:
        frame = frame.reset_index()
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    repeated = frame.columns[frame.columns.duplicated()].unique()
    if len(repeated):
        raise InputError(
            f"Column names must differ, but there are several {listed(map(repr, repeated))}.\nRename them."
        )
    if frame.empty:
        raise InputError("The table has no people.\nExpected one row per person.")
    return with_numbers(frame, text_columns)


def share_of_numbers(text: pd.Series) -> float:
    """Return the share of the cells that are not missing and read as numbers (0 for an empty column)."""
    present = int(text.notna().sum())
    return float(pd.to_numeric(text, errors="coerce").notna().sum()) / present if present else 0.0


def has_numbers(column: pd.Series) -> bool:
    """Tell whether a column of `with_numbers` holds numbers (an empty column does not)."""
    return bool(is_numeric_dtype(column) and column.notna().any())


@dataclass(frozen=True, eq=False)
class Roster:
    """Who sits in which row: the people's ids and the row numbers a spreadsheet shows."""

    ids: pd.Index
    rows: NDArray[np.int64]

    def at(self, position: int) -> str:
        """Return ``row 17 (participant 0031)``, for errors; what is kept, as warnings are, names the row only."""
        return f"row {self.rows[position]} (participant {self.ids[position]})"


def spreadsheet_rows(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return the row numbers with the header as row 1; gaps of an unnamed integer index are kept."""
    index = frame.index
    if (
        index.name is None
        and is_integer_dtype(index)
        and index.is_monotonic_increasing
        and index.is_unique
        and (len(index) == 0 or index[0] >= 0)
    ):
        return np.asarray(index, dtype=np.int64) + 2
    return np.arange(2, len(frame) + 2, dtype=np.int64)


def require_column(names: Collection[str], name: str, role: str, remedy: str) -> None:
    """Refuse a table that has columns of these names, but none called ``name``."""
    if name not in names:
        columns = [str(column) for column in names]
        found = [column if len(column) < _LONG_NAME else f"{column[:_LONG_NAME]}..." for column in columns]
        raise InputError(
            f"The table has no column {name!r}, which was expected as {role}.{did_you_mean(name, columns)}\n"
            f"Columns found: {listed(found)}.\n{_odd_header(columns) or remedy}"
        )


def _odd_header(columns: Sequence[str]) -> str:
    """Return what to do about a header that is none; nothing for an ordinary one."""
    if len(columns) == 1:
        return "Only one column was found: there should be commas, semicolons or tabs between the columns."
    numbers = pd.to_numeric(pd.Series(columns, dtype=object), errors="coerce").notna().mean()
    return "The first line should hold the names of the columns, but it holds numbers." if numbers > _A_ROW else ""


def read_roster(
    frame: pd.DataFrame,
    id_column: str,
    remedy: str = "Rename the column, or use --id COLUMN.",
    visit_column: str | None = None,
) -> Roster:
    """Return the ids as text, refusing missing and repeated ones; with visits, only their repeated visits."""
    require_column(frame.columns, id_column, "the people's ids", remedy)
    ids, rows = text_of(frame[id_column]), spreadsheet_rows(frame)
    _refuse_empty(ids, rows, "Every person needs an id", "ids")
    if visit_column is None:
        _refuse_repeated(ids, rows, id_column)
    else:
        require_column(frame.columns, visit_column, "the visit", "Correct the name in --visit, or add the column.")
        visits = text_of(frame[visit_column])
        _refuse_empty(visits, rows, "Every row needs a visit", "visits")
        _refuse_repeated_visits(ids, visits, rows, visit_column)
    return Roster(pd.Index(ids.tolist(), name="participant_id"), rows)


def _refuse_empty(cells: pd.Series, rows: NDArray[np.int64], expected: str, what: str) -> None:
    missing = cells.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"{expected}, but column {str(cells.name)!r} is empty in {counted(int(missing.sum()), 'row')}: "
            f"row {listed(rows[missing])}.\nFill in the {what} or remove these rows."
        )


def _refuse_repeated(ids: pd.Series, rows: NDArray[np.int64], id_column: str) -> None:
    repeated = ids.duplicated().to_numpy()
    if repeated.any():
        first = ids.to_numpy()[repeated][0]
        places = listed(rows[(ids == first).to_numpy()], joiner=" and ")
        raise InputError(
            f"Every person needs an id of their own, but {first!r} occurs in rows {places} of column {id_column!r}"
            f"{_more_repeated(ids[repeated])}.\nIf these are visits of one person, name their column with "
            "--visit COLUMN; otherwise make the ids differ."
        )


def _refuse_repeated_visits(ids: pd.Series, visits: pd.Series, rows: NDArray[np.int64], visit_column: str) -> None:
    repeated = pd.DataFrame({"id": ids, "visit": visits}).duplicated().to_numpy()
    if repeated.any():
        first = int(np.flatnonzero(repeated)[0])
        same = ((ids == ids.iloc[first]) & (visits == visits.iloc[first])).to_numpy()
        raise InputError(
            f"A person's visits must differ, but participant {ids.iloc[first]!r} has the visit {visits.iloc[first]!r} "
            f"(column {visit_column!r}) in rows {listed(rows[same], joiner=' and ')} "
            f"({counted(int(repeated.sum()), 'repeated row')} in all).\nKeep one of them, or correct the visits."
        )


def _more_repeated(ids: pd.Series) -> str:
    others = ids.nunique() - 1
    return f" ({counted(others, 'other id')} repeated as well)" if others else ""
