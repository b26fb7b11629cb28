"""Data dictionaries: the meaning of a table's columns, their possible values, and their missing codes.

Three kinds are read: BIDS JSON files, REDCap dictionaries, and plain tables with one row per column of the data.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rindices.problems import InputError, Problem, counted, listed
from rindices.schema.cells import plain_code, spreadsheet_rows, text_of, typed
from rindices.tables.table import Table
from rindices.value_kinds import expand_names

# Headings of plain dictionaries and of REDCap's, and keys of BIDS; punctuation and case are ignored.
_HEADINGS = {
    "name": ("variable field name", "variable", "variable name", "column", "column name", "field name", "name"),
    "description": ("description", "label", "field label", "longname"),
    "unit": ("unit", "units"),
    "levels": ("levels", "choices", "choices calculations or slider labels"),
    "missing": ("missing", "missing codes", "missing values", "missingvalues"),
    "type": ("field type",),
}
_MISSING_MEANINGS = frozenset({"missing", "missing data", "missing value", "not available", "n/a", "no data"})
_NO_CHOICES = frozenset({"calc", "slider", "descriptive", "file", "sql"})  # REDCap: formulas and labels, no levels
_TWO_CHOICES = {"yesno": "1=Yes;0=No", "truefalse": "1=True;0=False"}
_WHOLE_FILE = "MeasurementToolMetadata"


@dataclass(frozen=True)
class Column:
    """What a dictionary says about one column.

    Attributes
    ----------
    description
        Description in words.
    unit
        Unit of its numbers.
    levels
        Codes of its categories and their meanings; None if it is not categorical.
    missing
        Codes that stand for a missing value, besides empty cells and n/a.
    """

    description: str = ""
    unit: str | None = None
    levels: dict[str, str] | None = None
    missing: tuple[str, ...] = ()


class Dictionary(dict[str, Column]):
    """Columns by name.

    Examples
    --------
    >>> dictionary = Dictionary({"age": Column(unit="year"), "sex": Column(levels={"0": "male", "1": "female"})})
    >>> dictionary["age"].unit, dictionary.categories
    ('year', ('sex',))
    """

    @property
    def categories(self) -> tuple[str, ...]:
        """Columns with levels: their codes are text, even if they look like numbers."""
        return tuple(name for name, column in self.items() if column.levels is not None)


def read_dictionary(path: str | Path) -> Dictionary:
    r"""Read a data dictionary: a BIDS JSON file, or a table with one row per column, such as REDCap's.

    Raises
    ------
    InputError
        If the file cannot be understood; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "dictionary.csv")
    ...     _ = path.write_text("variable,levels,unit\nsex,0=male;1=female,\nage,,year\n")
    ...     read_dictionary(path)["sex"].levels
    {'0': 'male', '1': 'female'}
    """
    path = Path(path)
    return _read_json(path) if path.suffix.lower() == ".json" else _read_rows(path)


def _read_json(path: Path) -> Dictionary:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path.name} cannot be read as JSON: {error}.\n"
            "Correct the file (often a comma or a quotation mark is missing), or check its name."
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path.name} should be a JSON object with an entry for each column, but it is not.\n"
            "Provide a JSON file in BIDS format."
        )
    return Dictionary(
        {
            name: _column(said, f"The entry {name!r} of {path.name}")
            for name, said in content.items()
            if isinstance(said, dict) and name != _WHOLE_FILE  # other entries describe the file as a whole
        }
    )


def _read_rows(path: Path) -> Dictionary:
    rows = pd.concat(list(Table(path).batches())).apply(text_of).fillna("")
    heading = _roles(rows.columns).get("name")
    if heading is None:
        raise InputError(
            f"{path.name} is not a data dictionary: none of its columns is recognised as the one that contains the "
            f"variable names (columns found: {listed(rows.columns)}).\n"
            "Name that column 'variable'; columns called 'label', 'unit', 'levels' and 'missing codes' are recognised "
            "as well."
        )
    named = rows[rows[heading] != ""]  # the others are section headings
    repeated = named[heading][named[heading].duplicated()]
    if len(repeated):
        raise InputError(
            f"Row {spreadsheet_rows(repeated.to_frame())[0]} of {path.name} describes {repeated.iloc[0]!r} a "
            "second time.\n"
            "Keep only one row for each variable."
        )
    lines = zip(spreadsheet_rows(named), named[heading], named.to_dict("records"), strict=True)
    return Dictionary({name: _column(line, f"Row {row} of {path.name} ({name})") for row, name, line in lines})


def _roles(headings: Iterable[object]) -> dict[str, str]:
    """Return the heading for each role."""
    by_name = {" ".join(re.findall(r"[a-z]+", str(heading).casefold())): str(heading) for heading in headings}
    headings_of = {role: [by_name[name] for name in names if name in by_name] for role, names in _HEADINGS.items()}
    return {role: headings[0] for role, headings in headings_of.items() if headings}


def _column(said: Mapping[Any, object], place: str) -> Column:
    """Return the column described by a JSON entry or a row; levels that mean "missing" are missing codes."""
    entry = {role: said[key] for role, key in _roles(said).items() if said[key] is not None}
    kind = str(entry.get("type", "")).casefold()
    try:
        levels = {} if kind in _NO_CHOICES else _levels(_TWO_CHOICES.get(kind) or entry.get("levels", ""))
    except ValueError as error:
        raise InputError(
            f"{place} cannot be used: {error}.\n"
            "Correct the file: write levels as 0=male;1=female and missing codes as -9;-99."
        ) from error
    codes = entry.get("missing", "")
    given = codes if isinstance(codes, list) else re.split(r"[;,|]", str(codes))
    missing = [
        *(plain_code(str(code).split("=")[0]) for code in given if code != ""),
        *(code for code, meaning in levels.items() if meaning.casefold() in _MISSING_MEANINGS),
    ]
    return Column(
        description=str(entry.get("description", "")).strip(),
        unit=str(entry.get("unit", "")).strip() or None,
        levels={code: meaning for code, meaning in levels.items() if code not in missing} or None,
        missing=tuple(dict.fromkeys(missing)),
    )


def _levels(said: object) -> dict[str, str]:
    """Return codes and their meanings from JSON, ``0=male;1=female`` or REDCap's ``0, Male | 1, Female``."""
    if isinstance(said, dict):
        meanings = [value.get("Description", "") if isinstance(value, dict) else value for value in said.values()]
        return {plain_code(code): str(meaning).strip() for code, meaning in zip(said, meanings, strict=True)}
    border, sign = ("|", ",") if "|" in str(said) or "=" not in str(said) else (";", "=")
    parts = [part.partition(sign) for part in str(said).split(border) if part.strip()]
    levels = {plain_code(code): meaning.strip() for code, _, meaning in parts}
    if "" in levels or len(levels) < len(parts) or not all(between for _, between, _ in parts):
        raise ValueError(f"{str(said)!r} should list a code and a meaning for each level, without repeated codes")
    return levels


