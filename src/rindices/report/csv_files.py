"""Tables of a run folder, read as text first: a region may be called "NA" and a participant "007"."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.report.checks import damaged, read_text

_FIRST_VISITS = ("bl", "base", "baseline", "screening", "sc")


def read_table(path: Path, texts: Sequence[str], numbers: Sequence[str], flags: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table that has at least these columns; a damaged one is a ``ValueError`` that says where.

    Parameters
    ----------
    path
        The file.
    texts, numbers, flags
        Columns of text, of numbers (empty cells allowed) and of true or false.
    """
    read_text(path)
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise damaged(path, f"it is not a table ({str(error).strip()})") from error
    missing = [column for column in (*texts, *numbers, *flags) if column not in table.columns]
    if missing:
        raise damaged(path, f"column {missing[0]!r} is missing")
    for column in numbers:
        table[column] = _numbers(path, table[column])
    for column in flags:
        table[column] = table[column].str.strip().str.lower().isin(["true", "1"])
    return table


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    empty = column.str.strip().str.lower().isin(["", "nan"])
    values = pd.to_numeric(column.mask(empty), errors="coerce").astype(float)
    wrong = ~empty & ~np.isfinite(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise damaged(path, f"line {row + 2}, column {column.name!r} has {column.iloc[row]!r}, expected a number")
    return values


def visit_order(visits: pd.Series) -> pd.Series:
    """Return the place of each visit in time: numbers and dates by value, "m06" before "m12", "baseline" first.

    Examples
    --------
    >>> visit_order(pd.Series(["m12", "bl", "m06", "m12"])).tolist()
    [2, 0, 1, 2]
    """
    ordered = sorted(set(visits), key=_natural)
    return visits.map({visit: place for place, visit in enumerate(ordered)}).astype(int)


def _natural(visit: str) -> tuple[bool, list[tuple[bool, float, str]]]:
    plain = visit.strip().lower()
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", plain)
    return plain not in _FIRST_VISITS, [
        (False, float(part), "") if part[0].isdigit() and part.isascii() else (True, 0.0, part) for part in parts
    ]
