"""Values that no measurement gives; and units: another than a model's, two in one table, and z-scores among regions.

Values are judged by other people's, whoever they are: by the training table itself where it is learned from, and by
what the model keeps of it (minimum, median and maximum) where new people are checked. Factors of ten, a hundred or a
thousand, of some people, of a column in some people or of one side, are told from disease and from odd people by their
neatness: nobody lies between.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import InputError, Problem, Remedy, Text, counted, listed, listed_rows, refusal, shown
from rindices.schema.cells import LARGEST
from rindices.schema.field import Seen
from rindices.schema.role_guesses import HEAD_SIZE, SEX_NAMES, pairs_of_sides
from rindices.settings import TableSettings

_CODES = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)  # that people write for a missing value
_FEW = 0.02  # where more values than this share are negative or 0, they are ordinary
_WELL_ABOVE = 0.5  # a size has its 5 % quantile above this share of its median; lesions and scores have not
_ANOTHER_UNIT = 5  # times the largest of other heads
_NEXT_TO_NOTHING = 0.1  # share of the median: no head is a tenth of another's
OLDEST = 120.0  # years; ages above are in months or days
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
    """Mark infinite values, impossible ages, and sizes of next to nothing or of another unit; a divisor is above 0.

    Of numbers for the sex only two are codes: others are marked.

    Examples
    --------
    >>> age = np.array([61.0, 250.0, -1.0])
    >>> impossible_covariate("age", age, age).tolist()
    [False, True, True]
    >>> impossible_covariate("icv", np.array([1420.5, 0.0, 1420500.0]), np.array([1204.1, 1811.9])).tolist()
    [False, True, True]
    """
    bad, others = (np.abs(values) > LARGEST) | ((values <= 0) & is_divisor), reference[np.isfinite(reference)]
    if not len(others):
        return bad
    if name.casefold() == "age":
        return bad | (values < 0) | ((values > OLDEST) & bool(np.median(others) <= OLDEST))  # else months or days
    if name.casefold() in SEX_NAMES:
        return bad | (np.isfinite(values) & ~np.isin(values, pd.Series(others).value_counts().index[:2]))
    if _is_size(others):
        whole_and_small = np.median(others) < _LARGE and bool((others == np.rint(others)).all())
        bad |= values < (0.0 if whole_and_small else _NEXT_TO_NOTHING * np.median(others))
        if is_divisor or HEAD_SIZE.search(name.casefold()):
            bad |= values > _ANOTHER_UNIT * others.max()
    return bad


def _is_size(values: NDArray[np.float64]) -> bool:
    median = float(np.median(values))
    return bool(median > 0 and np.mean(values <= 0) <= _FEW and np.quantile(values, 0.05) >= _WELL_ABOVE * median)


# mL and mm3 differ by 1000, cm2 and mm2 by 100, cm and mm by 10; disease changes a median far less than that.
_TOLERANCE = 0.15
_LARGEST_POWER = 6
_FEWEST_FOR_ONE_REGION = 5
_FEWEST, _FEWEST_SHARE = 3, 0.02  # of the people; single ones are outliers
_POWERS = (3, 2, 1)  # of ten: mL and mm³, cm² and mm², cm and mm
_NEAR = 0.25  # share of the power by which people of one unit may differ: heads and healthy people's regions do by less
_EXACT = 0.1  # by which the middles of two units may differ from the power: one group may have smaller brains
_NEARLY_ALL = 0.95  # who lie near a power of ten: lesions and other quantities that vary by orders of magnitude do not
_SIZES = 0.98  # share of values above 0
_ONE_UNIT = "convert them to one unit in the table"


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
    joint = int(whole_power(np.array([np.median(powers[comparable])]))[0])
    margin = 0.1 * (maximum - minimum)
    # Quantities that vary by orders of magnitude (lesions) may differ tenfold and still be ordinary.
    unusual = (medians < minimum - margin) | (medians > maximum + margin)
    single = np.flatnonzero(comparable & unusual & (whole_power(powers) != 0)).tolist()
    if not joint and (not len(single) or n_people < _FEWEST_FOR_ONE_REGION):
        return []
    first = int(np.flatnonzero(comparable)[0]) if joint else single[0]
    power = joint or int(whole_power(powers)[first])
    times = f"{10 ** abs(power)} times {'larger' if power > 0 else 'smaller'}"
    here = f"median {shown(float(median[first]))} in training, {shown(float(medians[first]))} here"
    if joint:
        guess = f"the model was trained on values in {unit}" if unit else "another unit?"
        text = f"The values seem to be {times} than in training ({guess}).\nFor example {names[first]!r}: {here}."
        return [Problem(text, ("convert the regions to the unit of the training table",))]
    which = listed(names[position] for position in single)
    text = (
        f"{counted(len(single), 'region seems', 'regions seem')} to be in a different unit from the others: {which}.\n"
        f"Column {names[first]!r} is {times} than in training ({here})."
    )
    return [Problem(text, ("correct the values in the table",), tuple(names[position] for position in single))]


def whole_power(powers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the power of ten that each number is close to, or 0."""
    nearest = np.rint(powers)
    close = (np.abs(powers - nearest) <= _TOLERANCE) & (np.abs(nearest) <= _LARGEST_POWER)
    return np.where(close, nearest, 0).astype(np.int64)


