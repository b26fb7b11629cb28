"""Several tables as one: whose row is whose by ids that differ a little, and files of controls and of patients.

Tables of different people have a label each, ``CN=controls.csv,SCZ=patients.csv``, and go one below the other.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.problems import InputError, Message, Remedy, Text, counted, listed
from rindices.schema.cells import numbers_of, text_of, typed
from rindices.schema.role_guesses import id_by_name, is_region_name
from rindices.tables.table import file_and_sheet

_A_ROW = 0.5  # a header with a larger share of numbers is a row of values
_BORDER = re.compile(r"[_.-]")


def own_ids(frame: pd.DataFrame, asked: str) -> str:
    """Return the column with the ids of a table: the one asked for, one with a usual name, or a first column of ids.

    Where there is none of them, it is the one asked for, and for others to refuse.

    Examples
    --------
    >>> own_ids(pd.DataFrame({"MRID": ["a", "b"], "47": [1.0, 2.0]}), "participant_id")
    'MRID'
    >>> own_ids(pd.DataFrame({"code": ["a", "b"], "lHip": [1.0, 2.0]}), "participant_id")
    'code'
    """
    names = [str(name) for name in frame.columns]
    if asked in names or ((usual := id_by_name(names)) is None and not _first_is_id(frame)):
        return asked
    return usual or names[0]


def _first_is_id(frame: pd.DataFrame) -> bool:
    """Tell whether everybody has another text or whole number in the first column."""
    names = pd.Series([str(name) for name in frame.columns], dtype=object)
    if not len(names) or not is_region_name(names[0]) or (~np.isnan(numbers_of(names))).mean() > _A_ROW:
        return False
    cells = text_of(frame.iloc[:, 0])
    numbers = numbers_of(cells)
    return bool(cells.notna().all() and cells.is_unique and not (numbers != np.rint(numbers))[~np.isnan(numbers)].any())


def like_ours(ours: pd.Series, theirs: pd.Series, source: str) -> tuple[pd.Series, list[str]]:
    """Return the ids of another table as the main table writes them, and a sentence where that differs.

    Ids are the same person's where one has ``sub-`` before it, or more behind an underscore, point or hyphen; only
    among ids that are in one of the tables alone, and only one to one.

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
    pairs = _pairs(here - there, there - here)
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
    if not pairs:
        return theirs, []
    renamed = {other: one for one, other in pairs}
    such = f"for example, participants {' and '.join(map(repr, min(pairs)))}"
    return theirs.replace(renamed), [
        f"{counted(len(pairs), 'id is', 'ids are')} written differently in {source} ({such}) and treated as "
        "the same person."
    ]


def _pairs(here: set[str], there: set[str]) -> set[tuple[str, str]]:
    """Return ids of two tables that differ by ``sub-`` or by more behind one of them."""
    found = set()
    for ours, theirs, turned in ((here, there, False), (there, here, True)):
        by_bare = defaultdict(list)
        for name in theirs:
            by_bare[name.removeprefix("sub-")].append(name)
        for name in ours:
            found |= {(other, name) if turned else (name, other) for form in _forms(name) for other in by_bare[form]}
    return found


def _forms(name: str) -> Iterable[str]:
    bare = name.removeprefix("sub-")
    return [bare, *(bare[: found.start()] for found in _BORDER.finditer(bare) if found.start())]


def not_found(number: int, ids: Iterable[str], what: str) -> Message:
    """Return a sentence on people whom only one of two tables has; who they are is left out of what is kept."""
    return Message(f"{counted(number, 'row')} {what} (participants {listed(dict.fromkeys(ids), 10)}).")


_LABELLED = re.compile(r"([^=,/\\]+)=(.+)")
_BETWEEN = re.compile(r",(?=[^=,/\\]+=)")  # a comma that a label follows; others are in names of folders
_LEAST_SHARED = 0.5  # of the columns


class Part(NamedTuple):
    """One of several tables: the label of its people, and the file."""

    label: str
    path: Path


def labelled_parts(path: str | Path) -> tuple[Part, ...]:
    """Return the tables that are named with a label each; none where it is one table.

    Examples
    --------
    >>> [part.label for part in labelled_parts("CN=controls.csv,SCZ=patients.csv")], labelled_parts("people.csv")
    (['CN', 'SCZ'], ())
    """
    texts = _BETWEEN.split(str(path))
    found = [_LABELLED.fullmatch(text.strip()) for text in texts]
    if os.path.exists(path) or None in found:
        return ()
    parts = tuple(Part(one[1].strip(), Path(one[2].strip())) for one in found if one is not None)
    if len({part.label for part in parts}) == 1:
        raise InputError(
            f"All tables have the label {parts[0].label!r}, so there are no groups to compare.\n"
            "Provide controls and patients with different labels: CN=controls.csv AD=patients.csv."
        )
    return parts


def files_of(path: str | Path) -> tuple[Path, ...]:
    """Return the files that are meant by a table or by several, without names of sheets."""
    return tuple(file_and_sheet(part.path)[0] for part in labelled_parts(path)) or (file_and_sheet(path)[0],)


def stacked(
    parts: Sequence[Part], frames: Sequence[pd.DataFrame], id_column: str, diagnosis: str
) -> tuple[pd.DataFrame, list[Text]]:
    """Return the people of several tables as one table with a column of their labels.

    Each table may have its ids in a column of its own; all get the first one's name. Columns that not all tables have
    are left out.

    Raises
    ------
    InputError
        If a table has a column of labels already, or hardly shares columns with the others.

    Examples
    --------
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
    frames = [frame.rename(columns={own_ids(frame, id_column): id_column}) for frame in frames]
    everywhere = [name for name in frames[0].columns if all(name in frame.columns for frame in frames)]
    others = {
        file: [str(name) for name in frame.columns if name not in everywhere]
        for file, frame in zip(names, frames, strict=True)
    }
    alone = "; ".join(f"{listed(columns)} ({file})" for file, columns in others.items() if columns)
    if len(everywhere) < _LEAST_SHARED * max(len(frame.columns) for frame in frames):
        raise InputError(
            f"{listed(names)} have hardly any columns in common (not shared: {alone}).\nUse the same region "
            "names in all tables; to combine tables of the same people, join them instead."
        )
    below = [frame[everywhere].assign(**{diagnosis: part.label}) for part, frame in zip(parts, frames, strict=True)]
    table = pd.concat(below, ignore_index=True)
    table = table[[id_column, diagnosis, *(name for name in everywhere if name != id_column)]]
    ends = pd.Series([len(frame) for frame in frames]).cumsum() + 1
    rows = ", ".join(f"{file} up to row {end}" for file, end in zip(names, ends, strict=True))
    notes: list[Text] = [f"Row numbers continue from table to table: {rows}."]
    if alone:
        notes.append(f"Columns that are not in all tables are excluded: {alone}.")
    return typed(table, (id_column, diagnosis)), notes
