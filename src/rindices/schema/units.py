"""Whether a table is in the units that a model was trained on: judged by the medians of its regions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rindices.problems import Problem, counted, listed, shown

# mL and mm3 differ by 1000, cm2 and mm2 by 100, cm and mm by 10; disease changes a median far less than that.
_TOLERANCE = 0.15
_LARGEST_POWER = 6
_FEWEST_FOR_ONE_REGION = 5


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
        guess = f"the model was trained on values in {unit}" if unit else "another unit?"
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
