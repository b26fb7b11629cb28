"""Confounding by group differences: severities that are associated with a variable in which the groups differ.

A difference in age, sex or site can be mistaken for disease. Severities of controls, who have no disease, reveal this,
but not for a covariate that was removed: what it explains in controls is gone by construction, and what it does beyond
that, in patients older than any control, cannot show in them. For such a covariate, patients have to be examined.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.associations_and_resemblance import associations
from rindices.analysis.balance import SMALLEST_DIFFERENCE, group_balance
from rindices.analysis.statistics import (
    as_numbers,
    basis,
    coded,
    correlation,
    false_discovery,
    in_group,
    residuals,
    same_people,
)

_COLUMNS = [
    *("pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q"),
    *(
        "n_patients",
        "coefficient_patients",
        "q_patients",
        "imbalanced",
        "difference",
        "adjusted",
        "explained",
        "remark",
    ),
]
_LARGEST_Q = 0.05  # the usual false discovery rate: one in twenty findings is expected to be due to chance
_SMALLEST_REST = 0.01  # of the variance of the group: with less, a variable cannot be separated from the group


def group_check(
    r_indices: pd.DataFrame,
    background: pd.DataFrame,
    group: ArrayLike,
    removed: Collection[str] = (),
    imbalanced: Collection[str] | None = None,
) -> pd.DataFrame:
    """Find severities that are associated with a background variable in which the groups also differ.

    Parameters
    ----------
    r_indices
        One column per pattern, for all people.
    background
        Age, sex, site and similar variables of the same people: numbers or text.
    group
        ``control``, ``patient`` or ``other``, one per person; others are excluded.
    removed
        Variables whose effects in controls were removed before training.
    imbalanced
        Variables in which the groups differ, if already known.

    Returns
    -------
    DataFrame
        One row per pattern and variable: ``pattern``, ``variable``, ``kind``, ``statistic``, ``removed``;
        ``n_controls``, ``coefficient``, ``p``, ``q`` (as in `associations`, in controls; no p and q if the variable
        was removed), ``n_patients``, ``coefficient_patients``, ``q_patients`` (the same in patients; missing if
        their categories require another statistic), ``imbalanced`` (as in `group_balance`), ``difference``,
        ``adjusted``, ``explained`` and ``remark``. ``difference`` is the mean severity of patients minus that of
        controls, and ``adjusted`` the same after adjusting for the variable. ``explained`` is the proportion of the
        difference that adjustment removes: negative if it increases the difference, and NaN if there is no clear
        difference (p ≥ 0.05) or if the variable coincides with the group. ``remark`` is empty
        unless q < 0.05 and the correlation is beyond 0.1 (η² beyond 0.01), in controls or in patients.
    """
    controls, patients = in_group(group, "control"), in_group(group, "patient")
    same_people(len(r_indices), background=background, group=controls)
    table = associations(r_indices[controls], background[controls], people="controls")
    table = table.rename(columns={"n": "n_controls"})
    table["removed"] = table["variable"].isin(list(removed))
    table["p"] = table["p"].where(~table["removed"])
    table["q"] = false_discovery(table["p"].to_numpy())
    ill = associations(r_indices[patients], background[patients])  # rows in the same order
    table[["n_patients", "coefficient_patients", "q_patients"]] = ill[["n", "coefficient", "q"]]
    table.loc[_unlike(table, ill), ["coefficient_patients", "q_patients"]] = np.nan
    both = controls | patients
    if imbalanced is None:
        balance = group_balance(background[both], patients[both])
        imbalanced = balance["variable"][balance["imbalanced"]].tolist()
    table["imbalanced"] = table["variable"].isin(list(imbalanced))
    scores = np.asarray(r_indices, float)
    adjusted = np.array([_adjusted(scores, column, both, patients) for _, column in background.items()])
    names = ["difference", "adjusted", "explained"]
    table[names] = adjusted.reshape(-1, len(names), scores.shape[1]).transpose(2, 0, 1).reshape(-1, len(names))
    directions = {str(name): _direction(column, both, patients) for name, column in background.items()}
    rows: Any = zip(table.itertuples(), ill.itertuples(), strict=True)
    table["remark"] = [
        _remark_on_patients(of_patients, of_controls.imbalanced)
        if of_controls.removed
        else _remark(of_controls, directions[of_controls.variable], of_patients)
        for of_controls, of_patients in rows
    ]
    return table[_COLUMNS]


def _unlike(controls: pd.DataFrame, patients: pd.DataFrame) -> pd.Series:
    """Return whether coefficients differ in meaning between the groups, such as η² of three sites and r of two."""
    named = (controls["level"] != "") & (patients["level"] != "")
    return (controls["kind"] != patients["kind"]) | (named & (controls["level"] != patients["level"]))


def _adjusted(scores: np.ndarray, column: pd.Series, both: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return each pattern's group difference, the same adjusted for a variable, and the proportion explained by it."""
    variable = coded(column, both & np.isfinite(scores).all(axis=1))
    group = patients[variable.people].astype(float)[:, None]
    if len(group) < 4 or np.ptp(group) == 0:
        return np.full((3, scores.shape[1]), np.nan)
    own = scores[variable.people] - scores[variable.people].mean(axis=0)
    whole, rest = group - group.mean(), residuals(group, basis(as_numbers(variable)))
    if np.sum(rest**2) < _SMALLEST_REST * np.sum(whole**2):
        return np.full((3, scores.shape[1]), np.nan)
    raw, adjusted = (own.T @ part[:, 0] / np.sum(part**2) for part in (whole, rest))
    clear = correlation(own, whole[:, 0]).p < 0.05  # the t test of two groups
    return np.stack([raw, adjusted, np.where(clear, 1 - adjusted / np.where(clear, raw, 1), np.nan)])


