"""Regions that cannot be regions, and values that cannot be values."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rindices.cohort.cells import Roster
from rindices.cohort.covariates import group_separation
from rindices.errors import InputError, counted, listed, shown

__all__ = ["check_plausible"]

_FAR = 10.0  # robust standard deviations: no person's brain lies there
_FEW = 0.02  # a region with more negative values than this share may be a score, where they are ordinary
# Usual clinical columns, which are numbers but no brain regions.
_CLINICAL = re.compile(
    r"(mmse|moca|cdr|adas|updrs|ados|srs|panss|hamd|madrs|bdi|bmi|weight|height|apoe|[fvp]?iq)([_ .-].*)?"
)


def check_plausible(
    block: NDArray[np.float64], regions: Sequence[str], group: pd.Series, roster: Roster
) -> tuple[str, ...]:
    """Refuse negative values among sizes; warn of values far out and of columns that look like clinical scores."""
    _refuse_negative(block, regions, roster)
    return (*_warn_of_far(block, regions, roster), *_warn_of_scores(block, regions, group))


def _refuse_negative(block: NDArray[np.float64], regions: Sequence[str], roster: Roster) -> None:
    negative = block < 0
    odd = (negative.mean(axis=0) <= _FEW) & (np.quantile(block, 0.25, axis=0) > 0)
    rows, columns = np.nonzero(negative & odd)
    if len(rows):
        row, column = int(rows[0]), int(columns[0])
        raise InputError(
            f"Column {regions[column]!r} (region) has the negative value {shown(float(block[row, column]))} in "
            f"{roster.at(row)}, where nearly all others are positive ({counted(len(rows), 'such cell')} in all).\n"
            "A code for a missing value? Correct the cell, or remove the row."
        )


def _warn_of_far(block: NDArray[np.float64], regions: Sequence[str], roster: Roster) -> list[str]:
    middle = np.median(block, axis=0)
    robust_sd = 1.4826 * np.median(np.abs(block - middle), axis=0)
    rows, columns = np.nonzero(np.abs(block - middle) > _FAR * np.where(robust_sd > 0, robust_sd, np.inf))
    if not len(rows):
        return []
    cells = [
        f"{regions[column]} = {shown(float(block[row, column]))} in {roster.at(int(row))}"
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True)
    ]
    people = counted(len(set(rows.tolist())), "person has", "people have")
    return [f"{people} values more than {_FAR:.0f} robust sd from the median, which may be errors: {listed(cells, 4)}."]


def _warn_of_scores(block: NDArray[np.float64], regions: Sequence[str], group: pd.Series) -> list[str]:
    control, patient = (group == "control").to_numpy(), (group == "patient").to_numpy()
    clinical = [name for name in regions if _CLINICAL.fullmatch(name.casefold())]
    telling = [
        name
        for position, name in enumerate(regions)
        if name not in clinical and group_separation(block[control, position], block[patient, position])
    ]
    warnings = []
    if clinical:
        warnings.append(
            f"Taken for regions, but named like clinical scores: {listed(clinical)}. Leave out with --exclude?"
        )
    if telling:
        warnings.append(
            f"These nearly tell controls and patients apart by themselves: {listed(telling)}. Are they regions? "
            "If not, leave them out with --exclude."
        )
    return warnings
