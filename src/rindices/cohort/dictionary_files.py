"""Files of data dictionaries: BIDS JSON sidecars, and tables with a row for each column."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rindices.cohort.cells import spreadsheet_rows
from rindices.cohort.dictionary_text import codes_in, levels_in, limit_in, plain_code, range_in, roles_of
from rindices.cohort.tables import read_table
from rindices.errors import InputError, listed, shown

__all__ = ["Column", "Dictionary", "read_dictionary"]

_MISSING_MEANINGS = frozenset({"missing", "missing data", "missing value", "not available", "n/a", "no data"})
_NO_CHOICES = frozenset({"calc", "slider", "descriptive", "file", "sql"})  # REDCap: formulas and labels, no levels
_TWO_CHOICES = {"yesno": {"1": "Yes", "0": "No"}, "truefalse": {"1": "True", "0": "False"}}


@dataclass(frozen=True)
class Column:
    """What a dictionary says about one column.

    Attributes
    ----------
    description
        What it is, in words.
    unit
        Unit of its numbers.
    levels
        Codes of its categories and what they mean; None for anything but categories.
    minimum, maximum
        Smallest and largest possible number.
    missing
        Codes that stand for a missing value, besides empty cells and n/a.
    """

    description: str = ""
    unit: str | None = None
    levels: dict[str, str] | None = None
    minimum: float | None = None
    maximum: float | None = None
    missing: tuple[str, ...] = ()


class Dictionary(Mapping[str, Column]):
    """Columns by name; cannot be changed.

    Examples
    --------
    >>> dictionary = Dictionary({"age": Column(unit="year"), "sex": Column(levels={"0": "male", "1": "female"})})
    >>> dictionary["age"].unit, dictionary.categories
    ('year', ('sex',))
    """

    def __init__(self, columns: Mapping[str, Column] | None = None) -> None:
        self._columns = dict(columns or {})

    def __getitem__(self, name: str) -> Column:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Dictionary({listed(self._columns)})"

    def __or__(self, other: Mapping[str, Column]) -> Dictionary:
        """Return both together; the other has the last word."""
        return Dictionary({**self._columns, **other})

    @property
    def categories(self) -> tuple[str, ...]:
        """Columns with levels: their codes are text, also where they look like numbers."""
        return tuple(name for name, column in self._columns.items() if column.levels is not None)


def read_dictionary(path: str | Path) -> Dictionary:
    r"""Read a data dictionary: a BIDS JSON file, or a table with a row for each column (REDCap's too).

    Raises
    ------
    InputError
        If the file cannot be understood; the message names the line.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "dictionary.csv")
    ...     _ = path.write_text("variable,levels,min\nsex,0=male;1=female,\nage,,18\n")
    ...     read_dictionary(path)["sex"].levels
    {'0': 'male', '1': 'female'}
    """
    path = Path(path)
    return _read_json(path) if path.suffix.lower() == ".json" else _read_rows(path)


def _read_json(path: Path) -> Dictionary:
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.\nCheck the name and the folder.") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path.name} is not correct JSON: line {error.lineno}, column {error.colno}: {error.msg}.\n"
            "Correct the file; often a comma or a quotation mark is missing."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name} cannot be read: {error}.\nSave it as UTF-8.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path.name} should be a JSON object with an entry for each column, but it is a list.")
    # Text and numbers at the top describe the file as a whole.
    described = {name: entry for name, entry in content.items() if isinstance(entry, dict)}
    described.pop("MeasurementToolMetadata", None)
    return Dictionary({name: _from_json(name, entry, path) for name, entry in described.items()})


def _from_json(name: str, entry: dict[str, Any], path: Path) -> Column:
    keys = {str(key).casefold(): value for key, value in entry.items() if value is not None}
    try:
        minimum, maximum = keys.get("minimum", ""), keys.get("maximum", "")
        if isinstance(limits := keys.get("range"), list) and len(limits) == 2:
            minimum, maximum = limits
        missing = next((keys[key] for key in ("missingvalues", "missingcodes", "missing") if key in keys), ())
        return _column(
            description=str(keys.get("description") or keys.get("longname") or ""),
            unit=str(keys.get("units") or keys.get("unit") or ""),
            levels=_json_levels(keys.get("levels")),
            limits=(limit_in(minimum), limit_in(maximum)),
            missing=codes_in(missing) if isinstance(missing, str) else _as_codes(missing),
        )
    except ValueError as error:
        raise InputError(
            f"{path.name} has an entry {name!r} that cannot be used: {error}.\nCorrect the file."
        ) from error


def _json_levels(levels: object) -> dict[str, str] | None:
    if isinstance(levels, str):
        return levels_in(levels)
    if isinstance(levels, list):
        return {plain_code(code): plain_code(code) for code in levels} or None
    if not isinstance(levels, dict):
        return None
    meanings = {
        code: value.get("Description", "") if isinstance(value, dict) else value for code, value in levels.items()
    }
    return {plain_code(code): str(meaning).strip() for code, meaning in meanings.items()} or None


def _as_codes(values: object) -> tuple[str, ...]:
    return tuple(plain_code(value) for value in (values if isinstance(values, Collection) else (values,)))


def _read_rows(path: Path) -> Dictionary:
    headings = [str(name) for name in read_table(path).columns]
    roles = roles_of(headings)
    if "name" not in roles:
        raise InputError(
            f"{path.name} is no data dictionary: none of its columns names the variables (found: {listed(headings)}).\n"
            "Call that column 'variable'; 'description', 'unit', 'levels', 'min', 'max' and 'missing' are known too."
        )
    cells = read_table(path, text_columns=headings).fillna("")
    columns: dict[str, Column] = {}
    for row, (_, line) in zip(spreadsheet_rows(cells), cells.iterrows(), strict=True):
        entry = {role: str(line[heading]) for role, heading in roles.items()}
        name = entry.pop("name")
        if not name:
            continue  # headings of sections
        try:
            if name in columns:
                raise ValueError("it was described before")
            columns[name] = _from_row(entry)
        except ValueError as error:
            raise InputError(
                f"Row {row} of {path.name} ({name}) cannot be used: {error}.\n"
                "Write levels as 0=male;1=female and limits as numbers, one row for each column."
            ) from error
    return Dictionary(columns)


def _from_row(entry: dict[str, str]) -> Column:
    kind, text = entry.get("type", "").casefold(), entry.get("levels", "")
    levels = _TWO_CHOICES.get(kind) or (None if kind in _NO_CHOICES else levels_in(text))
    minimum, maximum = limit_in(entry.get("minimum", "")), limit_in(entry.get("maximum", ""))
    limits = range_in(entry.get("range", "")) or (None if levels else range_in(text))
    if limits and minimum is None and maximum is None:
        minimum, maximum = limits
    missing = codes_in(entry.get("missing", ""))
    return _column(entry.get("description", ""), entry.get("unit", ""), levels, (minimum, maximum), missing)


def _column(
    description: str,
    unit: str,
    levels: dict[str, str] | None,
    limits: tuple[float | None, float | None],
    missing: tuple[str, ...],
) -> Column:
    """Put a column together; levels that mean "missing" are missing codes, and ranges such as 0-30 are no levels."""
    ranges = [range_in(code) for code in levels or ()]
    known = [pair for pair in ranges if pair is not None]
    if known and len(known) == len(ranges):
        lowest, highest = min(low for low, _ in known), max(high for _, high in known)
        levels, limits = None, limits if limits != (None, None) else (lowest, highest)
    minimum, maximum = limits
    if minimum is not None and maximum is not None and minimum > maximum:
        raise ValueError(f"its range ends ({shown(maximum)}) before it begins ({shown(minimum)})")
    gaps = [code for code, meaning in (levels or {}).items() if meaning.casefold() in _MISSING_MEANINGS]
    kept = {code: meaning for code, meaning in (levels or {}).items() if code not in (*gaps, *missing)}
    missing = tuple(dict.fromkeys((*missing, *gaps)))
    return Column(description.strip(), unit.strip() or None, kept or None, minimum, maximum, missing)
