"""Preparation of regional measures, always estimated in controls: covariates removed, regions put on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.covariance import ledoit_wolf

SCALED_SD = 0.1  # controls have mean 1 and this sd after scaling; the loss weights are tuned to it


@dataclass(frozen=True)
class Covariate:
    """One covariate as the residualiser knows it: a number, or one of some categories."""

    name: str
    categories: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class CovariateResidualizer:
    """Removes the linear effects of covariates that were estimated in controls.

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

    @classmethod
    def fit(cls, controls: np.ndarray, covariates: pd.DataFrame) -> CovariateResidualizer:
        """Estimate the effects by least squares in controls."""
        known = tuple(_describe(str(name), covariates[name]) for name in covariates)
        design = _design(covariates, known)
        centre = design.mean(axis=0)
        spread = design.std(axis=0)
        spread[spread == 0] = 1.0
        # Columns of equal size, so that head sizes in mm³ do not drown sex in rounding.
        effects = np.linalg.lstsq((design - centre) / spread, controls - controls.mean(axis=0), rcond=None)[0]
        return cls(known, centre, effects / spread[:, None])

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Remove the effects."""
        return features - self.effect(covariates)

    def effect(self, covariates: pd.DataFrame) -> np.ndarray:
        """Return what covariates add to each person's regions, relative to average controls."""
        return (_design(covariates, self.covariates) - self.centre) @ self.effects


def _describe(name: str, values: pd.Series) -> Covariate:
    if pd.api.types.is_numeric_dtype(values):
        return Covariate(name)
    return Covariate(name, tuple(sorted({str(value) for value in values})))


def _design(covariates: pd.DataFrame, known: Sequence[Covariate]) -> np.ndarray:
    """Numbers as they are; of k categories, k − 1 indicators."""
    columns = [np.empty((len(covariates), 0))]
    for covariate in known:
        if covariate.name not in covariates:
            raise ValueError(f"Covariate {covariate.name!r} is missing: the model was trained with it.")
        values = covariates[covariate.name]
        if covariate.categories is None:
            columns.append(_numbers(values)[:, None])
            continue
        text = values.astype(str).to_numpy()
        strangers = sorted(set(text) - set(covariate.categories))
        if strangers:
            expected = ", ".join(covariate.categories)
            raise ValueError(
                f"Covariate {covariate.name!r} has the unknown category {strangers[0]!r}; known: {expected}."
            )
        columns += [(text == category).astype(float)[:, None] for category in covariate.categories[1:]]
    return np.hstack(columns)


def _numbers(values: pd.Series) -> np.ndarray:
    try:
        numbers = values.to_numpy(dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Covariate {values.name!r} was a number in training, now it holds text.") from error
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(
            f"Covariate {values.name!r} is missing or infinite in row {row}: fill it in or drop the person."
        )
    return numbers


@dataclass(frozen=True, eq=False)
class ControlScaler:
    """Gives each region mean 1 and sd 0.1 in controls.

    Examples
    --------
    >>> scaler = ControlScaler.fit(np.array([[1.0], [3.0]]))
    >>> scaler.transform(np.array([[2.0], [4.0]])).ravel().tolist()
    [1.0, 1.2]
    """

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def fit(cls, controls: np.ndarray) -> ControlScaler:
        """Take mean and sd of controls."""
        return cls(controls.mean(axis=0), controls.std(axis=0))

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scale."""
        return 1 + SCALED_SD * (features - self.mean) / self.sd

    def inverse_transform(self, scaled: np.ndarray) -> np.ndarray:
        """Return to the units of the table."""
        return self.mean + (scaled - 1) * self.sd / SCALED_SD


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """All that happens to a table before training, with what was estimated in controls."""

    residualizer: CovariateResidualizer | None
    scaler: ControlScaler

    @classmethod
    def fit(cls, controls: np.ndarray, covariates: pd.DataFrame | None) -> Preprocessing:
        """Estimate everything in controls."""
        residualizer = None
        if covariates is not None:
            residualizer = CovariateResidualizer.fit(controls, covariates)
            controls = residualizer.transform(controls, covariates)
        return cls(residualizer, ControlScaler.fit(controls))

    def transform(self, features: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Remove covariates, then scale."""
        return self.scaler.transform(features - self._effect(covariates))

    def inverse_transform(self, scaled: np.ndarray, covariates: pd.DataFrame | None) -> np.ndarray:
        """Return to the table's units, with the covariates' effects."""
        return self.scaler.inverse_transform(scaled) + self._effect(covariates)

    def _effect(self, covariates: pd.DataFrame | None) -> np.ndarray | float:
        if (covariates is None) != (self.residualizer is None):
            names = [] if self.residualizer is None else [known.name for known in self.residualizer.covariates]
            expected = f"the covariates {', '.join(names)}" if names else "no covariates"
            found = "none" if covariates is None else ", ".join(map(str, covariates.columns))
            raise ValueError(f"The model was trained with {expected}, but got {found}.")
        return 0.0 if self.residualizer is None or covariates is None else self.residualizer.effect(covariates)


def whitening_matrix(controls: np.ndarray, strength: float) -> np.ndarray | None:
    """Return a linear map that decorrelates scaled controls (ZCA), mixed with the identity by `strength`.

    The covariance is shrunk after Ledoit and Wolf, so that it can be inverted with fewer controls than regions.
    """
    if strength == 0:
        return None
    covariance = ledoit_wolf((controls - controls.mean(axis=0)) / SCALED_SD)[0]
    values, vectors = np.linalg.eigh(covariance)
    zca = (vectors / np.sqrt(values)) @ vectors.T
    return strength * zca + (1 - strength) * np.eye(len(zca))
