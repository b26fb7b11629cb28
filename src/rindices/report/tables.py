"""Tables of the page: what is seen, and beside it the value with all digits for sorting and for the download."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from rindices.report.pieces import interval, number, p_value

MOST_ROWS = 600


class Column(NamedTuple):
    """A column: its title, whether it holds numbers, and the names of its parts in the download if it has several."""

    title: str
    is_number: bool = False
    parts: tuple[str, ...] = ()


class Cell(NamedTuple):
    """What is seen, and what is downloaded where that is another text."""

    text: str
    value: str | None = None


class Table(NamedTuple):
    """A table with a caption, the name of its download, the row to be marked, and what was cut off and where it is."""

    caption: str
    columns: tuple[Column, ...]
    rows: list[list[Cell]]
    file: str
    marked: int | None = None
    n_more: int = 0
    source: str = ""


def make_table(
    caption: str,
    columns: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    *,
    marked: int | None = None,
    source: str = "",
) -> Table:
    """Return a table.

    Parameters
    ----------
    caption
        Its caption, which also names the download.
    columns
        Columns, or the titles of columns of text.
    rows
        Rows of cells, or of their texts.
    marked
        The row to be marked.
    source
        The file that has all rows. A table with a source is cut where it would make the page heavy.

    Examples
    --------
    >>> make_table("Sizes", ["Group", *numbers("n")], [["Controls", count(1200)]]).rows[0][1]
    Cell(text='1,200', value='1200')
    """
    named = tuple(Column(column) if isinstance(column, str) else column for column in columns)
    cells = [[Cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    shown = cells[:MOST_ROWS] if source else cells
    file = re.sub(r"[^a-z0-9]+", "-", caption.lower()).strip("-")[:60]
    return Table(caption, named, shown, file, marked, len(cells) - len(shown), source)


def numbers(*titles: str) -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(title, is_number=True) for title in titles)


def limits_column(title: str = "95 % interval", of: str = "95 % interval") -> Column:
    """Return the column of an interval, which is two columns, named by what it is `of`, in the download."""
    return Column(title, is_number=True, parts=(f"{of}, low", f"{of}, high"))


def measure(value: Any, digits: int = 2, sign: str = "") -> Cell:
    """Return a number with so many digits."""
    return Cell(number(value, digits, sign), _whole(value))


def count(value: Any) -> Cell:
    """Return a whole number."""
    return Cell("–", "") if pd.isna(value) else Cell(f"{int(value):,}", str(int(value)))


def probability(value: Any) -> Cell:
    """Return a p or q value."""
    return Cell(p_value(value), _whole(value))


def limits(low: Any, high: Any, digits: int = 2) -> Cell:
    """Return an interval, a dash where it is unknown."""
    return Cell(interval(low, high, digits) or "–", f"{_whole(low)}|{_whole(high)}")


def _whole(value: Any) -> str:
    return "" if pd.isna(value) else f"{float(value):.15g}"
