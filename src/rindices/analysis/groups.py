"""The groups of a study: who was read and used, in what controls and patients differ, and what that may do.

A difference of age, sex or site can be mistaken for disease. R-indices of controls tell, because they have no disease.
They do not tell of a covariate that was removed. What it explains in controls is gone by construction, and what it does
beyond that, in patients older than any control, cannot show in them. There, patients have to be looked at.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import chi2

from rindices.analysis.associations import associations
from rindices.analysis.coding import GROUPS, as_numbers, coded, in_group, known_values, patients_of, same_people
from rindices.analysis.statistics import basis, correlation, false_discovery, mean_difference, residuals
from rindices.errors import counted, shown

# In the order in which people are left out; any other reason comes after these.
_REASONS = ("missing covariate", "missing region", "impossible value", "outlier", "site without enough controls")


def flow_table(people: pd.DataFrame) -> pd.DataFrame:
    """Count the rows that were read, left out for each reason, and used, by site and group.

    Parameters
    ----------
    people
        A cohort's record: a row for everybody who was read (with visits, for each visit), with the columns group,
        used, reason and, where there are sites, site.

    Returns
    -------
    pandas.DataFrame
        Columns site, group, read, one for each reason that occurs, used. First the rows of site ``all``, then those
        of each site; of each first the group ``all``. In every row, reasons and used add up to read.

    Examples
    --------
    >>> record = pd.DataFrame({"group": ["control", "patient", "patient"], "used": [True, True, False]})
    >>> flow_table(record.assign(reason=["", "", "outlier"])).to_numpy().tolist()
    [['all', 'all', 3, 1, 2], ['all', 'control', 1, 0, 1], ['all', 'patient', 2, 1, 1]]
    """
    used, rows = people["used"].astype(bool), []
    reason = people["reason"].astype(object).where(people["reason"].notna(), "")
    reason = reason.mask(reason == "", "not said").mask(used, "")
    found = set(reason[~used])
    reasons = [name for name in _REASONS if name in found] + sorted(found - set(_REASONS))
    groups = [name for name in GROUPS if name != "other" or (people["group"] == "other").any()]
    sites = people["site"].astype(str) if "site" in people else pd.Series(dtype=str)
    for site in (None, *sorted(sites.unique())):
        here = pd.Series(True, index=people.index) if site is None else sites == site
        for group in ("all", *groups):
            who = here & ((people["group"] == group) | (group == "all"))
            counts = {name: int((who & (reason == name)).sum()) for name in reasons}
            of_all = {"read": int(who.sum()), **counts, "used": int((who & used).sum())}
            rows.append({"site": site or "all", "group": group} | of_all)
    return pd.DataFrame(rows)


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
    is_patient = patients_of(patient, len(variables), name="patient")
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


def _compared(name: str, column: pd.Series, is_patient: np.ndarray) -> _Row:
    known = known_values(column)
    values, in_patients = known.values, is_patient[known.people]
    kind = "number" if known.is_number and values.nunique() != 2 else "category"
    compare, describe = (_compare_numbers, _mean_and_sd) if kind == "number" else (_compare_categories, _shares)
    n_controls, n_patients = int((~in_patients).sum()), int(in_patients.sum())
    difference, p = (0.0 if values.nunique() == 1 else math.nan), math.nan
    if values.nunique() > 1 and n_controls and n_patients:
        difference, p = compare(values, in_patients)
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


_COLUMNS = ["pattern", "variable", "kind", "statistic", "removed", "n_controls", "coefficient", "p", "q"]
_COLUMNS += ["n_patients", "coefficient_patients", "q_patients", "imbalanced", "explained", "remark"]
_LARGEST_Q = 0.05  # the usual false discovery rate: what is below is hardly chance
_SMALLEST_REST = 0.01  # of the variance of the group: with less, a variable and the group are the same thing


def group_check(
    r_indices: pd.DataFrame, background: pd.DataFrame, group: ArrayLike, removed: Collection[str] = ()
) -> pd.DataFrame:
    """Look for R-indices that follow a background variable in controls, in which the groups differ too.

    Parameters
    ----------
    r_indices
        One column a pattern, everybody.
    background
        Age, sex, site and the like, the same people: numbers or text.
    group
        ``control``, ``patient`` or ``other``, one a person; others are left out.
    removed
        Variables whose effects in controls were removed before training.

    Returns
    -------
    DataFrame
        One row a pattern and variable: ``pattern``, ``variable``, ``kind``, ``statistic``, ``removed``;
        ``n_controls``, ``coefficient``, ``p``, ``q`` (as in `associations`, in controls; no p and q where the variable
        was removed), ``n_patients``, ``coefficient_patients``, ``q_patients`` (the same in patients; none where
        their categories make it another statistic), ``imbalanced`` (as in `group_balance`), ``explained`` and
        ``remark``. ``explained`` is the share of the difference of the mean R-index between patients and controls that
        a linear model with the variable takes away; below 0 where it makes the difference larger, and NaN where there
        is no clear difference (p ≥ 0.05) or where the variable and the group are the same thing. ``remark`` is empty
        unless q < 0.05 and the correlation is beyond 0.1 (η² beyond 0.01): in controls, or, where the variable was
        removed and the groups differ in it, in patients.
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
    balance = group_balance(background[both], patients[both]).set_index("variable")
    table["imbalanced"] = table["variable"].map(balance["imbalanced"]).astype(bool)
    scores = np.asarray(r_indices, float)
    explained = [_explained(scores, column, both, patients) for _, column in background.items()]
    table["explained"] = np.array(explained).reshape(-1, scores.shape[1]).T.ravel()
    directions = {str(name): _direction(column, both, patients) for name, column in background.items()}
    rows = zip(_links(table), _links(ill), table["removed"], table["imbalanced"], strict=True)
    table["remark"] = [
        (_remark_on_patients(of_patients) if imbalanced else "")
        if was_removed
        else _remark(of_controls, imbalanced, directions[of_controls.variable])
        for of_controls, of_patients, was_removed, imbalanced in rows
    ]
    return table[_COLUMNS]


