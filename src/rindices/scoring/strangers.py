"""How far a person lies from anything that a model can produce: healthy brains, changed by its patterns or not.

A plain distance from controls would flag the sick. Here patients belong to those who are expected: people made from the
controls by the learned patterns, at severities that the model takes for likely. What counts as far is learned from
controls who were left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from rindices.core.networks import Parameters, n_patterns
from rindices.preprocessing.missing import Population
from rindices.scoring.intervals import Healthy, make_people

FEWEST_CONTROLS = 20  # fewer say nothing of how far healthy people lie
_FOLDS = 20  # the more, the nearer is what is judged to what is used
_BEYOND = 2.2  # sd of the logarithm of held-out controls' distances: 1.4 % of them, were it normal


@dataclass(frozen=True, eq=False)
class Familiar:
    """People whom a model can produce, and how far healthy people lie from their middle.

    Attributes
    ----------
    population : Population
        Of controls and of people made from them, scaled.
    usual : ndarray of shape (2,)
        Mean and sd of the logarithm of the distances of controls that the population was not estimated from.
    """

    population: Population
    usual: np.ndarray

    def strangeness(self, people: np.ndarray, gaps: np.ndarray | None = None) -> np.ndarray:
        """Return how far people lie from all that the model can produce; above 1 they are strangers.

        Regions in `gaps` are what is expected given the others, and add nothing to a distance: it is one of the others.
        """
        mean, sd = self.usual
        share = 1 if gaps is None else 1 - gaps.mean(axis=1)
        return np.sqrt(self.population.distances(people) / share / np.exp(mean + _BEYOND * sd))

    def strangest(self, person: np.ndarray, number: int) -> np.ndarray:
        """Return the regions that add most to a person's distance, the strangest first."""
        away = person - self.population.mean
        return np.argsort(-away * (self.population.precision @ away), kind="stable")[:number]


def fit_familiar(
    models: Parameters, healthy: Healthy, composition: str, correlation: np.ndarray | None, seed: int
) -> Familiar | None:
    """Learn what people a model can produce: controls, and as many made from them; None with too few controls."""
    n_controls, n_models = len(healthy.brains), len(healthy.held_out)
    if n_controls < FEWEST_CONTROLS:
        return None
    rng = np.random.default_rng([seed, n_controls, 1])
    number = n_patterns(models)
    factor = np.eye(number) if correlation is None else np.linalg.cholesky(correlation)
    severities = ndtr(rng.standard_normal((n_controls, number)) @ factor.T)
    maker = rng.integers(n_models, size=n_controls)
    people = np.stack([healthy.brains, make_people(models, healthy.brains, severities, maker, composition)])
    fold = rng.permutation(n_controls) % _FOLDS
    logarithms = np.empty(n_controls)
    for one in range(_FOLDS):
        others = Population.of(np.concatenate(people[:, fold != one]))
        logarithms[fold == one] = np.log(others.distances(people[0, fold == one]))
    return Familiar(Population.of(np.concatenate(people)), np.array([logarithms.mean(), logarithms.std(ddof=1)]))
