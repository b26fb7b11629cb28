"""Are new values in the unit of the training values? Powers of ten give other units away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rindices.errors import InputError, counted, listed, shown

__all__ = ["UnitDoubts", "check_units"]

# mL and mm3 differ by 1000, cm2 and mm2 by 100, cm and mm by 10; disease changes a median far less than that.
_TOLERANCE = 0.15
_LARGEST_POWER = 6
_FEWEST_FOR_ONE_REGION = 5
_SMALLER_UNIT = {1: ("cm", "mm"), 2: ("cm2", "mm2"), 3: ("mL", "mm3")}


def check_units(
    new_median: NDArray[np.float64],
    n_people: int,
    names: tuple[str, ...],
    training: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
    unit: str | None = None,
) -> None:
    """Refuse values that lie a power of ten away from the training values, jointly or in single regions.

    Parameters
    ----------
    new_median, n_people
        Median of each region over the new people, and how many they are.
    names
        Names of the regions.
    training
        Minimum, median and maximum of each region in training, NaN where not known.
    unit
        Unit of the training values, if known.

    Examples
    --------
    >>> low, middle, high = np.full(4, 3.0), np.full(4, 4.0), np.full(4, 5.0)
    >>> check_units(np.full(4, 4.2), 9, ("a", "b", "c", "d"), (low, middle, high))
    """
    minimum, median, maximum = training
    # Ratios mean something for sizes only: scores that can be negative have no unit to compare.
    comparable = ~(minimum < 0) & (median > 0) & (new_median > 0)
    if not comparable.any():
        return
    powers = np.zeros(len(names))
    powers[comparable] = np.log10(new_median[comparable] / median[comparable])
    joint = _whole_power(np.array([np.median(powers[comparable])]))[0]
    if joint:
        example = int(np.flatnonzero(comparable)[0])
        before, now = median[example], new_median[example]
        raise InputError(
            f"The values look {_times(joint)} than in training ({_unit_guess(joint, unit)}).\n"
            f"For example {names[example]!r}: median {shown(float(before))} in training, {shown(float(now))} here.\n"
            "Convert the regions to the unit of the training table."
        )
    if n_people < _FEWEST_FOR_ONE_REGION:
        return
    # Quantities that vary by orders of magnitude (lesions) may differ tenfold and still be ordinary.
    margin = 0.1 * (maximum - minimum)
    unusual = (new_median < minimum - margin) | (new_median > maximum + margin)
    single = np.flatnonzero(comparable & unusual & (_whole_power(powers) != 0))
    if len(single):
        first = int(single[0])
        power = int(_whole_power(powers)[first])
        found = f"median {shown(float(median[first]))} in training, {shown(float(new_median[first]))} here"
        raise InputError(
            f"{counted(len(single), 'region looks', 'regions look')} as if in another unit, unlike the others: "
            f"{listed(names[position] for position in single)}.\n"
            f"Column {names[first]!r} is {_times(power)} than in training ({found}).\n"
            "Correct the values in the table."
        )


class UnitDoubts:
    """Whether `check_units` could refuse people who come some at a time and are not kept.

    A median lies beyond a limit only if half of all values do, and no power of ten is near a smaller ratio.

    Parameters
    ----------
    training
        As in `check_units`.

    Examples
    --------
    >>> doubts = UnitDoubts((np.full(4, 3.0), np.full(4, 4.0), np.full(4, 5.0)))
    >>> doubts.add(np.full((9, 4), 4.2))
    >>> doubts.any()
    False
    """

    def __init__(self, training: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]) -> None:
        minimum, median, _ = training
        self._comparable = ~(minimum < 0) & (median > 0)
        ratio = 10 ** (1 - 1.1 * _TOLERANCE)
        self._low, self._high = median / ratio, median * ratio
        self._n_people, self._n_below, self._n_above = 0, np.zeros(len(median)), np.zeros(len(median))

    def add(self, values: NDArray[np.float64]) -> None:
        """Take note of some people."""
        self._n_people += len(values)
        self._n_below += (values <= self._low).sum(axis=0)
        self._n_above += (values >= self._high).sum(axis=0)

    def any(self) -> bool:
        """Tell whether the medians of all must be looked at."""
        beyond = 2 * np.maximum(self._n_below, self._n_above) >= self._n_people
        return bool((self._comparable & beyond).any())


def _whole_power(powers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the power of ten that each number is close to, or 0."""
    nearest = np.rint(powers)
    close = (np.abs(powers - nearest) <= _TOLERANCE) & (np.abs(nearest) <= _LARGEST_POWER)
    return np.where(close, nearest, 0).astype(np.int64)


def _times(power: int) -> str:
    return f"{10 ** abs(power)} times {'larger' if power > 0 else 'smaller'}"


def _unit_guess(power: int, unit: str | None) -> str:
    if unit:
        return f"the model was trained on values in {unit}"
    if abs(power) not in _SMALLER_UNIT:
        return "another unit?"
    large, small = _SMALLER_UNIT[abs(power)]
    return f"{large} there, {small} here?" if power > 0 else f"{small} there, {large} here?"
