"""Correlations and means with intervals that are valid for skewed scores; false discovery rates.

R-indices are not normally distributed: in mild disease, many people are near 0 and few near 1. This does not affect
tests of *independence*, but it does affect Fisher's interval of a correlation. In samples of 100 to 400 people, 1,000
of each of 264 kinds, Fisher's 95 % intervals covered the true value in 85 to 99 %, and intervals of η² from the
noncentral F distribution in 84 to 99 %. Those below estimate the sampling error from the data themselves and covered it
in 93 to 97 % (95.2 % overall; 1,000 samples alone account for ± 1.4 %). Where nothing was associated, 5 % of studies
had any q < 0.05. ``experiments/calibrate_associations.py`` repeats this calibration.

p tests independence, which is more than zero correlation: if the spread of a variable, but not its mean, grows with
skewed R-indices, p can be too small (below 0.05 in 11 to 12 % for a spread that doubles over their range). The
interval is valid there too (95 %): if p and the interval disagree about 0, trust the interval, unless few people
determine the coefficient; intervals are then wide, and p is right.
"""

from collections.abc import Sized
from typing import Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy.special import fdtrc, ncfdtr, stdtr, stdtrit  # scipy.stats takes a second to load

from rindices.problems import InputError, shown

_TAIL = 0.025  # of a 95 % interval
_NOTHING_LEFT = 1e-10  # share of a variance that remains if covariates explain all
_ROUNDING = 1e-24  # share of a sum of squares that rounding its mean can leave
_NEARLY_ONE = 1 - 1e-12
_FEW = 20  # people; a variance from fewer tends to be too small


class Estimate(NamedTuple):
    """Coefficients of several R-indices with a variable, or means of columns, with their 95 % limits and p."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray

    @classmethod
    def unknown(cls, n_values: int) -> Self:
        """Return estimates that are NaN throughout."""
        return cls(*np.full((4, n_values), np.nan))


def false_discovery(p: np.ndarray) -> np.ndarray:
    """Return Benjamini–Hochberg q values; tests without p (NaN) do not count."""
    from scipy.stats import false_discovery_control

    q, tested = np.full(len(p), np.nan), ~np.isnan(p)
    if tested.any():
        q[tested] = false_discovery_control(p[tested])
    return q


def mean_interval(values: np.ndarray) -> Estimate:
    """Return the mean of each column of `values` ``(people, columns)`` with the interval and p of the t test against 0.

    Limits and p are NaN with one person.
    """
    return with_error(values.mean(axis=0), np.sqrt(_squared_error(values)), len(values) - 1)


def mean_difference(values: np.ndarray, others: np.ndarray) -> Estimate:
    """Return the mean of each column of `values` minus that of `others`, with the interval and p of Welch's t test.

    Limits and p are NaN with one person in either group, or if neither group varies.
    """
    first, second = _squared_error(values), _squared_error(others)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (first + second) ** 2 / (first**2 / (len(values) - 1) + second**2 / (len(others) - 1))
    return with_error(values.mean(axis=0) - others.mean(axis=0), np.sqrt(first + second), freedom)


def _squared_error(values: np.ndarray) -> np.ndarray:
    """Return the squared standard error of the mean of each column; NaN with one person."""
    return values.var(axis=0, ddof=1) / len(values) if len(values) > 1 else np.full(values.shape[1], np.nan)


def with_error(value: np.ndarray, error: np.ndarray, freedom: float | np.ndarray) -> Estimate:
    """Return an estimate with the interval and p of a t test against 0, from its standard error."""
    half = -stdtrit(freedom, _TAIL) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        return Estimate(value, value - half, value + half, 2 * stdtr(freedom, -np.abs(value) / error))


def basis(columns: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of centred `columns` ``(people, n)``; redundant columns are dropped."""
    centred = columns - columns.mean(axis=0)
    scale = np.sqrt(np.sum(centred**2, axis=0))
    varies = scale**2 > _ROUNDING * np.sum(columns**2, axis=0)
    if not varies.any():
        return np.empty((len(columns), 0))
    orthogonal, triangle = np.linalg.qr(centred[:, varies] / scale[varies])
    left, sizes, _ = np.linalg.svd(triangle)
    return orthogonal @ left[:, : int(np.sum(sizes > 1e-7 * sizes[0]))]


