"""The groups of a study: who was read and used, in what controls and patients differ, and what that may do.

A difference of age, sex or site can be mistaken for disease. Severities of controls tell, as they have no disease.
They do not tell of a covariate that was removed. What it explains in controls is gone by construction, and what it does
beyond that, in patients older than any control, cannot show in them. There, patients have to be looked at.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from rindices.analysis.associations_and_resemblance import associations
from rindices.analysis.imbalance import corrected_p
from rindices.analysis.statistics import (
    GROUPS,
    as_numbers,
    basis,
    coded,
    correlation,
    false_discovery,
    in_group,
    mean_difference,
    patients_of,
    residuals,
    same_people,
)
from rindices.problems import counted, shown

# In the order in which people are left out; any other reason comes after these.
_REASONS = ("missing covariate", "missing region", "impossible value", "outlier", "site without enough controls")


def flow_table(people: pd.DataFrame) -> pd.DataFrame:
    """Count the rows that were read, excluded for each reason, and used, by site and group.

    Parameters
    ----------
    people
        The record of a cohort: one row for everyone who was read (or for each visit), with the columns group, used,
        reason and, if there are sites, site.

    Returns
    -------
    pandas.DataFrame
        Columns site, group, read, one for each reason that occurs, used. The rows of site ``all`` come
        first, then those of each site, each beginning with the group ``all``. In every row, reasons and used add up to
        read.

    Examples
    --------
    >>> record = pd.DataFrame({"group": ["control", "patient", "patient"], "used": [True, True, False]})
    >>> flow_table(record.assign(reason=["", "", "outlier"])).to_numpy().tolist()
    [['all', 'all', 3, 1, 2], ['all', 'control', 1, 0, 1], ['all', 'patient', 2, 1, 1]]
    """
    said = people["reason"].astype(object).fillna("").replace("", "not said")
    people = people.assign(reason=said.mask(people["used"].astype(bool), "used"))
    given = set(people["reason"]) - {"used"}
    reasons = [name for name in _REASONS if name in given] + sorted(given - set(_REASONS))
    groups = [name for name in GROUPS if name != "other" or (people["group"] == "other").any()]
    sites = people.groupby(people["site"].astype(str)) if "site" in people else ()
    rows = []
    for site, here in [("all", people), *sites]:
        for group in ("all", *groups):
            own = here if group == "all" else here[here["group"] == group]
            counts = own["reason"].value_counts().reindex([*reasons, "used"], fill_value=0)
            rows.append({"site": site, "group": group, "read": len(own), **counts})
    return pd.DataFrame(rows)


LARGEST_P = 0.05  # of all variables together
# In large cohorts trifles are significant. A standardised difference of 0.1 is the usual limit of balance in matched
# studies; a Cramér's V of 0.1 is, in groups of one size, 45 % women against 55 %.
SMALLEST_DIFFERENCE = 0.1
_SHOWN_CATEGORIES = 4  # more would not fit a cell of a table
_BALANCE = ["variable", "kind", "n_controls", "n_patients", "controls", "patients", "difference", "p"]
_GAPS = "number of missing regions"  # of a person


def group_balance(
    variables: pd.DataFrame,
    patient: ArrayLike,
    site: pd.Series | None = None,
    regions: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Compare controls and patients in each variable.

    Parameters
    ----------
    variables
        One row per person, one column per variable. Text, true/false and numbers with exactly two distinct values are
        categories; other numbers are numeric. Missing values are excluded, variable by variable.
    patient
        True for patients, false for controls; one value per person.
    site
        Site of each person, if known; labels are permuted within sites.
    regions
        Regions of the same people: variables that explain more of their variation have more weight. If values are
        missing, the number of a person's missing regions is also compared.

    Returns
    -------
    DataFrame
        One row per variable: ``variable``, ``kind`` ("number" or "category"), ``n_controls`` and ``n_patients`` (not
        missing), ``controls`` and ``patients`` (in words), ``difference`` (numbers: patients minus controls, in pooled
        standard deviations; categories: Cramér's V, 0 to 1), ``p`` (Welch's t test; chi-square test without
        correction; NaN where there is none), ``p_corrected`` (for the number of variables, by permuting labels; see
        `rindices.analysis.imbalance`) and ``imbalanced`` (``p_corrected`` of at most 0.05 and a difference beyond
        0.1).

    Examples
    --------
    >>> people = pd.DataFrame({"age": [60, 62, 64, 66, 68, 70, 72, 74, 76, 78], "sex": ["F", "M"] * 5})
    >>> table = group_balance(people, [False] * 5 + [True] * 5)
    >>> table[["variable", "controls", "patients", "imbalanced"]].values.tolist()
    [['age', '64.0 ± 3.2', '74.0 ± 3.2', True], ['sex', 'F 60 %, M 40 %', 'F 40 %, M 60 %', False]]
    """
    is_patient = patients_of(patient, len(variables), name="patient")
    if regions is not None and regions.isna().any(axis=None):
        variables = variables.assign(**{_GAPS: regions.isna().sum(axis=1).to_numpy()})
    rows = [(str(name), *_compared(column, is_patient)) for name, column in variables.items()]
    table = pd.DataFrame(rows, columns=_BALANCE).astype({"difference": float, "p": float})
    table["p_corrected"] = corrected_p(
        variables, is_patient, site, None if regions is None else regions.to_numpy(float)
    )
    table["imbalanced"] = (table["p_corrected"] <= LARGEST_P) & (table["difference"].abs() > SMALLEST_DIFFERENCE)
    return table


