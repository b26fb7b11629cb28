"""Clinical scores, and further columns in which groups should not differ: numbers or categories, with gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import Message, Problem, Remedy, Text, counted, shown
from rindices.schema.cells import CORRECT, Roster, meant_as_numbers, numbers_of, text_of, text_problems
from rindices.schema.impossible_values import suspected_codes
from rindices.schema.region_field import NumberField


class ScoreField:
    """A clinical score: a number or a category, with gaps. A suspected code counts as a gap until it is named."""

    def __init__(self, name: str) -> None:
        self.name, self.notes = name, list[Text]()
        self._cells = NumberField([name], "clinical score", lambda block, _: np.isinf(block))

    def observe(self, batch: pd.DataFrame, roster: Roster) -> NDArray:
        """Return the score in some rows: numbers, or categories as text, with gaps as NaN."""
        column, text = batch[self.name], text_of(batch[self.name])
        if text.notna().any() and not meant_as_numbers(column):
            return text.to_numpy()
        values = self._cells.observe(batch, roster).values[:, 0]
        suspects = suspected_codes(values, values)
        for code in np.unique(values[suspects]).tolist():
            people = counted(int((values == code).sum()), "person has", "people have")
            unused = f"{people} {self.name} = {shown(code)}, which looks like a code for a missing value: not used. If"
            code_of = Remedy("missing", [shown(code)])
            self.notes.append(Message(unused, " it is one, say so with ", code_of, ", or leave such cells empty."))
        return np.where(suspects, np.nan, values)

    def problems(self) -> list[Problem]:
        """Say what is wrong with it: text among numbers, infinite numbers."""
        odd = self._cells.impossible.cells
        infinite = [Problem(f"Infinite values: {', '.join(odd)}.", (CORRECT,))] if odd else []
        return text_problems(self._cells.text, [self.name], self._cells.kind) + infinite


class BackgroundField(ScoreField):
    """A column such as age without a role: groups should not differ in it. Text among its numbers is a gap."""

    def observe(self, batch: pd.DataFrame, roster: Roster) -> NDArray:
        """Return the column in some rows: numbers, or categories as text, with gaps as NaN."""
        column, numbers = batch[self.name], numbers_of(batch[self.name])
        odd = np.flatnonzero(column.notna() & np.isnan(numbers))
        if not 0 < len(odd) < column.notna().sum() or not meant_as_numbers(column):
            return column.to_numpy()
        where = f"{counted(len(odd), 'cell')}, row {roster.rows[odd[0]]}"
        self.notes.append(f"{self.name} has text among its numbers ({where}): not used.")
        return numbers
