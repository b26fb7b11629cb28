"""Missing regions: what is likely in their place, given a person's other regions.

People are taken to be normally distributed. Regions are drawn, not set to what is expected: people who are filled in
vary as others do.
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

_ROUNDS = 6  # of estimating and filling in; with a fifth missing, later ones change draws by less than 0.01 sd
_PASSES = 2  # of correcting and filling in
_DRAWS = 10  # which repetitions take in turn
_FOLDS = 3  # of people who are filled in by a population of the others
HIDDEN = 0.1  # share of their known regions that is hidden, to learn how good draws are


@dataclass(frozen=True, eq=False)
class Population:
    """A normal distribution of people's regions, which tells a person's missing regions from the others.

    Attributes
    ----------
    mean : ndarray of shape (regions,)
        Of each region.
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
        """Return people with their gaps (NaN) drawn, several times → ``(draws, people, regions)``.

        Draws come in pairs on both sides of what is expected, `spread` times as far from it as the population says.
        Without a `seed`, a person's draws do not depend on who else is in the table; and since all have the same random
        numbers, these have just the variance of normal ones in each direction, if there are as many pairs as gaps.
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
        """Return everybody's squared distance from the mean after decorrelation, divided by the number of regions."""
        away = people - self.mean
        two_steps = len(people) >= 5000  # the first of which the linear algebra library does
        return np.einsum("pi,ij,pj->p", away, self.precision, away, optimize=two_steps) / len(self.mean)

    def squared_correlation(self) -> float:
        """Return the mean square of the correlations of two regions."""
        covariance = np.linalg.inv(self.precision)
        sd = np.sqrt(np.diag(covariance))
        apart = ~np.eye(len(sd), dtype=bool)
        return float(((covariance / np.outer(sd, sd))[apart] ** 2).mean()) if len(sd) > 1 else 0.0

    @one_thread()
    def surprise(self, people: np.ndarray, hidden: np.ndarray) -> float:
        """Return how far `hidden` regions lie from what is expected without them, relative to what is said of that."""
        squares = [1.0]
        for row, gaps, expected, factor in self._conditionals(np.where(hidden, np.nan, people)):
            inverse = solve_triangular(factor, np.eye(len(expected)))
            hidden_values = hidden[row, gaps]
            errors = (people[row, gaps] - expected)[hidden_values] ** 2
            squares += (errors / (inverse**2).sum(axis=1)[hidden_values]).tolist()
        return float(np.sqrt(np.mean(squares)))

    def _conditionals(self, people: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Give who has gaps, where, what is expected there, and the upper factor of the precision around it."""
        for row in np.flatnonzero(np.isnan(people).any(axis=1)).tolist():
            gaps = np.isnan(people[row])
            away = people[row, ~gaps] - self.mean[~gaps]
            factor = cholesky(self.precision[np.ix_(gaps, gaps)])
            pull = solve_triangular(factor, self.precision[np.ix_(gaps, ~gaps)] @ away, trans=1)
            yield row, gaps, self.mean[gaps] - solve_triangular(factor, pull), factor

    @classmethod
    @one_thread()
    def with_gaps(cls, people: np.ndarray) -> Population:
        """Estimate from people with gaps, by expectation and maximisation (Dempster, Laird and Rubin, 1977)."""
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
    """Return people with their gaps drawn as others let expect → ``(draws, people, regions)``.

    A population that was estimated from few people fits them too well: whoever it fills in would vary too little. So
    everybody is filled in by a population of others, and draws are as far from what it expects as regions are that are
    known and were hidden from it.
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
    """Return the regions of training people with their gaps drawn, given their covariates and other regions.

    The result has several draws, for repetitions to differ in ``(draws, people, regions)``; without gaps, one. It is
    the caller's to change.

    Controls and patients are one population here, and nothing looks at the diagnosis: drawn from a population of each,
    cells would carry it, and a table without disease would separate. What patients have in common is in the covariance
    of everybody, so that little of it is lost; controls vary a little more for it than those who were measured fully
    (by 5 and 11 % along patterns with 10 and 20 % of the cells missing), which makes intervals wider. Covariates are
    corrected for before, and put in again afterwards.
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
