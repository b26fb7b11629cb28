"""Values that no measurement gives, and values in another unit: judged by other people's values, whoever they are.

The reference is the training table itself where it is learned from, and what the model keeps of it (minimum, median and
maximum) where new people are checked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.errors import Problem, counted, listed, shown
from rindices.schema.cells import LARGEST

SEX_NAMES = frozenset({"sex", "gender"})  # numbers there are two codes
_CODES = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)  # that people write for a missing value
_FEW = 0.02  # where more values than this share are negative or 0, they are ordinary
_WELL_ABOVE = 0.5  # a size has its 5 % quantile above this share of its median; lesions and scores have not
_NEXT_TO_NOTHING = 0.1  # share of the median: no head is a tenth of another's
_OLDEST = 120.0
_LARGE = 100.0  # whole numbers below are counts and codes, where 0 is ordinary: years of education, sex

# mL and mm3 differ by 1000, cm2 and mm2 by 100, cm and mm by 10; disease changes a median far less than that.
_TOLERANCE = 0.15
_LARGEST_POWER = 6
_FEWEST_FOR_ONE_REGION = 5
_SMALLER_UNIT = {1: ("cm", "mm"), 2: ("cm2", "mm2"), 3: ("mL", "mm3")}


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
        values, known = block[:, position], reference[:, position]
        known = known[np.isfinite(known)]
        if not len(known):
            continue
        bad[:, position] |= suspected_codes(values, known)
        if np.mean(known < 0) <= _FEW and np.quantile(known, 0.25) > 0:
            bad[:, position] |= values < 0
        if _is_size(known):
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
    bad, known = (np.abs(values) > LARGEST) | ((values <= 0) & is_divisor), reference[np.isfinite(reference)]
    if not len(known):
        return bad
    if name.casefold() == "age":
        return bad | (values < 0) | ((values > _OLDEST) & bool(np.median(known) <= _OLDEST))  # else months or days
    if name.casefold() in SEX_NAMES:
        return bad | (np.isfinite(values) & ~np.isin(values, pd.Series(known).value_counts().index[:2]))
    if _is_size(known):
        whole_and_small = np.median(known) < _LARGE and bool((known == np.rint(known)).all())
        bad |= values < (0.0 if whole_and_small else _NEXT_TO_NOTHING * np.median(known))
    return bad


def _is_size(known: NDArray[np.float64]) -> bool:
    median = float(np.median(known))
    return bool(median > 0 and np.mean(known <= 0) <= _FEW and np.quantile(known, 0.05) >= _WELL_ABOVE * median)


def unit_problems(
    medians: NDArray[np.float64],
    n_people: int,
    names: Sequence[str],
    training: NDArray[np.float64],
    unit: str | None = None,
) -> list[Problem]:
    """Return what is wrong with values that lie a power of ten away from the training values, jointly or singly.

    Parameters
    ----------
    medians, n_people
        Median of each region over the new people, and how many they are.
    names
        Names of the regions.
    training
        Minimum, median and maximum (rows) of each region in training, NaN where not known.
    unit
        Unit of the training values, if known.

    Examples
    --------
    >>> ranges = np.array([[3.0] * 4, [4.0] * 4, [5.0] * 4])
    >>> unit_problems(np.full(4, 4.2), 9, ("a", "b", "c", "d"), ranges)
    []
    """
    minimum, median, maximum = training
    # Ratios mean something for sizes only: scores that can be negative have no unit to compare.
    comparable = ~(minimum < 0) & (median > 0) & (medians > 0)
    if not comparable.any():
        return []
    powers = np.zeros(len(names))
    powers[comparable] = np.log10(medians[comparable] / median[comparable])
    joint = int(_whole_power(np.array([np.median(powers[comparable])]))[0])
    margin = 0.1 * (maximum - minimum)
    # Quantities that vary by orders of magnitude (lesions) may differ tenfold and still be ordinary.
    unusual = (medians < minimum - margin) | (medians > maximum + margin)
    single = np.flatnonzero(comparable & unusual & (_whole_power(powers) != 0)).tolist()
    if not joint and (not len(single) or n_people < _FEWEST_FOR_ONE_REGION):
        return []
    first = int(np.flatnonzero(comparable)[0]) if joint else single[0]
    power = joint or int(_whole_power(powers)[first])
    times = f"{10 ** abs(power)} times {'larger' if power > 0 else 'smaller'}"
    found = f"median {shown(float(median[first]))} in training, {shown(float(medians[first]))} here"
    if joint:
        guess = _unit_guess(power, unit)
        text = f"The values look {times} than in training ({guess}).\nFor example {names[first]!r}: {found}."
        return [Problem(text, ("convert the regions to the unit of the training table",))]
    which = listed(names[position] for position in single)
    text = (
        f"{counted(len(single), 'region looks', 'regions look')} as if in another unit, unlike the others: {which}.\n"
        f"Column {names[first]!r} is {times} than in training ({found})."
    )
    return [Problem(text, ("correct the values in the table",), tuple(names[position] for position in single))]


def _whole_power(powers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the power of ten that each number is close to, or 0."""
    nearest = np.rint(powers)
    close = (np.abs(powers - nearest) <= _TOLERANCE) & (np.abs(nearest) <= _LARGEST_POWER)
    return np.where(close, nearest, 0).astype(np.int64)


def _unit_guess(power: int, unit: str | None) -> str:
    if unit:
        return f"the model was trained on values in {unit}"
    if abs(power) not in _SMALLER_UNIT:
        return "another unit?"
    large, small = _SMALLER_UNIT[abs(power)]
    return f"{large} there, {small} here?" if power > 0 else f"{small} there, {large} here?"