def with_missing_codes(
    dictionary: Dictionary, columns: Sequence[str], codes: Sequence[str], kept: Collection[str | None]
) -> Dictionary:
    """Return a dictionary with additional missing codes, which apply to all columns except those in `kept`.

    ``icv=0`` is a code for one column.

    Examples
    --------
    >>> with_missing_codes(Dictionary(), ["id", "icv", "mmse"], ["-9", "icv=0"], ["id"])["icv"].missing
    ('-9', '0')
    """
    extended = Dictionary(dictionary)
    every = [column for column in columns if column not in kept]
    for code in codes:
        name, sign, one = code.rpartition("=")
        for column in expand_names([name], columns, source="missing") if sign else every:
            described = extended.get(column, Column())
            extended[column] = replace(described, missing=(*described.missing, one))
    return extended


def apply_dictionary(frame: pd.DataFrame, dictionary: Dictionary) -> tuple[pd.DataFrame, list[str], list[Problem]]:
    """Apply a data dictionary to the cells of a table.

    Missing codes become gaps. Columns with levels become text (the codes, not their meanings), so that a category
    coded as a number never gets a slope; `Dictionary.categories` names them for later conversion of text to
    numbers.

    Parameters
    ----------
    frame
        A table of people; it is not changed.
    dictionary
        What the columns mean; columns that the table does not have are ignored.

    Returns
    -------
    frame
        The table, with the same columns, rows and index.
    notes
        Messages about columns whose names differ in case.
    problems
        Columns with values that are not levels; callers refuse only those of columns that are used.

    Examples
    --------
    >>> table = pd.DataFrame({"sex": [0, 1, -9], "age": [61, 999, 72]})
    >>> sex = Column(levels={"0": "m", "1": "f"}, missing=("-9",))
    >>> says = Dictionary({"sex": sex, "age": Column(missing=("999",))})
    >>> apply_dictionary(table, says)[0].to_numpy().tolist()
    [['0', 61.0], ['1', nan], [nan, 72.0]]
    """
    other_capitals = {str(name).casefold(): name for name in frame.columns if name not in dictionary}
    notes = [
        f"The data dictionary describes {name!r}, but the column is called {other_capitals[name.casefold()]!r}, so "
        "this description is not used."
        for name in dictionary
        if name not in frame and name.casefold() in other_capitals
    ]
    problems: list[Problem] = []
    for name in frame.columns.intersection(list(dictionary), sort=False):
        column, cells = dictionary[name], frame[name]
        given = text_of(cells).map(plain_code, na_action="ignore").astype(object)
        is_code = given.isin(column.missing)
        if column.levels is not None:
            cells = given.mask(is_code, np.nan)
            problems += _other_levels(cells, column.levels)
        elif is_code.any():  # a code such as "refused" had kept the whole column from being numeric
            cells = typed(cells.mask(is_code, np.nan).to_frame())[name]
        frame = frame.assign(**{name: cells})
    return frame, notes, problems


def _other_levels(cells: pd.Series, levels: dict[str, str]) -> list[Problem]:
    strange = np.flatnonzero((cells.notna() & ~cells.isin(list(levels))).to_numpy())
    if not len(strange):
        return []
    more = (
        f", and {counted(len(strange) - 1, 'more row has an unlisted value', 'more rows have unlisted values')}"
        if len(strange) > 1
        else ""
    )
    possible = listed((f"{code} ({meaning})" if meaning != code else code for code, meaning in levels.items()), 12)
    return [
        Problem(
            f"Column {cells.name!r} should contain only the levels in the data dictionary, but row "
            f"{spreadsheet_rows(cells.to_frame())[strange[0]]} contains {cells.iloc[strange[0]]!r}{more}.\n"
            f"The levels are {possible}.",
            ("correct the table", "add the value to the dictionary as a level or a missing code"),
            (str(cells.name),),
        )
    ]


def unit_of(dictionary: Dictionary, regions: Sequence[str]) -> str | None:
    """Return the unit that the regions share; None if it is unknown or they have several.

    Examples
    --------
    >>> unit_of(Dictionary({"lHip": Column(unit="mm3"), "rHip": Column(unit="mm3")}), ["lHip", "rHip"])
    'mm3'
    """
    units = {dictionary[name].unit for name in regions if name in dictionary and dictionary[name].unit}
    return units.pop() if len(units) == 1 else None
