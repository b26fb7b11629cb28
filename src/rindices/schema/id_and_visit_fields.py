"""Ids and visits: every row has a unique id (with visits, a unique pair of id and visit), and visits have an order."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from rindices.problems import Blank, Message, Problem, Remedy, counted, listed, listed_rows, refusal
from rindices.schema.cells import numbers_of, text_of
from rindices.schema.field import Field, Roster
from rindices.schema.role_guesses import SEX_NAMES, usual_columns
from rindices.schema.units_and_impossible_values import OLDEST


class IdField(Field):
    """Participant ids, each occurring once; with visits, each pair of id and visit once."""

    def __init__(self, name: str, visit: str | None = None) -> None:
        super().__init__(name)
        self._columns = [name] if visit is None else [name, visit]
        self._rows, self._visits = list[pd.DataFrame](), list[str]()

    def observe(self, batch: pd.DataFrame, roster: Roster) -> pd.Index:
        """Return the ids in these rows."""
        texts = {name: text_of(batch[name]).to_numpy() for name in self._columns}
        self._rows.append(pd.DataFrame(texts, index=roster.rows))
        if len(self._columns) == 1 and roster.ids.has_duplicates:
            self._visits += visit_columns(batch, self.name)
        return roster.ids

    def check(self) -> list[Problem]:
        """Report missing or repeated ids and visits."""
        people = pd.concat(self._rows)
        for name, what in zip(self._columns, ("an id", "a visit"), strict=False):
            if rows := people.index[people[name].isna()].tolist():
                text = f"Every row needs {what}, but column {name!r} is empty in {listed_rows(rows)}."
                return [Problem(text, (f"fill in every {what.split()[1]}, or remove rows without one",))]
        again = people[people.duplicated(keep=False)]
        if again.empty:
            return []
        key, others = again.iloc[0], len(again.drop_duplicates()) - 1
        places = listed(again.index[(again == key).all(axis=1)], joiner=" and ")
        more = f" ({counted(others, 'other is', 'others are')} repeated as well)" if others else ""
        if len(self._columns) == 1:
            text = f"Every person needs a unique id, but {key.iloc[0]!r} occurs in rows {places}{more}."
            visits = Message(
                "if these rows are visits by the same person, name the visit column with ",
                Remedy("visit", [*self._visits, Blank("COLUMN")][0]),
            )
            return [Problem(text, (visits, "make the ids unique"), (self.name,))]
        text = (
            f"Each person's visits must be distinct, but participant {key.iloc[0]!r} has the visit {key.iloc[1]!r} "
            f"(column {self._columns[1]!r}) in rows {places}{more}."
        )
        return [Problem(text, ("keep only one of these rows", "correct the visits"), (self.name,))]


def visit_columns(batch: pd.DataFrame, ids: str) -> list[str]:
    """Return the columns with a usual name for visits that distinguish the rows of each person.

    Examples
    --------
    >>> visit_columns(pd.DataFrame({"id": ["a", "a"], "session": [1, 2], "sex": ["F", "F"]}), "id")
    ['session']
    """
    people = text_of(batch[ids])
    return [
        name
        for name in usual_columns(batch.columns, "visit")
        if batch[name].notna().all()
        and not pd.DataFrame({"id": people, "visit": text_of(batch[name])}).duplicated().any()
    ]


_DAYS_A_YEAR = 365.25
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_MONTH = r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_OTHER_DATE = re.compile(
    r"(\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}[/.-]\d{4}"
    rf"|\d{{1,2}}[ .-]*{_MONTH}[ .-]*\d{{2,4}}|{_MONTH}[ .-]*(\d{{1,2}},?[ .-]+)?\d{{4}})([T ].*)?",
    re.IGNORECASE,
)
_FIRST_WORDS = {"sc": 0, "scr": 0, "screening": 0, "bl": 1, "base": 1, "baseline": 1}
_PREFIX = re.compile(r"^(ses|session|visit)[-_ ]*", re.IGNORECASE)
_A_YEAR = {"y": 1.0, "m": 12.0, "w": _DAYS_A_YEAR / 7, "d": _DAYS_A_YEAR}  # units per year
_UNITS = {"y": "years", "m": "months", "w": "weeks", "d": "days"}
_UNIT = r"(y|yr|year|m|mo|month|wk|week|day)s?"  # w1 and d1 may count waves and days of scanning
_TIME = re.compile(rf"{_UNIT}[-_ ]?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)[-_ ]?{_UNIT}", re.IGNORECASE)
_MONTHS = re.compile(r"m[-_ ]?(\d+)", re.IGNORECASE)
_UNIT_OF_NAME = re.compile(r"(?<![^_ .-])(age|years?|yrs?|months?|mos?|weeks?|days?)(?![^_ .-])", re.IGNORECASE)
_ENOUGH_GROW = 0.9  # share of people whose age must increase from visit to visit for age to serve as time


@dataclass(frozen=True, eq=False)
class Timeline:
    """Order and times of visits.

    Attributes
    ----------
    ids
        The person of each visit.
    rank
        Numbers that increase from earlier to later visits.
    years
        Time in years from an arbitrary origin; None if the visits do not indicate times.
    exact
        Source of `years` if these are dates or a column of times; empty for names such as ``m06``.
    visits
        The visits as in the table, by id; None if there are none.
    """

    ids: pd.Index
    rank: NDArray[np.float64]
    years: NDArray[np.float64] | None = None
    exact: str = ""
    visits: pd.Series | None = None

    def take(self, rows: NDArray[np.bool_]) -> Timeline:
        """Return some of the visits."""
        return replace(
            self,
            ids=self.ids[rows],
            rank=self.rank[rows],
            years=None if self.years is None else self.years[rows],
            visits=None if self.visits is None else self.visits[rows],
        )

    def learned_from(self, used: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the visits used for training: each person's first visit among those in use."""
        rows = used.copy()
        rows[rows] = self.take(used).first()
        return rows

    def first(self) -> NDArray[np.bool_]:
        """Mark the earliest visit of each person.

        Examples
        --------
        >>> Timeline(pd.Index(["a", "a", "b"]), np.array([2.0, 1.0, 5.0])).first().tolist()
        [False, True, True]
        """
        return np.asarray(pd.Series(self.rank).groupby(np.asarray(self.ids)).rank(method="first") == 1)


