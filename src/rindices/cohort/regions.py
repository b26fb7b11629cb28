"""Which columns of a table are regions, and which of those look like something else."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.overlap import group_separation
from rindices.cohort.roles import expand_names, wanted_names
from rindices.errors import InputError, counted, listed, setting, shown
from rindices.schema.cells import has_numbers, meant_as_numbers, text_of
from rindices.schema.fields import MIN_REGIONS
from rindices.settings import TableSettings

__all__ = [
    "BACKGROUND_NAMES",
    "NON_REGION_NAMES",
    "check_constant",
    "choose_regions",
    "is_region_name",
    "possible_scores",
    "region_warnings",
]

BACKGROUND_NAMES = frozenset({"age", "sex", "gender", "site", "scanner", "icv", "tiv", "etiv", "education", "educ"})
NON_REGION_NAMES = BACKGROUND_NAMES | {"visit", "session"}
_MANY_REGIONS = 1000
_DIFFERENT = 0.5  # measures differ: where less than this share of the values do, they may be scores
_MOST_SCORES = 12  # of the columns with gaps; where there are more, they are regions
_MANY_GAPS = 0.1  # share of the people; who was scanned has nearly all regions
# Usual clinical columns, which are numbers but no brain regions.
_CLINICAL = re.compile(
    r"(mmse|mmst|moca|demtect|cdr|adas|updrs|ados|srs|panss|hamd|madrs|bdi|bmi|weight|height|apoe|[fvp]?iq)([_ .-].*)?"
)


def is_region_name(name: str) -> bool:
    """Tell whether a column of numbers with this name is taken for a region.

    Examples
    --------
    >>> is_region_name("lHip"), is_region_name("Age"), is_region_name("Unnamed: 0")
    (True, False, False)
    """
    # A column without a name is what spreadsheets and R write for row numbers.
    return name.casefold() not in NON_REGION_NAMES and not name.startswith("Unnamed: ")


def choose_regions(table: pd.DataFrame, taken: Mapping[str, str], settings: TableSettings) -> tuple[str, ...]:
    """Return the names of the region columns: those asked for, or every column of numbers without another part.

    Columns of numbers in another spelling count, so that they are refused with a remedy and not lost.

    Parameters
    ----------
    table
        Columns of numbers or text.
    taken
        Columns that have another part already, and that part (``{"age": "a covariate"}``).
    settings
        Says what is asked for (`features`) and left out (`exclude`).
    """
    columns = [str(name) for name in table.columns]
    free = [name for name in columns if name not in taken]
    left_out = expand_names(wanted_names(settings.exclude), columns, source="exclude", pattern_columns=free)
    meant = [name for name in free if is_region_name(name) and _meant(table[name])]
    wanted = wanted_names(settings.features)
    if isinstance(settings.features, str) and not wanted:
        raise InputError(
            f"{setting('features')} names no regions, found {settings.features!r}.\n"
            f"Name them, or leave out {setting('features')} to take every column of numbers."
        )
    chosen = expand_names(wanted, columns, source="features", pattern_columns=meant) if wanted else tuple(meant)
    for name in (*left_out, *chosen):
        if name in taken:
            told = setting("exclude" if name in left_out else "features")
            raise InputError(
                f"Column {name!r} is {taken[name]}, so it cannot be in {told} too.\nTake it out of one of the two."
            )
    regions = tuple(name for name in chosen if name not in left_out)
    if len(regions) < MIN_REGIONS:
        found = f"{len(regions)}{': ' + listed(regions) if regions else ''}"
        raise InputError(
            f"At least {MIN_REGIONS} regions are needed; found {found}.\n"
            f"Check {setting('features')} and {setting('exclude')}, and that the regions are columns of numbers."
        )
    return regions


def _meant(column: pd.Series) -> bool:
    return has_numbers(column) or (column.dtype.kind != "f" and meant_as_numbers(text_of(column)))


def check_constant(block: NDArray[np.float64], regions: Sequence[str], controls: NDArray[np.bool_]) -> None:
    """Refuse regions (columns of ``block``) that do not vary among the controls."""
    values = block[controls]
    constant = np.ptp(values, axis=0) <= 1e-9 * np.abs(values).max(axis=0)
    names = [name for name, is_constant in zip(regions, constant.tolist(), strict=True) if is_constant]
    if names:
        first = list(regions).index(names[0])
        who = "everybody" if np.ptp(block[:, first]) == 0 else "every control"
        raise InputError(
            f"A region must vary among the controls, but {counted(len(names), 'region does', 'regions do')} not: "
            f"{listed(names)}.\nIn column {names[0]!r} {who} has the value {shown(float(values[0, first]))}.\n"
            f"Leave {'it' if len(names) == 1 else 'them'} out with {setting('exclude', names)}."
        )


def possible_scores(block: NDArray[np.float64], regions: Sequence[str], with_gaps: Collection[str]) -> list[str]:
    """Return those of the columns with gaps that may be scores: by many gaps, few different values, or a usual name.

    Examples
    --------
    >>> possible_scores(np.array([[29.0], [np.nan], [30.0], [29.0]]), ["MMST"], ["MMST"])
    ['MMST']
    """
    found: list[str] = []
    for name in with_gaps if len(with_gaps) <= _MOST_SCORES else ():
        values = block[:, list(regions).index(name)]
        known = values[~np.isnan(values)]
        few = len(np.unique(known)) < _DIFFERENT * len(known)
        if few or len(known) < (1 - _MANY_GAPS) * len(block) or _CLINICAL.fullmatch(name.casefold()):
            found.append(name)
    return found


def region_warnings(
    block: NDArray[np.float64], regions: Sequence[str], controls: NDArray[np.bool_], patients: NDArray[np.bool_]
) -> list[str]:
    """Warn of regions that look like clinical scores, and of more regions than the method is meant for."""
    clinical = [name for name in regions if _CLINICAL.fullmatch(name.casefold())]
    # Where half the patients lie below the controls' 80 % quantile, the area under the curve is at most 0.9.
    low, high = np.quantile(block[controls], [0.2, 0.8], axis=0)
    middle = np.median(block[patients], axis=0)
    telling = [
        regions[place]
        for place in np.flatnonzero((middle > high) | (middle < low)).tolist()
        if regions[place] not in clinical and group_separation(block[controls, place], block[patients, place])
    ]
    warnings = []
    if clinical:
        warnings.append(
            f"Taken for regions, but named like clinical scores: {listed(clinical)}. Name them with "
            f"{setting('clinical')}, or leave them out with {setting('exclude')}?"
        )
    if telling:
        warnings.append(
            f"These nearly tell controls and patients apart by themselves: {listed(telling)}. Are they regions? "
            f"If not, leave them out with {setting('exclude')}."
        )
    if len(regions) > _MANY_REGIONS:
        warnings.append(
            f"{len(regions):,} regions are many: time and memory grow with their number, and the method is meant for "
            f"70 to 200. Choose regions of an atlas with {setting('features')}."
        )
    return warnings
