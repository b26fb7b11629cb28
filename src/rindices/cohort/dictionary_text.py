"""What data dictionaries write in their cells: levels, ranges, limits, missing codes, headings."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

__all__ = ["codes_in", "levels_in", "limit_in", "plain_code", "range_in", "roles_of"]

# Headings of the usual data dictionaries, the surest first; signs and case do not count ("Variable / Field Name").
_HEADINGS = {
    "name": (
        "variable field name",
        "column",
        "column name",
        "variable",
        "variable name",
        "field",
        "field name",
        "name",
    ),
    "description": ("description", "label", "field label", "variable label", "long name", "longname", "definition"),
    "unit": ("unit", "units"),
    "levels": (
        *("levels", "choices", "choices calculations or slider labels", "select choices or calculations"),
        *("categories", "value labels", "allowed values", "permissible values", "values", "codes", "coding"),
    ),
    "minimum": ("minimum", "min", "minimum value", "min value", "text validation min"),
    "maximum": ("maximum", "max", "maximum value", "max value", "text validation max"),
    "range": ("range", "valid range", "allowed range"),
    "missing": ("missing codes", "missing code", "missing values", "missing value", "missing", "na values", "na codes"),
    "type": ("field type", "type", "data type"),
}
_NUMBER = r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"[\[(]?\s*({_NUMBER})\s*(?:-|–|to|\.\.+|,|:)\s*({_NUMBER})\s*[\])]?")
# Limits of dates, of times and of other fields: nothing to compare numbers with.
_NOT_FOR_NUMBERS = re.compile(r"\d{4}-\d{2}|\d{1,2}:\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|today|now|\[", re.IGNORECASE)


def roles_of(headings: Sequence[str]) -> dict[str, str]:
    """Return which heading of a data dictionary has which role.

    Examples
    --------
    >>> roles_of(["Variable / Field Name", "Field Label", "Text Validation Min"])
    {'name': 'Variable / Field Name', 'description': 'Field Label', 'minimum': 'Text Validation Min'}
    """
    known = {" ".join(re.findall(r"[a-z]+", heading.casefold())): heading for heading in reversed(headings)}
    found = {role: next((known[name] for name in names if name in known), None) for role, names in _HEADINGS.items()}
    return {role: heading for role, heading in found.items() if heading is not None}


def plain_code(code: object) -> str:
    """Return a code as a table's cell has it: ``1.0`` and ``" 1"`` are 1.

    Examples
    --------
    >>> plain_code(1.0), plain_code(" AD ")
    ('1', 'AD')
    """
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", str(code).strip())


def levels_in(text: str) -> dict[str, str] | None:
    """Return the levels that a cell lists, None where it is something else; a mixture is a ValueError.

    Examples
    --------
    >>> levels_in("0=male; 1=female"), levels_in("0, Male | 1, Female"), levels_in("0: male, 1: female")
    ({'0': 'male', '1': 'female'}, {'0': 'Male', '1': 'Female'}, {'0': 'male', '1': 'female'})
    >>> levels_in("M;F"), levels_in("0 to 30"), levels_in("years")
    ({'M': 'M', 'F': 'F'}, None, None)
    """
    parts, by_commas = _parts(text)
    if len(parts) < 2:
        return None
    pairs = _pairs(parts, by_commas)
    if pairs is None:
        if by_commas and (any(" " in part for part in parts) or _RANGE.fullmatch(text.strip())):
            return None  # prose, or a range
        pairs = [(part, part) for part in parts]
    levels = {plain_code(code): meaning.strip() for code, meaning in pairs}
    if len(levels) < len(pairs) or "" in levels:
        raise ValueError("a code is empty or occurs twice")
    return levels


def _parts(text: str) -> tuple[list[str], bool]:
    """Return the listed items, and whether only commas separate them."""
    for separator in ("|", ";", "\n"):
        if separator in text:
            return [part.strip() for part in text.split(separator) if part.strip()], False
    # A meaning may itself contain commas: only one before the next code separates.
    sign = r",(?=[^,=:]*[=:])" if re.search("[=:]", text) else ","
    return [part.strip() for part in re.split(sign, text) if part.strip()], True


def _pairs(parts: list[str], by_commas: bool) -> list[tuple[str, str]] | None:
    """Return codes and meanings; None where no item has both."""
    for sign in ("=", ":", r"\s+[-–]\s+", *(() if by_commas else (",",))):
        split = [re.split(sign, part, maxsplit=1) for part in parts]
        number = sum(len(pair) == 2 for pair in split)
        if number == len(parts):
            return [(code, meaning) for code, meaning in split]
        if number and sign != ",":
            raise ValueError("some of its items have a meaning and some have none")
    return None


def range_in(text: str) -> tuple[float, float] | None:
    """Return the limits of a range such as ``0-120``, ``0 to 120`` or ``[0, 120]``; None where it is none.

    Examples
    --------
    >>> range_in("0-120"), range_in("[-5, 5]"), range_in("wide")
    ((0.0, 120.0), (-5.0, 5.0), None)
    """
    match = _RANGE.fullmatch(text.strip())
    return (float(match[1]), float(match[2])) if match else None


def limit_in(value: object) -> float | None:
    """Return a limit as a number, None for limits of dates and for empty cells; other text is a ValueError.

    Examples
    --------
    >>> limit_in("18"), limit_in("2001-01-31"), limit_in("")
    (18.0, None, None)
    """
    text = str(value).strip()
    if not text or isinstance(value, bool) or text.casefold() in ("n/a", "na", "nan", "none", "inf", "-inf"):
        return None
    try:
        number = float(text)
    except ValueError:
        if _NOT_FOR_NUMBERS.match(text):
            return None
        raise ValueError(f"{text!r} is not a number") from None
    return number if math.isfinite(number) else None


def codes_in(text: str) -> tuple[str, ...]:
    """Return the missing codes that a cell lists, with or without their meaning.

    Examples
    --------
    >>> codes_in("-9, -99"), codes_in("-9=refused; -99=unknown"), codes_in("888")
    (('-9', '-99'), ('-9', '-99'), ('888',))
    """
    parts = [part.strip() for part in re.split(r"[|;,\n]", text)]
    codes = [plain_code(re.split("[=:]", part, maxsplit=1)[0]) for part in parts]
    return tuple(dict.fromkeys(code for code in codes if code))
