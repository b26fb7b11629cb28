"""Tables of a run folder, read as text first: a region may be called "NA" and a participant "007"."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from rindices.files import plain
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
        table = plain(pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig"))
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


def read_optional(
    path: Path, texts: Sequence[str], numbers: Sequence[str], flags: Sequence[str] = ()
) -> pd.DataFrame | None:
    """Read a table as `read_table` does; ``None`` where there is none, or an empty one."""
    if not path.is_file():
        return None
    table = read_table(path, texts, numbers, flags)
    if "pattern" in table and not table["pattern"].isna().any():
        table["pattern"] = table["pattern"].astype(int)
    return None if table.empty else table


def _numbers(path: Path, column: pd.Series) -> pd.Series:
    empty = column.str.strip().str.lower().isin(["", "nan"])
    values = pd.to_numeric(column.mask(empty), errors="coerce").astype(float)
    wrong = ~empty & ~np.isfinite(values)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise damaged(path, f"line {row + 2}, column {column.name!r} has {column.iloc[row]!r}, expected a number")
    return values


def in_time(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the order of their visits: by ``years`` where they are known, else by ``visit``.

    Examples
    --------
    >>> in_time(pd.DataFrame({"visit": ["m12", "bl", "m06", "ses-2"]}))["visit"].tolist()
    ['bl', 'm06', 'm12', 'ses-2']
    """
    if "visit" not in rows:
        return rows
    places = {visit: place for place, visit in enumerate(sorted(set(rows["visit"]), key=_natural))}
    order = pd.DataFrame({"visit": rows["visit"].map(places)}, index=rows.index)
    years = rows["years"] if "years" in rows else pd.Series("", index=rows.index)
    order.insert(0, "years", pd.to_numeric(years, errors="coerce"))
    return rows.loc[order.sort_values(["years", "visit"], kind="stable").index]


def _natural(visit: str) -> tuple[bool, list[tuple[bool, float, str]]]:
    plain = visit.strip().lower()
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", plain)
    return plain not in _FIRST_VISITS, [
        (False, float(part), "") if part[0].isdigit() and part.isascii() else (True, 0.0, part) for part in parts
    ]