class VisitField(Field):
    """Visits: numbers, ISO dates or names such as ``ses-2``, ``baseline`` and ``m06``; without a name, none.

    Examples
    --------
    >>> people = Roster(pd.Index(["a", "a", "b"]), np.array([2, 3, 4]))
    >>> VisitField("visit").observe(pd.DataFrame({"visit": ["m06", "bl", "m12"]}), people).years.tolist()
    [0.5, 0.0, 1.0]
    """

    def observe(self, batch: pd.DataFrame, roster: Roster) -> Timeline:
        """Return order and times of the visits in some rows."""
        ids = roster.ids
        column = batch[self.name].set_axis(ids).rename("visit") if self.name else None
        if column is None or text_of(column).isna().any():  # gaps are refused with the ids
            return Timeline(ids, np.zeros(len(ids)), visits=column)
        if is_numeric_dtype(column):
            numbers, column = column.to_numpy(dtype=np.float64), text_of(column)  # labels are not rounded
            units = [unit.lower().replace("age", "y") for unit in _UNIT_OF_NAME.findall(self.name)]
            letter = min(units, key="y".__eq__, default="")[:1]  # months for age_months
            if not letter or (letter in units and numbers.max() > OLDEST):  # an age in months or days
                return Timeline(ids, numbers, visits=column)
            return Timeline(
                ids, numbers, numbers / _A_YEAR[letter], f"the column {self.name!r}, in {_UNITS[letter]}", column
            )
        is_date = column.str.fullmatch(_DATE).to_numpy(dtype=bool)
        if is_date.all():
            dates = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
            self._refuse(column, dates.isna().to_numpy(), roster)
            days = np.asarray((dates - dates.min()) / pd.Timedelta(days=1), dtype=np.float64)
            return Timeline(ids, days, days / _DAYS_A_YEAR, "the dates of visits", column)
        other = column.str.strip().str.fullmatch(_OTHER_DATE).to_numpy(dtype=bool)
        self._refuse(column, ~is_date if is_date.any() else other, roster)
        labels = column.unique().tolist()
        times = {label: _years_of_label(label) for label in labels}
        timed = None not in times.values() and not _may_be_waves(labels)
        ordered = sorted(labels, key=lambda label: (times[label] if timed else 0.0, _sort_key(label)))
        years = column.map(times).to_numpy(dtype=np.float64) if timed else None
        ranks = {label: float(rank) for rank, label in enumerate(ordered)}
        return Timeline(ids, column.map(ranks).to_numpy(dtype=np.float64), years, visits=column)

    def _refuse(self, text: pd.Series, is_wrong: NDArray[np.bool_], roster: Roster) -> None:
        if is_wrong.any():
            first = int(is_wrong.argmax())
            self.problems = [
                Problem(
                    f"Column {self.name!r} (visit) should contain dates such as 2021-03-31, but {roster.at(first)} has "
                    f"{text.iloc[first]!r} ({counted(int(is_wrong.sum()), 'such cell')} in all).",
                    ("correct the dates and write them as YYYY-MM-DD",),
                )
            ]


