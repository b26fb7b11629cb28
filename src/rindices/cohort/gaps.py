"""Cells that cannot be used: text among numbers, gaps, impossible numbers. They are refused by column and row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.cohort.cells import Roster
from rindices.cohort.spelling import spelling_hint
from rindices.errors import InputError, counted, excluding, listed, shown

__all__ = [
    "LARGEST",
    "MIN_REGIONS",
    "SEX_NAMES",
    "Trouble",
    "gaps",
    "impossible",
    "number_block",
    "refuse",
    "refuse_gaps",
    "refuse_text",
]

LARGEST = 1e15  # no measure of a brain or a person exceeds it in any unit; squares would overflow far beyond
MIN_REGIONS = 4
SEX_NAMES = frozenset({"sex", "gender"})  # numbers there are two codes
_MOST_COLUMNS = 2  # of text, that get a line each


class Trouble(NamedTuple):
    """What is wrong with some cells.

    Attributes
    ----------
    sentences
        Which cells, and why they cannot be used.
    columns
        The columns that the user could do without.
    verb
        What to do with the cells.
    """

    sentences: str
    columns: tuple[str, ...] = ()
    verb: str = "Correct"


def number_block(frame: pd.DataFrame, columns: Sequence[str], roster: Roster, *, kind: str) -> NDArray[np.float64]:
    """Return the columns as a float64 array, refusing text, missing and infinite cells, all of them at once.

    ``kind`` says what the columns are in the message.
    """
    texts = [frame[name] for name in columns if not is_numeric_dtype(frame[name])]
    troubles = _text(texts, roster, kind)
    numbers = frame[list(columns)]
    if texts:
        coerced = {str(column.name): pd.to_numeric(column, errors="coerce") for column in texts}
        missing = numbers.isna().to_numpy()
        block = numbers.assign(**coerced).to_numpy(dtype=np.float64)
    else:
        block = numbers.to_numpy(dtype=np.float64)
        missing = np.isnan(block)
    troubles += gaps(missing, columns, roster, kind=kind)
    troubles += gaps(np.abs(block) > LARGEST, columns, roster, kind=kind, adjective="Impossible")
    refuse(troubles)
    return block


def refuse_text(columns: Sequence[pd.Series], roster: Roster, *, kind: str, n_regions: int = 0) -> None:
    """Refuse columns that have cells of text, naming the first of each (an empty column passes)."""
    refuse(_text(columns, roster, kind), n_regions=n_regions)


def refuse_gaps(
    bad: NDArray[np.bool_], columns: Sequence[str], roster: Roster, *, kind: str, adjective: str = "Missing"
) -> None:
    """Refuse cells marked in ``bad`` (people × columns), naming the columns and the first cell."""
    refuse(gaps(bad, columns, roster, kind=kind, adjective=adjective))


def refuse(troubles: Sequence[Trouble], *, n_regions: int = 0, can_drop: bool = False) -> None:
    """Refuse a table with troubles, telling all of them; without any it passes.

    Of ``n_regions`` those with troubles may be left out, if enough remain; ``can_drop`` tells that ``--drop-missing``
    would leave people out.
    """
    if not troubles:
        return
    verbs = list(dict.fromkeys(trouble.verb for trouble in troubles))
    ways = [f"{' or '.join([verbs[0], *map(str.lower, verbs[1:])])} the cells"]
    if can_drop:
        ways.append("leave these people out with --drop-missing")
    elif "Fill in" in verbs:
        ways.append("remove these people")
    names = list(dict.fromkeys(name for trouble in troubles for name in trouble.columns))
    if names and n_regions - len(names) >= MIN_REGIONS:
        ways.append(f"leave the column{'s' if len(names) > 1 else ''} out with {excluding(names)}")
    remedy = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    raise InputError("\n".join([*(trouble.sentences for trouble in troubles), f"{remedy}."]))


def gaps(
    bad: NDArray[np.bool_], columns: Sequence[str], roster: Roster, *, kind: str, adjective: str = "Missing"
) -> list[Trouble]:
    """Return the trouble with cells marked in ``bad`` (people × columns), if any is."""
    counts = {name: int(number) for name, number in zip(columns, bad.sum(axis=0), strict=True) if number}
    if not counts:
        return []
    names = listed(f"{name} ({counted(number, 'person', 'people')})" for name, number in counts.items())
    first = next(iter(counts))
    position = int(np.flatnonzero(bad[:, list(columns).index(first)])[0])
    notes = np.flatnonzero(bad.all(axis=1))
    note = ""
    if len(notes) and kind == "region" and adjective == "Missing":
        note = f" There is no region at all in {roster.at(int(notes[0]))}: is it a note below the table?"
    return [
        Trouble(
            f"{adjective} values in {counted(len(counts), f'{kind} column')}: {names}. "
            f"The first is in column {first!r}, {roster.at(position)}.{note}",
            () if kind == "covariate" else tuple(counts),
            "Fill in" if adjective == "Missing" else "Correct",
        )
    ]


def impossible(
    bad: NDArray[np.bool_],
    values: NDArray[np.float64],
    columns: Sequence[str],
    roster: Roster,
    *,
    proportion: str | None = None,
) -> list[Trouble]:
    """Return the trouble with values that no measurement gives, such as a head size of 0, naming the cells.

    Regions will be divided by ``proportion``.
    """
    rows, positions = np.nonzero(bad)
    if not len(rows):
        return []
    cells = [
        f"{columns[position]} = {shown(float(values[row, position]))} in {roster.at(row)}"
        for row, position in zip(rows[:6].tolist(), positions[:6].tolist(), strict=True)
    ]
    more = f" and {len(rows) - len(cells)} more" if len(rows) > len(cells) else ""
    names = tuple(dict.fromkeys(columns[position] for position in positions.tolist()))
    told = f"Impossible values in {counted(len(names), 'column')} ({counted(len(rows), 'cell')}): "
    reasons = dict.fromkeys(
        _reason(columns[position], float(values[row, position]), proportion)
        for row, position in zip(rows.tolist(), positions.tolist(), strict=True)
    )
    why = f"They are {', or '.join(reasons)}. Are they codes for missing values?"
    return [Trouble(f"{told}{', '.join(cells)}{more}.\n{why}", names)]


def _reason(column: str, value: float, proportion: str | None) -> str:
    if abs(value) > LARGEST:
        return "larger than any measure"
    if column == proportion and value <= 0:
        return f"not above 0, but regions are divided by {column} (--proportion), which should be a head size"
    if column.casefold() in SEX_NAMES:
        return f"values besides the two most frequent of {column}"
    return "no possible age" if column.casefold() == "age" else "negative or next to 0, where nearly all are far above"


def _text(columns: Sequence[pd.Series], roster: Roster, kind: str) -> list[Trouble]:
    found: list[tuple[str, str]] = []
    hints: dict[str, None] = {}
    for column in columns:
        offenders = np.flatnonzero(column.notna() & pd.to_numeric(column, errors="coerce").isna())
        if not len(offenders):
            continue
        first = int(offenders[0])
        value = str(column.iloc[first])
        others = counted(len(offenders) - 1, "more cell has", "more cells have")
        more = f", and {others} text" if len(offenders) > 1 else ""
        found.append((str(column.name), f"{roster.at(first)} has the text {value!r}{more}."))
        hints[spelling_hint(value)] = None
    if not found:
        return []
    lines = [f"Column {name!r} ({kind}) should hold numbers, but {place}" for name, place in found[:_MOST_COLUMNS]]
    rest = [name for name, _ in found[_MOST_COLUMNS:]]
    if rest:
        lines.append(f"{counted(len(rest), 'more column has', 'more columns have')} text: {listed(rest)}.")
    lines[-1] = " ".join([lines[-1], *[hint for hint in hints if hint][:1]])
    names = () if kind == "covariate" else tuple(name for name, _ in found)
    return [Trouble("\n".join(lines), names)]
