"""Several tables of different people, each with a label: ``CN=controls.csv,SCZ=patients.csv``, one below the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from rindices.problems import InputError, Text, listed
from rindices.schema.cells import typed
from rindices.tables.ids import own_ids
from rindices.tables.table import file_and_sheet

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
    if Path(path).exists() or None in found:
        return ()
    parts = tuple(Part(one[1].strip(), Path(one[2].strip())) for one in found if one is not None)
    if len({part.label for part in parts}) == 1:
        raise InputError(
            f"All tables have the label {parts[0].label!r}, so there is no one to compare.\n"
            "Give controls and patients, each with their own label: CN=controls.csv AD=patients.csv."
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
                f"{part.path.name} already has a column {diagnosis!r}, but was also given the label {part.label!r}.\n"
                "Remove the column, or put everyone into a single table that has this column."
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
            f"{listed(names)} have hardly any columns in common: {alone}.\nUse the same region names in all "
            "tables; to combine tables of the same people, join them instead."
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
