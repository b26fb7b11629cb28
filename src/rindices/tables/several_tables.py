"""Several tables as one: joined by ids that may differ slightly, or stacked, such as files of controls and of patients.

Tables to be stacked contain different people and have one label each: ``CN=controls.csv,SCZ=patients.csv``.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rindices.problems import InputError, Remedy, Text, counted, did_you_mean, listed, listed_rows
from rindices.schema.cells import numbers_of, plain_code, spreadsheet_rows, text_of, typed
from rindices.schema.role_guesses import id_by_name, is_region_name
from rindices.settings import TableSettings
from rindices.tables.table import A_ROW, Part

_BORDER = re.compile(r"[_.-]")


def id_column_of(frame: pd.DataFrame, asked: str) -> str:
    """Return the id column of a table: the one requested, one with a usual name, or a first column of ids.

    If there is none of these, the requested name is returned, for the caller to refuse.

    Examples
    --------
    >>> id_column_of(pd.DataFrame({"MRID": ["a", "b"], "47": [1.0, 2.0]}), "participant_id")
    'MRID'
    >>> id_column_of(pd.DataFrame({"code": ["a", "b"], "lHip": [1.0, 2.0]}), "participant_id")
    'code'
    """
    names = [str(name) for name in frame.columns]
    if asked in names or ((usual := id_by_name(names)) is None and not _first_is_id(frame)):
        return asked
    return usual or names[0]


def _first_is_id(frame: pd.DataFrame) -> bool:
    """Return whether the first column contains a different text or whole number for everyone."""
    names = pd.Series([str(name) for name in frame.columns], dtype=object)
    if not len(names) or not is_region_name(names[0]) or (~np.isnan(numbers_of(names))).mean() > A_ROW:
        return False
    cells = text_of(frame.iloc[:, 0])
    numbers = numbers_of(cells)
    return bool(cells.notna().all() and cells.is_unique and not (numbers != np.rint(numbers))[~np.isnan(numbers)].any())


def like_ours(ours: pd.Series, theirs: pd.Series, source: str) -> tuple[pd.Series, list[str]]:
    """Return the ids of another table as written in the main table, and a message if they differ.

    Ids belong to the same person if they differ by the prefix ``sub-``, or by a suffix after an underscore, point or
    hyphen; only ids that occur in just one of the tables are matched, and only one to one.

    Raises
    ------
    InputError
        If one id could be several others.

    Examples
    --------
    >>> like_ours(pd.Series(["sub-01", "sub-02"]), pd.Series(["02", "01_T1w"]), "volumes.csv")[0].tolist()
    ['sub-02', 'sub-01']
    """
    here, there = ({*ids.dropna()} for ids in (ours, theirs))
    pairs = _pairs(here - there, there - here) | {(one, other) for other, one in _pairs(there - here, here - there)}
    partners: dict[str, list[str]] = defaultdict(list)
    for one, other in sorted(pairs):
        partners[one].append(other)
        partners[other].append(one)
    if several := [name for name in partners if len({*partners[name]}) > 1]:
        said = listed((f"{name!r} could be {' or '.join(map(repr, partners[name][:3]))}" for name in several), 5, "; ")
        raise InputError(
            f"Ids in {source} differ from those in the main table and cannot be matched one to one: {said}.\n"
            "Use the same ids in both tables, or name the visit column with ",
            Remedy("visit"),
            ".",
        )
    note = (
        f"{counted(len(pairs), 'id is', 'ids are')} written differently in {source} and in the main table "
        f"(participants {' and '.join(map(repr, min(pairs, default=())))}, for example); both forms "
        "of an id are assumed to refer to the same person."
    )
    return theirs.replace({other: one for one, other in pairs}), [note] if pairs else []


def _pairs(longer: set[str], shorter: set[str]) -> set[tuple[str, str]]:
    """Return pairs of ids from two tables that differ by ``sub-`` or by a suffix of the first."""
    by_bare = defaultdict[str, list[str]](list)
    for name in shorter:
        by_bare[name.removeprefix("sub-")].append(name)
    return {(one, other) for one in longer for form in _forms(one) for other in by_bare[form]}


def _forms(name: str) -> list[str]:
    """Return an id without ``sub-``, followed by its beginnings without a suffix."""
    bare = name.removeprefix("sub-")
    return [bare, *(bare[: found.start()] for found in _BORDER.finditer(bare) if found.start())]


def a_row_each_visit(
    frame: pd.DataFrame, of_visits: Mapping[str, pd.DataFrame], keys: Sequence[str], main: str
) -> tuple[pd.DataFrame, list[str]]:
    """Repeat each person's row for every visit in the other tables, in the order of the people."""
    id_column, visit_column = keys
    if not of_visits:
        raise InputError(
            f"{main} has no column {visit_column!r}, which was specified with ",
            Remedy("visit"),
            f".{did_you_mean(visit_column, [*map(str, frame.columns)])}\nAdd the column, or correct its name.",
        )
    pairs = pd.concat([table[[*keys]] for table in of_visits.values()], ignore_index=True)
    pairs = pairs[~keys_of(pairs, keys).duplicated().to_numpy()].dropna()
    rows = frame.assign(**{id_column: text_of(frame[id_column])}).merge(pairs, how="left", on=id_column)
    rows = rows[[*keys, *(name for name in frame.columns if name != id_column)]]
    if len(rows) == len(frame):
        return rows.set_axis(frame.index, axis=0), []
    return rows, [
        f"{main} has one row per person, but there is one row per visit in {listed(of_visits)}, so row numbers refer "
        "to the joined table."
    ]


