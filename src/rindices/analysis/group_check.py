"""Could a pattern be age, sex or site rather than disease? R-indices of controls tell: they have no disease.

They do not tell of a covariate that was removed. What it explains in controls is gone by construction, and what it does
beyond that, in patients older than any control, cannot show in them. There, patients have to be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.associations import associations
from rindices.analysis.balance import SMALLEST_DIFFERENCE, group_balance
from rindices.analysis.columns import coded, in_group, indicators, same_people
from rindices.analysis.statistics import basis, correlation, false_discovery, residuals

_COLUMNS = ["pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q"]
_COLUMNS += ["n_patients", "coefficient_patients", "q_patients", "imbalanced", "explained", "remark"]
_LARGEST_Q = 0.05  # the usual false discovery rate: what is below is hardly chance
_SMALLEST_REST = 0.01  # of the variance of the group: with less, a variable and the group are the same thing


def group_check(
    r_indices: pd.DataFrame, background: pd.DataFrame, group: ArrayLike, removed: Collection[str] = ()
) -> pd.DataFrame:
    """Look for R-indices that follow a background variable in controls, in which the groups differ too.

    Parameters
    ----------
    r_indices
        One column a pattern, everybody.
    background
        Age, sex, site and the like, the same people: numbers or text.
    group
        ``control``, ``patient`` or ``other``, one a person; others are left out.
    removed
        Variables whose effects in controls were removed before training.

    Returns
    -------
    DataFrame
        One row a pattern and variable: ``pattern``, ``variable``, ``kind``, ``statistic``, ``removed``;
        ``n_controls``, ``coefficient``, ``p``, ``q`` (as in `associations`, in controls; no p and q where the variable
        was removed), ``n_patients``, ``coefficient_patients``, ``q_patients`` (the same in patients; none where
        their categories make it another statistic), ``imbalanced`` (as in `group_balance`), ``explained`` and
        ``remark``. ``explained`` is the share of the difference of the mean R-index between patients and controls that
        a linear model with the variable takes away; below 0 where it makes the difference larger, and NaN where there
        is no clear difference (p ≥ 0.05) or where the variable and the group are the same thing. ``remark`` is empty
        unless q < 0.05 and the correlation is beyond 0.1 (η² beyond 0.01): in controls, or, where the variable was
        removed and the groups differ in it, in patients.
    """
    same_people(len(r_indices), background=background)
    controls, patients = in_group(group, "control"), in_group(group, "patient")
    same_people(len(r_indices), group=controls)
    table = associations(r_indices[controls], background[controls], people="controls")
    table = table.rename(columns={"n": "n_controls"})
    table["removed"] = table["variable"].isin(list(removed))
    table["p"] = table["p"].where(~table["removed"])
    table["q"] = false_discovery(table["p"].to_numpy())
    ill = associations(r_indices[patients], background[patients])  # rows in the same order
    table[["n_patients", "coefficient_patients", "q_patients"]] = ill[["n", "coefficient", "q"]]
    table.loc[_unlike(table, ill), ["coefficient_patients", "q_patients"]] = np.nan
    both = controls | patients
    balance = group_balance(background[both], patients[both]).set_index("variable")
    table["imbalanced"] = table["variable"].map(balance["imbalanced"]).astype(bool)
    scores = np.asarray(r_indices, float)
    explained = [_explained(scores, column, both, patients) for _, column in background.items()]
    table["explained"] = np.array(explained).reshape(-1, scores.shape[1]).T.ravel()
    directions = {str(name): _direction(column, both, patients) for name, column in background.items()}
    rows = zip(table.to_dict("records"), ill.to_dict("records"), strict=True)
    table["remark"] = [
        (_remark_on_patients(of_patients) if row["imbalanced"] else "")
        if row["removed"]
        else _remark(row, directions[row["variable"]])
        for row, of_patients in rows
    ]
    return table[_COLUMNS]


def _unlike(controls: pd.DataFrame, patients: pd.DataFrame) -> pd.Series:
    """Whether coefficients of the two groups mean different things: η² of three sites, and r of two of them."""
    named = (controls["level"] != "") & (patients["level"] != "")
    return (controls["kind"] != patients["kind"]) | (named & (controls["level"] != patients["level"]))


def _explained(scores: np.ndarray, column: pd.Series, both: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return, for each pattern, the share of the groups' difference that adjusting for a variable takes away."""
    found = coded(column, both & np.isfinite(scores).all(axis=1))
    nothing = np.full(scores.shape[1], np.nan)
    group = patients[found.people].astype(float)[:, None]
    if len(group) < 4 or np.ptp(group) == 0:
        return nothing
    numbers = indicators(found.values, len(found.levels)) if found.levels else found.values[:, None]
    own = scores[found.people] - scores[found.people].mean(axis=0)
    whole, rest = group - group.mean(), residuals(group, basis(numbers))
    if np.sum(rest**2) < _SMALLEST_REST * np.sum(whole**2):
        return nothing
    raw, adjusted = (own.T @ part[:, 0] / np.sum(part**2) for part in (whole, rest))
    clear = correlation(own, whole[:, 0]).p < 0.05  # the t test of two groups
    return np.where(clear, 1 - adjusted / np.where(clear, raw, 1), np.nan)


