"""Cells that cannot be used: text among numbers, gaps, impossible numbers. They are refused by column and row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.cohort.cells import MOSTLY_NUMBERS, Roster, share_of_numbers, text_of, with_points
from rindices.cohort.spelling import meant_as_numbers, spelling_hint
from rindices.errors import InputError, counted, excluding, listed, shown

__all__ = [
    "LARGEST",
    "MIN_REGIONS",
    "SEX_NAMES",
    "NumberCells",
    "Trouble",
    "gaps",
    "impossible",
    "number_block",
    "refuse",
    "refuse_gaps",
    "refuse_spelled",
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
    instead
        What else to do, where there are no cells.
    """

    sentences: str
    columns: tuple[str, ...] = ()
    verb: str = "Correct"
    instead: str = ""


class NumberCells:
    """Cells that should be numbers, of rows that come some at a time: what is wrong with all of them.

    Parameters
    ----------
    columns
        Names of the columns.
    kind
        What the columns are in the message.
    """

    def __init__(self, columns: Sequence[str], kind: str) -> None:
        self._columns = list(columns)
        self._text = _Text(kind)
        self._missing = _Marked(columns, kind, "Missing")
        self._impossible = _Marked(columns, kind, "Impossible")

    def add(self, frame: pd.DataFrame, roster: Roster) -> NDArray[np.float64]:
        """Take note of some rows, and return their numbers."""
        numbers = frame[self._columns]
        texts = [frame[name] for name in self._columns if not is_numeric_dtype(frame[name])]
        if texts:
            self._text.add(texts, roster)
            coerced = {str(column.name): pd.to_numeric(column, errors="coerce") for column in texts}
            missing = numbers.isna().to_numpy()
            block = numbers.assign(**coerced).to_numpy(dtype=np.float64)
        else:
            block = numbers.to_numpy(dtype=np.float64)
            missing = np.isnan(block)
        self._missing.add(missing, roster)
        self._impossible.add(np.abs(block) > LARGEST, roster)
        return block

    def refuse(self) -> None:
        """Refuse text, missing and infinite cells, all of them at once."""
        text = self._text.troubles(self._columns)
        refuse([*text, *self._missing.troubles(), *self._impossible.troubles()], can_drop=not text)


def number_block(frame: pd.DataFrame, columns: Sequence[str], roster: Roster, *, kind: str) -> NDArray[np.float64]:
    """Return the columns as a float64 array, refusing what `NumberCells` refuses."""
    cells = NumberCells(columns, kind)
    block = cells.add(frame, roster)
    cells.refuse()
    return block


def refuse_text(columns: Sequence[pd.Series], roster: Roster, *, kind: str, n_regions: int = 0) -> None:
    """Refuse columns that have cells of text, naming the first of each (an empty column passes)."""
    text = _Text(kind)
    text.add(columns, roster)
    refuse(text.troubles([str(column.name) for column in columns]), n_regions=n_regions)


def refuse_spelled(column: pd.Series, roster: Roster, *, kind: str, surely: bool = False) -> None:
    """Refuse a column of text that was meant as numbers; true categories pass, unless they are ``surely`` none."""
    text = text_of(column)
    if not surely and share_of_numbers(text) < MOSTLY_NUMBERS and not meant_as_numbers(text):
        return
    points = with_points(text)
    # Beside other spellings, decimal commas are not what matters.
    refuse_text([text if share_of_numbers(points) == 1 else points], roster, kind=kind)


def refuse_gaps(
    bad: NDArray[np.bool_],
    columns: Sequence[str],
    roster: Roster,
    *,
    kind: str,
    adjective: str = "Missing",
    can_drop: bool = False,
) -> None:
    """Refuse cells marked in ``bad`` (people × columns), naming the columns and the first cell."""
    refuse(gaps(bad, columns, roster, kind=kind, adjective=adjective), can_drop=can_drop)


