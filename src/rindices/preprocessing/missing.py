"""Imputation of missing regions, given a person's other regions.

Regions are assumed to be multivariate normal. Missing ones are drawn at random, not set to their expectation, so that
imputed people vary as others do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular

from rindices.linear import ledoit_wolf, one_thread
from rindices.preprocessing.pipeline import Preprocessing
from rindices.presets import Correction

_ROUNDS = 6  # of expectation and maximisation; with a fifth missing, further ones change draws by less than 0.01 sd
_PASSES = 2  # of correction and imputation
_DRAWS = 10  # which repetitions use in turn
_FOLDS = 3  # of people, each imputed from a population of the others
HIDDEN = 0.1  # share of known regions that is hidden, to assess the draws


@dataclass(frozen=True, eq=False)
class Population:
    """A multivariate normal distribution of regions, from which a person's missing regions are predicted.

    Attributes
    ----------
    mean : ndarray of shape (regions,)
        Mean of each region.
    precision : ndarray of shape (regions, regions)
        Inverse of the covariance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=(500, 1))
    >>> known = Population.of(size + 0.1 * rng.normal(size=(500, 3)))
    >>> draws = known.fill(np.array([[2.0, 2.0, np.nan]]), 200)
    >>> bool(abs(draws[:, 0, 2].mean() - 2) < 0.2)
    True
    """

    mean: np.ndarray
    precision: np.ndarray

    @classmethod
    def of(cls, people: np.ndarray) -> Population:
        """Estimate from people without gaps; the covariance is shrunk after Ledoit and Wolf."""
        mean = people.mean(axis=0)
        return cls(mean, np.linalg.inv(ledoit_wolf(people - mean, assume_centered=True)[0]))

    @one_thread()
    def fill(self, people: np.ndarray, n_draws: int, seed: Sequence[int] = (), spread: float = 1.0) -> np.ndarray:
        """Return several imputations of people's gaps (NaN) → ``(draws, people, regions)``.

        Draws come in pairs on both sides of the expectation, `spread` times as far from it as the population implies.
        Without a `seed`, a person's draws do not depend on who else is in the table; and since everyone has the same
        random numbers, these have exactly unit variance in each direction, if there are at least as many pairs as gaps.
        """
        filled = np.repeat(people[None], n_draws, axis=0)
        for row, gaps, expected, factor in self._conditionals(people):
            rng = np.random.default_rng([*seed, row] if seed else 0)
            noise = rng.standard_normal((len(expected), (n_draws + 1) // 2))
            if not seed:
                left, _, right = np.linalg.svd(noise, full_matrices=False)
                noise = np.sqrt(max(noise.shape)) * left @ right
            one_side = solve_triangular(factor, spread * noise)
            filled[:, row, gaps] = (expected[:, None] + np.hstack([one_side, -one_side])[:, :n_draws]).T
        return filled

    def distances(self, people: np.ndarray) -> np.ndarray:
        """Return each person's squared Mahalanobis distance from the mean, divided by the number of regions."""
        away = people - self.mean
        two_steps = len(people) >= 5000  # the first of which uses the linear algebra library
        return np.einsum("pi,ij,pj->p", away, self.precision, away, optimize=two_steps) / len(self.mean)

    def squared_correlation(self) -> float:
        """Return the mean squared correlation between two regions."""
        covariance = np.linalg.inv(self.precision)
        sd = np.sqrt(np.diag(covariance))
        apart = ~np.eye(len(sd), dtype=bool)
        return float(((covariance / np.outer(sd, sd))[apart] ** 2).mean()) if len(sd) > 1 else 0.0

    @one_thread()
    def surprise(self, people: np.ndarray, hidden: np.ndarray) -> float:
        """Return the root mean square error of predicting `hidden` regions, each in units of its predicted sd."""
        squares = [1.0]
        for row, gaps, expected, factor in self._conditionals(np.where(hidden, np.nan, people)):
            inverse = solve_triangular(factor, np.eye(len(expected)))
            hidden_values = hidden[row, gaps]
            errors = (people[row, gaps] - expected)[hidden_values] ** 2
            squares += (errors / (inverse**2).sum(axis=1)[hidden_values]).tolist()
        return float(np.sqrt(np.mean(squares)))

    def _conditionals(self, people: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield each row with gaps, the gaps, their expectation, and the upper Cholesky factor of their precision."""
        for row in np.flatnonzero(np.isnan(people).any(axis=1)).tolist():
            gaps = np.isnan(people[row])
            away = people[row, ~gaps] - self.mean[~gaps]
            factor = cholesky(self.precision[np.ix_(gaps, gaps)])
            pull = solve_triangular(factor, self.precision[np.ix_(gaps, ~gaps)] @ away, trans=1)
            yield row, gaps, self.mean[gaps] - solve_triangular(factor, pull), factor

    @classmethod
    @one_thread()
    def with_gaps(cls, people: np.ndarray) -> Population:
        """Estimate from people with gaps, by expectation–maximisation (Dempster, Laird and Rubin, 1977)."""
        gaps = np.isnan(people)
        mean, variance = np.nanmean(people, axis=0), np.nanvar(people, axis=0)
        population = cls(mean, np.diag(1 / np.maximum(variance, np.finfo(float).tiny)))
        for _ in range(_ROUNDS if gaps.any() else 1):
            expected, uncertain = people.copy(), np.zeros(population.precision.shape)
            for row, own, likely, factor in population._conditionals(people):
                expected[row, own] = likely
                inverse = solve_triangular(factor, np.eye(len(likely)))
                uncertain[np.ix_(own, own)] += inverse @ inverse.T
            mean = expected.mean(axis=0)
            shrunk, strength = ledoit_wolf(expected - mean, assume_centered=True)
            population = cls(mean, np.linalg.inv(shrunk + (1 - strength) * uncertain / len(people)))
        return population


def _filled(people: np.ndarray, seed: int, n_draws: int) -> np.ndarray:
    """Return people with their gaps imputed from the distribution of others → ``(draws, people, regions)``.

    A population estimated from few people overfits them, so values that it imputes for these people vary too little.
    Everyone is therefore imputed from a population of others, and draws are made to deviate from its predictions as
    much as known regions that were hidden from it.
    """
    rng, filled = np.random.default_rng([seed, len(people)]), np.repeat(people[None], n_draws, axis=0)
    fold = rng.permutation(len(people)) % _FOLDS
    for one in range(_FOLDS):
        rows, others = fold == one, people[fold != one]
        population = Population.with_gaps(people if np.isnan(others).all(axis=0).any() else others)
        hidden = rng.random(people[rows].shape) < HIDDEN
        spread = population.surprise(people[rows], hidden & ~np.isnan(people[rows]))
        filled[:, rows] = population.fill(people[rows], n_draws, (seed, one), max(spread, 1.0))
    return filled


def fill_training(
    regions: np.ndarray, covariates: pd.DataFrame | None, correction: Correction | None, seed: int
) -> np.ndarray:
    """Return the regions of training people with their gaps imputed from their covariates and other regions.

    The result ``(draws, people, regions)`` has several draws, so that repetitions differ; without gaps, it has one. The
    caller may modify it.

    Controls and patients form one population here, and the diagnosis is not used: if each group had its own population,
    imputed cells would carry the diagnosis, and groups would separate even without disease. What patients have in
    common is part of the overall covariance, so that little of it is lost; as a result, controls with gaps vary a
    little more than those without (by 5 and 11 % along patterns with 10 and 20 % of the cells missing), which widens
    intervals. Effects of covariates are removed before imputation and added back afterwards.
    """
    gaps = np.isnan(regions)
    if not gaps.any():
        return regions[None].copy()
    filled = np.where(gaps, np.nanmean(regions, axis=0), regions)[None]
    for n_draws in (1,) * (_PASSES - 1) + (_DRAWS,):
        fitted = Preprocessing.fit(filled[0], covariates, correction)
        scaled = np.where(gaps, np.nan, fitted.transform(filled[0], covariates))
        filled = _filled(scaled, seed, n_draws)
        for draw in filled:  # in place: ten draws of a large table are large
            draw[:] = np.where(gaps, fitted.inverse_transform(draw, covariates), regions)
    return filled
