"""Clinical scores, and further columns in which groups should not differ: numbers or categories, with gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd

from rindices.problems import Message, Problem, Remedy, counted, shown
from rindices.schema.cells import meant_as_numbers, numbers_of, text_of
from rindices.schema.field import CORRECT, NumberField, Roster, Seen
from rindices.schema.impossible_values import suspected_codes


class ScoreField(NumberField):
    """A clinical score: a number or a category, with gaps. A suspected code counts as a gap until it is named."""

    kind = "clinical score"

    def __init__(self, name: str) -> None:
        super().__init__([name])

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the score in some rows: numbers, or categories as text, with gaps as NaN."""
        column, text = batch[self.name], text_of(batch[self.name])
        if text.notna().any() and not meant_as_numbers(column):
            return Seen.of(text.to_numpy())
        values = super().observe(batch, roster).values[:, 0]
        suspects = suspected_codes(values, values)
        for code in np.unique(values[suspects]).tolist():
            people = counted(int((values == code).sum()), "person has", "people have")
            unused = (
                f"{people} {self.name} = {shown(code)}, which looks like a code for a missing value and is not used. If"
            )
            code_of = Remedy("missing", [shown(code)])
            self.notes.append(Message(unused, " it is one, declare it with ", code_of, ", or leave these cells empty."))
        return Seen.of(np.where(suspects, np.nan, values))

    def check(self) -> list[Problem]:
        """Say what is wrong with it: text among numbers, infinite numbers."""
        odd = self.impossible.cells
        infinite = [Problem(f"Infinite values: {', '.join(odd)}.", (CORRECT,))] if odd else []
        return self._text_problems() + infinite


class BackgroundField(ScoreField):
    """A column such as age without a role: groups should not differ in it. Text among its numbers is a gap."""

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Seen:
        """Return the column in some rows: numbers, or categories as text, with gaps as NaN."""
        column, numbers = batch[self.name], numbers_of(batch[self.name])
        odd = np.flatnonzero(column.notna() & np.isnan(numbers))
        if not 0 < len(odd) < column.notna().sum() or not meant_as_numbers(column):
            return Seen.of(column.to_numpy())
        where = f"{counted(len(odd), 'cell')}, row {roster.rows[odd[0]]}"
        self.notes.append(f"{self.name} contains text among its numbers ({where}) and is not used.")
        return Seen.of(numbers)