def balance_warnings(table: pd.DataFrame) -> list[str]:
    """Return a warning about each imbalanced variable in a table from `group_balance`.

    Examples
    --------
    >>> people = pd.DataFrame({"age": [60, 62, 64, 66, 68, 70, 72, 74, 76, 78]})
    >>> for sentence in balance_warnings(group_balance(people, [False] * 5 + [True] * 5)):
    ...     print(sentence)
    Patients and controls differ in age (74.0 ± 3.2 versus 64.0 ± 3.2, difference 3.16 sd), so apparent \
disease effects may be due to age. Match the groups: using age as a covariate removes only the effect that it has in \
controls.
    """
    sentences = []
    for row in table[table["imbalanced"].astype(bool)].to_dict("records"):
        name, size = row["variable"], abs(row["difference"])
        measure = f"difference {size:.2f} sd" if row["kind"] == "number" else f"Cramér's V {size:.2f}"
        sentences.append(
            f"Patients and controls differ in {name} ({row['patients']} versus {row['controls']}, {measure}), "
            f"so apparent disease effects may be due to {name}. Match the groups: using {name} as a covariate removes "
            "only the effect that it has in controls."
        )
    return sentences


def _compared(column: pd.Series, is_patient: np.ndarray) -> tuple[object, ...]:
    """Return the row of a variable, without its name."""
    variable = coded(column)
    values, in_patients, n_distinct = variable.values, is_patient[variable.people], len(np.unique(variable.values))
    is_number, groups = variable.kind == "continuous", (~in_patients, in_patients)
    difference, p = (0.0 if n_distinct == 1 else math.nan), math.nan
    if n_distinct > 1 and in_patients.any() and not in_patients.all():
        difference, p = (_compare_numbers if is_number else _compare_categories)(values, in_patients)
    words = [_mean_and_sd(values[own]) if is_number else _shares(values[own], variable.levels) for own in groups]
    counts = [int(own.sum()) for own in groups]
    return "number" if is_number else "category", *counts, *words, difference, p


def _compare_numbers(values: np.ndarray, in_patients: np.ndarray) -> tuple[float, float]:
    """Return the standardised difference of the means and p of Welch's t test."""
    groups = values[in_patients, None], values[~in_patients, None]
    if min(map(len, groups)) < 2:
        return math.nan, math.nan
    difference = mean_difference(*groups)
    pooled = np.sqrt(np.mean([group.var(ddof=1) for group in groups]))
    return float(difference.value[0] / pooled), float(difference.p[0])


def _compare_categories(codes: np.ndarray, in_patients: np.ndarray) -> tuple[float, float]:
    """Return Cramér's V and p of the chi-square test without correction for continuity."""
    seen = pd.crosstab(in_patients, codes).to_numpy()
    expected = seen.sum(axis=1, keepdims=True) * seen.sum(axis=0) / len(codes)
    statistic = float(np.sum((seen - expected) ** 2 / expected))
    return math.sqrt(statistic / len(codes)), float(chdtrc(seen.shape[1] - 1, statistic))


def _mean_and_sd(values: np.ndarray) -> str:
    """Return text such as ``61.2 ± 8.1``, with two digits of the standard deviation or one decimal."""
    if len(values) < 2:
        return shown(float(values[0])) if len(values) else "no values"
    sd = values.std(ddof=1)
    decimals = 0 if sd >= 100 else 1 if sd >= 1 or sd == 0 else 1 - math.floor(math.log10(sd))
    return f"{values.mean():.{decimals}f} ± {sd:.{decimals}f}"