def refuse_mixed_units(
    regions: pd.DataFrame, covariates: Mapping[str, Seen], rows: NDArray[np.int64], group: pd.Series
) -> None:
    """Refuse values in two units; rows are those of a spreadsheet."""
    numbers = {name: seen.values[:, 0] for name, seen in covariates.items() if seen.values.dtype.kind == "f"}
    names = [*regions, *numbers]
    block = np.column_stack([regions.to_numpy(), *numbers.values()])
    logarithm = np.full(block.shape, np.nan)
    sizes = (block > 0).mean(axis=0) >= _SIZES * np.isfinite(block).mean(axis=0)
    controls = block[(group == "control").to_numpy()]
    sizes &= (controls != controls[:1]).any(axis=0)  # what is the same in all controls is refused for that
    np.log10(block, where=(block > 0) & sizes, out=logarithm)
    if not (of_sizes := np.flatnonzero(np.isfinite(logarithm).any(axis=0))).size:
        return
    names, logarithm = [names[place] for place in of_sizes], logarithm[:, of_sizes]
    centre = np.nanquantile(logarithm, 0.5, axis=0, method="higher")  # somebody's value, never between two units
    deviation = logarithm - centre
    measured = np.isfinite(deviation[:, : int((of_sizes < regions.shape[1]).sum())])
    overall = np.zeros(len(block))
    if measured.shape[1]:
        some = measured.any(axis=1)
        overall[some] = np.nanmedian(deviation[some][:, : measured.shape[1]], axis=1)
    problems = _people(overall, rows, group)
    if not problems:
        problems = _columns(deviation - overall[:, None], names, rows, group) or _sides(centre, names)
    if problems:
        raise refusal(problems)


def _people(overall: NDArray[np.float64], rows: NDArray[np.int64], group: pd.Series) -> list[Problem]:
    """Say whose values are larger or smaller than the others' throughout."""
    other = _in_another_unit(overall, group)
    if other is None:
        return []
    times = _times(overall, other)
    text = f"The values of {_who(other, rows, group)} are {times} the others' in all regions."
    return [Problem(text, (_ONE_UNIT,))]


def _columns(
    deviation: NDArray[np.float64], names: Sequence[str], rows: NDArray[np.int64], group: pd.Series
) -> list[Problem]:
    """Say which columns are in another unit in some of the people."""
    lines, columns = [], []
    for name, values in zip(names, deviation.T, strict=True):
        other = _in_another_unit(values, group)
        if other is not None:
            columns.append(name)
            lines.append(
                f"Column {name!r}: the values of {_who(other, rows, group)} are {_times(values, other)} the others'."
            )
    more = (
        [f"{counted(len(lines) - 3, 'more column is', 'more columns are')} affected in the same way."]
        if len(lines) > 3
        else []
    )
    return [Problem("\n".join(lines[:3] + more), (_ONE_UNIT,), tuple(columns))] if lines else []


def _sides(centre: NDArray[np.float64], names: Sequence[str]) -> list[Problem]:
    """Say which regions are in different units on the left and on the right."""
    middle = dict(zip(names, centre.tolist(), strict=True))
    powers = {pair: middle[pair[1]] - middle[pair[0]] for pair in pairs_of_sides(names)}
    apart = {pair: power for pair, power in powers.items() if whole_power(np.array([power]))[0]}
    if not apart:
        return []
    (left, right), power = next(iter(apart.items()))
    times = _times(np.array([0.0, power]), np.array([False, True]))
    text = (
        f"Left and right are in different units in {len(apart)} of {counted(len(powers), 'region')}: the median of "
        f"{right!r} ({shown(10 ** middle[right])}) is {times} that of {left!r} ({shown(10 ** middle[left])})."
    )
    return [Problem(text, (_ONE_UNIT,), tuple(name for pair in apart for name in pair))]


