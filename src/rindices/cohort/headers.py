"""Names of the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count
from pathlib import Path

import pandas as pd

from rindices.errors import InputError, listed
from rindices.files import plain_text

__all__ = ["named_columns"]


def named_columns(header: Sequence[str], path: Path) -> tuple[list[str], list[str]]:
    """Return a name for every column, and those of the columns that had none; a name that occurs twice is refused.

    Examples
    --------
    >>> named_columns(["", "age"], Path("people.csv"))
    (['Unnamed: 0', 'age'], ['Unnamed: 0'])
    """
    header = [plain_text(name) for name in header]  # as tables of ours are written
    given = pd.Series([name for name in header if name], dtype=object)
    repeated = list(dict.fromkeys(given[given.duplicated()]))
    if repeated:
        places = [position + 1 for position, name in enumerate(header) if name == repeated[0]]
        raise InputError(
            f"Column names must differ, but {path.name} has {listed(map(repr, repeated))} more than once "
            f"({repeated[0]!r} is column {listed(places, joiner=' and ')}).\nRename or remove the repeated columns."
        )
    taken = set(header)
    names = [name or _free_name(f"Unnamed: {position}", taken) for position, name in enumerate(header)]
    return names, [name for name, own in zip(names, header, strict=True) if not own]


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that no column has; a table that was saved twice has the names of the first time."""
    others = (f"{name}.{number}" for number in count(1))
    free = next(other for other in chain([name], others) if other not in taken)
    taken.add(free)
    return free
