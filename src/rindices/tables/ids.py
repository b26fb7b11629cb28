"""Which column has the ids, where nobody says so; and ids of two tables that are written a little differently."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pandas as pd

from rindices.problems import InputError, Message, Remedy, counted, listed
from rindices.schema.cells import numbers_of, text_of
from rindices.schema.role_guesses import id_by_name, is_region_name

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
            f"Ids of {source} differ from those in the main table and cannot be matched one to one: {said}.\n"
            "Write the ids in the same way, or name the visits with ",
            Remedy("visit"),
            ".",
        )
    if not pairs:
        return theirs, []
    renamed = {other: one for one, other in pairs}
    such = f"participants {' and '.join(map(repr, min(pairs)))} for example"
    return theirs.replace(renamed), [
        f"{counted(len(pairs), 'id is', 'ids are')} written differently in {source} ({such}): treated as the same."
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
    return Message(f"{counted(number, 'row')} {what} (participants {listed(ids, 10)}).")
