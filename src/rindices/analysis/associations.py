"""Whether severities go along with clinical scores, also beyond age, sex and other covariates."""

import numpy as np
import pandas as pd

from rindices.analysis.statistics import (
    Coded,
    Estimate,
    as_numbers,
    basis,
    coded,
    correlation,
    design,
    explained_variance,
    false_discovery,
    residuals,
    same_people,
)

FEWEST_PEOPLE = 10  # a correlation of fewer says nothing, and its interval does not hold
FEWEST_IN_CATEGORY = 3
STATISTICS = {"continuous": "Pearson r", "dichotomous": "point-biserial r", "categorical": "eta²"}
_WHOLE = ["coefficient", "low", "high", "p"]
_PARTIAL = ["partial", "partial_low", "partial_high", "partial_p"]
_COLUMNS = ["people", "pattern", "variable", "level", "kind", "statistic", "n"]
_COLUMNS += [*_WHOLE, "q", *_PARTIAL, "partial_q", "note"]


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
        One column per pattern.
    variables
        Numbers or text. Missing values are excluded, variable by variable.
    covariates
        Numbers or text, for partial coefficients: both variables are adjusted linearly for the covariates. People who
        lack one are excluded from the partial coefficients only.
    people
        Label of these people, "patients" or "everybody", which is only written into the table.

    Returns
    -------
    DataFrame
        One row per pattern and variable: ``people``, ``pattern`` (1, 2, …), ``variable``, ``level`` (of a dichotomous
        variable: the value that counts as 1), ``kind``, ``statistic`` (Pearson's r for continuous variables, point-
        biserial r for those of two values, η² for text of three or more), ``n``, ``coefficient``, ``low`` and
        ``high`` (95 %), ``p`` (t or F test), ``q`` (Benjamini–Hochberg over the rows), the same for the ``partial``
        coefficient, and ``note``: why there is none.

    Notes
    -----
    Intervals do not assume normally distributed scores; see `rindices.analysis.statistics`.

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
    parts = [_associated(str(name), coded(column, sound), scores, adjustment) for name, column in variables.items()]
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=_COLUMNS, dtype=float)
    q, partial_q = (false_discovery(table[name].to_numpy()) for name in ("p", "partial_p"))
    table = table.assign(people=people, q=q, partial_q=partial_q)
    return table.sort_values("pattern", kind="stable", ignore_index=True)[_COLUMNS]


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


def _associated(name: str, column: Coded, scores: np.ndarray, adjustment: _Adjustment | None) -> pd.DataFrame:
    """Return one row per pattern."""
    whole = partial = Estimate.unknown(scores.shape[1])
    note, level = _why_not(column), ""
    if not note:
        level = column.levels[1] if column.kind == "dichotomous" else ""
        whole = _estimate(scores[column.people], column, np.empty((len(column.values), 0)))
        if adjustment is not None:
            partial, note = _adjusted(scores, column, adjustment)
    about = {"variable": name, "kind": column.kind, "statistic": STATISTICS[column.kind], "n": len(column.values)}
    numbers = dict(zip([*_WHOLE, *_PARTIAL], [*whole, *partial], strict=True))
    notes = np.where(np.isnan(whole.value), note or "the severity does not vary", note)
    return pd.DataFrame({"pattern": np.arange(len(notes)) + 1} | about | numbers | {"level": level, "note": notes})


def _adjusted(scores: np.ndarray, column: Coded, adjustment: _Adjustment) -> tuple[Estimate, str]:
    """Return the partial coefficients, and a note on who they are of, or why there are none."""
    inside = adjustment.complete[column.people]
    smaller = column._replace(values=column.values[inside], people=column.people & adjustment.complete)
    given, partial = adjustment.basis(smaller.people), Estimate.unknown(scores.shape[1])
    reason = _why_not(smaller)
    if not reason and len(smaller.values) - given.shape[1] - len(column.levels) < FEWEST_PEOPLE:
        reason = "too few people for the covariates"
    if not reason:
        partial = _estimate(scores[smaller.people], smaller, given)
        reason = "the covariates explain it completely" if np.isnan(partial.value).all() else ""
    if reason:
        return partial, f"no partial coefficient: {reason}"
    fewer = f"partial coefficient from {len(smaller.values)} people: others lack a covariate"
    return partial, "" if inside.all() else fewer


def _why_not(column: Coded) -> str:
    """Say why a variable is not tested, or nothing. Categories are not named: they could be names of people."""
    if len(column.values) < FEWEST_PEOPLE:
        return f"fewer than {FEWEST_PEOPLE} people have a value"
    if np.ptp(column.values) == 0:
        return "everyone has the same value"
    if not column.levels:
        return ""
    counts = np.bincount(column.values.astype(int), minlength=len(column.levels))
    return f"a category has fewer than {FEWEST_IN_CATEGORY} people" if counts.min() < FEWEST_IN_CATEGORY else ""


def _estimate(scores: np.ndarray, column: Coded, given: np.ndarray) -> Estimate:
    own, numbers = residuals(scores, given), residuals(as_numbers(column), given)
    if column.kind == "categorical":
        return explained_variance(own, numbers, given.shape[1])
    return correlation(own, numbers[:, 0], given.shape[1])
