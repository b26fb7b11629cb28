"""Whether R-indices go along with clinical scores, also beyond age, sex and other covariates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from rindices.analysis.coding import Coded, coded, design, indicators, same_people
from rindices.analysis.statistics import (
    Estimate,
    basis,
    correlation,
    explained_variance,
    false_discovery,
    residuals,
)

FEWEST_PEOPLE = 10  # a correlation of fewer says nothing, and its interval does not hold
FEWEST_IN_CATEGORY = 3
STATISTICS = {"continuous": "Pearson r", "dichotomous": "point-biserial r", "categorical": "eta²"}
_WHAT = ["pattern", "variable", "level", "kind", "statistic", "n"]
_WHOLE = ["coefficient", "low", "high", "p"]
_PARTIAL = ["partial", "partial_low", "partial_high", "partial_p"]


def associations(
    r_indices: pd.DataFrame,
    variables: pd.DataFrame,
    covariates: pd.DataFrame | None = None,
    *,
    people: str = "patients",
) -> pd.DataFrame:
    """Associate each R-index with each variable.

    Rows of the tables are the same people in the same order; their index does not matter.

    Parameters
    ----------
    r_indices
        One column a pattern.
    variables
        Numbers or text. Missing values are left out, variable by variable.
    covariates
        Numbers or text, for partial coefficients: both sides less what covariates explain linearly. Who lacks one is
        left out of the partial coefficients only.
    people
        Who they are, "patients" or "everybody"; only written into the table.

    Returns
    -------
    DataFrame
        One row a pattern and variable: ``people``, ``pattern`` (1, 2, …), ``variable``, ``level`` (of a dichotomous
        variable: the value that counts as 1), ``kind``, ``statistic`` (Pearson's r for continuous variables, point-
        biserial r for those of two values, η² for text of three or more), ``n``, ``coefficient``, ``low`` and
        ``high`` (95 %), ``p`` (t or F test), ``q`` (Benjamini–Hochberg over the rows), the same for the ``partial``
        coefficient, and ``note``: why there is none.

    Notes
    -----
    Intervals do not assume normal scores; see `rindices.analysis.statistics` for how, and for how well they hold.

    Examples
    --------
    >>> severity = pd.DataFrame({"r1": np.linspace(0, 1, 20)})
    >>> scores = pd.DataFrame({"memory": np.linspace(30, 20, 20) + np.tile([1, -1], 10), "carrier": ["no", "yes"] * 10})
    >>> associations(severity, scores)[["variable", "level", "statistic", "n", "coefficient"]].round(2).values.tolist()
    [['memory', '', 'Pearson r', 20, -0.95], ['carrier', 'yes', 'point-biserial r', 20, 0.09]]
    """
    scores = np.asarray(r_indices, float)
    same_people(len(scores), variables=variables, **({} if covariates is None else {"covariates": covariates}))
    sound = np.isfinite(scores).all(axis=1)
    adjustment = None if covariates is None else _Adjustment(covariates)
    rows = []
    for name, column in variables.items():
        found = _associated(scores, coded(column, sound), adjustment)
        rows += [_row(str(name), found, pattern) for pattern in range(scores.shape[1])]
    table = pd.DataFrame(rows, columns=[*_WHAT, *_WHOLE, *_PARTIAL, "note"])
    table = table.astype({"pattern": int, "n": int} | dict.fromkeys([*_WHOLE, *_PARTIAL], float)).assign(people=people)
    for q, p in (("q", "p"), ("partial_q", "partial_p")):
        table[q] = false_discovery(table[p].to_numpy())
    order = ["people", *_WHAT, *_WHOLE, "q", *_PARTIAL, "partial_q", "note"]
    return table.sort_values("pattern", kind="stable", ignore_index=True)[order]


class _Found(NamedTuple):
    column: Coded
    level: str
    whole: Estimate
    partial: Estimate
    note: str


class _Adjustment:
    """Covariates as a basis of what they explain, computed once for all variables that the same people have."""

    def __init__(self, covariates: pd.DataFrame) -> None:
        self.columns, self.complete = design(covariates)
        self._bases: dict[bytes, np.ndarray] = {}

    def basis(self, people: np.ndarray) -> np.ndarray:
        key = people.tobytes()
        if key not in self._bases:
            self._bases[key] = basis(self.columns[people])
        return self._bases[key]


def _associated(scores: np.ndarray, column: Coded, adjustment: _Adjustment | None) -> _Found:
    none = Estimate(*(np.full(scores.shape[1], np.nan) for _ in range(4)))
    reason = _why_not(column)
    if reason:
        return _Found(column, "", none, none, reason)
    level = column.levels[1] if column.kind == "dichotomous" else ""
    whole = _estimate(scores[column.people], column, np.empty((len(column.values), 0)))
    if adjustment is None:
        return _Found(column, level, whole, none, "")
    inside = adjustment.complete[column.people]
    smaller = column._replace(values=column.values[inside], people=column.people & adjustment.complete)
    given = adjustment.basis(smaller.people)
    reason = _why_not(smaller) or ("too few people for the covariates" if _too_few(smaller, given) else "")
    partial = none if reason else _estimate(scores[smaller.people], smaller, given)
    if not reason and np.isnan(partial.coefficient).all():
        reason = "the covariates explain it completely"
    note = f"no partial coefficient: {reason}" if reason else ""
    if not reason and not inside.all():
        note = f"partial coefficient from {len(smaller.values)} people: others lack a covariate"
    return _Found(column, level, whole, partial, note)


def _why_not(column: Coded) -> str:
    """Say why a variable is not tested, or nothing. Categories are not named: they could be names of people."""
    if len(column.values) < FEWEST_PEOPLE:
        return f"fewer than {FEWEST_PEOPLE} people have a value"
    if np.ptp(column.values) == 0:
        return "everybody has the same value"
    if column.levels:
        counts = np.bincount(column.values.astype(int), minlength=len(column.levels))
        if counts.min() < FEWEST_IN_CATEGORY:
            return f"a category has fewer than {FEWEST_IN_CATEGORY} people"
    return ""


def _too_few(column: Coded, given: np.ndarray) -> bool:
    return len(column.values) - given.shape[1] - len(column.levels) < FEWEST_PEOPLE


def _estimate(scores: np.ndarray, column: Coded, given: np.ndarray) -> Estimate:
    own = residuals(scores, given)
    if column.kind == "categorical":
        categories = residuals(indicators(column.values, len(column.levels)), given)
        return explained_variance(own, categories, given.shape[1])
    return correlation(own, residuals(column.values[:, None], given)[:, 0], given.shape[1])


def _row(name: str, found: _Found, pattern: int) -> list[object]:
    whole, partial = ([part[pattern] for part in estimate] for estimate in (found.whole, found.partial))
    kind, n_people = found.column.kind, len(found.column.values)
    note = found.note or ("the R-index does not vary" if np.isnan(whole[0]) else "")
    return [pattern + 1, name, found.level, kind, STATISTICS[kind], n_people, *whole, *partial, note]
