"""Cells as numbers, text or gaps, and numbers in unusual spellings."""

import contextlib
import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from rindices.problems import InputError

MISSING_TEXT = frozenset(
    {"", "NA", "N/A", "n/a", "NaN", "nan", "null", "None", "."}
    | {"NULL", "Null", "#N/A", "#NV", "n.a.", "N.A.", "<NA>", "#NULL!"}  # of databases and spreadsheets
)
MOSTLY_NUMBERS = 0.8  # a text column with at least this share of numbers was meant to be numeric; the rest are mistakes
LARGEST = 1e15  # no measure of a brain or a person exceeds it in any unit; squares of far larger values would overflow
_MOST_LEVELS = 6  # of a category whose names look like numbers: <65 and >=65, 3 mm, the genotypes 3,3 and 3,4
_CODE = re.compile(r"^\s*[+-]?0\d+\s*$", re.MULTILINE)  # 007 is a name, not a number

_THOUSANDS = re.compile(r"^[+-]?[1-9]\d{0,2}(?:\.\d{3})+$", flags=re.MULTILINE)
_COMMA = re.compile(r"^[+-]?\d+,\d+$", flags=re.MULTILINE)
_COMMA_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+")
_DECIMAL_COMMA = re.compile(r"\A([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)\Z")
# A number written for human readers: with a sign such as <, thousands separators, a decimal comma, a unit or an error.
# Dates, times, and codes such as 007 or 011_S_0002 do not match.
_LIKE_NUMBER = re.compile(
    r"(?!0\d)[<>\u2264\u2265]?=?[+\-\u2212~]?\s*\d[\d.,'\u2019\s]*(?:[^\d\s.,/:_-]\S{0,7}|[\u00b1(][\d., ]+\)?)?"
)
_DATE = re.compile(r"\d{1,4}[./]\d{1,2}[./]\d{1,4}")
_NO_VALUE = frozenset({"?", "-", "--", "missing", "unknown", "not available", "nd", "n.d.", "none", "not done"})


def text_of(column: pd.Series) -> pd.Series:
    """Return the cells as stripped text, missing cells as NaN; whole numbers lose their ``.0``.

    Examples
    --------
    >>> text_of(pd.Series([1.0, 2.0])).tolist(), text_of(pd.Series([" AD ", "."])).tolist()
    (['1', '2'], ['AD', nan])
    """
    missing = column.isna().to_numpy(dtype=bool)
    if is_numeric_dtype(column) and not is_bool_dtype(column) and not is_integer_dtype(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan).tolist()
        words = [f"{value:.0f}" if value.is_integer() else str(value) for value in numbers]
    else:
        words = [str(cell).strip() for cell in column.tolist()]
    cells = [np.nan if gone or word in MISSING_TEXT else word for gone, word in zip(missing, words, strict=True)]
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)


def plain_code(code: object) -> str:
    """Return a code in its plain form: ``1.0`` and ``" 1"`` become 1.

    Examples
    --------
    >>> plain_code(1.0), plain_code(" AD ")
    ('1', 'AD')
    """
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", str(code).strip())


def as_known(codes: Iterable[object], known: Sequence[str]) -> NDArray[np.object_]:
    """Return codes as a model spells its categories, which may differ: 1 for 1.0, 1 for True.

    Examples
    --------
    >>> as_known([1, "2.0", "x"], ["1.0", "2"]).tolist(), as_known([0, True], ["False", "True"]).tolist()
    (['1.0', '2', 'x'], ['False', 'True'])
    """
    booleans = dict(zip("01", known, strict=True)) if [*known] == ["False", "True"] else {}
    names = booleans | {plain_code(category): category for category in known}
    texts = [str(code) for code in codes]
    called = {text: names.get(plain_code(text), plain_code(text)) for text in set(texts)}
    return np.array([called[text] for text in texts], dtype=object)


def numbers_of(column: pd.Series) -> NDArray[np.float64]:
    """Return the cells as numbers, exactly as Python reads them; NaN for gaps and for text that is not a number.

    Examples
    --------
    >>> numbers_of(pd.Series(["61.5", " 72", "low", ""])).tolist()
    [61.5, 72.0, nan, nan]
    """
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    with contextlib.suppress(ValueError, TypeError):  # most columns of measures have neither gaps nor words
        return column.to_numpy(dtype=object).astype(np.float64)
    text = text_of(column)
    readable = pd.to_numeric(text, errors="coerce").notna().to_numpy()
    numbers = np.full(len(text), np.nan)
    numbers[readable] = text.to_numpy(dtype=object)[readable].astype(np.float64)
    return numbers


def typed(frame: pd.DataFrame, text_columns: Collection[str] = (), *, decimal_comma: bool = False) -> pd.DataFrame:
    """Return a table in which columns whose cells all parse as numbers are float64, and the others text.

    Columns named in `text_columns`, codes with leading zeros (``007``) and Booleans stay text. If decimal commas are
    allowed, they become points in text columns that consist mostly of numbers.

    Examples
    --------
    >>> typed(pd.DataFrame({"code": ["01", "02"], "age": ["61", " 72"]})).dtypes.astype(str).tolist()
    ['object', 'float64']
    """
    columns = {
        name: text_of(frame[name]) if name in text_columns else _as_numbers(frame[name], decimal_comma=decimal_comma)
        for name in frame.columns
    }
    return pd.DataFrame(columns, index=frame.index)