def _shares(codes: np.ndarray, levels: list[str]) -> str:
    """Return text such as ``F 52 %, M 48 %``, with the same categories for both groups."""
    if not len(codes):
        return "no values"
    if len(levels) > _SHOWN_CATEGORIES:
        return counted(len(np.unique(codes)), "category", "categories")
    return ", ".join(f"{level} {100 * (codes == code).mean():.0f} %" for code, level in enumerate(levels))


_COLUMNS = ["pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q"]
_COLUMNS += ["n_patients", "coefficient_patients", "q_patients", "imbalanced", "difference", "adjusted", "explained"]
_COLUMNS += ["remark"]
_LARGEST_Q = 0.05  # the usual false discovery rate: of what is below, one in twenty is expected to be chance
_SMALLEST_REST = 0.01  # of the variance of the group: with less, a variable and the group are the same thing


def group_check(
    r_indices: pd.DataFrame,
    background: pd.DataFrame,
    group: ArrayLike,
    removed: Collection[str] = (),
    imbalanced: Collection[str] | None = None,
) -> pd.DataFrame:
    """Find severities that are associated with a background variable in which the groups also differ.

    Parameters
    ----------
    r_indices
        One column per pattern, for all people.
    background
        Age, sex, site and similar variables of the same people: numbers or text.
    group
        ``control``, ``patient`` or ``other``, one per person; others are excluded.
    removed
        Variables whose effects in controls were removed before training.
    imbalanced
        Variables in which the groups differ, if already known.

    Returns
    -------
    DataFrame
        One row per pattern and variable: ``pattern``, ``variable``, ``kind``, ``statistic``, ``removed``;
        ``n_controls``, ``coefficient``, ``p``, ``q`` (as in `associations`, in controls; no p and q where the variable
        was removed), ``n_patients``, ``coefficient_patients``, ``q_patients`` (the same in patients; none where
        their categories make it another statistic), ``imbalanced`` (as in `group_balance`), ``difference``,
        ``adjusted``, ``explained`` and ``remark``. ``difference`` is the mean severity of patients minus that of
        controls, and ``adjusted`` the same after adjusting for the variable. ``explained`` is the proportion of the
        difference that adjustment removes: negative if it increases the difference, and NaN if there is no clear
        difference (p ≥ 0.05) or if the variable coincides with the group. ``remark`` is empty
        unless q < 0.05 and the correlation is beyond 0.1 (η² beyond 0.01), in controls or in patients.
    """
    controls, patients = in_group(group, "control"), in_group(group, "patient")
    same_people(len(r_indices), background=background, group=controls)
    table = associations(r_indices[controls], background[controls], people="controls")
    table = table.rename(columns={"n": "n_controls"})
    table["removed"] = table["variable"].isin(list(removed))
    table["p"] = table["p"].where(~table["removed"])
    table["q"] = false_discovery(table["p"].to_numpy())
    ill = associations(r_indices[patients], background[patients])  # rows in the same order
    table[["n_patients", "coefficient_patients", "q_patients"]] = ill[["n", "coefficient", "q"]]
    table.loc[_unlike(table, ill), ["coefficient_patients", "q_patients"]] = np.nan
    both = controls | patients
    if imbalanced is None:
        balance = group_balance(background[both], patients[both])
        imbalanced = balance["variable"][balance["imbalanced"]].tolist()
    table["imbalanced"] = table["variable"].isin(list(imbalanced))
    scores = np.asarray(r_indices, float)
    adjusted = np.array([_adjusted(scores, column, both, patients) for _, column in background.items()])
    names = ["difference", "adjusted", "explained"]
    table[names] = adjusted.reshape(-1, len(names), scores.shape[1]).transpose(2, 0, 1).reshape(-1, len(names))
    directions = {str(name): _direction(column, both, patients) for name, column in background.items()}
    rows: Any = zip(table.itertuples(), ill.itertuples(), strict=True)
    table["remark"] = [
        _remark_on_patients(of_patients, of_controls.imbalanced)
        if of_controls.removed
        else _remark(of_controls, directions[of_controls.variable], of_patients)
        for of_controls, of_patients in rows
    ]
    return table[_COLUMNS]


