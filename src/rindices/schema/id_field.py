"""Ids and visits: each row has its own; a repeated one is refused here."""

from __future__ import annotations

import pandas as pd

from rindices.problems import Blank, Message, Problem, Remedy, counted, listed
from rindices.schema.cells import Roster, spreadsheet_rows, text_of


class IdField:
    """Who people are: ids, each once; with visits, each person and visit once."""

    def __init__(self, name: str, visit: str | None = None) -> None:
        self.visit = visit
        self._columns, self._seen = [name] if visit is None else [name, visit], list[pd.DataFrame]()

    def observe(self, batch: pd.DataFrame) -> Roster:
        """Return who sits in these rows."""
        rows, texts = spreadsheet_rows(batch), {name: text_of(batch[name]).to_numpy() for name in self._columns}
        self._seen.append(pd.DataFrame(texts, index=rows))
        return Roster(pd.Index(texts[self._columns[0]], name="participant_id"), rows)

    def problems(self) -> list[Problem]:
        """Say which ids and visits are missing or occur twice."""
        people = pd.concat(self._seen)
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
            text = f"Every person needs an id of their own, but {key.iloc[0]!r} occurs in rows {places}{more}."
            visits = Message(
                "if these are visits of one person, name their column with ", Remedy("visit", Blank("COLUMN"))
            )
            return [Problem(text, (visits, "make the ids differ"))]
        text = (
            f"A person's visits must differ, but participant {key.iloc[0]!r} has the visit {key.iloc[1]!r} (column "
            f"{self._columns[1]!r}) in rows {places}{more}."
        )
        return [Problem(text, ("keep one of them", "correct the visits"))]