def _direction(column: pd.Series, both: np.ndarray, patients: np.ndarray) -> float:
    """Return the mean of patients less that of controls, or the difference of shares of the level that counts as 1."""
    found = coded(column, both)
    in_patients = patients[found.people]
    if found.kind == "categorical" or not in_patients.any() or in_patients.all():
        return math.nan
    return float(found.values[in_patients].mean() - found.values[~in_patients].mean())


def _remark(row: Mapping[Hashable, Any], direction: float) -> str:
    """Say what a variable may do to a pattern; nothing where R-indices of controls do not go with it."""
    if not _clear(row):
        return ""
    name, pattern, rises = row["variable"], row["pattern"], row["coefficient"] > 0
    controls = f"Controls' {_in_words(row)}"
    if not row["imbalanced"]:
        return f"{controls}; the groups do not differ in {name}."
    if row["kind"] == "categorical":
        groups = f"the groups differ in {name}"
    elif row["kind"] == "dichotomous":
        groups = f"that is {'more' if direction > 0 else 'less'} frequent among patients"
    else:
        groups = f"patients' {name} is {'higher' if direction > 0 else 'lower'}"
    alike = row["kind"] == "categorical" or rises == (direction > 0)
    part = f"part of pattern {pattern} may be {name}" if alike else f"{name} may hide part of pattern {pattern}"
    return f"{controls}, and {groups}: {part}."


def _remark_on_patients(row: Mapping[Hashable, Any]) -> str:
    """Say what is left of a variable that was removed, and in which the groups differ."""
    if not _clear(row):
        return ""
    name = row["variable"]
    return (
        f"Patients' {_in_words(row)}, and the groups differ in {name}. What {name} does in controls was removed: "
        f"either the disease goes with {name}, or part of pattern {row['pattern']} is what the removal missed."
    )


def _clear(row: Mapping[Hashable, Any]) -> bool:
    size = math.sqrt(row["coefficient"]) if row["kind"] == "categorical" else abs(row["coefficient"])
    return row["q"] < _LARGEST_Q and size > SMALLEST_DIFFERENCE


def _in_words(row: Mapping[Hashable, Any]) -> str:
    index, name, coefficient = f"R{row['pattern']}", row["variable"], row["coefficient"]
    if row["kind"] == "categorical":
        return f"{index} differs with {name} (eta² = {coefficient:.2f})"
    if row["kind"] == "dichotomous":
        higher = "higher" if coefficient > 0 else "lower"
        return f"{index} is {higher} where {name} is {row['level']} (r = {coefficient:.2f})"
    return f"{index} {'rises' if coefficient > 0 else 'falls'} with {name} (r = {coefficient:.2f})"