def _in_another_unit(deviation: NDArray[np.float64], group: pd.Series) -> NDArray[np.bool_] | None:
    """Mark who lies a power of ten away from the others, where everybody lies near one; else None.

    Where these are all controls, the others are marked: nobody can tell who is right, and patients are compared with
    controls.
    """
    known = np.isfinite(deviation)
    for power in _POWERS:
        steps = np.rint(np.where(known, deviation, 0.0) / power)
        near = np.abs(deviation[known] - power * steps[known]) <= _NEAR * power
        marked = np.abs(steps) == 1 if near.mean() >= _NEARLY_ALL else np.zeros(len(steps), bool)
        marked &= steps == np.sign(steps[marked].sum())
        if marked.sum() < max(_FEWEST, _FEWEST_SHARE * known.sum()):
            continue
        apart = abs(np.median(deviation[marked]) - np.median(deviation[known & ~marked]))
        if abs(apart - power) <= _EXACT:
            return known & ~marked if (marked == (group == "control").to_numpy()).all() else marked
    return None


def _times(powers: NDArray[np.float64], marked: NDArray[np.bool_]) -> str:
    power = int(np.rint(np.nanmedian(powers[marked]) - np.nanmedian(powers[~marked])))
    return f"{10 ** abs(power):,} times {'larger' if power > 0 else 'smaller'} than"


def _who(marked: NDArray[np.bool_], rows: NDArray[np.int64], group: pd.Series) -> str:
    """Say who is marked: a whole group, or so many people by their rows."""
    groups = group.to_numpy(dtype=object)
    whole = [name for name in ("control", "patient", "other") if marked.any() and (marked == (groups == name)).all()]
    number = f"{int(marked.sum()):,} of {len(marked):,} people"
    return f"all {whole[0]}s ({number})" if whole else f"{number} ({listed_rows(rows[marked], 10)})"


UNIT = "z-scores"
_RAW = "uncorrected z-scores"  # what the unit is said to be where they are to be corrected
_SAY_SO = "; if they have not been adjusted for it, declare this with "
_WORDS = frozenset({"z", "zs", "z-score", "z score", "z-scores", "z scores", "zscore", "zscores", "sd", "deviations"})
_CENTRED, _LEAST_SPREAD, _LARGEST_SPREAD = 0.5, 0.4, 2.0  # of controls, who may be of another population
_BELOW = 0.25  # share of values below 0, and above it


def deviation_unit(
    unit: str | None, controls: NDArray[np.float64], settings: TableSettings, covariates: Sequence[str] = ()
) -> tuple[str | None, list[Text]]:
    """Return the unit of the regions, and what there is to say where they are deviations.

    Parameters
    ----------
    unit
        What was said about it.
    controls
        Controls × regions.
    settings, covariates
        What is to be corrected for, and the columns of that, the site among them.

    Raises
    ------
    InputError
        If deviations are to be corrected again, or divided by the head size.

    Examples
    --------
    >>> deviation_unit(None, np.random.default_rng(0).normal(0, 1, (50, 9)), TableSettings())[0]
    'z-scores'
    """
    is_said = unit is not None and unit.strip().casefold() in _WORDS
    if not is_said and (unit is not None or not _look_like_deviations(controls)):
        return unit, []
    ways = [one for one in ("proportion", "covariates", "smooth", "interactions", "site") if getattr(settings, one)]
    seem = f"The regions look like {UNIT}: in controls, their medians are close to 0 and their sd close to 1."
    if not ways:
        return (unit, []) if is_said else (UNIT, [seem])
    corrected = listed(covariates)
    again = f"The regions are {UNIT}, so they must not be corrected for {corrected} again."
    guessed = f"{seem} They must not be corrected for {corrected} twice."
    # What is divided by a head size has to be a size.
    undo = () if is_said or settings.proportion else (_SAY_SO, Remedy("unit", _RAW))
    raise InputError(
        f"{again if is_said else guessed}\nOmit ",
        *[part for way in ways for part in (", ", Remedy(way))][1:],
        *(undo or ("; if they have not been adjusted, provide the original measures",)),
        ".",
    )


def _look_like_deviations(controls: NDArray[np.float64]) -> bool:
    """Tell whether most columns lie around 0 with a spread of about 1."""
    centre = np.nanmedian(controls, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(controls - centre), axis=0)
    below = np.nanmean(controls < 0, axis=0)
    fits = (np.abs(centre) < _CENTRED) & (spread > _LEAST_SPREAD) & (spread < _LARGEST_SPREAD)
    return bool((fits & (below > _BELOW) & (below < 1 - _BELOW)).mean() > 0.9)