def residuals(values: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return centred `values` ``(people, n)`` minus what an orthonormal basis `given` explains; 0 if that is all."""
    centred = values - values.mean(axis=0)
    left = centred
    if given.shape[1]:
        left = centred - given @ (given.T @ centred)
        left = left - given @ (given.T @ left)  # once more, for the last digits
    smallest = np.maximum(_NOTHING_LEFT * np.sum(centred**2, axis=0), _ROUNDING * np.sum(values**2, axis=0))
    return np.where(np.sum(left**2, axis=0) <= smallest, 0.0, left)


def correlation(r_indices: np.ndarray, variable: np.ndarray, n_given: int = 0) -> Estimate:
    """Correlate R-indices ``(people, patterns)`` with a variable ``(people,)``, both centred.

    For partial correlations, pass residuals, and the number of covariates as `n_given`: there are n − 2 − `n_given`
    degrees of freedom. p is that of the t test. The interval is symmetric on Fisher's scale; its width is a jackknife
    estimate: how much the coefficient moves as each person is left out. If few people are influential, it widens with
    the degrees of freedom of Student's t: a variance from n values of kurtosis κ has 2n / (κ − 1) (Satterthwaite). If
    these are few, as with a rare category, the interval is never narrower than Fisher's.
    """
    n_people, freedom = len(variable), len(variable) - 2 - n_given
    with np.errstate(divide="ignore", invalid="ignore"):
        x, y = _standardised(r_indices.T), _standardised(variable)
        r = np.clip(x @ y / n_people, -1, 1)
        p = 2 * stdtr(freedom, -np.abs(r) * np.sqrt(freedom / (1 - r**2)))
        moved = _fisher(_correlations_without_each(x, y, r))
        squares = np.square(moved - moved.mean(axis=1, keepdims=True))
        variance = squares.mean(axis=1)
        kurtosis = np.square(squares).mean(axis=1) / variance**2
        error = np.sqrt((n_people - 1) * variance * n_people / (n_people - n_given))
        worth = np.minimum(2 * freedom / (kurtosis - 1), freedom)
        half = -stdtrit(worth, _TAIL) * error
        least = -stdtrit(freedom, _TAIL) / np.sqrt(freedom - 1)  # as Fisher's
        half = np.where((worth < _FEW) & (half < least), least, half)
    perfect = np.abs(r) >= _NEARLY_ONE
    low, high = np.tanh(_fisher(r) - half), np.tanh(_fisher(r) + half)
    return Estimate(r, np.where(perfect, r, low), np.where(perfect, r, high), p)


def explained_variance(r_indices: np.ndarray, categories: np.ndarray, n_given: int = 0) -> Estimate:
    """Estimate η², the share of the variance of R-indices ``(people, patterns)`` that categories explain.

    For partial η², pass residuals of R-indices and of category indicators, and the number of covariates as
    `n_given`. p is that of the F test. The interval inverts the noncentral F distribution, which is right for normal
    scores and fixed category sizes, and is then stretched about the (unbiased) estimate by the ratio of the
    standard error of η² in these data to that under these assumptions. A lower limit of 0 stays 0, and the upper one is
    never below η² itself, which is biased upwards.
    """
    fitted = basis(categories)
    between, within = fitted.shape[1], len(r_indices) - 1 - n_given - fitted.shape[1]
    if between == 0:
        return Estimate.unknown(r_indices.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        y = r_indices / np.sqrt(np.mean(r_indices**2, axis=0))
        explained = fitted @ (fitted.T @ y)
        eta = np.minimum(np.mean(explained**2, axis=0), 1.0)
        ratio = eta / (1 - eta) * within / between
        p = fdtrc(between, within, ratio)
        influence = 2 * explained * y - explained**2 - eta * y**2
        assumed = 4 * eta * (1 - eta) ** 3 + 2 * eta**2 * (1 - eta) ** 2
        stretch = np.nan_to_num(np.sqrt(np.mean(influence**2, axis=0) / assumed), nan=1.0)
        low, high = share_limits(ratio, between, within)
        unbiased = np.clip(1 - (1 - eta) * (between + within) / within, low, high)
    centre, lower, upper = (_fisher(np.sqrt(share)) for share in (unbiased, low, high))
    lower, upper = (np.tanh(np.maximum(centre + stretch * (end - centre), 0)) ** 2 for end in (lower, upper))
    perfect = eta >= _NEARLY_ONE
    low = np.where(perfect, eta, np.where(low > 0, lower, low))
    return Estimate(eta, low, np.where(perfect, eta, np.maximum(upper, eta)), p)


def share_limits(ratio: np.ndarray, between: int, within: int) -> np.ndarray:
    """Return 95 % limits of η² for normal scores, from F ratios with `between` and `within` degrees of freedom.

    These are the η² at which a ratio as small as the observed one has a probability of 97.5 and 2.5 %; 0 if there is
    none.
    """
    size, tails, is_finite = between + within + 1, np.array([[1 - _TAIL], [_TAIL]]), np.isfinite(ratio)
    low = np.where(is_finite, np.zeros_like(tails), np.nan)
    high = np.where(is_finite, 4 * (between * ratio + size), np.nan)
    for _ in range(60):
        middle = (low + high) / 2
        too_small = ncfdtr(between, within, middle, ratio) > tails
        low, high = np.where(too_small, middle, low), np.where(too_small, high, middle)
    return np.where(high < 1e-9, 0.0, low / (low + size))


def _fisher(coefficient: np.ndarray) -> np.ndarray:
    return np.arctanh(np.clip(coefficient, -_NEARLY_ONE, _NEARLY_ONE))


def _standardised(values: np.ndarray) -> np.ndarray:
    """Scale centred values, people last, to variance 1; people are contiguous in memory, which is faster."""
    values = np.ascontiguousarray(values)
    return values / np.sqrt(np.mean(np.square(values), axis=-1, keepdims=True))


def _correlations_without_each(x: np.ndarray, y: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Return correlations ``(patterns, people)`` without each person; `x` and `y` have mean 0 and variance 1.

    Without one of n people, means shift by x / (n − 1): all sums lose n / (n − 1) of the person's product.
    """
    weight = 1 / (len(y) - 1)
    return (r[:, None] - weight * (x * y)) / np.sqrt((1 - weight * np.square(x)) * (1 - weight * np.square(y)))


GROUPS = ("control", "patient", "other")
Kind = Literal["continuous", "dichotomous", "categorical"]


class Coded(NamedTuple):
    """A column as numbers: values, or 0, 1, 2, … in the order of the categories."""

    kind: Kind
    values: np.ndarray
    people: np.ndarray
    levels: list[str]  # empty for continuous columns


def coded(column: pd.Series, among: np.ndarray | None = None) -> Coded:
    """Return the known values of a column, of all people or only those `among`, as numbers with their kind.

    Two distinct values are dichotomous, other numbers continuous, other text categorical. The larger of two numbers is
    coded as 1, as is the alphabetically later of two texts. True/false and pandas categories do not count as numbers.
    """
    known = column.notna().to_numpy()
    people = known if among is None else known & among
    values = column[column.notna()].infer_objects()
    if is_numeric_dtype(values) and not is_bool_dtype(values):
        numbers = column.to_numpy(float, na_value=np.nan)
        people = people & np.isfinite(numbers)  # infinite numbers count as missing
        numbers = numbers[people]
        distinct = np.unique(numbers)
        if len(distinct) != 2:
            return Coded("continuous", numbers, people, [])
        return Coded("dichotomous", (numbers == distinct[1]).astype(float), people, [shown(float(x)) for x in distinct])
    codes, levels = pd.factorize(column[people].astype(str), sort=True)
    kind: Kind = "dichotomous" if len(levels) == 2 else "categorical"
    return Coded(kind, codes.astype(float), people, [str(level) for level in levels])


def as_numbers(column: Coded) -> np.ndarray:
    """Return an indicator column for each category but the first, or the values as one column."""
    values = column.values[:, None]
    return (values == np.arange(1, len(column.levels))).astype(float) if column.levels else values


def design(covariates: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and category indicators side by side, zero where missing, and who has all of them."""
    everybody = np.ones(len(covariates), bool)
    columns, complete = np.empty((len(covariates), 0)), everybody
    for _, column in covariates.items():
        variable = coded(column)
        numbers = pd.DataFrame(as_numbers(variable), np.flatnonzero(variable.people)).reindex(range(len(everybody)))
        columns, complete = np.hstack([columns, numbers.fillna(0)]), complete & variable.people
    return columns, complete


def in_group(group: ArrayLike, name: str) -> np.ndarray:
    """Return who is in a group: ``control``, ``patient`` or ``other``.

    Raises
    ------
    InputError
        If there is a group with another name.
    """
    groups = np.asarray(group, object)
    strange = sorted({*map(str, groups)} - {*GROUPS})
    if strange:
        raise InputError(f"`group` should contain only {', '.join(GROUPS)}, but it contains {strange[0]!r}.")
    return groups == name


def patients_of(labels: ArrayLike, n_people: int, *, name: str = "y") -> np.ndarray:
    """Return who is a patient, labelled 1 or true; controls are labelled 0 or false.

    Raises
    ------
    InputError
        If there are other labels, or not one label per person.
    """
    values = np.asarray(labels)
    if values.shape != (n_people,):
        raise InputError(
            f"`{name}` should have one value for each of the {n_people} people, but its shape is {values.shape}."
        )
    strange = values[~pd.Series(values).isin([0, 1]).to_numpy()]
    if len(strange):
        raise InputError(
            f"`{name}` should contain 0 for controls and 1 for patients, but it contains {str(strange[0])!r}."
        )
    return values.astype(bool)


def same_people(n_people: int, **tables: Sized) -> None:
    """Check that tables have one row per person.

    Raises
    ------
    InputError
        If a table has more or fewer rows.
    """
    for name, table in tables.items():
        if len(table) != n_people:
            raise InputError(
                f"`{name}` should have one row for each of the {n_people} people, but it has {len(table)}."
            )