def _direction(column: pd.Series, both: np.ndarray, patients: np.ndarray) -> float:
    """Return the mean of patients minus that of controls, or the difference in proportions of the level coded as 1."""
    variable = coded(column, both)
    in_patients = patients[variable.people]
    if variable.kind == "categorical" or not in_patients.any() or in_patients.all():
        return math.nan
    return float(variable.values[in_patients].mean() - variable.values[~in_patients].mean())


def _clear(row: Any) -> bool:
    """Return whether severities are associated with a variable, significantly (q) and not just trivially."""
    size = math.sqrt(row.coefficient) if row.kind == "categorical" else abs(row.coefficient)
    return row.q < _LARGEST_Q and size > SMALLEST_DIFFERENCE


def _link(row: Any) -> str:
    """Describe how the score of a pattern is associated with a variable in one group."""
    q, rises = "q < 0.001" if row.q < 0.001 else f"q = {row.q:.2g}", row.coefficient > 0
    size, own = f"(r = {row.coefficient:.2f}, {q})", f"the severity of pattern {row.pattern}"
    return {
        "categorical": f"{own} varies with {row.variable} (eta² = {row.coefficient:.2f}, {q})",
        "dichotomous": f"{own} is {'higher' if rises else 'lower'} in those whose {row.variable} is {row.level} {size}",
        "continuous": f"{own} {'rises' if rises else 'falls'} with {row.variable} {size}",
    }[row.kind]


def _remark(row: Any, direction: float, of_patients: Any) -> str:
    """Describe what a variable may do to a pattern; "" if it is not associated with severities in either group."""
    if not _clear(row):
        sentence = (
            f"In patients, but not clearly in controls, {_link(of_patients)}: the disease may be associated with "
            f"{row.variable}."
        )
        return sentence if _clear(of_patients) else ""
    name, more = row.variable, direction > 0
    if not row.imbalanced:
        return (
            f"In controls, {_link(row)}, so the pattern does not reflect disease alone. The groups do not "
            "clearly differ in "
            f"{name}, so {name} explains little of the difference between them."
        )
    groups = {
        "categorical": f"the groups differ in {name}",
        "dichotomous": f"{row.level} is {'more' if more else 'less'} common among patients",
        "continuous": f"{name} is {'higher' if more else 'lower'} in patients",
    }[row.kind]
    alike = row.kind == "categorical" or (row.coefficient > 0) == more
    part = f"part of the pattern may reflect {name}" if alike else f"{name} may mask part of the pattern"
    return f"In controls, {_link(row)}, and {groups}: {part}."


def _remark_on_patients(row: Any, imbalanced: bool) -> str:
    """Describe the remaining association in patients with a variable that was removed; "" if there is none."""
    if not _clear(row):
        return ""
    if not imbalanced:
        return (
            f"In patients, {_link(row)}: the disease may be associated with {row.variable}. The groups do not clearly "
            f"differ in {row.variable}, so {row.variable} explains little of the difference between them."
        )
    return (
        f"In patients, {_link(row)}, and the groups differ in {row.variable}. The effect of {row.variable} in "
        f"controls was removed. Either the disease is associated with {row.variable}, or part of the pattern "
        "reflects effects that the correction missed."
    )
