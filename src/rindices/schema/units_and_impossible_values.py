"""Impossible values, and units: one other than the model's, two in one table, and regions that are z-scores.

Values are judged against those of other people: the training table against itself, and new people against what the
model stores about that table (minimum, median and maximum). Factors of ten, a hundred or a thousand that affect some
people, a column in some people, or one side, are distinguished from disease and from outliers by the clear gap: nobody
lies in between.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.problems import InputError, Problem, Remedy, Text, counted, listed, listed_rows, refusal, shown
from rindices.regions import pairs_of_sides
from rindices.schema.cells import LARGEST
from rindices.schema.field import Seen
from rindices.schema.role_guesses import HEAD_SIZE, SEX_NAMES
from rindices.settings import TableSettings

_CODES = (-9.0, -99.0, -999.0, -9999.0, 99.0, 999.0, 9999.0)  # common codes for missing values
_FEW = 0.02  # if a larger share of the values is negative or 0, such values are ordinary
_WELL_ABOVE = 0.5  # sizes have their 5 % quantile above this share of their median; lesions and scores do not
_ANOTHER_UNIT = 5  # times the largest of the other heads
_NEXT_TO_NOTHING = 0.1  # share of the median: no head is a tenth the size of another
OLDEST = 120.0  # years; ages above are in months or days
_LARGE = 100.0  # smaller whole numbers are counts and codes, for which 0 is ordinary: years of education, sex


def suspected_codes(values: NDArray[np.float64], reference: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark common missing-value codes that lie beyond all other values by more than the range of these.

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
    """Mark infinite values, negative values among positive ones, 0 among sizes well above it, and suspected codes.

    Both arrays are people × regions, with NaN for unknown values.

    Examples
    --------
    >>> volumes = np.r_[np.linspace(4, 6, 99), -9.0][:, None]
    >>> impossible_regions(volumes, volumes)[:, 0].nonzero()[0].tolist()
    [99]
    """
    bad = np.abs(block) > LARGEST
    for position in np.flatnonzero(((block <= 0) | np.isin(block, _CODES)).any(axis=0)).tolist():
        values, others = block[:, position], reference[np.isfinite(reference[:, position]), position]
        if len(others):
            bad[:, position] |= suspected_codes(values, others)
            if np.mean(others < 0) <= _FEW and np.quantile(others, 0.25) > 0:
                bad[:, position] |= values < 0
            if _is_size(others):
                bad[:, position] |= values <= 0
    return bad


def impossible_covariate(
    name: str, values: NDArray[np.float64], reference: NDArray[np.float64], *, is_divisor: bool = False
) -> NDArray[np.bool_]:
    """Mark infinite values, impossible ages, and sizes near 0 or in another unit; a divisor must be above 0.

    If sex is numeric, the two most frequent numbers are its codes, and all others are marked.

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
        return bad | (values < 0) | ((values > OLDEST) & bool(np.median(others) <= OLDEST))  # or not in years
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
_FEWEST, _FEWEST_SHARE = 3, 0.02  # of the people; fewer are outliers
_POWERS = (3, 2, 1)  # of ten: mL and mm³, cm² and mm², cm and mm
_NEAR = 0.25  # share of the power by which people in one unit may differ: heads and healthy regions differ less
_EXACT = 0.1  # by which the medians of two units may deviate from the power: one group may have smaller brains
_NEARLY_ALL = 0.95  # share of people near a power of ten; lesions, which vary by orders of magnitude, fall below
_SIZES = 0.98  # share of values above 0
_ONE_UNIT = "convert all values in the table to the same unit"


