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
        every = self.person + self.repetition / n_repetitions
        return np.sqrt(np.divide(every, some, out=np.ones_like(some), where=some > 0))  # 1 where all are alike


def split_variance(scores: np.ndarray, unseen: np.ndarray, scored: np.ndarray | None = None) -> Variances:
    """Split the variance of centred `scores` ``(repetitions, people, patterns)`` of people who are `unseen`.

    Where nobody has two such scores (as with five repetitions that each leave out another fifth), repetitions are taken
    to differ about a person as those of `scored` do, who may have learned from it and so differ less. Without these,
    all of the variance is taken to be between people.
    """
    several = unseen.sum(axis=0) > 1
    if several.any():
        means = mean_known(scores, unseen)
        between = (means[several] ** 2).mean(axis=0)
        repetition = _within(scores[:, several], unseen[:, several])
        between -= repetition * (1 / unseen.sum(axis=0)[several]).mean()
        return Variances(np.maximum(between, 0), repetition)
    person = (scores[unseen] ** 2).mean(axis=0)
    repetition = np.zeros_like(person) if scored is None else np.minimum(_within(scores, scored), person)
    return Variances(person - repetition, repetition)


def _within(scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the variance of the `known` scores around the mean of each person."""
    around = np.where(known[..., None], scores - mean_known(scores, known), 0)
    return (around**2).sum(axis=(0, 1)) / np.maximum((known.sum(axis=0) - 1).clip(0).sum(), 1)


def mean_known(scores: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Return the mean of each person's known `scores` ``(repetitions, people, patterns)``; 0 where there are none."""
    total = np.where(unseen[..., None], scores, 0).sum(axis=0)
    return total / np.maximum(unseen.sum(axis=0), 1)[:, None]


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


class HeldOut(NamedTuple):
    """How controls get R-indices as the consensus would give them to people like them whom nobody has seen.

    Repetitions have their own means, and a mean over few varies more than the consensus: both are allowed for.
    Whoever was seen by all gets the score of those, stretched to vary as much as those of the others.

    Attributes
    ----------
    held_out : ndarray of shape (repetitions, controls)
        Whom each repetition has not learned from.
    means : ndarray of shape (repetitions that left somebody out, patterns)
        Of the scores of these.
    shrinkage : ndarray of shape (controls, patterns)
        Of what a control's scores by few repetitions are above the mean.
    always : ndarray of shape (2, patterns)
        Mean score of those whom all have seen, and how much theirs are stretched.
    """

    held_out: np.ndarray
    means: np.ndarray
    shrinkage: np.ndarray
    always: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, held_out: np.ndarray, n_repetitions: int) -> HeldOut:
        """Learn it from the scores of controls ``(repetitions, controls, patterns)``, `n_repetitions` in consensus."""
        seen, (known, left) = scores.mean(axis=0), (np.asarray(held_out.any(axis=axis)) for axis in (0, 1))
        if known.sum() < 2:
            return cls(np.zeros_like(held_out), np.zeros((1, 1)), np.zeros((1, 1)), np.array([[0.0], [1.0]]))
        means = np.stack([of[out].mean(axis=0) for of, out in zip(scores[left], held_out[left], strict=True)])
        centred, by = scores[left] - means[:, None], held_out[left]
        shrinkage = split_variance(centred, by).shrinkage(by.sum(axis=0), n_repetitions)
        honest = mean_known(centred, by) * shrinkage
        always = seen if known.all() else seen[~known]  # the others' scores are partly of repetitions that left them
        stretch = honest[known].std(axis=0) / np.maximum(always.std(axis=0), 1e-12)
        return cls(held_out, means, shrinkage, np.stack([always.mean(axis=0), stretch]))

    def scores(self, scores: np.ndarray, control: np.ndarray) -> np.ndarray:
        """Return R-indices of scans of controls, from scores ``(repetitions, scans, patterns)`` and whose they are."""
        left, (mean, stretch) = np.asarray(self.held_out.any(axis=1)), self.always
        seen = (scores.mean(axis=0) - mean) * stretch
        if not left.any():
            return seen
        by = self.held_out[left][:, control]
        honest = mean_known(scores[left] - self.means[:, None], by) * self.shrinkage[control]
        return self.means.mean(axis=0) + np.where(np.asarray(by.any(axis=0))[:, None], honest, seen)
