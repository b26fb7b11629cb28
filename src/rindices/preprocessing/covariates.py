"""Effects of covariates on regions, estimated in controls: straight lines, splines, categories and their products.

The functions at the end assess how uncertain these effects are in patients.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.interpolate import CubicSpline

from rindices.presets import Correction
from rindices.problems import InputError, Remedy, counted
from rindices.schema.cells import as_known, plain_code

MIN_DISTINCT = 5  # values; fewer than there are knots cannot define a curve
# Random splits of healthy people (40 or more per group) lie below; splits whose patients are 17 years older lie above:
# all of those share the error of effects estimated in few old controls, which training then finds as a pattern.
TOO_UNCERTAIN = 1.3
# Harrell's quantiles for five knots (Regression Modeling Strategies, 2.4.6): the outer ones keep a few extremes from
# bending the curve.
_QUANTILES = (0.05, 0.275, 0.5, 0.725, 0.95)
_NO_VARIATION = 1e-12  # relative to a column's size; less is rounding error
_ROUNDING = 1e-10  # relative to the largest; directions that vary less in controls are rounding error
_PEOPLE_PER_COLUMN = 2
_LEAST_LEFT = 0.1  # of a control's variance; anyone fitted more closely is uninformative

Pairs = Sequence[tuple[str, str]]


class Covariate(NamedTuple):
    """One covariate of the residualiser: a number, a number with a spline, or a set of categories."""

    name: str
    categories: tuple[str, ...] | None = None
    knots: tuple[float, ...] | None = None

    @classmethod
    def of(cls, values: pd.Series, smooth: bool) -> Self:
        """Describe a covariate from its values in controls."""
        name = str(values.name)
        if not pd.api.types.is_numeric_dtype(values):
            return cls(name, tuple(sorted({*map(plain_code, values)})))
        return cls(name, knots=spline_knots(name, values.to_numpy(float)) if smooth else None)

    @property
    def n_columns(self) -> int:
        """Number of columns in the design."""
        if self.categories is not None:
            return len(self.categories) - 1
        return 1 if self.knots is None else len(self.knots) - 1

    def columns(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return a number as it is or as a spline, and k categories as k − 1 indicators."""
        if self.categories is None:
            numbers = numbers_of(covariates, self.name)
            return numbers[:, None] if self.knots is None else spline_basis(numbers, self.knots)
        text = as_known(covariate_of(covariates, self.name), self.categories)
        strangers = sorted(set(text) - set(self.categories))
        if strangers:
            categories = ", ".join(self.categories)
            raise InputError(
                f"Covariate {self.name!r} has the category {strangers[0]!r}, but the controls used for training have "
                f"only these: {categories}."
            )
        return (text[:, None] == np.array(self.categories[1:], dtype=object)).astype(float)


