"""Numbers that people write for people: with separators of thousands, decimal commas, units and words for gaps."""

from __future__ import annotations

import re

import pandas as pd

from rindices.cohort.cells import MOST_LEVELS

__all__ = ["meant_as_numbers", "spelled_numbers", "spelling_hint"]

_GAPS = "'\u2019 \u00a0\u2007\u2009\u202f"  # that people put between thousands
_THOUSANDS = re.compile(rf"[+-]?\d{{1,3}}(?:[,{_GAPS}]\d{{3}})+(?:\.\d+)?")
_EUROPEAN = re.compile(rf"[+-]?\d{{1,3}}(?:(?:[.{_GAPS}]\d{{3}})+,\d+|(?:\.\d{{3}}){{2,}})")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_UNITS = "%|[mcµμ]m[23²³]?|[mcdµμ]?[lL]|cc|k?g|y|yrs?|years?"
_WITH_UNIT = re.compile(rf"({_THOUSANDS.pattern}|{_EUROPEAN.pattern}|[+-]?\d+(?:[.,]\d+)?)\s*(?:{_UNITS})")
_LIMIT = re.compile(r"[<>\u2264\u2265]=?\s*\d\S*")
_NUMBER = re.compile(r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?")
_KNOWN = "|".join(form.pattern for form in (_NUMBER, _THOUSANDS, _EUROPEAN, _WITH_UNIT, _LIMIT))
# Digits first, and no more than a word behind them; dates and codes such as 007 or 011_S_0002 are something else.
_LIKE_NUMBER = rf"(?!0\d)[+\-\u2212~]?\s*\d[\d.,{_GAPS}]*(?:[^\d\s]{{0,8}}|[\u00b1(][\d., ]+\)?)"
_DATE = r"\d{1,4}[./]\d{1,2}[./]\d{1,4}"
_NO_VALUE = frozenset({"?", "-", "--", "missing", "unknown", "not available", "nd", "n.d.", "none", "not done"})
_MOSTLY = 0.8  # of the cells of a column that was meant as numbers
_LEVELS = 0.1  # measures differ: a column with fewer values than this share of its cells has categories, such as 3T


def spelling_hint(text: str) -> str:
    """Return how to write a cell so that it is read as a number; nothing where that is not clear.

    Examples
    --------
    >>> spelling_hint("12,345.6")
    'Write numbers without separators of thousands: 12345.6.'
    >>> spelling_hint("3.4 mL"), spelling_hint("low")
    ('Write the number alone, without its unit: 3.4.', '')
    """
    if _THOUSANDS.fullmatch(text):
        point = text.replace(",", ".")
        either = f" ({point} if the comma stands before decimals)" if text.count(",") == 1 and "." not in text else ""
        return f"Write numbers without separators of thousands: {_plain(text)}{either}."
    if _EUROPEAN.fullmatch(text):
        return f"Write numbers without separators of thousands: {_plain(text)}."
    if _DECIMAL_COMMA.fullmatch(text):
        return f"Write decimals with a point: {text.replace(',', '.')}."
    if unit := _WITH_UNIT.fullmatch(text):
        return f"Write the number alone, without its unit: {_plain(unit[1])}."
    if _LIMIT.fullmatch(text):
        return "Write numbers in place of limits such as '<0.5', or leave the cells empty."
    if text.casefold() in _NO_VALUE or text.startswith("#"):
        return "Where a value is missing, leave the cell empty."
    return ""


def _plain(number: str) -> str:
    """Return a number without separators of thousands, and with a decimal point."""
    if _THOUSANDS.fullmatch(number):
        return re.sub(rf"[,{_GAPS}]", "", number)
    if _EUROPEAN.fullmatch(number):
        number = re.sub(rf"[.{_GAPS}]", "", number)
    return number.replace(",", ".")


def meant_as_numbers(column: pd.Series) -> bool:
    """Tell whether a column of text holds numbers in another spelling, and not a few categories that look like them.

    Examples
    --------
    >>> meant_as_numbers(pd.Series([f"{age},5" for age in range(60, 80)])), meant_as_numbers(pd.Series(["<65", ">65"]))
    (True, False)
    """
    return column.nunique() > MOST_LEVELS and bool(spelled_numbers(column))


def spelled_numbers(column: pd.Series) -> str:
    """Return how to write the cells of a column of text that was meant as numbers; nothing for other columns.

    Examples
    --------
    >>> spelled_numbers(pd.Series(["3.4 mL", "3.1 mL"]))
    'Write the number alone, without its unit: 3.4.'
    """
    cells = column.dropna().astype(str)
    known = cells.str.fullmatch(_KNOWN)
    if len(cells) and known.mean() >= _MOSTLY:
        commas = cells.str.fullmatch(_DECIMAL_COMMA)  # are what matters only where there is nothing else
        return next(filter(None, map(spelling_hint, [*cells[known & ~commas], *cells[commas]])), "")
    like = cells.str.fullmatch(f"{_KNOWN}|{_LIKE_NUMBER}") & ~cells.str.fullmatch(_DATE)
    if len(cells) and like.mean() >= _MOSTLY and cells.nunique() > _LEVELS * len(cells):
        return "Write numbers with digits and a decimal point only."
    return ""
