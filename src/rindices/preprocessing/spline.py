"""Natural cubic splines of one covariate: smooth within the controls' range, straight lines beyond it."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from rindices.errors import InputError, counted

MIN_DISTINCT = 5  # values; fewer than knots cannot show a curve
# Harrell's places for five knots (Regression Modeling Strategies, 2.4.6): the outer ones keep a few extreme people from
# bending the curve.
_QUANTILES = (0.05, 0.275, 0.5, 0.725, 0.95)


def spline_knots(name: str, values: np.ndarray) -> tuple[float, ...]:
    """Return the knots for a covariate of controls: three to five, increasing."""
    distinct = np.unique(values)
    if len(distinct) < MIN_DISTINCT:
        raise InputError(
            f"Covariate {name!r} has {counted(len(distinct), 'different value')} in controls: a smooth curve needs "
            f"at least {MIN_DISTINCT}.\nTake {name} out of --smooth: then its effect is a straight line."
        )
    knots = np.unique(np.quantile(values, _QUANTILES))
    if len(knots) < 3:  # nearly everybody has the same value
        knots = np.quantile(distinct, _QUANTILES)
    return tuple(knots.tolist())


def spline_basis(values: np.ndarray, knots: tuple[float, ...]) -> np.ndarray:
    """Return the basis ``(people, knots − 1)`` of natural cubic splines, without the constant.

    Column j is the spline that is 1 at knot j + 1 and 0 at the others. So columns are of one size and far from
    collinear, unlike powers; all of them together with the one left out add up to 1.

    Examples
    --------
    >>> spline_basis(np.array([1.0, 2.0, 3.0]), (1.0, 2.0, 3.0)).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    spline = CubicSpline(knots, np.eye(len(knots))[:, 1:], bc_type="natural")
    inside = np.clip(values, knots[0], knots[-1])
    # A cubic would run away where there are no controls.
    return spline(inside) + spline(inside, 1) * (values - inside)[:, None]