def _unlike(controls: pd.DataFrame, patients: pd.DataFrame) -> pd.Series:
    """Whether coefficients of the two groups mean different things: η² of three sites, and r of two of them."""
    named = (controls["level"] != "") & (patients["level"] != "")
    return (controls["kind"] != patients["kind"]) | (named & (controls["level"] != patients["level"]))


def _explained(scores: np.ndarray, column: pd.Series, both: np.ndarray, patients: np.ndarray) -> np.ndarray:
    """Return, for each pattern, the share of the groups' difference that adjusting for a variable takes away."""
    found = coded(column, both & np.isfinite(scores).all(axis=1))
    nothing = np.full(scores.shape[1], np.nan)
    group = patients[found.people].astype(float)[:, None]
    if len(group) < 4 or np.ptp(group) == 0:
        return nothing
    own = scores[found.people] - scores[found.people].mean(axis=0)
    whole, rest = group - group.mean(), residuals(group, basis(as_numbers(found)))
    if np.sum(rest**2) < _SMALLEST_REST * np.sum(whole**2):
        return nothing
    raw, adjusted = (own.T @ part[:, 0] / np.sum(part**2) for part in (whole, rest))
    clear = correlation(own, whole[:, 0]).p < 0.05  # the t test of two groups
    return np.where(clear, 1 - adjusted / np.where(clear, raw, 1), np.nan)


def _direction(column: pd.Series, both: np.ndarray, patients: np.ndarray) -> float:
    """Return the mean of patients less that of controls, or the difference of shares of the level that counts as 1."""
    found = coded(column, both)
    in_patients = patients[found.people]
    if found.kind == "categorical" or not in_patients.any() or in_patients.all():
        return math.nan
    return float(found.values[in_patients].mean() - found.values[~in_patients].mean())


class _Link(NamedTuple):
    """How an R-index goes with a variable, in one group."""

    pattern: int
    variable: str
    level: str
    kind: str
    coefficient: float
    q: float

    @property
    def clear(self) -> bool:
        """Whether it is hardly chance and no trifle."""
        size = math.sqrt(self.coefficient) if self.kind == "categorical" else abs(self.coefficient)
        return self.q < _LARGEST_Q and size > SMALLEST_DIFFERENCE

    def __str__(self) -> str:
        index, rises = f"R{self.pattern}", self.coefficient > 0
        if self.kind == "categorical":
            return f"{index} differs with {self.variable} (eta² = {self.coefficient:.2f})"
        if self.kind == "dichotomous":
            where = f"where {self.variable} is {self.level}"
            return f"{index} is {'higher' if rises else 'lower'} {where} (r = {self.coefficient:.2f})"
        return f"{index} {'rises' if rises else 'falls'} with {self.variable} (r = {self.coefficient:.2f})"


def _links(table: pd.DataFrame) -> list[_Link]:
    return [_Link(*row) for row in table[list(_Link._fields)].itertuples(index=False)]


def _remark(link: _Link, imbalanced: bool, direction: float) -> str:
    """Say what a variable may do to a pattern; nothing where R-indices of controls do not go with it."""
    if not link.clear:
        return ""
    name, more = link.variable, direction > 0
    if not imbalanced:
        return f"Controls' {link}; the groups do not differ in {name}."
    groups = {
        "categorical": f"the groups differ in {name}",
        "dichotomous": f"that is {'more' if more else 'less'} frequent among patients",
        "continuous": f"patients' {name} is {'higher' if more else 'lower'}",
    }[link.kind]
    alike = link.kind == "categorical" or (link.coefficient > 0) == more
    part = (
        f"part of pattern {link.pattern} may be {name}" if alike else f"{name} may hide part of pattern {link.pattern}"
    )
    return f"Controls' {link}, and {groups}: {part}."


def _remark_on_patients(link: _Link) -> str:
    """Say what is left of a variable that was removed, and in which the groups differ."""
    if not link.clear:
        return ""
    name = link.variable
    return (
        f"Patients' {link}, and the groups differ in {name}. What {name} does in controls was removed: "
        f"either the disease goes with {name}, or part of pattern {link.pattern} is what the removal missed."
    )
