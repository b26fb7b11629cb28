"""How far synthesised patients are from the real ones, by which too few patterns show.

Repetitions may agree about too few patterns, or, where a disease is mild, about too many. But only with enough of them
do synthesised patients covary as the patients do.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from scipy.special import ndtr

from rindices.core import inference
from rindices.core.networks import Parameters
from rindices.core.train import People
from rindices.preprocessing import SCALED_SD

N_BLOCKS = 10
_MADE = 4000  # synthesised patients of each repetition


class Misfit(NamedTuple):
    """Squared distance of two covariances, of synthesised and of real patients, by blocks of both.

    Attributes
    ----------
    products : ndarray of shape (repetitions, blocks, blocks)
        Inner products of the blocks' differences. Those of different blocks have the squared distance for their mean,
        without what chance adds.
    """

    products: np.ndarray

    @property
    def value(self) -> float:
        """Squared distance, mean over repetitions."""
        return float(_between_blocks(self.products.mean(axis=0)))

    def is_clearly_above(self, other: Misfit, errors: float) -> bool:
        """Whether it is larger by more than so many jackknife standard errors of the difference."""
        return self.value - other.value > errors * np.hypot(self._error_with(other), self.error_of_repetitions(other))

    def _error_with(self, other: Misfit) -> float:
        """Return the jackknife error over blocks of patients, who are the same for both."""
        both = [of.products.mean(axis=0) for of in (self, other)]
        left = [np.delete(np.arange(N_BLOCKS), out) for out in range(N_BLOCKS)]
        values = [_between_blocks(both[0][np.ix_(of, of)]) - _between_blocks(both[1][np.ix_(of, of)]) for of in left]
        return float(np.sqrt((N_BLOCKS - 1) * np.var(values)))

    def error_of_repetitions(self, other: Misfit) -> float:
        """Return the standard error of the difference over repetitions, which are not the same."""
        values = [np.array([_between_blocks(of) for of in one.products]) for one in (self, other)]
        return float(np.sqrt(sum(of.var(ddof=1) / len(of) if len(of) > 1 else 0.0 for of in values)))


def _between_blocks(products: np.ndarray) -> float:
    n_blocks = len(products)
    return float((products.sum() - np.trace(products)) / (n_blocks * (n_blocks - 1)))


def misfit(models: Parameters, correlations: np.ndarray, people: People, composition: str, seed: int) -> Misfit:
    """Compare patients that each model synthesises with the real ones, as the discriminator sees them.

    Parameters
    ----------
    models
        Some repetitions.
    correlations
        Of severities, that each has learned.
    people
        Whom they learned from.
    composition
        How patterns add up in f.
    seed
        Of the draws.
    """
    rng, whitening = np.random.default_rng([seed, 7]), people.whitening
    whitening = np.eye(people.controls.shape[1]) if whitening is None else whitening
    real = _blocks_of_covariance(rng.permutation(people.patients) @ whitening)
    products = []
    for k, correlation in enumerate(correlations):
        model = jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], models)
        scores = rng.standard_normal((_MADE, len(correlation))) @ np.linalg.cholesky(correlation).T
        brains = people.controls[rng.integers(len(people.controls), size=_MADE)]
        made = inference.synthesise(model, brains, ndtr(scores), composition)[0]
        differences = (_blocks_of_covariance(made @ whitening) - real).reshape(N_BLOCKS, -1)
        products.append(differences @ differences.T)
    return Misfit(np.stack(products))


def _blocks_of_covariance(people: np.ndarray) -> np.ndarray:
    """Return what each block of people adds to the covariance, in sd of controls → ``(blocks, regions, regions)``."""
    centred = (people - people.mean(axis=0)) / SCALED_SD
    return np.stack([block.T @ block / len(block) for block in np.array_split(centred, N_BLOCKS)])
