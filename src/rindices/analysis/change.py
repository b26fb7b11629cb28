"""How severities change in people who were seen more than once: each person, and each group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from rindices.analysis.coding import GROUPS, in_group, same_people
from rindices.analysis.mixed_model import FEWEST_PEOPLE, Line, mixed_line
from rindices.analysis.statistics import false_discovery

DIFFERENCE = "patients less controls"
_COLUMNS = ["group", "pattern", "n", "n_visits", "start", "mean", "low", "high", "p", "q", "random_effects", "note"]


def change_per_year(
    r_indices: pd.DataFrame,
    participant_id: ArrayLike,
    years: ArrayLike,
    group: ArrayLike,
    noise_sd: ArrayLike | None = None,
    *,
    freedom: float = np.inf,
    level: float = 0.95,
) -> pd.DataFrame:
    """Fit a line through each person's severities, by least squares, and say whether it is more than scan noise.

    Parameters
    ----------
    r_indices
        One column per pattern, one row per visit.
    participant_id
        Whose visit it is.
    years
        Time of the visit in years; visits of unknown time (NaN) are left out.
    group
        ``control``, ``patient`` or ``other``, one per visit; a person's is that of the first visit.
    noise_sd
        Standard deviation of each severity over scans of a person who has not changed: one number, or one per visit and
        pattern; without it changes have no intervals.
    freedom
        Degrees of freedom that `noise_sd` was estimated with.
    level
        Of the intervals.

    Returns
    -------
    DataFrame
        ``participant_id``, ``group``, ``n_visits``, ``years`` (first to last), ``r1_per_year``, … by the names of the
        columns; one row per person who was seen at two different times or more. ``r1_change`` is the change from the
        first visit to the last along the line, with two visits their difference; ``r1_change_low`` and
        ``r1_change_high`` are its limits, and ``r1_reliable`` is 1 or −1 where these exclude 0 (reliable change, for
        worse or better), 0 where they do not; all three NaN without `noise_sd`.

    Examples
    --------
    >>> scores = pd.DataFrame({"r1": [0.2, 0.4, 0.5, 0.1]})
    >>> found = change_per_year(scores, ["a", "a", "b", "c"], [0.0, 2.0, 0.0, 0.0], ["patient"] * 4, 0.05)
    >>> found.round(3).values.tolist()
    [['a', 'patient', 2, 2.0, 0.1, 0.2, 0.061, 0.339, 1.0]]
    """
    names = [str(name) for name in r_indices]
    visits = _visits(r_indices, participant_id, years, group)
    noise = np.asarray(np.nan if noise_sd is None else noise_sd, float)
    noise = np.broadcast_to(noise, r_indices.shape)[visits.index]
    person = visits["person"].to_numpy()
    by_person = visits.groupby("person")
    table = by_person[["participant_id", "group"]].first()
    table["n_visits"] = by_person.size()
    table["years"] = by_person["years"].last() - by_person["years"].first()
    centred = visits["years"].to_numpy() - by_person["years"].transform("mean").to_numpy()
    weight = centred / np.bincount(person, centred**2)[person]
    half = student_t.isf((1 - level) / 2, freedom)
    for k, name in enumerate(names):
        slope = np.bincount(person, weight * visits[name].to_numpy())
        error = half * np.sqrt(np.bincount(person, (weight * noise[:, k]) ** 2)) * table["years"]
        change = slope * table["years"]
        table[f"{name}_per_year"], table[f"{name}_change"] = slope, change
        table[f"{name}_change_low"], table[f"{name}_change_high"] = change - error, change + error
        table[f"{name}_reliable"] = (np.sign(change) * (np.abs(change) > error)).where(error.notna())
    return table.reset_index(drop=True)


def group_change(
    r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike
) -> pd.DataFrame:
    """Compare the change of patients and controls by a linear mixed model, or by the slopes of single people.

    Severity ~ time × group, with an intercept and a slope of each person; with fewer than ten people of a group who
    were seen three times, the mean of their slopes. Patients' severities
    vary more than those of controls, so each group has variances of its own: it is fitted by itself, and patients are
    compared with controls as in Welch's test.

    Parameters
    ----------
    r_indices, participant_id, years, group
        As in `change_per_year`; whoever was seen once does not count.

    Returns
    -------
    DataFrame
        One row per group and pattern: ``group``, ``pattern``, ``n`` (people), ``n_visits``, ``start`` (mean at time 0),
        ``mean`` (change per year), ``low`` and ``high`` (95 %), ``p``, ``q`` (Benjamini–Hochberg over the patterns),
        ``random_effects``, and ``note``: why there is no figure, or a simpler model. Rows of the group ``patients less
        controls`` compare the two; ``n`` is that of both together.
    """
    names = [str(name) for name in r_indices]
    visits = _visits(r_indices, participant_id, years, group)
    rows, lines = [], dict[str, list[_Fitted]]()
    for name in GROUPS:
        own = visits[(visits["group"] == name).to_numpy()]
        if not len(own):
            continue
        person = pd.factorize(own["person"])[0]
        n_people = int(person.max()) + 1
        times = own["years"].to_numpy()
        fits = [mixed_line(own[column].to_numpy(), times, person) for column in names]
        lines[name] = [_Fitted(line, n_people - 1) for line in fits]
        rows += [(name, k + 1, n_people, len(own), *_row(fit)) for k, fit in enumerate(lines[name])]
    if {"control", "patient"} <= lines.keys():
        sizes = visits[visits["group"] != "other"]
        compared = [_less(*pair) for pair in zip(lines["patient"], lines["control"], strict=True)]
        of = sizes["person"].nunique(), len(sizes)
        rows += [(DIFFERENCE, k + 1, *of, *_row(fit)) for k, fit in enumerate(compared)]
    table = pd.DataFrame(rows, columns=[name for name in _COLUMNS if name != "q"])
    q = table.groupby("group", sort=False)["p"].transform(lambda p: false_discovery(p.to_numpy()))
    return table.assign(q=q)[_COLUMNS]


class _Fitted(NamedTuple):
    line: Line
    freedom: float


def _row(fit: _Fitted) -> tuple[object, ...]:
    line = fit.line
    half = student_t.isf(0.025, fit.freedom) * line.error if fit.freedom > 0 else np.nan
    p = 2 * student_t.sf(np.abs(line.slope / line.error), fit.freedom) if fit.freedom > 0 else np.nan
    return line.start, line.slope, line.slope - half, line.slope + half, p, line.random_effects, line.note


def _less(first: _Fitted, second: _Fitted) -> _Fitted:
    """Return the difference of two slopes, with the degrees of freedom of Welch and Satterthwaite."""
    (a, n), (b, m) = first, second
    variances = a.error**2, b.error**2
    if np.isnan(sum(variances)):
        return _Fitted(Line(note=f"a group has no figure: fewer than {FEWEST_PEOPLE} people, or no fit"), 0)
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / n + variances[1] ** 2 / m)
    effects = " / ".join(dict.fromkeys([a.random_effects, b.random_effects]))
    return _Fitted(Line(a.start - b.start, a.slope - b.slope, float(np.sqrt(sum(variances))), effects), freedom)


def _visits(r_indices: pd.DataFrame, participant_id: ArrayLike, years: ArrayLike, group: ArrayLike) -> pd.DataFrame:
    """Return the visits of people who were seen at two different times or more, in the order of time; rows by place."""
    names = [str(name) for name in r_indices]
    visits = pd.DataFrame(np.asarray(r_indices, float), columns=names).assign(years=np.asarray(years, float))
    ids, groups = pd.Series(participant_id).reset_index(drop=True), np.asarray(group, object)
    same_people(len(visits), participant_id=ids, group=groups)
    in_group(groups, "patient")  # names of groups are checked
    known = np.isfinite(visits[[*names, "years"]].to_numpy()).all(axis=1) & ids.notna()
    visits = visits.assign(participant_id=ids, group=groups)[known].sort_values("years", kind="stable")
    by_person = visits.groupby("participant_id", sort=False)
    visits["group"] = by_person["group"].transform("first")
    visits = visits[by_person["years"].transform("last") > by_person["years"].transform("first")]
    order = pd.factorize(ids[np.sort(visits.index)])[1]  # people in the order of the table
    return visits.assign(person=pd.Index(order).get_indexer(visits["participant_id"]))
