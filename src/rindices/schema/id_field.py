"""Ids: each row has its own, or with visits its own id and visit; a repeated one is refused here."""

from __future__ import annotations

import pandas as pd

from rindices.problems import Blank, Message, Problem, Remedy, counted, listed
from rindices.schema.cells import text_of
from rindices.schema.field import Field, Roster
from rindices.schema.role_guesses import USUAL_NAMES


class IdField(Field[pd.Index]):
    """Who people are: ids, each once; with visits, each person and visit once."""

    def __init__(self, name: str, visit: str | None = None) -> None:
        super().__init__()
        self.name, self._columns = name, [name] if visit is None else [name, visit]
        self._rows, self._visits = list[pd.DataFrame](), list[str]()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> pd.Index:
        """Return who sits in these rows."""
        texts = {name: text_of(batch[name]).to_numpy() for name in self._columns}
        self._rows.append(pd.DataFrame(texts, index=roster.rows))
        if len(self._columns) == 1 and roster.ids.has_duplicates:
            self._visits += visit_columns(batch, self.name)
        return roster.ids

    def check(self) -> list[Problem]:
        """Say which ids and visits are missing or occur twice."""
        people = pd.concat(self._rows)
        for name, what in zip(self._columns, ("an id", "a visit"), strict=False):
            rows = people.index[people[name].isna()].tolist()
            if rows:
                where = f"{counted(len(rows), 'row')}: row {listed(rows)}"
                text = f"Every row needs {what}, but column {name!r} is empty in {where}."
                return [Problem(text, (f"fill in the {what.split()[1]}s or remove these rows",))]
        again = people[people.duplicated(keep=False)]
        if again.empty:
            return []
        key, others = again.iloc[0], len(again.drop_duplicates()) - 1
        places = listed(again.index[(again == key).all(axis=1)], joiner=" and ")
        more = f" ({counted(others, 'other')} repeated as well)" if others else ""
        if len(self._columns) == 1:
            text = f"Every person needs a unique id, but {key.iloc[0]!r} occurs in rows {places}{more}."
            column = self._visits[0] if self._visits else Blank("COLUMN")
            visits = Message("if these are visits of one person, name the visit column with ", Remedy("visit", column))
            return [Problem(text, (visits, "make the ids unique"), (self.name,))]
        text = (
            f"A person's visits must differ, but participant {key.iloc[0]!r} has the visit {key.iloc[1]!r} (column "
            f"{self._columns[1]!r}) in rows {places}{more}."
        )
        return [Problem(text, ("keep one of them", "correct the visits"), (self.name,))]


def visit_columns(batch: pd.DataFrame, ids: str) -> list[str]:
    """Return columns that tell the rows of a person apart: those called like visits that do.

    Examples
    --------
    >>> visit_columns(pd.DataFrame({"id": ["a", "a"], "session": [1, 2], "sex": ["F", "F"]}), "id")
    ['session']
    """
    by_name = {str(name).casefold(): str(name) for name in reversed(batch.columns)}
    usual = [by_name[name] for name in USUAL_NAMES["visit"] if name in by_name]
    people = text_of(batch[ids])
    return [
        name
        for name in usual
        if batch[name].notna().all()
        and not pd.DataFrame({"id": people, "visit": text_of(batch[name])}).duplicated().any()
    ]