def join_by_id(
    frame: pd.DataFrame,
    other: pd.DataFrame,
    id_column: str,
    visit_column: str | None = None,
    *,
    source: str,
) -> tuple[pd.DataFrame, list[Text]]:
    """Add the columns of another table of the same people.

    Parameters
    ----------
    frame
        The main table, which determines the people; its rows and index are kept.
    other
        A table with one row per person, or one per person and visit.
    id_column, visit_column
        Columns to join by; the other table may have its ids elsewhere, see `id_column_of`.
        The visit is used if both tables have it; otherwise, one row per person is needed.
    source
        Name of the other table.

    Returns
    -------
    frame
        The main table with the new columns appended; people who are not in the other table have gaps there.
        A column of both tables must agree; its gaps are filled.
    notes
        Messages about ids, and about people found in only one of the tables.

    Raises
    ------
    InputError
        If the other table has no ids, repeats them, shares no one with the main table, or contradicts a column.

    Examples
    --------
    >>> people = pd.DataFrame({"id": ["a", "b"], "age": [61.0, 72.0]})
    >>> scores = pd.DataFrame({"id": ["b", "c"], "mmse": [28.0, 30.0]})
    >>> join_by_id(people, scores, "id", source="mmse.csv")[0]["mmse"].tolist()
    [nan, 28.0]
    """
    theirs = id_column_of(other, id_column)
    for name, table, own in ((source, other, theirs), ("the main table", frame, id_column)):
        if own not in table.columns:
            raise InputError(
                f"Tables are joined by the column {id_column!r}, but {name} has no such column."
                f"{did_you_mean(id_column, [*map(str, table.columns)])}\nRename the column that contains the ids."
            )
    written, differing = like_ours(text_of(frame[id_column]), text_of(other[theirs]), source)
    other = other.rename(columns={theirs: id_column}).assign(**{id_column: written})
    notes: list[Text] = [
        *([] if theirs in (id_column, TableSettings.id) else [f"The ids in {source} are read from column {theirs!r}."]),
        *differing,
    ]
    keys = [id_column, *(str(name) for name in [visit_column] if name in frame.columns and name in other.columns)]
    here, there = keys_of(frame, keys), keys_of(other, keys)
    _refuse_bad_keys(there, other, keys, visit_column, source)
    match = there.isin(here).to_numpy()
    if not match.any():
        theirs, ours = (
            listed(key.dropna().str.replace("\t", " ").map(repr)[:2], joiner=" and ") for key in (there, here)
        )
        raise InputError(
            f"No id in {source} occurs in the main table: ids look like {theirs} in {source}, but like {ours} in the "
            "main table.\n"
            "Use the same ids in both tables, or check that this is the right table."
        )
    positions = pd.Index(there).get_indexer(pd.Index(here))
    added = other.drop(columns=[id_column, visit_column or id_column], errors="ignore").reset_index(drop=True)
    added = added.reindex(positions).set_axis(frame.index, axis=0)
    agreed = {str(name): _agreed(frame[name], added[name], frame, source) for name in added if name in frame}
    joined = pd.concat([frame.assign(**agreed), added.drop(columns=list(agreed))], axis=1)
    notes += [  # ids are dropped from stored messages
        f"No match was found in {there} for {counted(len(ids), f'row of {here}', f'rows of {here}')}, {what} "
        f"(participants {listed(dict.fromkeys(ids), 10)})."
        for ids, here, there, what in (
            (written[~match], source, "the main table", "whose values are not used"),
            (frame[id_column][positions < 0], "the main table", source, f"so values from {source} are missing there"),
        )
        if len(ids)
    ]
    return joined, notes


