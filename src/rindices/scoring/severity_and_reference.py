"""The scale of a model's R-indices: severity, and centile among healthy people.

R is roughly a person's rank among the patients, whatever their severities are; the curve of a pattern converts it to
the share of the largest change that was learned. The scale is fitted elsewhere, and stored with the model.

Healthy people are controls whom a model has not seen. Networks memorise the controls that they learn from, so these
vary less than healthy people do. Each repetition leaves some out; a control is scored by the repetitions that did not
learn from that control.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from rindices.preprocessing import SCALED_SD

KNOTS = np.linspace(0, 1, 17)  # R-indices at which curves are defined
# There are people beyond the largest change that was learned, too; for them, f extrapolates.
DOSES = np.array([0, 0.04, 0.08, 0.13, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2])
_TAIL = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.16, 0.25]
LEVELS = np.array([*_TAIL, 0.5, *(1 - level for level in reversed(_TAIL))])
CENTILES = np.linspace(0, 1, 101)
# Shapes of what a scale stores for each pattern.
SHAPES = {
    "curves": KNOTS.shape,
    "reference": CENTILES.shape,
    "quantiles": (len(DOSES), len(LEVELS)),
    "patients": CENTILES.shape,
}
_STEEPER = 1e-9  # keeps all points of a curve distinct


@dataclass(frozen=True, eq=False)
class SeverityScale:
    """Conversion of R-indices to severities, their intervals and centiles; all arrays have one row per pattern.

    Attributes
    ----------
    curves : ndarray of shape (patterns, knots)
        Severity at each of `KNOTS`: the share of the largest change that was learned.
    reference : ndarray of shape (patterns, centiles), optional
        R-indices of controls by repetitions that did not learn from them, at each of `CENTILES`.
    quantiles : ndarray of shape (patterns, doses, levels), optional
        Quantiles `LEVELS` of the R-indices of people with the severities `DOSES`; increasing along both.
    patients : ndarray of shape (patterns, centiles), optional
        R-indices of the training patients, at each of `CENTILES`.

    Examples
    --------
    >>> scale = SeverityScale(KNOTS[None] ** 2)
    >>> scale.severities(np.array([[0.0], [0.5], [1.0]])).ravel().round(3).tolist()
    [0.0, 0.25, 1.0]
    """

    curves: np.ndarray
    reference: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    patients: np.ndarray | None = None

    def severities(self, r_indices: np.ndarray) -> np.ndarray:
        """Return the severities of people with these R-indices ``(people, patterns)``, from 0 to the largest dose."""
        columns = [on_line(r, KNOTS, curve) for r, curve in zip(r_indices.T, self.curves, strict=True)]
        return np.clip(np.column_stack(columns), 0, DOSES[-1])

    def centiles(self, r_indices: np.ndarray) -> np.ndarray:
        """Return people's centiles among the held-out controls, from 0 to 100; NaN if there are none."""
        if self.reference is None:
            return np.full(r_indices.shape, np.nan)
        rows = zip(r_indices.T, self.reference, strict=True)
        return 100 * np.column_stack([np.interp(r, known, CENTILES) for r, known in rows])


def on_line(values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Interpolate linearly, and extrapolate along the first and the last piece; `x` is made to increase.

    Examples
    --------
    >>> on_line(np.array([-1.0, 0.5, 3.0]), np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])).round(6).tolist()
    [-1.0, 0.5, 5.0]
    """
    x = increasing(x)
    inside = np.interp(values, x, y)
    first, last = ((y[b] - y[a]) / (x[b] - x[a]) for a, b in ((0, 1), (-2, -1)))
    return inside + first * np.minimum(values - x[0], 0) + last * np.maximum(values - x[-1], 0)


def increasing(values: np.ndarray) -> np.ndarray:
    """Return the running maximum along the last axis, plus tiny steps that make it strictly increasing."""
    return np.maximum.accumulate(values, axis=-1) + _STEEPER * np.arange(values.shape[-1])


def doses_at(r_indices: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the severity at which each person's own increasing edges ``(people, DOSES)`` reach the R-index.

    Examples
    --------
    >>> doses_at(np.array([-0.1, 0.12, 1.97, 2.1]), np.tile(DOSES, (4, 1))).round(2).tolist()
    [0.0, 0.12, 1.97, 2.0]
    """
    below = np.clip((edges <= r_indices[:, None]).sum(axis=1) - 1, 0, len(DOSES) - 2)[:, None]
    low, high = (np.take_along_axis(edges, below + step, axis=1)[:, 0] for step in (0, 1))
    share = np.clip((r_indices - low) / (high - low), 0, 1)
    return DOSES[below[:, 0]] + share * np.diff(DOSES)[below[:, 0]]


_MOST_LEVERAGE = 0.9  # of a control; beyond it, almost nobody else informs the effects of its covariates


