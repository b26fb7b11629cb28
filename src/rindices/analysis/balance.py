"""Do controls and patients differ in age, sex, site? Such a difference can be mistaken for disease."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import chi2

from rindices.analysis.columns import known_values
from rindices.analysis.statistics import mean_difference
from rindices.errors import InputError, counted, shown

LARGEST_P = 0.05  # not q: an alarm must not grow weaker with every further variable that is looked at
# In large cohorts trifles are significant. A standardised difference of 0.1 is the usual limit of balance in matched
# studies; a Cramér's V of 0.1 is, in groups of one size, 45 % women against 55 %.
SMALLEST_DIFFERENCE = 0.1
_SHOWN_CATEGORIES = 4  # more would not fit a cell of a table


class _Row(NamedTuple):
    variable: str
    kind: str
    n_controls: int
    n_patients: int
    controls: str
    patients: str
    difference: float
    p: float


def group_balance(variables: pd.DataFrame, patient: ArrayLike) -> pd.DataFrame:
    """Compare controls and patients in each variable.

    Parameters
    ----------
    variables
        One row a person, one column a variable. Text, true/false and numbers with exactly two distinct values are
        categories, other numbers are numbers. Missing values are left out, variable by variable.
    patient
        True for patients, false for controls; one value a person.

    Returns
    -------
    DataFrame
        One row a variable: ``variable``, ``kind`` ("number" or "category"), ``n_controls`` and ``n_patients`` (not
        missing), ``controls`` and ``patients`` (in words), ``difference`` (numbers: patients less controls, in pooled
        standard deviations; categories: Cramér's V, 0 to 1), ``p`` (Welch's t test; chi-square test without
        correction; NaN where there is none) and ``imbalanced`` (``p`` below 0.05 and a difference beyond 0.1; whatever
        else is in the table).

    Examples
    --------
    >>> people = pd.DataFrame({"age": [60, 62, 64, 70, 72, 74], "sex": ["F", "M", "F", "M", "F", "M"]})
    >>> table = group_balance(people, [False, False, False, True, True, True])
    >>> table[["variable", "controls", "patients", "imbalanced"]].values.tolist()
    [['age', '62.0 ± 2.0', '72.0 ± 2.0', True], ['sex', 'F 67 %, M 33 %', 'F 33 %, M 67 %', False]]
    """
    is_patient = _flags(patient, len(variables))
    rows = [_compared(str(name), column, is_patient) for name, column in variables.items()]
    table = pd.DataFrame(rows, columns=list(_Row._fields)).astype({"difference": float, "p": float})
    table["imbalanced"] = (table["p"] < LARGEST_P) & (table["difference"].abs() > SMALLEST_DIFFERENCE)
    return table


def balance_warnings(table: pd.DataFrame) -> list[str]:
    """Say in a sentence or two what each imbalanced variable of a table from `group_balance` may do.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [60, 62, 64, 70, 72, 74]})
    >>> for sentence in balance_warnings(group_balance(people, [False, False, False, True, True, True])):
    ...     print(sentence)
    Patients and controls differ in age (72.0 ± 2.0 against 62.0 ± 2.0, difference 5.00 sd): what looks like disease \
may be age. Match the groups; as a covariate only its effect in controls is removed.
    """
    sentences = []
    for row in table[table["imbalanced"].astype(bool)].to_dict("records"):
        name, size = row["variable"], abs(row["difference"])
        measure = f"difference {size:.2f} sd" if row["kind"] == "number" else f"Cramér's V {size:.2f}"
        sentences.append(
            f"Patients and controls differ in {name} ({row['patients']} against {row['controls']}, {measure}): "
            f"what looks like disease may be {name}. "
            "Match the groups; as a covariate only its effect in controls is removed."
        )
    return sentences


def _flags(patient: ArrayLike, n_people: int) -> np.ndarray:
    flags = np.asarray(patient)
    if flags.shape != (n_people,):
        raise InputError(f"`patient` should have one value a person, {n_people} in all; its shape is {flags.shape}.")
    wrong = flags[~pd.Series(flags).isin([0, 1]).to_numpy()]
    if len(wrong):
        raise InputError(f"`patient` should be true for patients and false for controls, found {str(wrong[0])!r}.")
    return flags.astype(bool)


def _compared(name: str, column: pd.Series, is_patient: np.ndarray) -> _Row:
    known = known_values(column)
    values, in_patients = known.values, is_patient[known.people]
    kind = "number" if known.is_number and values.nunique() != 2 else "category"
    compare, describe = (_compare_numbers, _mean_and_sd) if kind == "number" else (_compare_categories, _shares)
    n_controls, n_patients = int((~in_patients).sum()), int(in_patients.sum())
    if values.nunique() == 1:
        difference, p = 0.0, math.nan
    elif n_controls and n_patients:
        difference, p = compare(values, in_patients)
    else:
        difference, p = math.nan, math.nan
    controls, patients = describe(values, ~in_patients), describe(values, in_patients)
    return _Row(name, kind, n_controls, n_patients, controls, patients, difference, p)


def _compare_numbers(values: pd.Series, in_patients: np.ndarray) -> tuple[float, float]:
    """Return the standardised difference of the means and p of Welch's t test."""
    numbers = values.to_numpy(float)
    groups = numbers[in_patients, None], numbers[~in_patients, None]
    if min(len(group) for group in groups) < 2:
        return math.nan, math.nan
    found = mean_difference(*groups)
    pooled = np.sqrt(np.mean([group.var(ddof=1) for group in groups]))
    return float(found.mean[0] / pooled), float(found.p[0])


def _compare_categories(values: pd.Series, in_patients: np.ndarray) -> tuple[float, float]:
    """Return Cramér's V and p of the chi-square test without correction for continuity."""
    codes, categories = pd.factorize(values)
    counts = np.array([np.bincount(codes[group], minlength=len(categories)) for group in (in_patients, ~in_patients)])
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(np.sum((counts - expected) ** 2 / expected))
    return math.sqrt(statistic / counts.sum()), float(chi2.sf(statistic, len(categories) - 1))


def _mean_and_sd(values: pd.Series, group: np.ndarray) -> str:
    """Return text such as ``61.2 ± 8.1``, with two digits of the standard deviation or one decimal."""
    numbers = values.to_numpy(float)[group]
    if len(numbers) < 2:
        return shown(float(numbers[0])) if len(numbers) else "no values"
    sd = numbers.std(ddof=1)
    decimals = 0 if sd >= 100 else 1 if sd >= 1 or sd == 0 else 1 - math.floor(math.log10(sd))
    return f"{numbers.mean():.{decimals}f} ± {sd:.{decimals}f}"


def _shares(values: pd.Series, group: np.ndarray) -> str:
    """Return text such as ``F 52 %, M 48 %``, with the same categories for both groups."""
    inside, categories = values[group], sorted(values.unique(), key=str)
    if inside.empty:
        return "no values"
    if len(categories) > _SHOWN_CATEGORIES:
        return counted(inside.nunique(), "category", "categories")
    return ", ".join(f"{shown(category)} {100 * (inside == category).mean():.0f} %" for category in categories)
