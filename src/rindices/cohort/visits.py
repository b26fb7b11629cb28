"""Repeated visits: their order, each person's first, and the years between them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import InputError, counted
from rindices.schema.cells import has_numbers, numbers_of, text_of
from rindices.schema.fields import Roster

_DAYS_A_YEAR = 365.25
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ].*)?")
_FIRST_WORDS = {"sc": 0, "scr": 0, "screening": 0, "bl": 1, "base": 1, "baseline": 1}
_PREFIX = re.compile(r"^(ses|session|visit)[-_ ]*", re.IGNORECASE)
_A_YEAR = {"y": 1.0, "m": 12.0, "w": _DAYS_A_YEAR / 7, "d": _DAYS_A_YEAR}  # how many of the unit make a year
_UNIT = r"(y|yr|year|m|mo|month|w|wk|week|d|day)s?"
_TIME = re.compile(rf"{_UNIT}[-_ ]?(\d+(?:\.\d+)?)|(\d+(?:\.\d+)?)[-_ ]?{_UNIT}", re.IGNORECASE)
_UNIT_OF_NAME = re.compile(r"(?:^|[_ .-])(age|years?|yrs?|months?|mos?|weeks?|days?)(?:$|[_ .-])", re.IGNORECASE)
_ENOUGH_GROW = 0.9  # share of people whose age must grow from visit to visit to be taken for the time


@dataclass(frozen=True, eq=False)
class Timeline:
    """When the visits were.

    Attributes
    ----------
    rank
        Numbers that rise from earlier to later visits.
    years
        Time in years from any beginning; None where the column of visits does not tell.
    exact
        Whether `years` comes from dates or a column of times, rather than from names such as ``m06``.
    """

    rank: NDArray[np.float64]
    years: NDArray[np.float64] | None
    exact: bool

    def take(self, rows: NDArray[np.bool_]) -> Timeline:
        """Return some of the visits."""
        return Timeline(self.rank[rows], None if self.years is None else self.years[rows], self.exact)


def read_timeline(column: pd.Series, roster: Roster) -> Timeline:
    """Read a column of visits: numbers, ISO dates or names such as ``ses-2``, ``baseline`` and ``m06``.

    Examples
    --------
    >>> people = Roster(pd.Index(["a", "a", "b"]), np.array([2, 3, 4]))
    >>> read_timeline(pd.Series(["m06", "bl", "m12"], name="visit"), people).years.tolist()
    [0.5, 0.0, 1.0]
    """
    if has_numbers(column):
        numbers = column.to_numpy(dtype=np.float64)
        unit = _UNIT_OF_NAME.search(str(column.name))
        letter = "" if unit is None else unit[1][0].lower().replace("a", "y")
        return Timeline(numbers, numbers / _A_YEAR[letter] if letter else None, exact=bool(letter))
    text = text_of(column)
    if text.str.fullmatch(_DATE).all():
        days = _days(text, roster)
        return Timeline(days, days / _DAYS_A_YEAR, exact=True)
    labels = text.unique().tolist()
    times = {label: _years_of_label(label) for label in labels}
    known = [time for time in times.values() if time is not None]
    if len(known) == len(labels):
        ordered = sorted(labels, key=lambda label: (times[label] or 0.0, _natural(label)))
        years = text.map(times).to_numpy(dtype=np.float64)
    else:
        ordered, years = sorted(labels, key=_natural), None
    ranks = {label: float(rank) for rank, label in enumerate(ordered)}
    return Timeline(text.map(ranks).to_numpy(dtype=np.float64), years, exact=False)


def _days(text: pd.Series, roster: Roster) -> NDArray[np.float64]:
    dates = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    wrong = np.flatnonzero(dates.isna())
    if len(wrong):
        first = int(wrong[0])
        raise InputError(
            f"Column {str(text.name)!r} (visit) should hold dates such as 2021-03-31, but {roster.at(first)} has "
            f"{text.iloc[first]!r} ({counted(len(wrong), 'such cell')} in all).\nCorrect the date."
        )
    return np.asarray((dates - dates.min()) / pd.Timedelta(days=1), dtype=np.float64)


def _years_of_label(label: str) -> float | None:
    """Return 0.5 for ``m06``, 2 for ``2 years``, 0 for ``baseline``, and None for a name without a time."""
    name = _PREFIX.sub("", label.strip())
    if name.casefold() in _FIRST_WORDS:
        return 0.0
    match = _TIME.fullmatch(name)
    return None if match is None else float(match[2] or match[3]) / _A_YEAR[(match[1] or match[4])[0].lower()]


def _natural(label: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts ses-2 before ses-10, and baseline before everything."""
    name = _PREFIX.sub("", label.strip()).casefold()
    if name in _FIRST_WORDS:
        return [(-1, _FIRST_WORDS[name], name)]
    parts = re.split(r"(\d+)", name)
    return [(0, float(part), "") if part.isdigit() else (1, 0.0, part) for part in parts if part]


