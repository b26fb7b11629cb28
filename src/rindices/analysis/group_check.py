"""Could a pattern be age, sex or site rather than disease? R-indices of controls tell: they have no disease."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.associations import associations
from rindices.analysis.balance import LARGEST_Q, SMALLEST_DIFFERENCE, group_balance
from rindices.analysis.columns import coded, in_group, indicators, same_people
from rindices.analysis.statistics import basis, correlation, residuals

_COLUMNS = ["pattern", "variable", "kind", "statistic", "n_controls", "coefficient", "p", "q", "imbalanced"]
_SMALLEST_REST = 0.01  # of the variance of the group: with less, a variable and the group are the same thing


def group_check(r_indices: pd.DataFrame, background: pd.DataFrame, group: ArrayLike) -> pd.DataFrame:
    """Look for R-indices that follow a background variable in controls, in which the groups differ too.

    Parameters
    ----------
    r_indices
        One column a pattern, everybody.
    background
        Age, sex, site and the like, the same people: numbers or text.
    group
        ``control``, ``patient`` or ``other``, one a person; others are left out.

    Returns
    -------
    DataFrame
        One row a pattern and variable: ``pattern``, ``variable``, ``kind``, ``statistic``, ``n_controls``,
        ``coefficient``, ``p``, ``q`` (as in `associations`, in controls), ``imbalanced`` (as in `group_balance`),
        ``explained`` and ``remark``. ``explained`` is the share of the difference of the mean R-index between
        patients and controls that a linear model with the variable takes away; below 0 where it makes the difference
        larger, and NaN where there is no clear difference (p ≥ 0.05) or where the variable and the group are the
        same thing. ``remark`` is empty unless q < 0.05 and the correlation is beyond 0.1 (η² beyond 0.01).
    """
    same_people(len(r_indices), background=background)
    controls, patients = in_group(group, "control"), in_group(group, "patient")
    same_people(len(r_indices), group=controls)
    table = associations(r_indices[controls], background[controls], people="controls")
    table = table.rename(columns={"n": "n_controls"})
    both = controls | patients
    balance = group_balance(background[both], patients[both]).set_index("variable")
    table["imbalanced"] = table["variable"].map(balance["imbalanced"]).astype(bool)
    scores = np.asarray(r_indices, float)
    explained = [_explained(scores, column, both, patients) for _, column in background.items()]
    table["explained"] = np.array(explained).reshape(-1, scores.shape[1]).T.ravel()
    directions = {str(name): _direction(column, both, patients) for name, column in background.items()}
    table["remark"] = [_remark(row, directions[row["variable"]]) for row in table.to_dict("records")]
    return table[[*_COLUMNS, "explained", "remark"]]


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
    name, pattern, kind = row["variable"], row["pattern"], row["kind"]
    categories = kind == "categorical"
    size = math.sqrt(row["coefficient"]) if categories else abs(row["coefficient"])
    if not (row["q"] < LARGEST_Q and size > SMALLEST_DIFFERENCE):
        return ""
    measure = f"({'eta²' if categories else 'r'} = {row['coefficient']:.2f})"
    rises = row["coefficient"] > 0
    if categories:
        controls, groups = f"Controls' R{pattern} differs with {name}", f"the groups differ in {name}"
    elif kind == "dichotomous":
        controls = f"Controls' R{pattern} is {'higher' if rises else 'lower'} where {name} is {row['level']}"
        groups = f"that is {'more' if direction > 0 else 'less'} frequent among patients"
    else:
        controls = f"Controls' R{pattern} {'rises' if rises else 'falls'} with {name}"
        groups = f"patients' {name} is {'higher' if direction > 0 else 'lower'}"
    if not row["imbalanced"]:
        return f"{controls} {measure}; the groups do not differ in {name}."
    alike = categories or rises == (direction > 0)
    part = f"part of pattern {pattern} may be {name}" if alike else f"{name} may hide part of pattern {pattern}"
    return f"{controls} {measure}, and {groups}: {part}."
