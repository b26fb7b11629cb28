"""Numbers that people write for people: with separators of thousands, decimal commas, units and words for gaps."""

from __future__ import annotations

import re

import pandas as pd

__all__ = ["spelled_numbers", "spelling_hint"]

_GAPS = "'\u2019 \u00a0\u202f"  # that people put between thousands
_THOUSANDS = re.compile(rf"[+-]?\d{{1,3}}(?:[,{_GAPS}]\d{{3}})+(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_UNITS = "%|[mcµμ]m[23²³]?|[mcdµμ]?[lL]|cc|k?g|y|yrs?|years?"
_WITH_UNIT = re.compile(rf"({_THOUSANDS.pattern}|[+-]?\d+(?:[.,]\d+)?)\s*(?:{_UNITS})")
_NO_VALUE = frozenset({"?", "-", "--", "missing", "unknown", "not available", "nd", "n.d.", "none", "not done"})
_MOSTLY = 0.8  # of the cells of a column that was meant as numbers


def spelling_hint(text: str) -> str:
    """Return how to write a cell so that it is read as a number; nothing where that is not clear.

    Examples
    --------
    >>> spelling_hint("12,345.6")
    'Write numbers without separators of thousands: 12345.6.'
    >>> spelling_hint("3.4 mL"), spelling_hint("low")
    ('Write the number alone, without its unit: 3.4.', '')
    """
    plain = re.sub(rf"[,{_GAPS}]", "", text)
    if _THOUSANDS.fullmatch(text):
        point = text.replace(",", ".")
        either = f" ({point} if the comma stands before decimals)" if text.count(",") == 1 and "." not in text else ""
        return f"Write numbers without separators of thousands: {plain}{either}."
    if _DECIMAL_COMMA.fullmatch(text):
        return f"Write decimals with a point: {text.replace(',', '.')}."
    if unit := _WITH_UNIT.fullmatch(text):
        number = re.sub(rf"[,{_GAPS}]", "", unit[1]) if _THOUSANDS.fullmatch(unit[1]) else unit[1].replace(",", ".")
        return f"Write the number alone, without its unit: {number}."
    if text.casefold() in _NO_VALUE or text.startswith("#"):
        return "Where a value is missing, leave the cell empty."
    return ""


def spelled_numbers(column: pd.Series) -> str:
    """Return how to write the cells of a column of text that was meant as numbers; nothing for other columns.

    Examples
    --------
    >>> spelled_numbers(pd.Series(["3.4 mL", "3.1 mL"]))
    'Write the number alone, without its unit: 3.4.'
    """
    cells = column.dropna().astype(str)
    meant = cells.str.fullmatch(f"{_THOUSANDS.pattern}|{_DECIMAL_COMMA.pattern}|{_WITH_UNIT.pattern}")
    if not len(cells) or meant.mean() < _MOSTLY:
        return ""
    return spelling_hint(cells[meant].iloc[0])
