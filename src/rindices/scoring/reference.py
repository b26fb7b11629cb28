"""Controls as healthy people whom a model has not seen: their brains, and their R-indices.

Networks memorise the controls that they learn from, so these vary less than healthy people do. Each repetition leaves
some out; a control is scored by the repetitions that did not see it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rindices.preprocessing import SCALED_SD

_MOST_LEVERAGE = 0.9  # of a control; nearly nobody else tells its covariates' effects beyond


class Variances(NamedTuple):
    """Of scores around what is expected: between people, and between repetitions about one person."""

    person: np.ndarray
    repetition: np.ndarray

    def shrinkage(self, n_scores: np.ndarray, n_repetitions: int) -> np.ndarray:
        """Return the sd of the mean over all repetitions, relative to that of the mean over some of them."""
        some = self.person + self.repetition / np.maximum(n_scores, 1)[:, None]
        return np.sqrt((self.person + self.repetition / n_repetitions) / some)


def split_variance(scores: np.ndarray, known: np.ndarray) -> Variances:
    """Split the variance of centred `scores` ``(repetitions, people, patterns)``, as far as they are `known`.

    Where nobody has two scores, all of it is taken to be between people.
    """
    n_scores = known.sum(axis=0)
    several = n_scores > 1
    if not several.any():
        person = (scores[known] ** 2).mean(axis=0)
        return Variances(person, np.zeros_like(person))
    means = mean_known(scores, known)
    within = np.where(known[:, several, None], scores[:, several] - means[several], 0)
    repetition = (within**2).sum(axis=(0, 1)) / (n_scores[several] - 1).sum()
    between = (means[several] ** 2).mean(axis=0) - repetition * (1 / n_scores[several]).mean()
    return Variances(np.maximum(between, 0), repetition)


def mean_known(scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the mean of each person's known `scores` ``(repetitions, people, patterns)``; 0 where there are none."""
    total = np.where(known[..., None], scores, 0).sum(axis=0)
    return total / np.maximum(known.sum(axis=0), 1)[:, None]


def leave_one_out(controls: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Return scaled controls as they would be had each been left out of the estimation of effects, means and sds.

    Parameters
    ----------
    controls : ndarray of shape (controls, regions)
        Residuals of a least-squares fit to these controls, scaled by their own mean and sd.
    leverage : ndarray of shape (controls,)
        Of each in that fit.

    Examples
    --------
    >>> volumes = np.array([1.0, 2.0, 4.0, 5.0])
    >>> scaled = 1 + SCALED_SD * (volumes - volumes.mean())[:, None] / volumes.std()
    >>> others = volumes[1:]
    >>> expected = 1 + SCALED_SD * (volumes[0] - others.mean()) / others.std()
    >>> bool(np.isclose(leave_one_out(scaled, np.full(4, 1 / 4))[0, 0], expected))
    True
    """
    n_controls, left = len(controls), 1 - np.minimum(leverage, _MOST_LEVERAGE)[:, None]
    residuals = (controls - 1) / SCALED_SD
    squares = np.maximum(n_controls - residuals**2 / left, 1e-3 * n_controls)  # without one of them
    return 1 + SCALED_SD * (residuals / left) / np.sqrt(squares / (n_controls - 1))


def held_out_scores(scores: np.ndarray, held_out: np.ndarray, n_repetitions: int) -> np.ndarray:
    """Return R-indices of controls as the consensus would give them to people like them whom nobody has seen.

    Repetitions have their own means, and a mean over few varies more than the consensus: both are allowed for.
    Whoever was seen by all gets the score of those, stretched to vary as much as those of the others.

    Parameters
    ----------
    scores : ndarray of shape (repetitions, controls, patterns)
        By each repetition.
    held_out : ndarray of shape (repetitions, controls)
        Whom it has not learned from.
    n_repetitions : int
        Behind the consensus.
    """
    seen, known = scores.mean(axis=0), np.asarray(held_out.any(axis=0))
    if known.sum() < 2:
        return seen
    scores, held_out = (of[held_out.any(axis=1)] for of in (scores, held_out))
    means = np.stack([of[out].mean(axis=0) for of, out in zip(scores, held_out, strict=True)])
    centred = scores - means[:, None]
    shrinkage = split_variance(centred, held_out).shrinkage(held_out.sum(axis=0), n_repetitions)
    honest = mean_known(centred, held_out) * shrinkage
    always = seen if known.all() else seen[~known]  # the others' scores are partly of repetitions that left them out
    stretch = honest[known].std(axis=0) / np.maximum(always.std(axis=0), 1e-12)
    return means.mean(axis=0) + np.where(known[:, None], honest, (seen - always.mean(axis=0)) * stretch)
