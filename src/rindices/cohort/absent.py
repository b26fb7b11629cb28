"""People whom a joined table does not know: told as such, not as gaps in all its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rindices.cohort.cells import Roster
from rindices.cohort.gaps import Trouble
from rindices.errors import counted, listed

__all__ = ["Absent", "absences"]


class Absent(NamedTuple):
    """Whom a joined table does not know.

    Attributes
    ----------
    rows
        True for these rows of the main table.
    columns
        What came from the joined table alone, and is missing in these rows.
    main, source
        Names of the two tables.
    """

    rows: NDArray[np.bool_]
    columns: frozenset[str]
    main: str
    source: str


def absences(
    absent: Sequence[Absent], bad: NDArray[np.bool_], columns: Sequence[str], roster: Roster
) -> tuple[list[Trouble], NDArray[np.bool_]]:
    """Return the trouble with people whom joined tables do not know, and the cells marked in ``bad`` without theirs."""
    troubles = []
    for rows, added, main, source in absent:
        cells = bad & rows[:, None] & np.array([name in added for name in columns], dtype=bool)
        who = np.flatnonzero(cells.any(axis=1))
        if len(who):
            who_they_are = ("visit", "visits") if roster.ids.has_duplicates else ("person", "people")
            people = counted(len(who), *who_they_are)
            missing = listed(np.array(columns, dtype=object)[cells.any(axis=0)], 4)
            troubles.append(
                Trouble(
                    f"{people} of {main} {'is' if len(who) == 1 else 'are'} not in {source} (first: "
                    f"{roster.at(int(who[0]))}), which has {missing}.",
                    instead=f"add them to {source}",
                )
            )
            bad = bad & ~cells
    return troubles, bad
