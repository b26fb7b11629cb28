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
    "number_block",
    "read_roster",
    "require_column",
    "share_of_numbers",
    "text_of",
    "tidy_table",
    "with_numbers",
]

MISSING_TEXT = frozenset({"", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "."})
# A text column with at least this share of numbers was meant as numbers: its other cells are mistakes.
MOSTLY_NUMBERS = 0.8


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
        points = text.str.replace(r"^([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)$", r"\1.\2", regex=True)
        text = points if share_of_numbers(points) >= MOSTLY_NUMBERS else text
    numbers = pd.to_numeric(text, errors="coerce")
    return numbers.astype(np.float64) if numbers.notna().sum() == text.notna().sum() else text


def tidy_table(frame: pd.DataFrame, text_columns: tuple[str, str]) -> pd.DataFrame:
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
        """Return ``row 17 (participant 0031)``."""
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


def require_column(frame: pd.DataFrame, name: str, role: str, remedy: str) -> None:
    """Refuse a table without the column ``name``."""
    if name not in frame.columns:
        columns = [str(column) for column in frame.columns]
        raise InputError(
            f"The table has no column {name!r}, which was expected as {role}.{did_you_mean(name, columns)}\n"
            f"Columns found: {listed(columns)}.\n{remedy}"
        )


def read_roster(frame: pd.DataFrame, id_column: str, remedy: str = "Rename the column, or use --id COLUMN.") -> Roster:
    """Return the ids as text, refusing missing and repeated ones."""
    require_column(frame, id_column, "the people's ids", remedy)
    ids, rows = text_of(frame[id_column]), spreadsheet_rows(frame)
    missing = ids.isna().to_numpy()
    if missing.any():
        raise InputError(
            f"Every person needs an id, but column {id_column!r} is empty in {counted(int(missing.sum()), 'row')}: "
            f"row {listed(rows[missing])}.\nFill in the ids or remove these rows."
        )
    repeated = ids.duplicated().to_numpy()
    if repeated.any():
        first = ids.to_numpy()[repeated][0]
        places = listed(rows[(ids == first).to_numpy()], joiner=" and ")
        raise InputError(
            f"Every person needs an id of their own, but {first!r} occurs in rows {places} of column {id_column!r}"
            f"{_more_repeated(ids[repeated])}.\nKeep one row per person (one visit each), or make the ids differ."
        )
    return Roster(pd.Index(ids.tolist(), name="participant_id"), rows)


def _more_repeated(ids: pd.Series) -> str:
    others = ids.nunique() - 1
    return f" ({counted(others, 'other id')} repeated as well)" if others else ""


def number_block(
    frame: pd.DataFrame, columns: Sequence[str], roster: Roster, *, kind: str, option: str = ""
) -> NDArray[np.float64]:
    """Return the columns as a float64 array, refusing text, missing and infinite cells.

    ``kind`` says what the columns are in the message; ``option`` is the one that leaves a column out.
    """
    for name in columns:
        if not is_numeric_dtype(frame[name]):
            refuse_text(frame[name], roster, kind=kind, option=option)
    block = frame[list(columns)].to_numpy(dtype=np.float64)
    for bad, adjective in ((np.isnan(block), "Missing"), (np.isinf(block), "Infinite")):
        if bad.any():
            refuse_gaps(bad, list(columns), roster, kind=kind, adjective=adjective, option=option)
    return block


def refuse_text(column: pd.Series, roster: Roster, *, kind: str, option: str = "") -> None:
    """Refuse a column that has cells of text, naming the first (an empty column passes)."""
    offenders = np.flatnonzero(column.notna() & pd.to_numeric(column, errors="coerce").isna())
    if not len(offenders):
        return
    first = int(offenders[0])
    value = str(column.iloc[first])
    more = (
        f", and {counted(len(offenders) - 1, 'more row')} {'has' if len(offenders) == 2 else 'have'} text"
        if len(offenders) > 1
        else ""
    )
    hint = " Write decimals with a point (1.5)." if "," in value else ""
    remedy = f", or leave the column out with {option} {column.name}" if option else ""
    raise InputError(
        f"Column {column.name!r} ({kind}) should hold numbers, but {roster.at(first)} has the text {value!r}{more}.\n"
        f"Correct the cell{'s' if more else ''}{remedy}.{hint}"
    )


def refuse_gaps(
    bad: NDArray[np.bool_],
    columns: Sequence[str],
    roster: Roster,
    *,
    kind: str,
    adjective: str = "Missing",
    option: str = "",
) -> None:
    """Refuse cells marked in ``bad`` (people × columns), naming the columns and the first cell."""
    counts = {name: int(number) for name, number in zip(columns, bad.sum(axis=0), strict=True) if number}
    names = listed(f"{name} ({counted(number, 'person', 'people')})" for name, number in counts.items())
    first = next(iter(counts))
    position = int(np.flatnonzero(bad[:, list(columns).index(first)])[0])
    remedy = " or remove these people"
    if option:
        plural = "s" if len(counts) > 1 else ""
        remedy = f", remove these people, or leave the column{plural} out with {option} {','.join(list(counts)[:20])}"
    raise InputError(
        f"{adjective} values in {counted(len(counts), f'{kind} column')}: {names}.\n"
        f"The first is in column {first!r}, {roster.at(position)}.\n"
        f"{'Fill in' if adjective == 'Missing' else 'Correct'} the values{remedy}."
    )
