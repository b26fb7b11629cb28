"""Data dictionaries: what a table's columns mean, which values they may have, and what stands for a missing one."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.cohort.cells import spreadsheet_rows, text_of, with_numbers
from rindices.cohort.dictionary_files import Column, Dictionary, read_dictionary
from rindices.cohort.dictionary_text import plain_code
from rindices.cohort.labels import Labels
from rindices.errors import InputError, counted, listed, shown

__all__ = ["Column", "Dictionary", "apply_dictionary", "read_dictionary", "resolve_levels", "unit_of"]

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
        numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        as_numbers = pd.to_numeric(pd.Series(list(codes), dtype=object), errors="coerce").dropna().to_numpy(np.float64)
        return pd.Series(np.where(np.isin(numbers, as_numbers), np.nan, numbers), cells.index, name=cells.name)
    text = text_of(cells)
    given = text.map(plain_code, na_action="ignore").isin(codes)
    # A code such as "refused" had kept the whole column from being numbers.
    return with_numbers(text.mask(given, np.nan).to_frame())[cells.name] if given.any() else cells


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
                f"in {spelling}.\nConvert the columns, correct the dictionary, or leave regions out with --exclude."
            )
    return given[0][1] if len(by_unit) == 1 else None


def _canonical(unit: str) -> str:
    plain = re.sub(r"[\s^*]", "", unit.casefold()).translate(str.maketrans("²³", "23"))
    plain = plain.removesuffix("s") or plain
    return _OTHER_NAMES.get(plain, plain)
