"""Values that no measurement gives: judged by other people's values, whoever they are.

The reference is the training table itself where it is learned from, and what the model keeps of it (minimum, median and
maximum) where new people are checked.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.schema.cells import LARGEST
from rindices.schema.role_guesses import SEX_NAMES

_CODES = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)  # that people write for a missing value
_FEW = 0.02  # where more values than this share are negative or 0, they are ordinary
_WELL_ABOVE = 0.5  # a size has its 5 % quantile above this share of its median; lesions and scores have not
_NEXT_TO_NOTHING = 0.1  # share of the median: no head is a tenth of another's
_OLDEST = 120.0
_LARGE = 100.0  # whole numbers below are counts and codes, where 0 is ordinary: years of education, sex


def suspected_codes(values: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark usual codes for missing values that lie outside all other values by more than these span.

    Examples
    --------
    >>> suspected_codes(np.array([28.0, -9999.0]), np.array([24.0, 30.0, -9999.0])).tolist()
    [False, True]
    """
    marked = np.zeros(len(values), dtype=bool)
    for code in _CODES:
        others = reference[np.isfinite(reference) & (reference != code)]
        if (values == code).any() and len(others) > 1:
            low, high = others.min(), others.max()
            marked |= (values == code) & bool(code < 2 * low - high or code > 2 * high - low)
    return marked


def impossible_regions(block: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark infinite values, negative values among sizes, 0 where nearly all are well above it, and suspected codes.

    Both are people × regions; NaN is what is not known.

    Examples
    --------
    >>> volumes = np.r_[np.linspace(4, 6, 99), -9.0][:, None]
    >>> impossible_regions(volumes, volumes)[:, 0].nonzero()[0].tolist()
    [99]
    """
    bad = np.abs(block) > LARGEST
    for position in np.flatnonzero(((block <= 0) | np.isin(block, _CODES)).any(axis=0)).tolist():
        values, others = block[:, position], reference[:, position]
        others = others[np.isfinite(others)]
        if not len(others):
            continue
        bad[:, position] |= suspected_codes(values, others)
        if np.mean(others < 0) <= _FEW and np.quantile(others, 0.25) > 0:
            bad[:, position] |= values < 0
        if _is_size(others):
            bad[:, position] |= values <= 0
    return bad


def impossible_covariate(
    name: str, values: NDArray[np.float64], reference: NDArray[np.float64], *, is_divisor: bool = False
) -> NDArray[np.bool_]:
    """Mark infinite values, impossible ages, and next to nothing where nearly all have much; a divisor must be above 0.

    Of numbers for the sex only two are codes: others are marked.

    Examples
    --------
    >>> age = np.array([61.0, 250.0, -1.0])
    >>> impossible_covariate("age", age, age).tolist()
    [False, True, True]
    >>> impossible_covariate("icv", np.array([1420.5, 0.0]), np.array([1204.1, 1811.9])).tolist()
    [False, True]
    """
    bad, others = (np.abs(values) > LARGEST) | ((values <= 0) & is_divisor), reference[np.isfinite(reference)]
    if not len(others):
        return bad
    if name.casefold() == "age":
        return bad | (values < 0) | ((values > _OLDEST) & bool(np.median(others) <= _OLDEST))  # else months or days
    if name.casefold() in SEX_NAMES:
        return bad | (np.isfinite(values) & ~np.isin(values, pd.Series(others).value_counts().index[:2]))
    if _is_size(others):
        whole_and_small = np.median(others) < _LARGE and bool((others == np.rint(others)).all())
        bad |= values < (0.0 if whole_and_small else _NEXT_TO_NOTHING * np.median(others))
    return bad


def _is_size(values: NDArray[np.float64]) -> bool:
    median = float(np.median(values))
    return bool(median > 0 and np.mean(values <= 0) <= _FEW and np.quantile(values, 0.05) >= _WELL_ABOVE * median)
