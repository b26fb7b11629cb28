"""A population of healthy adults to draw from, described by one small parameter file.

Volumes follow linear effects of age, squared age and sex; what is left over keeps each region's own distribution
(quantiles) and the correlation between regions (Gaussian copula). No person in a draw is a real person.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr


@dataclass(frozen=True, eq=False)
class ReferencePopulation:
    """Parameters of a healthy population, and draws from it.

    Attributes
    ----------
    source, licence, unit : str
        Where the parameters come from, their terms, and the unit of the volumes.
    n_people : int
        How many people the parameters were fitted to.
    age_mean, age_square_mean, share_of_sex_1 : float
        Means of age, of squared centred age and of sex (0/1); the effects refer to deviations from them.
    probabilities : ndarray of shape (n_probabilities,)
        Levels of the quantiles, from 0 to 1: the ends are the observed smallest and largest values.
    age_quantiles : ndarray of shape (n_probabilities,)
        Quantiles of age in years.
    regions : tuple of str
        Names of the regions.
    smallest : ndarray of shape (n_regions,)
        Smallest observed volumes; no draw goes below half of them, so that volumes stay above zero.
    effects : ndarray of shape (n_regions, 4)
        Mean volume, change per year, per squared year, and of sex 1 against sex 0.
    residual_quantiles : ndarray of shape (n_regions, n_probabilities)
        Quantiles of what age and sex leave unexplained.
    correlation : ndarray of shape (n_regions, n_regions)
        Correlation of the residuals' normal scores.

    Examples
    --------
    >>> import numpy as np
    >>> people = ReferencePopulation.load().draw(100, np.random.default_rng(0))
    >>> people.shape
    (100, 130)
    """

    source: str
    licence: str
    unit: str
    n_people: int
    age_mean: float
    age_square_mean: float
    share_of_sex_1: float
    probabilities: np.ndarray
    age_quantiles: np.ndarray
    regions: tuple[str, ...]
    smallest: np.ndarray
    effects: np.ndarray
    residual_quantiles: np.ndarray
    correlation: np.ndarray

    @classmethod
    @cache
    def load(cls) -> ReferencePopulation:
        """Read the parameter file that comes with the package (once per process)."""
        text = resources.files(__package__).joinpath("reference_population.json").read_text(encoding="utf-8")
        stored = json.loads(text)
        arrays = ("probabilities", "age_quantiles", "smallest", "effects", "residual_quantiles")
        plain = ("source", "licence", "unit", "n_people", "age_mean", "age_square_mean", "share_of_sex_1")
        fields: dict[str, Any] = {name: stored[name] for name in plain}
        fields |= {name: _frozen(np.array(stored[name], dtype=float)) for name in arrays}
        correlation = _frozen(_full_correlation(stored["correlation_upper"]))
        return cls(**fields, regions=tuple(stored["regions"]), correlation=correlation)

    def draw(self, n: int, rng: np.random.Generator) -> pd.DataFrame:
        """Draw new people.

        Parameters
        ----------
        n : int
            Number of people, at least 1.
        rng : numpy.random.Generator
            Source of randomness; the same state gives the same people.

        Returns
        -------
        DataFrame of shape (n, 2 + n_regions)
            ``age`` in years (two decimals), ``sex`` (0/1), then the volume of each region, all above zero.
        """
        if n < 1:
            raise ValueError(f"Expected at least 1 person to draw, found n={n}. Ask for a positive number of people.")
        age = np.interp(rng.random(n), self.probabilities, self.age_quantiles).round(2)
        sex = (rng.random(n) < self.share_of_sex_1).astype(int)
        volumes = np.maximum(self._expected(age, sex) + self._residuals(n, rng), self.smallest / 2)
        table = pd.DataFrame(volumes, columns=list(self.regions))
        return pd.concat([pd.DataFrame({"age": age, "sex": sex}), table], axis=1)

    def _expected(self, age: np.ndarray, sex: np.ndarray) -> np.ndarray:
        years = age - self.age_mean
        terms = [np.ones(len(age)), years, years**2 - self.age_square_mean, sex - self.share_of_sex_1]
        return np.column_stack(terms) @ self.effects.T

    def _residuals(self, n: int, rng: np.random.Generator) -> np.ndarray:
        scores = rng.standard_normal((n, len(self.regions))) @ np.linalg.cholesky(self.correlation).T
        # Interpolating between quantiles, with the observed extremes at 0 and 1, invents no value beyond them.
        levels = ndtr(scores)
        columns = [np.interp(levels[:, j], self.probabilities, row) for j, row in enumerate(self.residual_quantiles)]
        return np.column_stack(columns)


def _full_correlation(upper: list[list[float]]) -> np.ndarray:
    """Rebuild the symmetric matrix from the rows right of its diagonal."""
    correlation = np.eye(len(upper) + 1)
    for i, row in enumerate(upper):
        correlation[i, i + 1 :] = correlation[i + 1 :, i] = row
    return correlation


def _frozen(array: np.ndarray) -> np.ndarray:
    # The loaded population is shared by the whole process; a change in place would reach every later draw.
    array.setflags(write=False)
    return array
