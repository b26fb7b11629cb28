"""How far synthesised patients are from the real ones, by which too few patterns show.

Repetitions may agree about too few patterns. But only with enough of them do synthesised patients covary as the
patients do.
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

_N_BLOCKS = 10
_MADE = 4000  # synthesised patients of each repetition
_LEAST = 1.0  # squared distance; chance makes what is smaller
_LEAST_SD = 0.25  # of the logarithm among repetitions, which three of them do not tell


class Misfit(NamedTuple):
    """Squared distance between the covariances of synthesised and of real patients, by each repetition."""

    distances: np.ndarray

    @property
    def value(self) -> float:
        """Geometric mean over repetitions: a few of them fail, and are then far off."""
        return float(np.exp(self._logarithms.mean()))

    @property
    def _logarithms(self) -> np.ndarray:
        return np.log(np.maximum(self.distances, _LEAST))

    @property
    def _variance(self) -> float:
        """Of the mean logarithm: the jackknife's, which is that of any mean."""
        logarithms = self._logarithms
        sd = logarithms.std(ddof=1) if len(logarithms) > 1 else 0.0
        return float(max(sd, _LEAST_SD) ** 2 / len(logarithms))

    def is_clearly_above(self, other: Misfit, errors: float) -> bool:
        """Whether it is larger by more than so many standard errors of the difference of logarithms."""
        difference = self._logarithms.mean() - other._logarithms.mean()
        return bool(difference > errors * np.sqrt(self._variance + other._variance))


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
    real, distances = covariances(rng.permutation(people.patients) @ whitening), []
    for k, correlation in enumerate(correlations):
        model = jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], models)
        scores = rng.standard_normal((_MADE, len(correlation))) @ np.linalg.cholesky(correlation).T
        brains = people.controls[rng.integers(len(people.controls), size=_MADE)]
        made = inference.synthesise(model, brains, ndtr(scores), composition)[0]
        distances.append(squared_distance(covariances(made @ whitening), real))
    return Misfit(np.array(distances))


def covariances(people: np.ndarray) -> np.ndarray:
    """Return the covariance of each block of people, in sd of controls → ``(blocks, regions, regions)``."""
    centred = (people - people.mean(axis=0)) / SCALED_SD
    return np.stack([block.T @ block / len(block) for block in np.array_split(centred, _N_BLOCKS)])


def squared_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the squared Frobenius distance of two covariances, given by blocks, without what chance adds.

    Products of the differences of two blocks, over all pairs of blocks: errors of different blocks are independent, so
    that their products have no mean.
    """
    differences = (first - second).reshape(_N_BLOCKS, -1)
    total = differences.sum(axis=0)
    return float((total @ total - (differences**2).sum()) / (_N_BLOCKS * (_N_BLOCKS - 1)))
