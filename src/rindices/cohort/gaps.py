"""Cells that cannot be used: text among numbers, gaps, infinite numbers. They are refused by column and row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.cohort.cells import Roster
from rindices.errors import InputError, counted, listed, shown

__all__ = ["number_block", "refuse_gaps", "refuse_impossible", "refuse_text"]


def number_block(
    frame: pd.DataFrame, columns: Sequence[str], roster: Roster, *, kind: str, option: str = ""
) -> NDArray[np.float64]:
    """Return the columns as a float64 array, refusing text, missing and infinite cells.

    ``kind`` says what the columns are in the message; ``option`` is the one that leaves a column out.
    """
    for name in columns:
        if not is_numeric_dtype(frame[name]):
            refuse_text(frame[name], roster, kind=kind, option=option)
    block = frame[list(columns)].to_numpy(dtype=np.float64)
    for bad, adjective in ((np.isnan(block), "Missing"), (np.isinf(block), "Infinite")):
        if bad.any():
            refuse_gaps(bad, list(columns), roster, kind=kind, adjective=adjective, option=option)
    return block


def refuse_text(column: pd.Series, roster: Roster, *, kind: str, option: str = "") -> None:
    """Refuse a column that has cells of text, naming the first (an empty column passes)."""
    offenders = np.flatnonzero(column.notna() & pd.to_numeric(column, errors="coerce").isna())
    if not len(offenders):
        return
    first = int(offenders[0])
    value = str(column.iloc[first])
    more = (
        f", and {counted(len(offenders) - 1, 'more row')} {'has' if len(offenders) == 2 else 'have'} text"
        if len(offenders) > 1
        else ""
    )
    hint = " Write decimals with a point (1.5)." if "," in value else ""
    remedy = f", or leave the column out with {option} {column.name}" if option else ""
    raise InputError(
        f"Column {column.name!r} ({kind}) should hold numbers, but {roster.at(first)} has the text {value!r}{more}.\n"
        f"Correct the cell{'s' if more else ''}{remedy}.{hint}"
    )


def refuse_gaps(
    bad: NDArray[np.bool_],
    columns: Sequence[str],
    roster: Roster,
    *,
    kind: str,
    adjective: str = "Missing",
    option: str = "",
    can_drop: bool = False,
) -> None:
    """Refuse cells marked in ``bad`` (people × columns), naming the columns and the first cell.

    ``can_drop`` tells that ``--drop-missing`` would leave these people out.
    """
    counts = {name: int(number) for name, number in zip(columns, bad.sum(axis=0), strict=True) if number}
    names = listed(f"{name} ({counted(number, 'person', 'people')})" for name, number in counts.items())
    first = next(iter(counts))
    position = int(np.flatnonzero(bad[:, list(columns).index(first)])[0])
    remove = "leave these people out with --drop-missing" if can_drop else "remove these people"
    remedy = f" or {remove}"
    if option:
        plural = "s" if len(counts) > 1 else ""
        remedy = f", {remove}, or leave the column{plural} out with {option} {','.join(list(counts)[:20])}"
    raise InputError(
        f"{adjective} values in {counted(len(counts), f'{kind} column')}: {names}.\n"
        f"The first is in column {first!r}, {roster.at(position)}.\n"
        f"{'Fill in' if adjective == 'Missing' else 'Correct'} the values{remedy}."
    )


def refuse_impossible(
    bad: NDArray[np.bool_], values: NDArray[np.float64], columns: Sequence[str], roster: Roster, *, option: str = ""
) -> None:
    """Refuse values that no measurement gives, such as a head size of 0, naming the cells."""
    rows, positions = np.nonzero(bad)
    cells = [
        f"{columns[position]} = {shown(float(values[row, position]))} in {roster.at(row)}"
        for row, position in zip(rows[:6].tolist(), positions[:6].tolist(), strict=True)
    ]
    more = f" and {len(rows) - len(cells)} more" if len(rows) > len(cells) else ""
    names = list(dict.fromkeys(columns[position] for position in positions.tolist()))
    leave = f", or leave columns out with {option} {','.join(names[:20])}" if option else ""
    raise InputError(
        f"Impossible values in {counted(len(names), 'column')} ({counted(len(rows), 'cell')}): "
        f"{', '.join(cells)}{more}.\n"
        "They are infinite, no possible age, or next to nothing where nearly all others have much: codes for gaps?\n"
        f"Correct them,{'' if leave else ' or'} leave these people out with --drop-missing{leave}."
    )
