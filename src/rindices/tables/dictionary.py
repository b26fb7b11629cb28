"""Data dictionaries: what a table's columns mean, which values they may have, and what stands for a missing one.

Three kinds are read: BIDS JSON files, REDCap's, and a plain table with a row for each column of the data.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.errors import InputError, counted, listed, setting, shown
from rindices.schema.cells import numbers_of, plain_code, spreadsheet_rows, text_of, typed
from rindices.settings import Labels
from rindices.tables.table import Table

__all__ = ["Column", "Dictionary", "apply_dictionary", "read_dictionary", "resolve_levels", "unit_of"]

# Headings of plain dictionaries and of REDCap's, and keys of BIDS; signs and capitals do not count.
_HEADINGS = {
    "name": ("variable field name", "variable", "variable name", "column", "column name", "field name", "name"),
    "description": ("description", "label", "field label", "longname"),
    "unit": ("unit", "units"),
    "levels": ("levels", "choices", "choices calculations or slider labels"),
    "minimum": ("minimum", "min", "text validation min"),
    "maximum": ("maximum", "max", "text validation max"),
    "missing": ("missing", "missing codes", "missing values", "missingvalues"),
    "type": ("field type",),
}
_MISSING_MEANINGS = frozenset({"missing", "missing data", "missing value", "not available", "n/a", "no data"})
_NO_CHOICES = frozenset({"calc", "slider", "descriptive", "file", "sql"})  # REDCap: formulas and labels, no levels
_TWO_CHOICES = {"yesno": "1=Yes;0=No", "truefalse": "1=True;0=False"}
# Limits of dates, of times and of other fields: nothing to compare numbers with.
_NOT_FOR_NUMBERS = re.compile(r"\d{4}-\d{2}|\d{1,2}:\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}|today|now|\[", re.IGNORECASE)
_NOTES_PER_COLUMN = 3
_MOSTLY_OUTSIDE = 0.5  # with more than this share outside its range, a range or a unit is wrong rather than the people
_QUANTITIES = {
    **dict.fromkeys(("mm3", "ml", "l"), "volume"),
    **dict.fromkeys(("mm2", "cm2", "m2"), "area"),
    **dict.fromkeys(("μm", "mm", "cm", "m"), "length"),
}
_OTHER_NAMES = {
    **dict.fromkeys(("cm3", "cc", "ccm", "cubiccentimeter", "cubiccentimetre", "milliliter", "millilitre"), "ml"),
    **dict.fromkeys(("μl", "ul", "cubicmillimeter", "cubicmillimetre"), "mm3"),
    **dict.fromkeys(("millimeter", "millimetre"), "mm"),
    "um": "μm",
}


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
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path.name} cannot be read: {error}.\nSave it as UTF-8.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path.name} should be a JSON object with an entry for each column, but it is a list.")
    columns = {}
    for name, entry in content.items():
        if isinstance(entry, dict) and name != "MeasurementToolMetadata":  # what else is there describes the whole file
            try:
                columns[name] = _column({role: entry[key] for role, key in _roles(list(entry)).items()})
            except ValueError as error:
                raise InputError(
                    f"{path.name} has an entry {name!r} that cannot be used: {error}.\nCorrect the file."
                ) from error
    return Dictionary(columns)


def _read_rows(path: Path) -> Dictionary:
    cells = pd.concat(list(Table(path).batches()))
    roles = _roles([str(name) for name in cells.columns])
    if "name" not in roles:
        raise InputError(
            f"{path.name} is no data dictionary: none of its columns names the variables (found: "
            f"{listed(cells.columns)}).\nCall that column 'variable'; 'label', 'unit', 'levels', 'min', 'max' and "
            "'missing codes' are known too."
        )
    columns: dict[str, Column] = {}
    texts = {role: text_of(cells[heading]).fillna("") for role, heading in roles.items()}
    for position, row in enumerate(spreadsheet_rows(cells)):
        entry = {role: str(column.iloc[position]) for role, column in texts.items()}
        name = entry.pop("name")
        try:
            if name in columns:
                raise ValueError("it was described before")
            if name:  # the others are headings of sections
                columns[name] = _column(entry)
        except ValueError as error:
            raise InputError(
                f"Row {row} of {path.name} ({name}) cannot be used: {error}.\n"
                "Write levels as 0=male;1=female, missing codes as -9;-99 and limits as numbers, one row for each "
                "column of the data."
            ) from error
    return Dictionary(columns)


def _roles(headings: Sequence[str]) -> dict[str, str]:
    """Return which heading has which role."""
    known = {" ".join(re.findall(r"[a-z]+", heading.casefold())): heading for heading in reversed(headings)}
    found = {role: [known[name] for name in names if name in known] for role, names in _HEADINGS.items()}
    return {role: headings[0] for role, headings in found.items() if headings}


def _column(entry: Mapping[str, object]) -> Column:
    """Return what an entry says by role, as JSON or as text; levels that mean "missing" are missing codes."""
    said = {role: value for role, value in entry.items() if value is not None}
    kind = str(said.get("type", "")).casefold()
    levels = {} if kind in _NO_CHOICES else _levels(_TWO_CHOICES.get(kind) or said.get("levels", ""))
    minimum, maximum = _limit(said.get("minimum", "")), _limit(said.get("maximum", ""))
    if minimum is not None and maximum is not None and minimum > maximum:
        raise ValueError(f"its range ends ({shown(maximum)}) before it begins ({shown(minimum)})")
    codes = said.get("missing", "")
    listed_codes = codes if isinstance(codes, list) else re.split(r"[;,|]", str(codes))
    missing = [plain_code(str(code).split("=")[0]) for code in listed_codes]
    missing += [code for code, meaning in levels.items() if meaning.casefold() in _MISSING_MEANINGS]
    kept = {code: meaning for code, meaning in levels.items() if code not in missing}
    return Column(
        description=str(said.get("description", "")).strip(),
        unit=str(said.get("unit", "")).strip() or None,
        levels=kept or None,
        minimum=minimum,
        maximum=maximum,
        missing=tuple(dict.fromkeys(code for code in missing if code)),
    )


def _levels(said: object) -> dict[str, str]:
    """Return codes and their meanings: of JSON, of ``0=male;1=female`` or of REDCap's ``0, Male | 1, Female``."""
    if isinstance(said, dict):
        meanings = {
            code: value.get("Description", "") if isinstance(value, dict) else value for code, value in said.items()
        }
        return {plain_code(code): str(meaning).strip() for code, meaning in meanings.items()}
    if isinstance(said, list):
        return {plain_code(code): plain_code(code) for code in said}
    border, sign = ("|", ",") if "|" in str(said) or "=" not in str(said) else (";", "=")
    parts = [part.partition(sign) for part in str(said).split(border) if part.strip()]
    levels = {plain_code(code): meaning.strip() for code, _, meaning in parts}
    if "" in levels or len(levels) < len(parts) or not all(between for _, between, _ in parts):
        raise ValueError(f"{str(said)!r} should list a code and a meaning for each level, and no code twice")
    return levels