def _as_numbers(column: pd.Series, *, decimal_comma: bool) -> pd.Series:
    """Return a column as numbers if all its cells are, and as text otherwise."""
    plain = _plain_numbers(column)
    if plain is not None:
        return pd.Series(plain, index=column.index)
    text = text_of(column)
    if text.str.fullmatch(_CODE).any():
        return text
    with_points = text.str.replace(_DECIMAL_COMMA, r"\1.\2", regex=True).astype(object) if decimal_comma else text
    numbers = numbers_of(with_points)
    n_lost, n_cells = np.isnan(numbers).sum() - text.isna().sum(), text.notna().sum()
    if not n_lost:
        return pd.Series(numbers, index=column.index)
    return with_points if n_lost <= (1 - MOSTLY_NUMBERS) * n_cells else text


def _plain_numbers(column: pd.Series) -> NDArray[np.float64] | None:
    """Return the numbers of a purely numeric column; None if its cells need a closer look."""
    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return numbers_of(column)
    cells = column.to_numpy(dtype=object)
    if {*map(type, cells)} <= {str, float} and not _CODE.search("\n".join(map(str, cells))):
        with contextlib.suppress(ValueError):
            numbers = cells.astype(np.float64)
            return None if {cell for cell in cells[np.isnan(numbers)] if isinstance(cell, str)} else numbers
    return None


def refuse_thousands(frame: pd.DataFrame) -> None:
    """Refuse possible thousands separators: the point in 1.023 among decimal commas, the comma in 1,023 beside 987."""
    texts = {name: "\n".join(frame[name].dropna()) for name in frame.columns}
    for name, text in texts.items():
        cells = text.split("\n") if "," in text else []
        commas = [cell for cell in cells if "," in cell]
        below = [cell for cell in cells if re.fullmatch(r"[+-]?\d{2,3}", cell)]
        if commas and below and len(commas) + len(below) == len(cells) and all(map(_COMMA_THOUSANDS.fullmatch, commas)):
            raise InputError(
                f"Column {name!r} contains {commas[0]!r} and {below[0]!r}: the comma seems to be a thousands "
                "separator, not a decimal comma.\n"
                "Write numbers without thousands separators."
            )
    first = next(((name, match[0]) for name, text in texts.items() if (match := _THOUSANDS.search(text))), None)
    if first is not None and any(map(_COMMA.search, texts.values())):
        name, cell = first
        row = frame.index[int((frame[name] == cell).to_numpy().argmax())] + 2
        decimal = f", or write decimal points as commas ({cell.replace('.', ',')})" if cell.count(".") == 1 else ""
        raise InputError(
            f"Column {name!r} contains {cell!r} in row {row} of a file with decimal commas: the point seems to be "
            "a thousands separator.\n"
            f"Remove thousands separators from all cells (here: {cell.replace('.', '')}){decimal}."
        )


def spreadsheet_rows(frame: pd.DataFrame) -> NDArray[np.int64]:
    """Return the row numbers that a spreadsheet shows, with the header as row 1; gaps in an integer index are kept."""
    index = frame.index
    counted = index.name is None and is_integer_dtype(index) and index.is_monotonic_increasing and index.is_unique
    if counted and (len(index) == 0 or index[0] >= 0):
        return np.asarray(index, dtype=np.int64) + 2
    return np.arange(2, len(frame) + 2, dtype=np.int64)


def meant_as_numbers(column: pd.Series) -> bool:
    """Return whether a column holds numbers, perhaps oddly spelled, rather than a few categories that look like them.

    Examples
    --------
    >>> meant_as_numbers(pd.Series([f"{age},5" for age in range(60, 80)])), meant_as_numbers(pd.Series(["<65", ">65"]))
    (True, False)
    """
    if is_numeric_dtype(column):
        return bool(column.notna().any())
    cells = text_of(column).dropna()
    if np.isfinite(numbers_of(cells)).sum() >= MOSTLY_NUMBERS * len(cells) > 0:
        return not cells.str.fullmatch(_CODE).any()
    like = cells.map(lambda cell: bool(_LIKE_NUMBER.fullmatch(cell)) and not _DATE.fullmatch(cell))
    return bool(cells.nunique() > _MOST_LEVELS and like.mean() >= MOSTLY_NUMBERS)


def spelling_hint(text: str) -> str:
    """Return advice on how to write a cell so that it is read as a number; empty if that is unclear.

    Examples
    --------
    >>> spelling_hint("3.4 mL")
    'Write numbers with digits and a decimal point only: no decimal commas, units or thousands separators.'
    >>> spelling_hint("?"), spelling_hint("low")
    ('If a value is missing, leave the cell empty.', '')
    """
    if _LIKE_NUMBER.fullmatch(text):
        return "Write numbers with digits and a decimal point only: no decimal commas, units or thousands separators."
    missing = text.casefold() in _NO_VALUE or text.startswith("#")
    return "If a value is missing, leave the cell empty." if missing else ""
