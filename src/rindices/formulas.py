"""Text that a spreadsheet would run, made harmless where it is written and restored where it is read.

A cell that begins with ``=``, ``+``, ``-`` or ``@`` is a formula to a spreadsheet, and a formula can start programs or
send cells elsewhere. Such a cell is written with an apostrophe before it. The same holds for what follows a semicolon,
a tab or a line break within a cell: a spreadsheet that takes these for the borders of cells would see a cell begin
there. Quotation marks, spaces and unseen characters before the sign do not matter, nor does its width (``＝``). Plain
numbers (``-1``, ``+2.5``, ``-1e3``) and single signs (``+`` for "amyloid positive") run nothing and stay as they are.

`plain_text` undoes exactly what `guarded_text` does: for every text, the one of the other is the text itself. All
tables are written guarded and read plain, those of users too. So what rindices wrote reads as it was, and an id that a
table guards already (``'=x``) is the id without the apostrophe, and is written with it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["guarded", "guarded_text", "plain", "plain_cells", "plain_text"]

_BORDERS = "\t\r\n"
_UNSEEN = "\x00-\x08\x0b\x0c\x0e-\x20\x7f\xa0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
_BEFORE = rf"[{_UNSEEN}\"']*"
_HARMLESS = r"(?:[=+\-@]|[+\-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+\-]?[0-9]+)?)"
_FORMULA = rf"(?={_BEFORE}[=+\-@＝＋－＠])(?!{_HARMLESS}(?:[;{_BORDERS}]|\Z))"
_EMPTY = rf"(?={_BEFORE}[{_BORDERS}])"  # nothing is seen before the first border: its first cell is what follows it
_BEGIN = rf"(?<![^;{_BORDERS}])"
_TO_GUARD = re.compile(rf"\A{_EMPTY}|{_BEGIN}{_FORMULA}")
# The apostrophe is one of the signs that may stand before a formula. So a text that has one already gets another, and
# only those that were added are taken away again.
_GUARDED = re.compile(rf"\A'{_EMPTY}|{_BEGIN}'{_FORMULA}")
_SUSPECT = re.compile(rf"\A[^0-9A-Za-z]|[;{_BORDERS}]")  # what is neither needs no closer look


def guarded_text(text: str) -> str:
    r"""Return a text that no spreadsheet runs.

    Examples
    --------
    >>> [guarded_text(text) for text in ("=1+1", "-1", "sub-01", "'=x", "+49 123", "AD;@x")]
    ["'=1+1", '-1', 'sub-01', "''=x", "'+49 123", "AD;'@x"]
    """
    return _TO_GUARD.sub("'", text) if _SUSPECT.search(text) else text


def plain_text(text: str) -> str:
    """Return the text that `guarded_text` made harmless.

    Examples
    --------
    >>> [plain_text(text) for text in ("'=1+1", "-1", "''=x", "'quoted'")]
    ['=1+1', '-1', "'=x", "'quoted'"]
    """
    return _GUARDED.sub("", text) if "'" in text else text


def guarded(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in whose text cells and names of columns there is nothing that a spreadsheet runs.

    Examples
    --------
    >>> import pandas as pd
    >>> guarded(pd.DataFrame({"@id": ["=1+1", "sub-01"], "r1": [-0.5, 0.5]})).to_csv(index=False).split()
    ["'@id,r1", "'=1+1,-0.5", 'sub-01,0.5']
    """
    return _everywhere(table, guarded_text)


def plain(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as it was before `guarded`.

    Examples
    --------
    >>> import pandas as pd
    >>> plain(pd.DataFrame({"'@id": ["'=1+1", "sub-01"]})).to_dict("list")
    {'@id': ['=1+1', 'sub-01']}
    """
    return _everywhere(table, plain_text)


def plain_cells(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose cells are as before `guarded`; for names of columns that are already."""
    return _cells(table, plain_text)


def _everywhere(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    names = [change(name) if isinstance(name, str) else name for name in table.columns]
    changed = _cells(table, change)
    return changed if names == list(table.columns) else changed.set_axis(names, axis=1)


def _cells(table: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    from pandas import Series
    from pandas.api.types import is_datetime64_any_dtype, is_numeric_dtype

    changed = table.copy(deep=False)
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        if is_numeric_dtype(column) or is_datetime64_any_dtype(column):
            continue
        before = column.tolist()
        known = {cell: change(cell) for cell in dict.fromkeys(before) if isinstance(cell, str)}
        after = [known[cell] if isinstance(cell, str) else cell for cell in before]
        if any(new != old for old, new in known.items()):
            changed.isetitem(position, Series(after, dtype=object).to_numpy())
    return changed