def _limit(said: object) -> float | None:
    """Return a limit as a number, None for limits of dates and for empty cells; other text is a ValueError."""
    text = str(said).strip()
    if not text or text.casefold() in ("n/a", "na", "none") or _NOT_FOR_NUMBERS.match(text):
        return None
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    return number if math.isfinite(number) else None


def apply_dictionary(
    frame: pd.DataFrame, dictionary: Dictionary, *, checked: Collection[str] | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Read a table's cells as its dictionary says.

    Missing codes become gaps. Columns with levels become text (the codes, not their meanings), so that a category
    coded as a number is never a slope; `Dictionary.categories` names them for whoever turns text into numbers
    later. Numbers outside their range become gaps, with a note.

    Parameters
    ----------
    frame
        A table of people; it is not changed.
    dictionary
        What the columns mean; columns that the table does not have are passed over.
    checked
        Columns in which a value that is no level is refused. All, unless given: what nobody uses need not be right.

    Returns
    -------
    frame
        The table, with the same columns, rows and index.
    notes
        Sentences on the values that were taken as missing; they name rows, not people.

    Raises
    ------
    InputError
        If a value is no level of its column, or if most values are outside their range.

    Examples
    --------
    >>> table = pd.DataFrame({"sex": [0, 1, -9], "age": [61, 250, 72]})
    >>> says = Dictionary({"sex": Column(levels={"0": "m", "1": "f"}, missing=("-9",)), "age": Column(maximum=120)})
    >>> apply_dictionary(table, says)[0].to_numpy().tolist()
    [['0', 61.0], ['1', nan], [nan, 72.0]]
    """
    rows = spreadsheet_rows(frame)
    changed: dict[str, pd.Series] = {}
    notes = _misspelt(frame, dictionary)
    for name, column in dictionary.items():
        if name not in frame.columns:
            continue
        given = frame[name]
        cells = _without_codes(given, column.missing) if column.missing else given
        if column.levels is not None:
            cells = text_of(cells).map(plain_code, na_action="ignore").astype(object)
            if checked is None or name in checked:
                _refuse_other_levels(cells, column.levels, rows)
        elif column.minimum is not None or column.maximum is not None:
            cells, outside = _within_range(cells, column, rows)
            notes += outside
        if cells is not given:
            changed[name] = cells
    return frame.assign(**changed), notes


def _without_codes(cells: pd.Series, codes: Sequence[str]) -> pd.Series:
    if is_numeric_dtype(cells) and not is_bool_dtype(cells):
        numbers = numbers_of(cells)
        given = np.isin(numbers, numbers_of(pd.Series(list(codes), dtype=object)))
        return pd.Series(np.where(given, np.nan, numbers), cells.index, name=cells.name)
    text = text_of(cells)
    # A code such as "refused" had kept the whole column from being numbers.
    kept = text.mask(text.map(plain_code, na_action="ignore").isin(codes), np.nan)
    return typed(kept.to_frame())[cells.name] if kept.notna().sum() < text.notna().sum() else cells


def _refuse_other_levels(cells: pd.Series, levels: dict[str, str], rows: np.ndarray) -> None:
    strange = np.flatnonzero((cells.notna() & ~cells.isin(list(levels))).to_numpy())
    if len(strange):
        first, more = int(strange[0]), len(strange) - 1
        others = f", and so {'has' if more == 1 else 'have'} {counted(more, 'more row')}" if more else ""
        known = listed((f"{code} ({meaning})" if meaning != code else code for code, meaning in levels.items()), 12)
        raise InputError(
            f"Column {cells.name!r} has levels in its dictionary, but row {rows[first]} holds {cells.iloc[first]!r}"
            f"{others}.\nLevels: {known}.\nCorrect the table, or add the level or missing code to the dictionary."
        )


def _within_range(cells: pd.Series, column: Column, rows: np.ndarray) -> tuple[pd.Series, list[str]]:
    """Return the column with impossible numbers as gaps, and the notes; text is left to later checks."""
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    low = -np.inf if column.minimum is None else column.minimum
    high = np.inf if column.maximum is None else column.maximum
    outside = np.flatnonzero((numbers < low) | (numbers > high))
    if not len(outside):
        return cells, []
    limits = _limits(column)
    present = int(np.isfinite(numbers).sum())
    if len(outside) > _MOSTLY_OUTSIDE * present:
        raise InputError(
            f"Most values of column {cells.name!r} ({len(outside)} of {present}) are outside {limits}, which its "
            f"dictionary gives; row {rows[outside[0]]} has {shown(float(numbers[outside[0]]))}.\n"
            "Correct the range in the dictionary, or the unit of the column."
        )
    notes = [
        f"{cells.name} = {shown(value)} in row {row} is outside {limits}: taken as missing."
        for value, row in zip(numbers[outside].tolist(), rows[outside][:_NOTES_PER_COLUMN], strict=False)
    ]
    more = len(outside) - _NOTES_PER_COLUMN
    if more > 0:
        notes.append(f"{counted(more, 'more value')} of {cells.name} outside {limits}: taken as missing.")
    kept = numbers.copy() if is_numeric_dtype(cells) else cells.to_numpy(dtype=object, copy=True)
    kept[outside] = np.nan
    return pd.Series(kept, index=cells.index, name=cells.name), notes


def _limits(column: Column) -> str:
    if column.minimum is None:
        return f"the range up to {shown(column.maximum)}"
    if column.maximum is None:
        return f"the range from {shown(column.minimum)}"
    return f"{shown(column.minimum)} to {shown(column.maximum)}"


def _misspelt(frame: pd.DataFrame, dictionary: Dictionary) -> list[str]:
    """Tell of columns that the dictionary writes with other capitals: what it says of them is not applied."""
    unknown = {str(name).casefold(): str(name) for name in frame.columns if name not in dictionary}
    pairs = [
        (name, unknown[name.casefold()]) for name in dictionary if name not in frame and name.casefold() in unknown
    ]
    return [f"The dictionary describes {said!r}, the table has {found!r}: not applied to it." for said, found in pairs]


def resolve_levels(names: Labels, column: Column) -> tuple[str, ...] | None:
    """Return the codes of levels that are named by code or, in any capitals, by meaning.

    Names that are neither are returned as they are, for later checks to refuse.

    Examples
    --------
    >>> diagnosis = Column(levels={"1": "Control", "2": "Patient"})
    >>> resolve_levels("control", diagnosis), resolve_levels("2", diagnosis), resolve_levels(None, diagnosis)
    (('1',), ('2',), None)
    """
    if names is None:
        return None
    levels = column.levels or {}
    by_meaning: dict[str, list[str]] = {}
    for code, meaning in levels.items():
        by_meaning.setdefault(meaning.casefold(), []).append(code)
    wanted = [names] if isinstance(names, str) else [str(name) for name in names]
    if isinstance(names, str) and plain_code(names) not in levels and names.strip().casefold() not in by_meaning:
        wanted = names.split(",")  # otherwise the comma belongs to the name
    plain = [plain_code(name) for name in wanted]
    found = [[name] if name in levels else by_meaning.get(name.casefold(), [name]) for name in plain]
    return tuple(dict.fromkeys(code for codes in found for code in codes))


def unit_of(dictionary: Dictionary, regions: Sequence[str]) -> str | None:
    """Return the unit that the regions share, as the first of them spells it; None where it is not known.

    Regions of different quantities (volumes and thicknesses) have no common unit; one quantity in two units
    (mm3 and mL) is an InputError.

    Examples
    --------
    >>> unit_of(Dictionary({"lHip": Column(unit="mm^3"), "rHip": Column(unit="mm3")}), ["lHip", "rHip"])
    'mm^3'
    """
    given = [(name, unit) for name in regions if name in dictionary and (unit := dictionary[name].unit)]
    by_unit: dict[str, tuple[str, str]] = {}
    for name, unit in given:
        by_unit.setdefault(_canonical(unit), (name, unit))
    by_quantity: dict[str, str] = {}
    for unit, (name, spelling) in by_unit.items():
        other = by_quantity.setdefault(_QUANTITIES.get(unit, unit), unit)
        if other != unit:
            first, first_unit = by_unit[other]
            raise InputError(
                f"The regions should be in one unit, but by the dictionary {first!r} is in {first_unit} and {name!r} "
                f"in {spelling}.\nConvert the columns, correct the dictionary, or leave regions out with {setting('exclude')}."
            )
    return given[0][1] if len(by_unit) == 1 else None


def _canonical(unit: str) -> str:
    plain = re.sub(r"[\s^*]", "", unit.casefold()).translate(str.maketrans("²³", "23"))
    plain = plain.removesuffix("s") or plain
    return _OTHER_NAMES.get(plain, plain)