def unit_problems(
    medians: NDArray[np.float64],
    n_people: int,
    names: Sequence[str],
    training: NDArray[np.float64],
    unit: str | None = None,
) -> list[Problem]:
    """Return the problem of regions that lie a power of ten away from the training values, jointly or individually.

    Parameters
    ----------
    medians, n_people
        Median of each region over the new people, and their number.
    names
        Names of the regions.
    training
        Minimum, median and maximum (rows) of each region in training, NaN where unknown.
    unit
        Unit of the training values, if known.

    Examples
    --------
    >>> ranges = np.array([[3.0] * 4, [4.0] * 4, [5.0] * 4])
    >>> unit_problems(np.full(4, 4.2), 9, ("a", "b", "c", "d"), ranges)
    []
    """
    minimum, median, maximum = training
    # Ratios are meaningful only for sizes: scores that can be negative have no unit to compare.
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
    here = f"the median was {shown(float(median[first]))} in training but is {shown(float(medians[first]))} here"
    if joint:
        guess = f"the model was trained on values in {unit}" if unit else "they may be in another unit"
        text = f"The values seem to be {times} than in training ({guess}).\nIn column {names[first]!r}, {here}."
        return [Problem(text, ("convert the regional values to the unit used in the training table",))]
    columns = tuple(names[position] for position in single)
    text = (
        f"{counted(len(single), 'region seems', 'regions seem')} to be in a different unit from the others: "
        f"{listed(columns)}.\n"
        f"The values in column {names[first]!r} are {times} than in training: {here}."
    )
    return [Problem(text, ("correct the values in the table",), columns)]


