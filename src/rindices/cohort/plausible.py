"""Values that cannot be values, and regions that cannot be regions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.gaps import LARGEST, SEX_NAMES
from rindices.cohort.overlap import group_separation
from rindices.errors import listed

__all__ = [
    "impossible_covariate",
    "impossible_newcomer",
    "impossible_regions",
    "possible_scores",
    "warn_of_many",
    "warn_of_scores",
]

_FEW = 0.02  # where more values than this share are negative or 0, they are ordinary
_WELL_ABOVE = 0.5  # a size has its 5 % quantile above this share of its median; lesions and scores have not
_NEXT_TO_NOTHING = 0.1  # share of the median: no head is a tenth of another's
_OLDEST = 120.0
_NARROW = 0.25  # a size has its smallest value above this share of its largest
_DIFFERENT = 0.5  # measures differ: where less than this share of the values do, they may be scores
_MOST_SCORES = 12
_MANY_GAPS = 0.1  # share of the people; who was scanned has nearly all regions
_MANY_REGIONS = 1000
_LARGE = 100.0  # whole numbers below are counts and codes, where 0 is ordinary: years of education, sex
# Usual clinical columns, which are numbers but no brain regions.
_CLINICAL = re.compile(
    r"(mmse|mmst|moca|demtect|cdr|adas|updrs|ados|srs|panss|hamd|madrs|bdi|bmi|weight|height|apoe|[fvp]?iq)([_ .-].*)?"
)


def impossible_regions(block: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark infinite values, negative values among sizes, and 0 where nearly all are well above it.

    Examples
    --------
    >>> impossible_regions(np.r_[np.linspace(4, 6, 99), -9.0][:, None])[:, 0].nonzero()[0].tolist()
    [99]
    """
    bad = np.abs(block) > LARGEST
    for position in np.flatnonzero((block <= 0).any(axis=0)).tolist():
        values = block[:, position]
        known = values[np.isfinite(values)]
        if not len(known):
            continue
        if np.mean(known < 0) <= _FEW and np.quantile(known, 0.25) > 0:
            bad[:, position] |= values < 0
        if _is_size(known):
            bad[:, position] |= values <= 0
    return bad


def impossible_covariate(name: str, values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Mark infinite values, impossible ages, negative values, and next to nothing where nearly all have much.

    Of numbers for the sex only two are codes: others are marked.

    Examples
    --------
    >>> impossible_covariate("age", np.array([61.0, 250.0, -1.0])).tolist()
    [False, True, True]
    >>> impossible_covariate("Sex", np.array([0.0, 1.0, 9.0, 1.0, 0.0])).tolist()
    [False, False, True, False, False]
    """
    bad, known = np.abs(values) > LARGEST, values[np.isfinite(values)]
    if not len(known):
        return bad
    if name.casefold() == "age":
        bad |= values < 0
        # A larger median means months or days.
        bad |= (values > _OLDEST) & bool(np.median(known) <= _OLDEST)
    elif name.casefold() in SEX_NAMES:
        codes = pd.Series(known).value_counts().index[:2]
        bad |= np.isfinite(values) & ~np.isin(values, codes)
    elif _is_size(known):
        whole_and_small = np.median(known) < _LARGE and bool((known == np.rint(known)).all())
        bad |= values < (0.0 if whole_and_small else _NEXT_TO_NOTHING * np.median(known))
    return bad


def impossible_newcomer(name: str, values: NDArray[np.float64], minimum: float, maximum: float) -> NDArray[np.bool_]:
    """Mark what `impossible_covariate` would, among new people: by the range in training, as they may be few.

    Examples
    --------
    >>> impossible_newcomer("icv", np.array([1420.5, 0.0]), 1204.1, 1811.9).tolist()
    [False, True]
    """
    bad = np.abs(values) > LARGEST
    if name.casefold() == "age":
        bad |= ((values < 0) & (minimum >= 0)) | ((values > _OLDEST) & (maximum <= _OLDEST))
    elif minimum > 0 and minimum >= _NARROW * maximum:
        whole_and_small = maximum < _LARGE and minimum % 1 == maximum % 1 == 0
        bad |= values < (0.0 if whole_and_small else _NEXT_TO_NOTHING * minimum)
    return bad


def possible_scores(block: NDArray[np.float64], regions: Sequence[str], with_gaps: Sequence[int]) -> list[str]:
    """Return those of the columns with gaps that may be scores: by many gaps, few different values, or a usual name.

    Where they are many, they are regions.

    Examples
    --------
    >>> possible_scores(np.array([[29.0], [np.nan], [30.0], [29.0]]), ["MMST"], [0])
    ['MMST']
    """
    found: list[str] = []
    if len(with_gaps) > _MOST_SCORES:
        return found
    for position in with_gaps:
        known = block[:, position][~np.isnan(block[:, position])]
        few = len(np.unique(known)) < _DIFFERENT * len(known)
        if few or len(known) < (1 - _MANY_GAPS) * len(block) or _CLINICAL.fullmatch(regions[position].casefold()):
            found.append(regions[position])
    return found


def _is_size(known: NDArray[np.float64]) -> bool:
    median = float(np.median(known))
    return bool(median > 0 and np.mean(known <= 0) <= _FEW and np.quantile(known, 0.05) >= _WELL_ABOVE * median)


def warn_of_many(n_regions: int) -> tuple[str, ...]:
    """Warn of more regions than the method is meant for.

    Examples
    --------
    >>> len(warn_of_many(150)), len(warn_of_many(5000))
    (0, 1)
    """
    if n_regions <= _MANY_REGIONS:
        return ()
    return (
        f"{n_regions:,} regions are many: time and memory grow with their number, and the method is meant for 70 to "
        "200. Choose regions of an atlas with --features.",
    )


def warn_of_scores(block: NDArray[np.float64], regions: Sequence[str], group: pd.Series) -> tuple[str, ...]:
    """Warn of regions that look like clinical scores."""
    control, patient = (group == "control").to_numpy(), (group == "patient").to_numpy()
    clinical = [name for name in regions if _CLINICAL.fullmatch(name.casefold())]
    telling = [
        regions[position]
        for position in _may_separate(block[control], block[patient])
        if regions[position] not in clinical and group_separation(block[control, position], block[patient, position])
    ]
    warnings = []
    if clinical:
        warnings.append(
            f"Taken for regions, but named like clinical scores: {listed(clinical)}. Name them with --clinical, "
            "or leave them out with --exclude?"
        )
    if telling:
        warnings.append(
            f"These nearly tell controls and patients apart by themselves: {listed(telling)}. Are they regions? "
            "If not, leave them out with --exclude."
        )
    return tuple(warnings)


def _may_separate(controls: NDArray[np.float64], patients: NDArray[np.float64]) -> list[int]:
    """Return the few columns worth a closer look: elsewhere the area under the ROC curve is below 0.9.

    Where half the patients lie below the controls' 80 % quantile, the area is at most 0.5 + 0.5 × 0.8.
    """
    low, high = np.quantile(controls, [0.2, 0.8], axis=0)
    middle = np.median(patients, axis=0)
    return np.flatnonzero((middle > high) | (middle < low)).tolist()
