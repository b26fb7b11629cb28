"""The scale that a model's R-indices are read on: severity, and the place among healthy people.

R is about a person's place among patients, whatever their severities are; the curve of a pattern turns it into the
share of the largest change that was learned. What is here is fitted elsewhere, stored with the model, and knows NumPy
only.
"""

from dataclasses import dataclass

import numpy as np

KNOTS = np.linspace(0, 1, 17)  # R-indices at which curves are known
# Beyond the largest change that was learned there are people, too; what f makes of them is extrapolated.
DOSES = np.array([0, 0.04, 0.08, 0.13, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.15, 1.3, 1.5, 1.75, 2])
_TAIL = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.16, 0.25]
LEVELS = np.array([*_TAIL, 0.5, *(1 - level for level in reversed(_TAIL))])
CENTILES = np.linspace(0, 1, 101)
# Of what a scale stores, for each pattern.
SHAPES = {
    "curves": KNOTS.shape,
    "reference": CENTILES.shape,
    "quantiles": (len(DOSES), len(LEVELS)),
    "patients": CENTILES.shape,
}
_STEEPER = 1e-9  # so that no two points of a curve are the same


@dataclass(frozen=True, eq=False)
class SeverityScale:
    """What turns R-indices into severities, their intervals and centiles; a row for each pattern everywhere.

    Attributes
    ----------
    curves : ndarray of shape (patterns, knots)
        Severity at each of `KNOTS`: the share of the largest change that was learned.
    reference : ndarray of shape (patterns, centiles), optional
        R-indices of controls by repetitions that did not learn from them, at each of `CENTILES`.
    quantiles : ndarray of shape (patterns, doses, levels), optional
        Quantiles `LEVELS` of the R-indices of people with the severities `DOSES`; increasing along both.
    patients : ndarray of shape (patterns, centiles), optional
        R-indices of the patients of the training, at each of `CENTILES`.

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
        """Return the severities of people with these R-indices ``(people, patterns)``, up to the largest dose."""
        columns = [on_line(r, KNOTS, curve) for r, curve in zip(r_indices.T, self.curves, strict=True)]
        return np.minimum(np.column_stack(columns), DOSES[-1])

    def centiles(self, r_indices: np.ndarray) -> np.ndarray:
        """Return where people lie among the held-out controls, from 0 to 100; NaN where there are none."""
        if self.reference is None:
            return np.full(r_indices.shape, np.nan)
        rows = zip(r_indices.T, self.reference, strict=True)
        return 100 * np.column_stack([np.interp(r, known, CENTILES) for r, known in rows])


def on_line(values: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Interpolate, and go on along the first and the last piece outside; `x` is made to increase.

    Examples
    --------
    >>> on_line(np.array([-1.0, 0.5, 3.0]), np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])).tolist()
    [-1.0, 0.5, 5.0]
    """
    x = increasing(x)
    inside = np.interp(values, x, y)
    first, last = ((y[b] - y[a]) / (x[b] - x[a]) for a, b in ((0, 1), (-2, -1)))
    return inside + first * np.minimum(values - x[0], 0) + last * np.maximum(values - x[-1], 0)


def increasing(values: np.ndarray) -> np.ndarray:
    """Return numbers that never fall along the last axis, and always rise a little."""
    return np.maximum.accumulate(values, axis=-1) + _STEEPER * np.arange(values.shape[-1])