def keys_of(table: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    r"""Return the ids, or ids and visits, of a table as one text per row; NaN where a part is missing.

    Examples
    --------
    >>> keys_of(pd.DataFrame({"id": ["a", "b"], "visit": [1.0, 2.0]}), ["id", "visit"]).tolist()
    ['a\t1', 'b\t2']
    """
    key = text_of(table[names[0]])
    for name in names[1:]:
        key = key + "\t" + text_of(table[name]).map(plain_code, na_action="ignore")
    return key


def _refuse_bad_keys(
    there: pd.Series, other: pd.DataFrame, keys: Sequence[str], visit_column: str | None, source: str
) -> None:
    rows, missing, repeated = spreadsheet_rows(other), there.isna().to_numpy(), there.duplicated().to_numpy()
    if missing.any():
        raise InputError(
            f"Every row of {source} needs a value in {listed(map(repr, keys), joiner=' and ')}, but it is missing in "
            f"{listed_rows(rows[missing])}.\n"
            "Fill in missing values, or remove these rows."
        )
    if repeated.any():
        first = there[repeated].iloc[0]
        who = listed(map(repr, first.split("\t")), joiner=" and ")
        raise InputError(
            f"{source} has more than one row with {who} (rows "
            f"{listed(rows[(there == first).to_numpy()], joiner=' and ')}), so it cannot be joined.\n"
            "Keep one row per person",
            *(
                [" and visit."]
                if len(keys) > 1
                else [", or name the visit column with ", Remedy("visit", visit_column), "."]
            ),
        )


def _agreed(given: pd.Series, added: pd.Series, frame: pd.DataFrame, source: str) -> pd.Series:
    """Return a column of both tables, with gaps in the main one filled from the other; contradictions are refused."""
    ours, theirs = (text_of(column).map(plain_code, na_action="ignore") for column in (given, added))
    differing = np.flatnonzero((ours.notna() & theirs.notna() & (ours != theirs)).to_numpy())
    if len(differing):
        first, name = int(differing[0]), str(given.name)
        raise InputError(
            f"Column {name!r} is in {source} and in an earlier table, but "
            f"{counted(len(differing), 'value differs', 'values differ')}. For row {spreadsheet_rows(frame)[first]} of "
            f"the main table, the earlier table has {ours.iloc[first]}, but {source} has {theirs.iloc[first]}.\n"
            "Rename or remove one of the columns."
        )
    filled = ours.fillna(theirs)
    if filled.equals(ours):
        return given
    return given.fillna(added) if given.dtype.kind == added.dtype.kind == "f" else filled


_LEAST_SHARED = 0.5  # of the columns


def stacked(
    parts: Sequence[Part], frames: Sequence[pd.DataFrame], id_column: str, diagnosis: str
) -> tuple[pd.DataFrame, list[Text]]:
    """Return the people of several tables as one table with a column for their labels.

    Tables may have different names for the id column; all are renamed to `id_column`. Columns that are not in all
    tables are left out.

    Raises
    ------
    InputError
        If a table already has a column of labels, or shares hardly any columns with the others.

    Examples
    --------
    >>> from rindices.tables import labelled_parts
    >>> frames = [pd.DataFrame({"id": ["a"], "lHip": [3.1]}), pd.DataFrame({"ID": ["b"], "lHip": [2.9]})]
    >>> stacked(labelled_parts("CN=one.csv,AD=two.csv"), frames, "id", "diagnosis")[0].to_numpy().tolist()
    [['a', 'CN', 3.1], ['b', 'AD', 2.9]]
    """
    names = [part.path.name for part in parts]
    for part, frame in zip(parts, frames, strict=True):
        if diagnosis in frame.columns:
            raise InputError(
                f"{part.path.name} already has a column {diagnosis!r}, but the label {part.label!r} was "
                "also specified.\n"
                "Remove the column, or put everyone in a single table with this column."
            )
    frames = [frame.rename(columns={id_column_of(frame, id_column): id_column}) for frame in frames]
    everywhere = [name for name in frames[0].columns if all(name in frame.columns for frame in frames)]
    others = {
        file: [str(name) for name in frame.columns if name not in everywhere]
        for file, frame in zip(names, frames, strict=True)
    }
    alone = "; ".join(f"{listed(columns)} ({file})" for file, columns in others.items() if columns)
    if len(everywhere) < _LEAST_SHARED * max(len(frame.columns) for frame in frames):
        raise InputError(
            f"{listed(names)} have too few columns in common. Columns that are not in all tables: {alone}.\nUse the "
            "same region names in all tables; to combine tables of the same people, join them instead."
        )
    below = [frame[everywhere].assign(**{diagnosis: part.label}) for part, frame in zip(parts, frames, strict=True)]
    columns = [id_column, diagnosis, *(name for name in everywhere if name != id_column)]
    table = pd.concat(below, ignore_index=True)[columns]
    ends = pd.Series([len(frame) for frame in frames]).cumsum() + 1
    rows = ", ".join(f"{file} ends at row {end}" for file, end in zip(names, ends, strict=True))
    notes: list[Text] = [f"Rows are numbered continuously across the tables: {rows}."]
    if alone:
        notes.append(f"Columns that are not in all tables are excluded: {alone}.")
    return typed(table, (id_column, diagnosis)), notes
