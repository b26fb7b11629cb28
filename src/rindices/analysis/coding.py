"""Columns as numbers, groups and labels of people, and tables put beside each other; shared by the analyses.

People are matched by position, never by the index: with several visits an identifier repeats.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from rindices.problems import InputError, shown

GROUPS = ("control", "patient", "other")
Kind = Literal["continuous", "dichotomous", "categorical"]


class Coded(NamedTuple):
    """A column as numbers: values, or 0, 1, 2, … in the order of the categories."""

    kind: Kind
    values: np.ndarray
    people: np.ndarray
    levels: list[str]  # empty for continuous columns


def coded(column: pd.Series, among: np.ndarray | None = None) -> Coded:
    """Turn the known values, of some people only where these are given, into numbers and say of which kind they are.

    Two distinct values are dichotomous, other numbers continuous, other text categorical. Of two numbers the larger
    has code 1, of two texts the one that is later in the alphabet. True/false and pandas categories are no numbers.
    """
    people = column.notna().to_numpy(copy=True)
    known = column[people].infer_objects()
    is_number = is_numeric_dtype(known) and not is_bool_dtype(known)
    if is_number:
        people[people] = np.isfinite(known.to_numpy(float))  # an infinite number says as little as a missing one
    people = people if among is None else people & among
    if is_number:
        numbers = column[people].to_numpy(float)
        distinct = np.unique(numbers)
        if len(distinct) != 2:
            return Coded("continuous", numbers, people, [])
        return Coded("dichotomous", (numbers == distinct[1]).astype(float), people, [shown(float(x)) for x in distinct])
    codes, levels = pd.factorize(column[people].astype(str), sort=True)
    kind: Kind = "dichotomous" if len(levels) == 2 else "categorical"
    return Coded(kind, codes.astype(float), people, [str(level) for level in levels])


def as_numbers(column: Coded) -> np.ndarray:
    """Return a column of zeros and ones for each category but the first, or the values as one column."""
    values = column.values[:, None]
    return (values == np.arange(1, len(column.levels))).astype(float) if column.levels else values


def design(covariates: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers and indicators of categories side by side, and who has all of them; zeros for who has not."""
    everybody = np.ones(len(covariates), bool)
    columns, complete = np.empty((len(covariates), 0)), everybody
    for _, column in covariates.items():
        found = coded(column)
        numbers = pd.DataFrame(as_numbers(found), np.flatnonzero(found.people)).reindex(range(len(everybody)))
        columns, complete = np.hstack([columns, numbers.fillna(0)]), complete & found.people
    return columns, complete


def in_group(group: ArrayLike, name: str) -> np.ndarray:
    """Return who is a ``control``, a ``patient`` or ``other``.

    Raises
    ------
    InputError
        If there is a group of another name.
    """
    groups = np.asarray(group, object)
    strange = sorted({*map(str, groups)} - {*GROUPS})
    if strange:
        raise InputError(f"`group` should hold {', '.join(GROUPS)} only, found {strange[0]!r}.")
    return groups == name


def patients_of(labels: ArrayLike, n_people: int, fewest: int = 0, *, name: str = "y") -> np.ndarray:
    """Return who is a patient: 1 or true, where controls are 0 or false.

    Raises
    ------
    InputError
        If there are other labels, not one per person, or fewer people than `fewest` in a group.
    """
    found = np.asarray(labels)
    if found.shape != (n_people,):
        raise InputError(f"`{name}` should have one value per person, {n_people} in all; its shape is {found.shape}.")
    strange = found[~pd.Series(found).isin([0, 1]).to_numpy()]
    if len(strange):
        raise InputError(f"`{name}` should hold 0 for controls and 1 for patients, found {str(strange[0])!r}.")
    patient, n_patients = found.astype(bool), int(found.sum())
    if min(n_patients, n_people - n_patients) < fewest:
        raise InputError(
            f"At least {fewest} controls and {fewest} patients are needed, "
            f"found {n_people - n_patients} and {n_patients}."
        )
    return patient


def same_people(n_people: int, **tables: Sized) -> None:
    """Check that tables have one row per person.

    Raises
    ------
    InputError
        If one has more rows or fewer.
    """
    for name, table in tables.items():
        if len(table) != n_people:
            raise InputError(f"`{name}` should have one row per person, {n_people} in all; it has {len(table)}.")
