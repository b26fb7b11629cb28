"""Effects of covariates on regions, estimated in controls: lines, splines, categories and their products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from rindices.errors import InputError, counted
from rindices.preprocessing.spline import spline_basis, spline_knots

_NO_VARIATION = 1e-12  # of a column's size: rounding, not people
_PEOPLE_PER_COLUMN = 2

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Covariate:
    """One covariate as the residualiser knows it: a number, a number with a spline, or one of some categories."""

    name: str
    categories: tuple[str, ...] | None = None
    knots: tuple[float, ...] | None = None

    @property
    def n_columns(self) -> int:
        """Columns in the design."""
        if self.categories is not None:
            return len(self.categories) - 1
        return 1 if self.knots is None else len(self.knots) - 1


@dataclass(frozen=True, eq=False)
class CovariateResidualizer:
    """Removes the effects of covariates that were estimated in controls.

    What is left is what the person would have with the controls' average covariates.

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
    ) -> CovariateResidualizer:
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
            Number of each control's group: effects are estimated within groups, which may differ in anything.
        """
        known = tuple(_describe(str(name), covariates[name], name in smooth) for name in covariates)
        n_groups = 0 if within is None else int(within.max()) + 1
        _check_enough(len(controls), count_columns(known, interactions), n_groups)
        main = _main_effects(covariates, known)
        design = _with_products(main, known, interactions, main.mean(axis=0))
        centre = design.mean(axis=0)
        columns, measures = (
            values - values.mean(axis=0) if within is None else values - group_means(values, within)[within]
            for values in (design, controls)
        )
        spread = columns.std(axis=0)
        spread[spread <= _NO_VARIATION * np.abs(design).max(axis=0, initial=0)] = np.inf
        # Columns of equal size, so that head sizes in mm³ do not drown sex in rounding.
        effects = np.linalg.lstsq(columns / spread, measures, rcond=None)[0]
        return cls(known, centre, effects / spread[:, None], tuple(interactions))

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Remove the effects."""
        return features - self.effect(covariates)

    def effect(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return what covariates add to each person's regions, relative to average controls."""
        return self.design(covariates) @ self.effects

    def design(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return the columns whose effects were estimated, centred as in controls."""
        main = _main_effects(covariates, self.covariates)
        return _with_products(main, self.covariates, self.interactions, self.centre) - self.centre


def count_columns(known: Sequence[Covariate], interactions: Pairs) -> int:
    """Return the number of columns of the design: of each covariate, and of the products of pairs."""
    of = {covariate.name: covariate.n_columns for covariate in known}
    return sum(of.values()) + sum(of[first] * of[second] for first, second in interactions)


def group_means(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the mean of `values` ``(people, columns)`` in each group → ``(groups, columns)``."""
    member = (group[:, None] == np.arange(group.max() + 1)).astype(float)
    return member.T @ values / member.sum(axis=0)[:, None]


def numbers_of(covariates: pd.DataFrame, name: str) -> np.ndarray:
    """Return a covariate of numbers, refusing text and gaps."""
    values = covariate_of(covariates, name)
    try:
        numbers = values.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"Covariate {name!r} was a number in training, now it holds text.") from error
    if not np.isfinite(numbers).all():
        row = values.index[int(np.flatnonzero(~np.isfinite(numbers))[0])]
        raise InputError(f"Covariate {name!r} is missing or infinite in row {row}: fill it in or drop the person.")
    return numbers


def covariate_of(covariates: pd.DataFrame, name: str) -> pd.Series:
    """Return a covariate by its name, refusing a table without it."""
    if name not in covariates:
        raise InputError(f"Covariate {name!r} is missing: the model was trained with it.")
    return covariates[name]


def _describe(name: str, values: pd.Series, smooth: bool) -> Covariate:
    if not pd.api.types.is_numeric_dtype(values):
        return Covariate(name, tuple(sorted({str(value) for value in values})))
    return Covariate(name, knots=spline_knots(name, values.to_numpy(float)) if smooth else None)


def _check_enough(n_controls: int, n_columns: int, n_groups: int) -> None:
    needed = _PEOPLE_PER_COLUMN * (n_columns + n_groups)
    if n_controls < needed:
        sites = f" and {n_groups} sites" if n_groups else ""
        raise InputError(
            f"The covariates make {counted(n_columns, 'column')}{sites}: their effects need {needed} controls or more, "
            f"found {n_controls}.\nLeave out covariates, categories, --smooth or --interactions, or add controls."
        )


def _main_effects(covariates: pd.DataFrame, known: Sequence[Covariate]) -> np.ndarray:
    """Numbers as they are or as splines; of k categories, k − 1 indicators."""
    blocks = [np.empty((len(covariates), 0))]
    for covariate in known:
        if covariate.categories is not None:
            blocks.append(_indicators(covariate_of(covariates, covariate.name), covariate.categories))
            continue
        numbers = numbers_of(covariates, covariate.name)
        blocks.append(numbers[:, None] if covariate.knots is None else spline_basis(numbers, covariate.knots))
    return np.hstack(blocks)


def _indicators(values: pd.Series, categories: tuple[str, ...]) -> np.ndarray:
    text = values.astype(str).to_numpy()
    strangers = sorted(set(text) - set(categories))
    if strangers:
        raise InputError(
            f"Covariate {values.name!r} has the unknown category {strangers[0]!r}; known: {', '.join(categories)}."
        )
    return (text[:, None] == np.array(categories[1:], dtype=object)).astype(float)


def _with_products(main: np.ndarray, known: Sequence[Covariate], pairs: Pairs, centre: np.ndarray) -> np.ndarray:
    """Add the products of the pairs' columns, taken after centring: else they would repeat the main effects."""
    ends = np.cumsum([covariate.n_columns for covariate in known])
    place = {one.name: slice(end - one.n_columns, end) for one, end in zip(known, ends, strict=True)}
    centred = main - centre[: main.shape[1]]
    products = [
        (centred[:, place[first], None] * centred[:, None, place[second]]).reshape(len(main), -1)
        for first, second in pairs
    ]
    return np.hstack([main, *products])
