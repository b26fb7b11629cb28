"""How fast severities change in people who were seen more than once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.coding import GROUPS, in_group, same_people
from rindices.analysis.statistics import Estimate, mean_difference, mean_interval

# A slope's error grows as visits get closer: a few people seen after weeks would swamp a mean. A little below half a
# year, because visits six months apart, by date, span 0.496 to 0.504 years.
LEAST_YEARS = 0.45
DIFFERENCE = "patients less controls"


class Change(NamedTuple):
    """Change per year of each person, and of each group."""

    change: pd.DataFrame
    change_summary: pd.DataFrame


def change_per_year(r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> Change:
    """Fit a line through each person's severities, by least squares.

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
        ``change``: ``participant_id``, ``group``, ``n_visits``, ``years`` (first to last), ``r1_per_year``, … by the
        names of the columns; one row a person who was seen at two different times or more. ``change_summary``:
        ``group``, ``pattern``, ``n``, ``mean``, ``low`` and ``high`` (95 %), ``p`` (t test against no change, not
        corrected for the number of patterns). Only people whose visits span half a year or more count there, and each
        of them the same; ``n`` says how many. A group of whom nobody does has ``n`` 0 and no mean. Rows of the group
        ``patients less controls`` compare the two (Welch's t test; ``n`` is that of both together), where each has
        somebody who counts.

    Examples
    --------
    >>> scores = pd.DataFrame({"r1": [0.2, 0.4, 0.5, 0.1]})
    >>> change_per_year(scores, ["a", "a", "b", "c"], [0.0, 2.0, 0.0, 0.0], ["patient"] * 4).change.values.tolist()
    [['a', 'patient', 2, 2.0, 0.1]]
    """
    names = [f"{name}_per_year" for name in r_indices]
    visits = pd.DataFrame(np.asarray(r_indices, float), columns=names).assign(years=np.asarray(years, float))
    ids, groups = pd.Series(participant_id).reset_index(drop=True), np.asarray(group, object)
    same_people(len(visits), participant_id=ids, group=groups)
    in_group(groups, "patient")  # names of groups are checked
    visits = visits.assign(participant_id=ids, group=groups, person=pd.factorize(ids)[0])
    known = np.isfinite(visits[[*names, "years"]].to_numpy()).all(axis=1) & ids.notna()
    change = _slopes(visits[known].sort_values("years", kind="stable"), names)
    return Change(change, _summary(change, names))


def _slopes(visits: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return one row a person; visits are in the order of time."""
    by_person = visits.groupby("person")
    table = by_person[["participant_id", "group"]].first()
    table["n_visits"] = by_person.size()
    table["years"] = by_person["years"].last() - by_person["years"].first()
    centred = visits["years"] - by_person["years"].transform("mean")
    products = visits[names].mul(centred, axis=0).groupby(visits["person"]).sum()
    slopes = products.div((centred**2).groupby(visits["person"]).sum(), axis=0)
    return table.join(slopes)[table["years"] > 0].reset_index(drop=True)


def _summary(change: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    counts = change[change["years"] >= LEAST_YEARS]
    rates = {name: counts.loc[counts["group"] == name, names].to_numpy(float) for name in GROUPS}
    found = [
        (name, len(own), mean_interval(own) if len(own) else Estimate.unknown(len(names)))
        for name, own in rates.items()
        if (change["group"] == name).any()
    ]
    controls, patients = rates["control"], rates["patient"]
    if len(controls) and len(patients):
        found.append((DIFFERENCE, len(controls) + len(patients), mean_difference(patients, controls)))
    rows = [(name, k + 1, n, *(part[k] for part in means)) for name, n, means in found for k in range(len(names))]
    return pd.DataFrame(rows, columns=["group", "pattern", "n", "mean", "low", "high", "p"])
