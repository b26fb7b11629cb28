"""Tables of the same people put side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rindices.errors import InputError, counted, did_you_mean, listed, setting
from rindices.schema.cells import plain_code, spreadsheet_rows, text_of

__all__ = ["join_by_id", "keys_of"]


def join_by_id(
    frame: pd.DataFrame,
    other: pd.DataFrame,
    id_column: str,
    visit_column: str | None = None,
    *,
    source: str,
    origins: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Add the columns of another table of the same people.

    Parameters
    ----------
    frame
        The table that says who is there; its rows and index stay as they are.
    other
        A table with one row a person, or one a person and visit.
    id_column, visit_column
        Columns to join by. The visit counts where both tables have it; else one row a person is needed.
    source
        Name of the other table.
    origins
        Table that each column of `frame` came from, for messages.

    Returns
    -------
    frame
        The table with the new columns behind its own; people whom the other table does not know have gaps there.
        A column of both tables must not differ; its gaps are filled.
    notes
        How many people only one of the tables has.

    Raises
    ------
    InputError
        If the other table has no ids, repeats them, knows nobody here, or contradicts a column.

    Examples
    --------
    >>> people = pd.DataFrame({"id": ["a", "b"], "age": [61.0, 72.0]})
    >>> scores = pd.DataFrame({"id": ["b", "c"], "mmse": [28.0, 30.0]})
    >>> join_by_id(people, scores, "id", source="mmse.csv")[0]["mmse"].tolist()
    [nan, 28.0]
    """
    for name, table in ((source, other), ("the main table", frame)):
        if id_column not in table.columns:
            near = did_you_mean(id_column, [str(column) for column in table.columns])
            raise InputError(
                f"{source} is joined by the column {id_column!r}, but {name} has none.{near}\nRename the column of ids."
            )
    keys = _shared_keys(frame, other, id_column, visit_column)
    here, there = keys_of(frame, keys), keys_of(other, keys)
    _refuse_bad_keys(there, other, keys, visit_column, source)
    known = there.isin(here).to_numpy()
    if not known.any():
        theirs, ours = (
            listed(key.dropna().str.replace("\t", " ").map(repr)[:2], joiner=" and ") for key in (there, here)
        )
        raise InputError(
            f"Nobody in {source} has an id of the main table: it has {theirs}, the main table {ours}.\n"
            "Write the ids alike, or check that it is the right table."
        )
    positions = pd.Index(there).get_indexer(pd.Index(here))
    absent = positions < 0
    added = other.drop(columns=[id_column, visit_column or id_column], errors="ignore").reset_index(drop=True)
    added = added.reindex(positions).set_axis(frame.index, axis=0)
    both = [name for name in added.columns if name in frame.columns]
    agreed = {str(name): _agreed(frame[name], added[name], frame, source, origins or {}) for name in both}
    joined = pd.concat([frame.assign(**agreed), added.drop(columns=both)], axis=1)
    notes = {
        f"{counted(int((~known).sum()), 'row')} of {source} left out: the main table has nobody with that id.": ~known,
        f"{counted(int(absent.sum()), 'row')} of the main table not found in {source}: gaps in its columns.": absent,
    }
    return joined, [note for note, rows in notes.items() if rows.any()]


def _shared_keys(frame: pd.DataFrame, other: pd.DataFrame, id_column: str, visit_column: str | None) -> list[str]:
    return [id_column, *(str(name) for name in [visit_column] if name in frame.columns and name in other.columns)]


def keys_of(table: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    r"""Return the ids, or ids and visits, of a table as one text a row; NaN where a part is missing.

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
            f"Every row of {source} needs a value in {listed(map(repr, keys), joiner=' and ')}, but row "
            f"{listed(rows[missing])} has none.\nFill it in, or remove the row."
        )
    if repeated.any():
        first = there[repeated].iloc[0]
        who = listed(map(repr, first.split("\t")), joiner=" and ")
        apart = f"Keep one row a person, or tell the visits apart with {setting('visit', visit_column)}."
        remedy = "Keep one row a person and visit." if len(keys) > 1 else apart
        raise InputError(
            f"{source} has {who} in rows {listed(rows[(there == first).to_numpy()], joiner=' and ')}, so it cannot be "
            f"joined to the people.\n{remedy}"
        )


def _agreed(
    given: pd.Series, added: pd.Series, frame: pd.DataFrame, source: str, origins: Mapping[str, str]
) -> pd.Series:
    """Return a column of both tables with the gaps of the one filled by the other; a contradiction is refused."""
    ours, theirs = (text_of(column).map(plain_code, na_action="ignore") for column in (given, added))
    differing = np.flatnonzero((ours.notna() & theirs.notna() & (ours != theirs)).to_numpy())
    if len(differing):
        first, name = int(differing[0]), str(given.name)
        number = counted(len(differing), "value differs", "values differ")
        raise InputError(
            f"Column {name!r} is in {origins.get(name, 'the main table')} and in {source}, but {number}: in row "
            f"{spreadsheet_rows(frame)[first]} of the main table {ours.iloc[first]} and {theirs.iloc[first]}.\n"
            "Rename or remove one of the two."
        )
    filled = ours.fillna(theirs)
    if filled.equals(ours):
        return given
    return given.fillna(added) if given.dtype.kind == added.dtype.kind == "f" else filled