@dataclass(frozen=True, eq=False)
class CovariateResidualizer:
    """Removes the effects of covariates, as estimated in controls.

    The result is the value that the person would have with the controls' average covariates.

    Examples
    --------
    >>> age = pd.DataFrame({"age": [50.0, 60.0, 70.0]})
    >>> volumes = np.array([[5.0], [4.0], [3.0]])
    >>> CovariateResidualizer.fit(volumes, age).transform(volumes, age).ravel().tolist()
    [4.0, 4.0, 4.0]
    """

    covariates: tuple[Covariate, ...]
    centre: np.ndarray  # (columns,) mean of the design in controls
    effects: np.ndarray  # (columns, regions)
    interactions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def fit(
        cls,
        controls: np.ndarray,
        covariates: pd.DataFrame,
        *,
        smooth: Sequence[str] = (),
        interactions: Pairs = (),
        within: np.ndarray | None = None,
    ) -> Self:
        """Estimate the effects by least squares in controls.

        Parameters
        ----------
        controls : ndarray of shape (controls, regions)
            Regional measures.
        covariates : DataFrame
            Numbers, or categories as text.
        smooth : sequence of str
            Covariates with a spline instead of a line.
        interactions : sequence of pairs of str
            Covariates whose effects depend on each other.
        within : ndarray of int, optional
            Index of each control's group: effects are estimated within groups, whose means may differ.
        """
        learned = tuple(Covariate.of(covariates[name], name in smooth) for name in covariates)
        n_groups = 0 if within is None else int(within.max()) + 1
        _check_enough(len(controls), count_columns(learned, interactions), n_groups)
        design = _design(covariates, learned, interactions)
        centre = design.mean(axis=0)
        columns, measures = (
            values - values.mean(axis=0) if within is None else values - group_means(values, within)[within]
            for values in (design, controls)
        )
        spread = columns.std(axis=0)
        spread[spread <= _NO_VARIATION * np.abs(design).max(axis=0, initial=0)] = np.inf
        # Columns of equal size, so that sex is not lost to rounding beside head sizes in mm³.
        effects = np.linalg.lstsq(columns / spread, measures, rcond=None)[0]
        return cls(learned, centre, effects / spread[:, None], tuple(interactions))

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Remove the effects."""
        return features - self.effect(covariates)

    def inverse_transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Add the effects back."""
        return features + self.effect(covariates)

    def effect(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return the effect of the covariates on each person's regions, relative to average controls."""
        return self.design(covariates) @ self.effects

    def design(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return the columns whose effects were estimated, centred as in controls."""
        return _design(covariates, self.covariates, self.interactions, self.centre) - self.centre


def count_columns(terms: Sequence[Covariate], interactions: Pairs) -> int:
    """Return the number of columns of the design: of each covariate, and of the products of pairs."""
    of = {covariate.name: covariate.n_columns for covariate in terms}
    return sum(of.values()) + sum(of[first] * of[second] for first, second in interactions)


def group_means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the mean of `values` ``(people, columns)`` in each group → ``(groups, columns)``."""
    member = (group[:, None] == np.arange(group.max() + 1)).astype(float)
    return member.T @ values / member.sum(axis=0)[:, None]


def numbers_of(covariates: pd.DataFrame, name: str) -> np.ndarray:
    """Return a numeric covariate, refusing text and gaps."""
    values = covariate_of(covariates, name)
    try:
        numbers = values.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"Covariate {name!r} was numeric during training but now contains text.") from error
    if not np.isfinite(numbers).all():
        row = values.index[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise InputError(f"Covariate {name!r} is missing or infinite in row {row}: correct it, or exclude the person.")
    return numbers


def covariate_of(covariates: pd.DataFrame, name: str) -> pd.Series:
    """Return a covariate by its name, refusing a table without it."""
    if name not in covariates:
        raise InputError(
            f"Covariate {name!r} is missing, but the model was trained with it.\nProvide covariates as a table with "
            "the column names used in training."
        )
    return covariates[name]


def _check_enough(n_controls: int, n_columns: int, n_groups: int) -> None:
    needed = _PEOPLE_PER_COLUMN * (n_columns + n_groups)
    if n_controls < needed:
        sites = f", in addition to the means of {n_groups} sites" if n_groups else ""
        raise InputError(
            f"The covariates have {counted(n_columns, 'coefficient')} per region{sites}. Estimating them requires at "
            f"least {needed} controls, but there are {n_controls}.\nUse fewer covariates or categories, name "
            "fewer in ",
            Remedy("smooth"),
            " or ",
            Remedy("interactions"),
            ", or add controls.",
        )


def _design(
    covariates: pd.DataFrame, terms: Sequence[Covariate], pairs: Pairs, centre: np.ndarray | None = None
) -> np.ndarray:
    """Return the columns of all covariates, and the products of the pairs' columns.

    Products are taken after centring on `centre` or on these people's means; otherwise they would repeat the columns.
    """
    main = np.hstack([np.empty((len(covariates), 0)), *(one.columns(covariates) for one in terms)])
    centred = main - (main.mean(axis=0) if centre is None else centre[: main.shape[1]])
    ends = np.cumsum([one.n_columns for one in terms])
    place = {one.name: slice(end - one.n_columns, end) for one, end in zip(terms, ends, strict=True)}
    products = [
        (centred[:, place[first], None] * centred[:, None, place[second]]).reshape(len(main), -1)
        for first, second in pairs
    ]
    return np.hstack([main, *products])


def spline_knots(name: str, values: np.ndarray) -> tuple[float, ...]:
    """Return the knots for a covariate of controls: three to five, increasing."""
    distinct = np.unique(values)
    if len(distinct) < MIN_DISTINCT:
        raise InputError(
            f"Covariate {name!r} has {counted(len(distinct), 'different value')} in controls, but a smooth curve needs "
            f"at least {MIN_DISTINCT}.\nRemove {name} from ",
            Remedy("smooth"),
            " to fit a straight line instead.",
        )
    knots = np.unique(np.quantile(values, _QUANTILES))
    if len(knots) < 3:  # nearly everyone has the same value
        knots = np.quantile(distinct, _QUANTILES)
    return tuple(knots.tolist())


def spline_basis(values: np.ndarray, knots: tuple[float, ...]) -> np.ndarray:
    """Return the basis ``(people, knots − 1)`` of natural cubic splines, without the constant.

    Column j is the spline that is 1 at knot j + 1 and 0 at the others. Unlike powers, columns are therefore of similar
    size and far from collinear; together with the omitted one, they add up to 1.

    Examples
    --------
    >>> spline_basis(np.array([1.0, 2.0, 3.0]), (1.0, 2.0, 3.0)).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    spline = CubicSpline(knots, np.eye(len(knots))[:, 1:], bc_type="natural")
    inside = np.clip(values, knots[0], knots[-1])
    # Linear outside the knots: a cubic would diverge where there are no controls.
    return spline(inside) + spline(inside, 1) * (values - inside)[:, None]


def design_of(covariates: pd.DataFrame, patient: np.ndarray, correction: Correction | None) -> np.ndarray:
    """Return everyone's columns of the design whose effects are estimated in controls: sites, then covariates."""
    correction = correction or Correction()
    kept = [name for name in covariates if name not in (correction.proportion, correction.site)]
    controls = covariates[~patient]
    fitted = CovariateResidualizer.fit(
        np.empty((len(controls), 0)), controls[kept], smooth=correction.smooth, interactions=correction.interactions
    )
    levels = np.zeros(len(covariates)) if correction.site is None else pd.factorize(covariates[correction.site])[0]
    columns = np.hstack([levels[:, None] == np.unique(levels), fitted.design(covariates[kept])])
    # Of equal size, because head sizes in mm³ may stand beside sex as 0 and 1.
    return columns / np.maximum(np.abs(columns).max(axis=0), np.finfo(float).tiny)


def uncertainty_of_patients(design: np.ndarray, patient: np.ndarray) -> float:
    """Return the squared error of the effects removed from patients, relative to that in controls.

    If few controls resemble the patients, the effects are uncertain, and patients share their error, which looks like a
    pattern of disease in training. The error variance of a person is proportional to the leverage h = x (XᵀX)⁻¹ xᵀ,
    where X is the design of the controls.

    Parameters
    ----------
    design
        Design of controls and patients, see `design_of`.
    patient
        Mask of the patients.

    Returns
    -------
    float
        Mean leverage of patients over that of controls; about 1 where the groups have the same covariates.

    Examples
    --------
    >>> age = pd.DataFrame({"age": [50.0, 60.0, 70.0, 80.0, 80.0, 80.0]})
    >>> patient = np.array([False] * 4 + [True] * 2)
    >>> round(uncertainty_of_patients(design_of(age, patient, None), patient), 2)
    1.4
    """
    leverage = leverage_of(design, patient)
    return float(leverage[patient].mean() / leverage[~patient].mean())


def leverage_of(design: np.ndarray, patient: np.ndarray) -> np.ndarray:
    """Return everyone's leverage h = x (XᵀX)⁻¹ xᵀ on the effects estimated in controls."""
    _, sizes, directions = np.linalg.svd(design[~patient], full_matrices=False)
    real = sizes > _ROUNDING * sizes[0]
    return ((design @ directions[real].T / sizes[real]) ** 2).sum(axis=1)


def rescaled_by_leverage(scaled: np.ndarray, leverage: np.ndarray, patient: np.ndarray) -> np.ndarray:
    """Return residuals, scaled about 1, with the variance that they would have if the effects were known.

    Estimating effects in controls multiplies the residual variance by 1 − h in controls, and by 1 + h in everyone else.
    With many covariates, that alone separates the groups.
    """
    variance = np.where(patient, 1 + leverage, np.maximum(1 - leverage, _LEAST_LEFT))
    return 1 + (scaled - 1) / np.sqrt(variance)[:, None]


def without_effects(values: np.ndarray, design: np.ndarray, patient: np.ndarray) -> np.ndarray:
    """Remove the effects of a design, estimated in controls by least squares, from everyone's values."""
    return values - design @ np.linalg.lstsq(design[~patient], values[~patient], rcond=_ROUNDING)[0]


def uncertainty_in_words(uncertainty: float) -> str:
    """Explain what a high `uncertainty_of_patients` means and what to do."""
    return (
        f"The effects of covariates are {uncertainty:.1f} times as uncertain (in squared error) in patients as in "
        "controls, because few controls have covariates similar to the patients'. The resulting error in "
        "the correction is shared by all patients and can be mistaken for a pattern. Choose controls whose covariates "
        "resemble those of the patients."
    )