def _unlike(controls: pd.DataFrame, patients: pd.DataFrame) -> pd.Series:
    """Whether coefficients of the two groups mean different things: η² of three sites, and r of two of them."""
    named = (controls["level"] != "") & (patients["level"] != "")
    return (controls["kind"] != patients["kind"]) | (named & (controls["level"] != patients["level"]))


def _adjusted(scores: np.ndarray, column: pd.Series, both: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return, for each pattern, the groups' difference, what is left adjusted for a variable, and the share lost."""
    variable = coded(column, both & np.isfinite(scores).all(axis=1))
    group = patients[variable.people].astype(float)[:, None]
    if len(group) < 4 or np.ptp(group) == 0:
        return np.full((3, scores.shape[1]), np.nan)
    own = scores[variable.people] - scores[variable.people].mean(axis=0)
    whole, rest = group - group.mean(), residuals(group, basis(as_numbers(variable)))
    if np.sum(rest**2) < _SMALLEST_REST * np.sum(whole**2):
        return np.full((3, scores.shape[1]), np.nan)
    raw, adjusted = (own.T @ part[:, 0] / np.sum(part**2) for part in (whole, rest))
    clear = correlation(own, whole[:, 0]).p < 0.05  # the t test of two groups
    return np.stack([raw, adjusted, np.where(clear, 1 - adjusted / np.where(clear, raw, 1), np.nan)])


def _direction(column: pd.Series, both: np.ndarray, patients: np.ndarray) -> float:
    """Return the mean of patients less that of controls, or the difference of shares of the level that counts as 1."""
    variable = coded(column, both)
    in_patients = patients[variable.people]
    if variable.kind == "categorical" or not in_patients.any() or in_patients.all():
        return math.nan
    return float(variable.values[in_patients].mean() - variable.values[~in_patients].mean())


def _clear(row: Any) -> bool:
    """Whether severities go with a variable, by the false discovery rate, and it is no trifle."""
    size = math.sqrt(row.coefficient) if row.kind == "categorical" else abs(row.coefficient)
    return row.q < _LARGEST_Q and size > SMALLEST_DIFFERENCE


def _link(row: Any) -> str:
    """Say how the score of a pattern goes with a variable, in one group."""
    q = "q < 0.001" if row.q < 0.001 else f"q = {row.q:.2g}"
    rises, size, own = row.coefficient > 0, f"(r = {row.coefficient:.2f}, {q})", f"pattern {row.pattern}"
    return {
        "categorical": f"{own} varies with {row.variable} (eta² = {row.coefficient:.2f}, {q})",
        "dichotomous": f"{own} is {'stronger' if rises else 'weaker'} if {row.variable} is {row.level} {size}",
        "continuous": f"{own} {'rises' if rises else 'falls'} with {row.variable} {size}",
    }[row.kind]


def _remark(row: Any, direction: float, of_patients: Any) -> str:
    """Say what a variable may do to a pattern; nothing where severities do not go with it in either group."""
    if not _clear(row):
        sentence = (
            f"In patients, but not clearly in controls, {_link(of_patients)}: the disease may be associated with "
            f"{row.variable}."
        )
        return sentence if _clear(of_patients) else ""
    name, more = row.variable, direction > 0
    if not row.imbalanced:
        return (
            f"In controls, {_link(row)}, so the pattern does not reflect disease alone. The groups do not "
            "clearly differ in "
            f"{name}, so it explains little of the difference between them."
        )
    groups = {
        "categorical": f"the groups differ in {name}",
        "dichotomous": f"that is {'more' if more else 'less'} frequent among patients",
        "continuous": f"patients' {name} is {'higher' if more else 'lower'}",
    }[row.kind]
    alike = row.kind == "categorical" or (row.coefficient > 0) == more
    part = f"part of the pattern may reflect {name}" if alike else f"{name} may mask part of the pattern"
    return f"In controls, {_link(row)}, and {groups}: {part}."


def _remark_on_patients(row: Any, imbalanced: bool) -> str:
    """Say what is left of a variable that was removed, where the groups differ in it."""
    if not _clear(row):
        return ""
    if not imbalanced:
        return (
            f"In patients, {_link(row)}: the disease may be associated with {row.variable}. The groups do not clearly "
            f"differ in {row.variable}, so it explains little of the difference between them."
        )
    return (
        f"In patients, {_link(row)}, and the groups differ in {row.variable}. The effect of {row.variable} in "
        f"controls was removed. Either the disease is associated with {row.variable}, or part of the pattern "
        "reflects effects that the correction missed."
    )
