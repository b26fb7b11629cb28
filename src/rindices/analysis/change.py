"""How fast R-indices change in people who were seen more than once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.coding import GROUPS, in_group, same_people
from rindices.analysis.statistics import Mean, mean_difference, mean_interval

# A slope's error grows as visits get closer: a few people seen after weeks would swamp a mean. A little below half a
# year, because visits six months apart, by date, span 0.496 to 0.504 years.
LEAST_YEARS = 0.45
DIFFERENCE = "patients less controls"


class Change(NamedTuple):
    """Change per year of each person, and of each group."""

    change: pd.DataFrame
    change_summary: pd.DataFrame


def change_per_year(r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> Change:
    """Fit a line through each person's R-indices, by least squares.

    Parameters
    ----------
    r_indices
        One column a pattern, one row a visit.
    participant_id
        Whose visit it is.
    years
        Time of the visit in years; visits of unknown time (NaN) are left out.
    group
        ``control``, ``patient`` or ``other``, one a visit; a person's is that of the first visit.

    Returns
    -------
    Change
        ``change``: ``participant_id``, ``group``, ``n_visits``, ``years`` (first to last), ``r1_per_year``, …; one row
        a person who was seen at two different times or more. ``change_summary``: ``group``, ``pattern``, ``n``,
        ``mean``, ``low`` and ``high`` (95 %), ``p`` (t test against no change). Only people whose visits span half a
        year or more count there, and each of them the same; ``n`` says how many. A group of whom nobody does has
        ``n`` 0 and no mean. Rows of the group ``patients less controls`` compare the two (Welch's t test; ``n`` is
        that of both together), where each has somebody who counts.

    Examples
    --------
    >>> scores = pd.DataFrame({"r1": [0.2, 0.4, 0.5, 0.1]})
    >>> change_per_year(scores, ["a", "a", "b", "c"], [0.0, 2.0, 0.0, 0.0], ["patient"] * 4).change.values.tolist()
    [['a', 'patient', 2, 2.0, 0.1]]
    """
    scores, times = np.asarray(r_indices, float), np.asarray(years, float)
    ids, groups = pd.Series(participant_id).reset_index(drop=True), np.asarray(group, object)
    same_people(len(scores), participant_id=ids, years=times, group=groups)
    in_group(groups, "patient")  # names of groups are checked
    person, people = pd.factorize(ids)
    used = np.flatnonzero(np.isfinite(times) & np.isfinite(scores).all(axis=1) & (person >= 0))
    used = used[np.argsort(times[used], kind="stable")]
    change = _slopes(scores[used], times[used], person[used], groups[used], people)
    return Change(change, _summary(change, scores.shape[1]))


def _slopes(
    scores: np.ndarray, times: np.ndarray, person: np.ndarray, groups: np.ndarray, people: pd.Index
) -> pd.DataFrame:
    """Return one row a person; visits are in the order of time."""
    visits = pd.DataFrame({"person": person, "time": times, "group": groups})
    by_person = visits.groupby("person")["time"]
    centred = times - by_person.transform("mean").to_numpy()
    products = pd.DataFrame(centred[:, None] * scores).groupby(person).sum()
    squares = pd.Series(centred**2).groupby(person).sum()
    table = pd.DataFrame(
        {
            "participant_id": people[squares.index],
            "group": visits.groupby("person")["group"].first().to_numpy(),
            "n_visits": by_person.size().to_numpy(),
            "years": (by_person.last() - by_person.first()).to_numpy(),
        }
    )
    apart = (table["years"] > 0).to_numpy()
    slopes = products.to_numpy()[apart] / squares.to_numpy()[apart, None]
    table = table[apart].reset_index(drop=True)
    return table.assign(**{f"r{k + 1}_per_year": slopes[:, k] for k in range(scores.shape[1])})


def _summary(change: pd.DataFrame, n_patterns: int) -> pd.DataFrame:
    counts = change["years"] >= LEAST_YEARS
    slopes = change[[f"r{k + 1}_per_year" for k in range(n_patterns)]]
    groups = {
        name: slopes[counts & (change["group"] == name)].to_numpy(float)
        for name in GROUPS
        if (change["group"] == name).any()
    }
    nobody, nothing = np.empty((0, n_patterns)), Mean(*np.full((4, n_patterns), np.nan))
    found = [(name, len(own), mean_interval(own) if len(own) else nothing) for name, own in groups.items()]
    controls, patients = groups.get("control", nobody), groups.get("patient", nobody)
    if len(controls) and len(patients):
        found.append((DIFFERENCE, len(controls) + len(patients), mean_difference(patients, controls)))
    rows = [(name, k + 1, n, *(part[k] for part in means)) for name, n, means in found for k in range(n_patterns)]
    return pd.DataFrame(rows, columns=["group", "pattern", "n", "mean", "low", "high", "p"])