def shrinkage_of_means(
    scores: np.ndarray, unseen: np.ndarray, n_repetitions: int, scored: np.ndarray | None = None
) -> np.ndarray:
    """Return the sd of a mean score over all repetitions, relative to that over those by which a person is `unseen`.

    The other arguments are those of `split_variance`.
    """
    person, repetition = split_variance(scores, unseen, scored)
    some = person + repetition / np.maximum(unseen.sum(axis=0), 1)[:, None]
    every = person + repetition / n_repetitions
    return np.sqrt(np.divide(every, some, out=np.ones_like(some), where=some > 0))  # 1 where all are alike


def split_variance(
    scores: np.ndarray, unseen: np.ndarray, scored: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Split the variance of centred `scores` ``(repetitions, people, patterns)`` of people who are `unseen`.

    Return the variance between people, and between repetitions within a person.

    If nobody has two such scores (as with five repetitions that each leave out a different fifth), the variance within
    a person is that of the `scored` repetitions that have learned from the person, which differ less. Without these,
    all variance is attributed to differences between people.
    """
    several = unseen.sum(axis=0) > 1
    if several.any():
        means = mean_known(scores, unseen)
        between = (means[several] ** 2).mean(axis=0)
        repetition = _within(scores[:, several], unseen[:, several])
        between -= repetition * (1 / unseen.sum(axis=0)[several]).mean()
        return np.maximum(between, 0), repetition
    person = (scores[unseen] ** 2).mean(axis=0)
    repetition = np.zeros_like(person) if scored is None else np.minimum(_within(scores, scored & ~unseen), person)
    return person - repetition, repetition


def _within(scores: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the variance of the `known` scores around the mean of each person."""
    around = np.where(known[..., None], scores - mean_known(scores, known), 0)
    return (around**2).sum(axis=(0, 1)) / np.maximum((known.sum(axis=0) - 1).clip(0).sum(), 1)


def mean_known(scores: np.ndarray, unseen: np.ndarray) -> np.ndarray:
    """Return the mean of each person's known `scores` ``(repetitions, people, patterns)``; 0 if there are none."""
    total = np.where(unseen[..., None], scores, 0).sum(axis=0)
    return total / np.maximum(unseen.sum(axis=0), 1)[:, None]


def leave_one_out(controls: np.ndarray, leverage: np.ndarray) -> np.ndarray:
    """Return scaled controls as they would be had each been left out of the estimation of effects, means and sds.

    Parameters
    ----------
    controls : ndarray of shape (controls, regions)
        Residuals of a least-squares fit to these controls, scaled by their own mean and sd.
    leverage : ndarray of shape (controls,)
        Leverage of each in that fit.

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
    """Conversion of controls' scores to the R-indices that the consensus would give to similar, unseen people.

    Repetitions have their own means, and a mean over few varies more than the consensus: both are allowed for.
    Controls seen by all repetitions get their mean score, stretched to vary as much as those of the others.

    Attributes
    ----------
    held_out : ndarray of shape (repetitions, controls)
        Controls that each repetition has not learned from.
    means : ndarray of shape (repetitions that left somebody out, patterns)
        Mean scores of the controls that each of them left out.
    shrinkage : ndarray of shape (controls, patterns)
        Factor for the deviation of a control's scores by few repetitions from the mean.
    always : ndarray of shape (2, patterns)
        Mean score of the controls seen by all, and the factor by which their scores are stretched.
    """

    held_out: np.ndarray
    means: np.ndarray
    shrinkage: np.ndarray
    always: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, held_out: np.ndarray, n_repetitions: int) -> Self:
        """Fit it to scores of controls ``(repetitions, controls, patterns)``; `n_repetitions` are in the consensus."""
        seen, (known, left) = scores.mean(axis=0), (np.asarray(held_out.any(axis=axis)) for axis in (0, 1))
        if known.sum() < 2:
            return cls(np.zeros_like(held_out), np.zeros((1, 1)), np.zeros((len(known), 1)), np.array([[0.0], [1.0]]))
        means = np.stack([of[out].mean(axis=0) for of, out in zip(scores[left], held_out[left], strict=True)])
        centred, by = scores[left] - means[:, None], held_out[left]
        shrinkage = shrinkage_of_means(centred, by, n_repetitions)
        honest = mean_known(centred, by) * shrinkage
        always = seen if known.all() else seen[~known]  # the others' are partly from repetitions that left them out
        spread = always.std(axis=0)
        stretch = np.divide(honest[known].std(axis=0), spread, out=np.ones_like(spread), where=spread > 1e-12)
        return cls(held_out, means, shrinkage, np.stack([always.mean(axis=0), stretch]))

    def scores(self, scores: np.ndarray, control: np.ndarray) -> np.ndarray:
        """Return R-indices of scans, from scores ``(repetitions, scans, patterns)`` and the control of each scan."""
        left, (mean, stretch) = np.asarray(self.held_out.any(axis=1)), self.always
        seen = (scores.mean(axis=0) - mean) * stretch
        by = self.held_out[left][:, control]
        honest = mean_known(scores[left] - self.means[:, None], by) * self.shrinkage[control]
        return self.means.mean(axis=0) + np.where(np.asarray(by.any(axis=0))[:, None], honest, seen)
