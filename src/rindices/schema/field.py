"""The base of all column roles: a field observes rows, checks any table, and may learn from a training table.

A field serves the training table and new people alike, whole tables or batches of rows. It finds gaps and impossible
values; `rindices.cohort.exclusions_and_outliers` decides who is refused or left out because of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype
from pydantic import ConfigDict

from rindices.problems import Message, Problem, Remedy, Text, counted, listed, shown
from rindices.schema.cells import numbers_of, spelling_hint, spreadsheet_rows, text_of

# For everything read from a file: types as annotated, Booleans are not numbers, no unknown keys, nothing infinite.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
DIGITS = 3  # significant ones, in the statistics that a model stores about its training sample
# A model stores rounded quantiles of regions, because the smallest value would be a single person's. At least five
# people lie beyond each quantile.
QUANTILE, _FEWEST_BEYOND = 0.01, 5
CORRECT = "correct the cells"
# The remedy for missing and impossible values; the rule is in `rindices.cohort.exclusions_and_outliers`.
LEAVE_OUT = Message("exclude these people with ", Remedy("drop_missing", True))
_POSSIBLE = (
    "Ages must lie between 0 and 120, sex must have two codes, and sizes must be positive and not far from those of "
    "other people. Impossible values may be codes for missing values."
)
_MOST_LINES = 2  # on columns with text
_MOST_CELLS = 6  # listed individually
_MOST_VALUES = 100  # of a column, examined for distinct ones


class Roster(NamedTuple):
    """The person in each row: ids, and row numbers as a spreadsheet shows them."""

    ids: pd.Index
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, batch: pd.DataFrame, name: str) -> Roster:
        """Read the ids of some rows."""
        return cls(pd.Index(text_of(batch[name]).to_numpy(), name="participant_id"), spreadsheet_rows(batch))

    def at(self, position: int) -> str:
        """Return ``row 17 (participant 0031)`` for errors; stored messages, such as warnings, name only the row."""
        return f"row {self.rows[position]} (participant {self.ids[position]})"


class Seen(NamedTuple):
    """The contents of some rows: values (people × columns), and masks of missing, impossible and text cells."""

    values: NDArray
    missing: NDArray[np.bool_]
    impossible: NDArray[np.bool_]
    text: NDArray[np.bool_]

    @classmethod
    def of(cls, values: NDArray) -> Seen:
        """Wrap one column: gaps are missing, and nothing is impossible or text."""
        missing = pd.isna(values)[:, None]
        nothing = np.zeros(missing.shape, dtype=bool)
        return cls(values[:, None], missing, nothing, nothing)


class Field:
    """One role of a column, or of several columns, of which `name` is the first.

    Attributes
    ----------
    notes
        Messages for the user about how cells were handled.
    problems
        What was found to be wrong while rows were observed.
    """

    def __init__(self, name: str) -> None:
        self.name, self.notes, self.problems = name, list[Text](), list[Problem]()

    def check(self) -> list[Problem]:
        """Return the problems of all rows so far."""
        return self.problems


class BadCells:
    """Cells that are unusable for one reason: their number in each column, and the first of them."""

    def __init__(self) -> None:
        self.counts, self.first = Counter[str](), dict[str, tuple[str, str]]()
        self.cells, self.values = list[str](), dict[str, None]()

    def add(
        self, bad: NDArray[np.bool_], columns: Sequence[str], roster: Roster, value: Callable[[int, int], str]
    ) -> None:
        """Record the cells marked in ``bad`` (people × columns); `value` returns the text of a cell."""
        for position in np.flatnonzero(bad.any(axis=0)).tolist():
            rows, name = np.flatnonzero(bad[:, position]).tolist(), columns[position]
            self.counts[name] += len(rows)
            self.first.setdefault(name, (roster.at(rows[0]), value(rows[0], position)))
            self.values.update(dict.fromkeys(value(row, position) for row in rows[:_MOST_VALUES]))
            self.cells += [
                f"{name} = {value(row, position)} in {roster.at(row)}" for row in rows[: _MOST_CELLS - len(self.cells)]
            ]


class NumberField(Field):
    """Columns that should hold numbers.

    Parameters
    ----------
    columns
        Their names.
    reference
        Values of other people (people × columns) to judge by; None if these people are judged against each other.

    Attributes
    ----------
    kind
        Name of the role in messages.
    text, missing, impossible
        Unusable cells, by reason.
    """

    kind = "number"

    def __init__(self, *columns: str, reference: NDArray[np.float64] | None = None) -> None:
        super().__init__(columns[0])
        self.columns, self._reference = list(columns), reference
        self.text, self.missing, self.impossible = BadCells(), BadCells(), BadCells()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the numbers in some rows."""
        block = np.ascontiguousarray(np.column_stack([numbers_of(batch[name]) for name in self.columns]))
        text = np.zeros(block.shape, dtype=bool)
        for position, name in enumerate(self.columns):
            if not is_numeric_dtype(batch[name]) and np.isnan(block[:, position]).any():
                text[:, position] = np.isnan(block[:, position]) & text_of(batch[name]).notna().to_numpy()
        missing = self._unusable_gaps(block, np.isnan(block) & ~text)
        impossible = self._impossible(block, block if self._reference is None else self._reference)

        def written(row: int, position: int) -> str:
            return str(batch[self.columns[position]].iloc[row])

        self.text.add(text, self.columns, roster, written)
        self.missing.add(missing, self.columns, roster, written)
        self.impossible.add(impossible, self.columns, roster, lambda row, column: shown(float(block[row, column])))
        return Seen(block, missing, impossible, text)

    def _unusable_gaps(self, block: NDArray[np.float64], gaps: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the gaps that make a person unusable: by default, all of them."""
        return gaps

    def _impossible(self, block: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Mark impossible numbers of people × columns, given those of a reference."""
        return np.isinf(block)

    def check(self) -> list[Problem]:
        """Return the problems of columns with text, gaps or impossible values."""
        return self._text_problems() + self._missing_problems() + self._impossible_problems()

    def _text_problems(self) -> list[Problem]:
        names = [name for name in self.columns if name in self.text.counts]
        lines = []
        for name in names[:_MOST_LINES]:
            (place, value), others = self.text.first[name], self.text.counts[name] - 1
            more = f", and {counted(others, 'more cell contains', 'more cells contain')} text" if others else ""
            lines.append(
                f"Column {name!r} ({self.kind}) should contain numbers, but {place} contains the text {value!r}{more}."
            )
        if rest := names[_MOST_LINES:]:
            lines.append(f"{counted(len(rest), 'more column contains', 'more columns contain')} text: {listed(rest)}.")
        words = [value for value in self.text.values if not spelling_hint(value).startswith("Write")]
        codes = Message("declare codes for missing values with ", Remedy("missing", words))
        hint = next(filter(None, (spelling_hint(self.text.first[name][1]) for name in names)), "")
        text = "\n".join(lines) + (f" {hint}" if hint else "")
        remedies = (CORRECT, codes) if 0 < len(words) <= _MOST_LINES else (CORRECT,)
        return [Problem(text, remedies, tuple(names))] if names else []

    def _missing_problems(self) -> list[Problem]:
        gaps = {name: self.missing.counts[name] for name in self.columns if name in self.missing.counts}
        if not gaps:
            return []
        names = listed(f"{name} ({counted(number, 'person', 'people')})" for name, number in gaps.items())
        first = next(iter(gaps))
        return [
            Problem(
                f"Missing values in {counted(len(gaps), f'{self.kind} column')}: {names}. "
                f"The first is in column {first!r}, {self.missing.first[first][0]}.",
                ("fill in the cells", LEAVE_OUT),
                tuple(gaps),
            )
        ]

    def _impossible_problems(self) -> list[Problem]:
        """Report columns with impossible values; the last problem is the same for all fields."""
        counts, cells = self.impossible.counts, self.impossible.cells
        if not counts:
            return []
        more = f" and {counts.total() - len(cells)} more" if counts.total() > len(cells) else ""
        remedies = (CORRECT, Message("declare codes for missing values with ", Remedy("missing")), LEAVE_OUT)
        return [
            Problem(
                f"Impossible values in {counted(len(counts), 'column')} ({counted(counts.total(), 'cell')}): "
                f"{', '.join(cells)}{more}.",
                remedies,
                tuple(counts),
            ),
            Problem(_POSSIBLE, remedies),
        ]


def kept_quantile(n_people: int) -> float:
    """Return the proportion of people beyond each of the two quantiles that a model stores."""
    return min(max(QUANTILE, _FEWEST_BEYOND / n_people), 0.25)
