"""A straight line through the visits of a group, by a linear mixed model with effects of each person."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

FEWEST_PEOPLE = 5  # seen twice or more; of fewer, the variance between people cannot be told
FEWEST_THRICE = 10  # seen three times or more: with two visits, a slope of one's own cannot be told from noise
_NOTHING = 1e-12  # variance within people where severities do not vary
BOTH, BY_PERSON = "intercept and slope", "slopes by person"


class Line(NamedTuple):
    """Mean severity at time 0, mean change per year with its standard error, random effects of the model, and a note.

    The note says why there is no line, or why people have no slopes of their own.
    """

    start: float = np.nan
    slope: float = np.nan
    error: float = np.nan
    random_effects: str = ""
    note: str = ""


def mixed_line(scores: np.ndarray, years: np.ndarray, person: np.ndarray) -> Line:
    """Fit score ~ years + (1 + years | person) by restricted maximum likelihood.

    Where fewer than ten were seen three times or more, or the fit does not converge, the mean of the slopes of single
    people and its standard error are taken: with an intercept alone, differences of their slopes would be left to
    residuals that are taken to be independent, and chance be called change too often.

    Parameters
    ----------
    scores, years
        Of each visit, both finite.
    person
        Whose visit it is: 0, 1, 2 ...; everybody was seen at two different times or more.

    Examples
    --------
    >>> rng, person = np.random.default_rng(1), np.repeat(np.arange(40), 3)
    >>> years, level = np.tile([0.0, 1.0, 2.0], 40), 0.3 * rng.standard_normal(40)[person]
    >>> line = mixed_line(level + 0.1 * years + 0.05 * rng.standard_normal(120), years, person)
    >>> abs(line.slope - 0.1) < 2 * line.error, line.random_effects
    (True, 'intercept and slope')
    """
    if not len(person) or person.max() + 1 < FEWEST_PEOPLE:
        return Line(note=f"fewer than {FEWEST_PEOPLE} people were seen at two different times")
    known, note = _moments(scores, years, person), ""
    if known.residual < _NOTHING:
        return Line(note="the severity does not vary within people")
    if known.n_thrice >= FEWEST_THRICE:
        line = _fitted(scores, years, person, known)
        if line is not None:
            return line
        note = "the model with a slope of each person did not converge"
    return _by_person(scores, years, person)._replace(note=note)


def _by_person(scores: np.ndarray, years: np.ndarray, person: np.ndarray) -> Line:
    """Return the mean of lines through each person's visits, and the standard error of the mean slope."""
    n_visits = np.bincount(person)
    mean, middle = (np.bincount(person, of) / n_visits for of in (scores, years))
    time = years - middle[person]
    slopes = np.bincount(person, time * (scores - mean[person])) / np.bincount(person, time**2)
    error = slopes.std(ddof=1) / np.sqrt(len(slopes))
    return Line(float((mean - slopes * middle).mean()), float(slopes.mean()), float(error), BY_PERSON)


class _Moments(NamedTuple):
    """Rough variances to begin with; far from these, the search for the best often fails."""

    residual: float
    intercept: float
    slope: float
    n_thrice: int


def _moments(scores: np.ndarray, years: np.ndarray, person: np.ndarray) -> _Moments:
    n_visits = np.bincount(person)
    mean, middle = (np.bincount(person, of) / n_visits for of in (scores, years))
    time, level = years - middle[person], scores - mean[person]
    squares, products = np.bincount(person, time**2), np.bincount(person, time * level)
    common = products.sum() / squares.sum()
    residual = np.sum((level - common * time) ** 2) / (len(person) - len(mean) - 1)
    own, thrice, between = products / squares, int((n_visits > 2).sum()), 0.0
    if thrice >= FEWEST_THRICE:
        residual = np.sum((level - own[person] * time) ** 2) / np.sum(n_visits - 2)
        between = max(own.var(ddof=1) - residual * np.mean(1 / squares), 0.01 * residual)
    intercept = max(mean.var(ddof=1) - residual * np.mean(1 / n_visits), 0.01 * residual)
    return _Moments(float(residual), float(intercept), float(between), thrice)


def _fitted(scores: np.ndarray, years: np.ndarray, person: np.ndarray, known: _Moments) -> Line | None:
    """Return the line, or None where the fit fails; severities are fitted in units of their residual sd."""
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

    unit, design = np.sqrt(known.residual), np.column_stack([np.ones_like(years), years])
    variances = np.array([known.intercept, known.slope]) / known.residual
    fixed = np.linalg.lstsq(design, scores / unit, rcond=None)[0]
    model: Any = MixedLM(scores / unit, design, groups=person, exog_re=design)
    start = MixedLMParams.from_components(fe_params=fixed, cov_re=np.diag(variances))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it converged is asked below
            found = model.fit(reml=True, start_params=start, method=["lbfgs", "bfgs"])
            (first, slope), error = found.fe_params, found.bse_fe[1]
    except (np.linalg.LinAlgError, ValueError):
        return None
    if not (found.converged and np.isfinite([first, slope, error]).all() and error > 0):
        return None
    return Line(float(first * unit), float(slope * unit), float(error * unit), BOTH)