def first_visits(ids: pd.Index, rank: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark the earliest visit of each person.

    Examples
    --------
    >>> first_visits(pd.Index(["a", "a", "b"]), np.array([2.0, 1.0, 5.0])).tolist()
    [False, True, True]
    """
    order = np.argsort(rank, kind="stable")
    first = np.zeros(len(ids), dtype=bool)
    first[order[~ids[order].duplicated()]] = True
    return first


def years_since_first(
    ids: pd.Index, timeline: Timeline, table: pd.DataFrame, column: str
) -> tuple[pd.Series | None, tuple[str, ...]]:
    """Return the years since each person's first visit, NaN where unknown, and warnings.

    Dates and columns of times come first; then an age that grows from visit to visit; then names such as ``m06``.

    Examples
    --------
    >>> line = Timeline(np.array([1.0, 2.0]), None, exact=False)
    >>> years_since_first(pd.Index(["a", "a"]), line, pd.DataFrame({"age": [61.0, 62.5]}), "visit")[0].tolist()
    [0.0, 1.5]
    """
    several = ids.duplicated(keep=False)
    if not several.any():
        return pd.Series(0.0, ids, name="years"), ()
    if timeline.exact and timeline.years is not None:
        return _since_first(ids, timeline.rank, timeline.years), ()
    ages = [numbers_of(table[name]) for name in table if str(name).casefold() == "age"]
    if ages and np.isfinite(ages[0]).any():
        age = ages[0]
        grows = _growing(ids, timeline.rank, age)
        # Only people with several visits can tell.
        if np.mean(grows[several & first_visits(ids, timeline.rank)]) >= _ENOUGH_GROW:
            years = _since_first(ids, timeline.rank, age)
            years = years.where(grows)
            standing = ids[~grows].nunique()
            warning = (
                f"In {counted(standing, 'person', 'people')} age does not grow from visit to visit, or is missing: "
                "their change per year is not known."
            )
            return years, (warning,) if standing else ()
    if timeline.years is not None:
        return _since_first(ids, timeline.rank, timeline.years), ()
    return None, (
        f"Change per year cannot be computed: the visits in {column!r} are neither dates nor times such as m06, and no "
        "column 'age' grows from visit to visit.",
    )


def _since_first(ids: pd.Index, rank: NDArray[np.float64], time: NDArray[np.float64]) -> pd.Series:
    first = first_visits(ids, rank)
    beginning = pd.Series(time[first], index=ids[first])
    return pd.Series(time - beginning.reindex(ids).to_numpy(), ids, name="years")


def _growing(ids: pd.Index, rank: NDArray[np.float64], age: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark all visits of the people whose age is known and grows from each visit to the next."""
    people = pd.DataFrame({"id": ids, "rank": rank, "age": age}).sort_values(["id", "rank"], kind="stable")
    later = people["id"].duplicated()
    steps = people["age"].diff()
    fine = people["age"].notna() & (~later | (steps > 0))
    return fine.groupby(people["id"]).transform("all").sort_index().to_numpy(dtype=bool)
