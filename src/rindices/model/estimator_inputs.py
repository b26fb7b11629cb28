"""What is given to the estimator, brought into one form: labels, covariates, seeds."""

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_random_state

from rindices.problems import InputError, counted
from rindices.schema import MOST_LACKING, MOST_MISSING

FEW_PEOPLE = 20  # in a group; with fewer, results are not to be trusted
_NOTHING_LEFT = 1e-6  # of the sd: rounding, not people


def is_patient(y: np.ndarray) -> np.ndarray:
    """Return True for patients: 1 where controls are 0; of two other numbers the higher, with a warning."""
    y = pd.Series(y).infer_objects().to_numpy()  # 0 and 1 may come as objects
    labels = pd.unique(y)
    if len(labels) != 2 or labels.dtype.kind not in "biuf":
        classes = ", ".join(map(repr, labels[:5].tolist())) + (", ..." if len(labels) > 5 else "")
        raise InputError(
            f"y should contain 0 for controls and 1 for patients, but has {counted(len(labels), 'class', 'classes')}: "
            f"{classes}. Use a True/False column such as diagnosis == 'AD'."
        )
    low, high = sorted(labels.tolist())
    if (low, high) != (0, 1):
        warnings.warn(
            f"y holds {low} and {high}, not 0 and 1: {low} is treated as controls and {high} as patients.",
            UserWarning,
            stacklevel=3,
        )
    return y == high


def covariate_table(covariates: Any, n_people: int, index: pd.Index | None = None) -> pd.DataFrame | None:
    """Return covariates as a table with text names; None where there are none."""
    if covariates is None:
        return None
    table = covariates.to_frame() if isinstance(covariates, pd.Series) else covariates
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(table).add_prefix("covariate")
    elif index is not None and not index.equals(table.index) and set(index) == set(table.index):
        raise InputError("covariates are not in the same order as X: sort both in the same way.")
    if len(table) != n_people:
        raise InputError(f"covariates should have {n_people} rows like X, but have {len(table)}.")
    if table.shape[1] == 0:
        return None
    missing = table.isna().to_numpy()
    if missing.any():
        row, column = (int(place[0]) for place in np.nonzero(missing))
        raise InputError(f"Covariate {table.columns[column]!r} is missing in row {row}: fill it in, or drop the row.")
    table = table.rename(columns=str).reset_index(drop=True).infer_objects()  # numbers may come as objects
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise InputError(f"Covariate {twice[0]!r} is listed twice; each covariate needs a unique name.")
    return table.astype({name: float for name in table if pd.api.types.is_numeric_dtype(table[name])})


def seed_from(random_state: Any) -> int:
    """Return a seed that repeats the fit; a fresh one for None."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_roles(regions: Sequence[str], others: Sequence[str]) -> None:
    """Refuse a name for two things: with it, new people could not be matched to the model."""
    twice = [name for name, number in Counter([*regions, *others]).items() if number > 1]
    if twice:
        raise InputError(
            f"The name {twice[0]!r} is used twice among regions, covariates, participant_id and diagnosis: "
            "each column should have one role."
        )


def check_residuals(before: np.ndarray, after: np.ndarray, names: list[str]) -> None:
    """Refuse regions of which the covariates leave nothing, given the sd of controls before and after."""
    gone = np.flatnonzero(after < _NOTHING_LEFT * before)
    if len(gone):
        raise InputError(
            f"The covariates explain region {names[gone[0]]!r} completely in controls "
            f"({counted(len(gone), 'such region')}): omit the region or the covariate, or add controls."
        )


def check_gaps(X: np.ndarray, *, can_fill: bool = True, training: bool = False) -> None:
    """Refuse people who lack too many regions, and everybody who lacks one where a model cannot fill them in.

    In `training`, regions that too many people lack are refused, too.
    """
    gaps = np.isnan(X)
    if not can_fill and gaps.any():
        raise InputError(
            f"X has missing regions (NaN), the first in row {int(np.argwhere(gaps)[0, 0])}, which this model "
            "cannot impute: it was imported, or has few controls. Drop the row."
        )
    limits = [(1, MOST_MISSING, "row", "Drop the row")]
    limits += [(0, MOST_LACKING, "column", "Omit the column")] if training else []
    for axis, most, what, remedy in limits:
        share = gaps.mean(axis=axis)
        if (share > most).any():
            place = int(np.flatnonzero(share > most)[0])
            gap = f"X lacks {share[place]:.0%} of the regions (NaN) in {what} {place}"
            raise InputError(f"{gap}; up to {most:.0%} can be imputed. {remedy}.")


def check_groups(controls: np.ndarray, n_patients: int, names: list[str]) -> None:
    """Refuse groups that cannot be learned from, and warn of small ones."""
    smallest = min(len(controls), n_patients)
    if smallest < 2:
        raise InputError(
            f"Too few people to compare: {counted(len(controls), 'control')} and {counted(n_patients, 'patient')}. "
            "Provide at least two of each, and preferably hundreds."
        )
    constant = np.flatnonzero(np.ptp(controls, axis=0) == 0)
    if len(constant):
        raise InputError(
            f"Region {names[constant[0]]!r} has the same value in all {len(controls)} controls "
            f"({counted(len(constant), 'such region')}): omit it."
        )
    if smallest < FEW_PEOPLE:
        warnings.warn(
            f"Only {len(controls)} controls and {n_patients} patients: below {FEW_PEOPLE} in a group, R-indices "
            "are not reliable.",
            UserWarning,
            stacklevel=3,
        )