def _years_of_label(label: str) -> float | None:
    """Return 0.5 for ``m06``, 2 for ``2 years``, 0 for ``baseline``, and None for a name without a time."""
    name = _PREFIX.sub("", label.strip())
    if name.casefold() in _FIRST_WORDS:
        return 0.0
    match = _TIME.fullmatch(name)
    return None if match is None else float(match[2] or match[3]) / _A_YEAR[(match[1] or match[4])[0].lower()]


def _may_be_waves(labels: list[str]) -> bool:
    """Return whether labels such as m1, m2 and m3 may number the visits; m06 and m12 do not."""
    matches = [_MONTHS.fullmatch(_PREFIX.sub("", label.strip())) for label in labels]
    numbers = {int(match[1]) for match in matches if match}
    return 1 < len(numbers) > max(numbers) - min(numbers)


def _sort_key(label: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts ses-2 before ses-10, and baseline before everything else."""
    name = _PREFIX.sub("", label.strip()).casefold()
    if name in _FIRST_WORDS:
        return [(-1, _FIRST_WORDS[name], name)]
    return [(0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in re.split(r"(\d+)", name) if part]


def years_since_first(
    timeline: Timeline, table: pd.DataFrame, column: str | None, *, training: bool = False
) -> tuple[pd.Series | None, str, tuple[str, ...]]:
    """Return the years since each person's first visit (NaN where unknown), their source, and warnings.

    Dates and columns of times take precedence, then an age that increases from visit to visit, then names such as
    ``m06``. For `training`, which uses first visits, an order that many people's ages contradict is refused.

    Examples
    --------
    >>> line = Timeline(pd.Index(["a", "a"]), np.array([1.0, 2.0]), visits=pd.Series([1, 2]))
    >>> years_since_first(line, pd.DataFrame({"age": [61.0, 62.5]}), "visit")[0].tolist()
    [0.0, 1.5]
    """
    ids, several = timeline.ids, timeline.ids.duplicated(keep=False)
    if column is None or timeline.visits is None:
        return None, "", ()
    if not several.any():
        return pd.Series(0.0, ids, name="years"), "", ()
    ages = {**table, column: timeline.visits}
    name = next((name for name in ages if str(name).casefold() == "age"), "age")
    age = numbers_of(ages[name]) if name in ages else np.full(len(ids), np.nan)
    steps, n_several = _steps(timeline, age), ids[several].nunique()
    back = ids[steps < 0].unique()
    contradicted = (
        f"In {len(back):,} of {counted(n_several, 'person', 'people')} with several visits, {name} decreases from one "
        f"visit to the next when visits are ordered by column {column!r} (participants {listed(back)})."
    )
    if training and 1 - len(back) / n_several < _ENOUGH_GROW:
        raise refusal(
            [Problem(contradicted, ("correct the visits or the ages", "number the visits by age"), (column,))]
        )
    warnings: tuple[str, ...] = (f"{contradicted} Correct the visits or the ages.",) if len(back) else ()
    if timeline.exact and timeline.years is not None:
        return _since_first(timeline, timeline.years), timeline.exact, warnings
    n_old, grows = int((age > OLDEST).sum()), ~ids.isin(ids[~timeline.first() & ~(steps > 0)])
    # Only people with several visits are informative.
    if not n_old and np.mean(grows[several & timeline.first()]) >= _ENOUGH_GROW:
        if standing := ids[~grows].nunique():
            warnings += (
                f"In {counted(standing, 'person', 'people')}, age is missing or does not increase from visit to "
                "visit, so their change per year is unknown.",
            )
        return _since_first(timeline, age).where(grows), f"the column {name!r}", warnings
    if n_old:
        warnings += (
            f"Column {name!r} cannot contain ages in years: {counted(n_old, 'value is', 'values are')} above "
            f"{OLDEST:g}. If the ages are in months or days, convert them to years.",
        )
    if timeline.years is not None:
        return _since_first(timeline, timeline.years).mask(ids.isin(back)), "the labels of visits", warnings
    return (
        None,
        "",
        (
            *warnings,
            f"Change per year cannot be computed: the visits in {column!r} are neither dates nor times such as m06 or "
            "'week 12', and there is no column 'age' that increases from visit to visit. Write the visits as dates "
            "(2021-03-31) or times, or add the age in years at each visit.",
        ),
    )


def changed_people(ids: pd.Index, group: pd.Series, table: pd.DataFrame) -> list[str]:
    """Return warnings about ids that differ only in case, and people whose group or sex changes between visits.

    Examples
    --------
    >>> changed_people(pd.Index(["a", "a"]), pd.Series(["control"] * 2), pd.DataFrame({"sex": ["F", "M"]}))
    ["The value in column 'sex' differs between visits for 1 person (participant a). Correct the cells."]
    """
    people = pd.Series(ids.unique()).astype(str)
    alike = people[people.str.casefold().duplicated(keep=False)].sort_values(key=lambda names: names.str.casefold())
    warnings = [
        f"{len(alike):,} ids differ only in capitalisation (participants {listed(alike)}). If they "
        "belong to the same person, make them identical and keep only one copy of each scan."
    ] * (len(alike) > 0)
    learned = group.where(group.isin(["control", "patient"])).set_axis(ids)
    sexes = {str(name): text_of(table[name]).set_axis(ids) for name in table if str(name).casefold() in SEX_NAMES}
    for name, values in {"": learned, **sexes}.items():
        several = values.groupby(level=0).nunique() > 1
        who = several.index[several].tolist()
        whose = f"{counted(len(who), 'person', 'people')} (participant{'' if len(who) == 1 else 's'} {listed(who)})"
        if who:
            warnings.append(
                f"The value in column {name!r} differs between visits for {whose}. Correct the cells."
                if name
                else f"{whose} changed from control to patient, or vice versa, between visits. "
                "If the diagnosis did not actually change, correct the cells."
            )
    return warnings


def _since_first(timeline: Timeline, time: NDArray[np.float64]) -> pd.Series:
    first = timeline.first()
    beginning = pd.Series(time[first], index=timeline.ids[first])
    return pd.Series(time - beginning.reindex(timeline.ids).to_numpy(), timeline.ids, name="years")


def _steps(timeline: Timeline, age: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the increase in age since each person's previous visit; NaN at the first, and where unknown."""
    people = pd.DataFrame({"rank": timeline.rank, "age": age}).sort_values("rank", kind="stable")
    return people.groupby(timeline.ids[people.index])["age"].diff().sort_index().to_numpy()