def whole_power(powers: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the power of ten that each number is close to, or 0."""
    nearest = np.rint(powers)
    close = (np.abs(powers - nearest) <= _TOLERANCE) & (np.abs(nearest) <= _LARGEST_POWER)
    return np.where(close, nearest, 0).astype(np.int64)


def refuse_mixed_units(
    regions: pd.DataFrame, covariates: Mapping[str, Seen], rows: NDArray[np.int64], group: pd.Series
) -> None:
    """Refuse values in two units; `rows` are spreadsheet row numbers."""
    numbers = {name: seen.values[:, 0] for name, seen in covariates.items() if seen.values.dtype.kind == "f"}
    table = regions.assign(**numbers)
    is_size = (table > 0).mean() >= _SIZES * np.isfinite(table).mean()
    # Columns that are constant in controls are refused for that reason.
    is_size &= table[(group == "control").to_numpy()].nunique() > 1
    positive = table.where((table > 0) & (table < np.inf)).loc[:, is_size]
    logarithm = positive.dropna(axis=1, how="all").apply(np.log10)
    centre = logarithm.quantile(0.5, interpolation="higher")  # an observed value, never one between two units
    deviation = logarithm - centre
    overall = deviation.drop(columns=[*numbers], errors="ignore").median(axis=1).fillna(0.0)
    if everywhere := _difference(overall.to_numpy(), rows, group):
        raise refusal([Problem(f"In all regions, the values of {everywhere} those of the others.", (_ONE_UNIT,))])
    if problems := _columns(deviation.sub(overall, axis=0), rows, group) or _sides(centre):
        raise refusal(problems)


def _columns(deviation: pd.DataFrame, rows: NDArray[np.int64], group: pd.Series) -> list[Problem]:
    """Report columns that are in another unit in some of the people."""
    said = {str(name): _difference(values.to_numpy(), rows, group) for name, values in deviation.items()}
    columns = tuple(name for name, text in said.items() if text)
    lines = [f"In column {name!r}, the values of {said[name]} those of the others." for name in columns]
    if len(lines) > 3:
        lines[3:] = [f"{counted(len(lines) - 3, 'more column is', 'more columns are')} affected in the same way."]
    return [Problem("\n".join(lines), (_ONE_UNIT,), columns)] if lines else []


def _sides(centre: pd.Series) -> list[Problem]:
    """Report regions that are in different units on the left and on the right."""
    powers = {(left, right): centre[right] - centre[left] for left, right in pairs_of_sides(map(str, centre.index))}
    apart = {pair: power for pair, power in powers.items() if whole_power(np.array([power]))[0]}
    if not apart:
        return []
    (left, right), power = next(iter(apart.items()))
    medians = [shown(float(10 ** centre[name])) for name in (left, right)]
    return [
        Problem(
            f"In {len(apart)} of {counted(len(powers), 'region')}, the left and right values are in different units: "
            f"the median of {right!r} ({medians[1]}) is {_times(power)} that of {left!r} ({medians[0]}).",
            (_ONE_UNIT,),
            tuple(name for pair in apart for name in pair),
        )
    ]


def _in_another_unit(deviation: NDArray[np.float64], group: pd.Series) -> NDArray[np.bool_]:
    """Mark people who lie a power of ten away from the others, if nearly everyone lies near one; otherwise nobody.

    If these are exactly the controls, the others are marked: either unit could be the right one, and patients are
    compared with controls.
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
    return np.zeros_like(known)


def _difference(deviation: NDArray[np.float64], rows: NDArray[np.int64], group: pd.Series) -> str:
    """Say who lies a power of ten away from the others, a whole group or some rows, and by how much; or nothing."""
    other = _in_another_unit(deviation, group)
    if not other.any():
        return ""
    power = np.nanmedian(deviation[other]) - np.nanmedian(deviation[~other])
    names = [name for name in ("control", "patient", "other") if (other == (group == name).to_numpy()).all()]
    number = f"{int(other.sum()):,} of {len(other):,} people"
    who = f"all {names[0]}s ({number})" if names else f"{number} ({listed_rows(rows[other], 10)})"
    return f"{who} are {_times(power)}"


def _times(power: float) -> str:
    return f"{10 ** abs(round(power)):,} times {'larger' if power > 0 else 'smaller'} than"


UNIT = "z-scores"
_RAW = "uncorrected z-scores"  # the unit to declare if they are yet to be corrected
_SAY_SO = "; if they have not been corrected yet, declare this with "
_WORDS = frozenset({"z", "zs", "z-score", "z score", "z-scores", "z scores", "zscore", "zscores", "sd", "deviations"})
_CENTRED, _LEAST_SPREAD, _LARGEST_SPREAD = 0.5, 0.4, 2.0  # of controls, who may come from another population
_BELOW = 0.25  # share of values below 0, and above it


def deviation_unit(
    unit: str | None, controls: NDArray[np.float64], settings: TableSettings, covariates: Sequence[str] = ()
) -> tuple[str | None, list[Text]]:
    """Return the unit of the regions, and a message if they look like z-scores.

    Parameters
    ----------
    unit
        The declared unit, if any.
    controls
        Controls × regions.
    settings, covariates
        The requested corrections, and the columns that they use, including the site.

    Raises
    ------
    InputError
        If z-scores are to be corrected again, or divided by head size.

    Examples
    --------
    >>> deviation_unit(None, np.random.default_rng(0).normal(0, 1, (50, 9)), TableSettings())[0]
    'z-scores'
    """
    is_said = unit is not None and unit.strip().casefold() in _WORDS
    if not is_said and (unit is not None or not _look_like_deviations(controls)):
        return unit, []
    ways = [one for one in ("proportion", "covariates", "smooth", "interactions", "site") if getattr(settings, one)]
    seem = (
        f"The regional values look like {UNIT}: in controls, their medians are close to 0, and their standard "
        "deviations are close to 1."
    )
    if not ways:
        return (unit, []) if is_said else (UNIT, [seem])
    they = f"The regional values are {UNIT}, so they" if is_said else f"{seem} They"
    # Only sizes can be divided by a head size.
    undo = () if is_said or settings.proportion else (_SAY_SO, Remedy("unit", _RAW))
    raise InputError(
        f"{they} must not be corrected for {listed(covariates)} {'again' if is_said else 'twice'}.\nOmit ",
        *[part for way in ways for part in (", ", Remedy(way))][1:],
        *(undo or ("; if they have not been corrected, provide the original measures",)),
        ".",
    )


def _look_like_deviations(controls: NDArray[np.float64]) -> bool:
    """Return whether nearly all columns are centred on 0 with a spread of about 1."""
    centre = np.nanmedian(controls, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(controls - centre), axis=0)
    below = np.nanmean(controls < 0, axis=0)
    fits = (np.abs(centre) < _CENTRED) & (spread > _LEAST_SPREAD) & (spread < _LARGEST_SPREAD)
    return bool((fits & (below > _BELOW) & (below < 1 - _BELOW)).mean() > 0.9)