def refuse(
    troubles: Sequence[Trouble], *, n_regions: int = 0, can_drop: bool = False, scores: Sequence[str] = ()
) -> None:
    """Refuse a table with troubles, telling all of them; without any it passes.

    Of ``n_regions`` those with troubles may be left out, if enough remain, and ``scores`` may be no regions;
    ``can_drop`` tells that ``--drop-missing`` would leave people out.
    """
    if not troubles:
        return
    verbs = list(dict.fromkeys(trouble.verb for trouble in troubles if not trouble.instead))
    ways = [f"{' or '.join([verbs[0], *map(str.lower, verbs[1:])])} the cells"] if verbs else []
    ways += [trouble.instead for trouble in troubles if trouble.instead]
    if can_drop:
        ways.append("leave these people out with --drop-missing")
    elif "Fill in" in verbs:
        ways.append("remove these people")
    names = list(dict.fromkeys(name for trouble in troubles for name in trouble.columns))
    if names and n_regions - len(names) >= MIN_REGIONS:
        ways.append(f"leave the column{'s' if len(names) > 1 else ''} out with {excluding(names)}")
        if scores:
            clinical = excluding(scores, option="--clinical")
            one = f"name it with {clinical} if it is a score and no region"
            ways.append(one if len(scores) == 1 else f"name them with {clinical} if they are scores and no regions")
    remedy = ways[0] if len(ways) == 1 else f"{', '.join(ways[:-1])}, or {ways[-1]}"
    remedy = remedy[0].upper() + remedy[1:]
    raise InputError("\n".join([*(trouble.sentences for trouble in troubles), f"{remedy}."]))


def gaps(
    bad: NDArray[np.bool_], columns: Sequence[str], roster: Roster, *, kind: str, adjective: str = "Missing"
) -> list[Trouble]:
    """Return the trouble with cells marked in ``bad`` (people × columns), if any is."""
    marked = _Marked(columns, kind, adjective)
    marked.add(bad, roster)
    return marked.troubles()


class _Marked:
    """Bad cells: how many each column has, and where the first of them is."""

    def __init__(self, columns: Sequence[str], kind: str, adjective: str) -> None:
        self._columns, self._kind, self._adjective = columns, kind, adjective
        self._counts, self._first, self._empty = Counter[str](), dict[str, str](), ""

    def add(self, bad: NDArray[np.bool_], roster: Roster) -> None:
        counts = bad.sum(axis=0)
        if not counts.any():
            return
        for position in np.flatnonzero(counts).tolist():
            name = self._columns[position]
            self._counts[name] += int(counts[position])
            if name not in self._first:
                self._first[name] = roster.at(int(bad[:, position].argmax()))
        empty = np.flatnonzero(bad.all(axis=1))
        if len(empty) and not self._empty:
            self._empty = roster.at(int(empty[0]))

    def troubles(self) -> list[Trouble]:
        counts = {name: self._counts[name] for name in self._columns if name in self._counts}
        if not counts:
            return []
        names = listed(f"{name} ({counted(number, 'person', 'people')})" for name, number in counts.items())
        first, note = next(iter(counts)), ""
        if self._empty and self._kind == "region" and self._adjective == "Missing":
            note = f" There is no region at all in {self._empty}: is it a note below the table?"
        return [
            Trouble(
                f"{self._adjective} values in {counted(len(counts), f'{self._kind} column')}: {names}. "
                f"The first is in column {first!r}, {self._first[first]}.{note}",
                () if self._kind == "covariate" else tuple(counts),
                "Fill in" if self._adjective == "Missing" else "Correct",
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


class _Text:
    """Cells of text among numbers: how many each column has, and the first of them."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._counts, self._first = Counter[str](), dict[str, tuple[str, str]]()

    def add(self, columns: Sequence[pd.Series], roster: Roster) -> None:
        for column in columns:
            offenders = np.flatnonzero(column.notna() & pd.to_numeric(column, errors="coerce").isna())
            if len(offenders):
                name, first = str(column.name), int(offenders[0])
                self._counts[name] += len(offenders)
                self._first.setdefault(name, (roster.at(first), str(column.iloc[first])))

    def troubles(self, columns: Sequence[str]) -> list[Trouble]:
        """Return the trouble with these columns, if any has text."""
        names = [name for name in columns if name in self._counts]
        if not names:
            return []
        lines = [self._line(name) for name in names[:_MOST_COLUMNS]]
        rest = names[_MOST_COLUMNS:]
        if rest:
            lines.append(f"{counted(len(rest), 'more column has', 'more columns have')} text: {listed(rest)}.")
        hints = filter(None, (spelling_hint(self._first[name][1]) for name in names))
        lines[-1] = " ".join([lines[-1], *islice(hints, 1)])
        return [Trouble("\n".join(lines), () if self._kind == "covariate" else tuple(names))]

    def _line(self, name: str) -> str:
        place, value = self._first[name]
        others = self._counts[name] - 1
        more = f", and {counted(others, 'more cell has', 'more cells have')} text" if others else ""
        return f"Column {name!r} ({self._kind}) should hold numbers, but {place} has the text {value!r}{more}."
