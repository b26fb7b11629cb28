"""The groups of a study: who was read and used, and how controls and patients differ.

Twenty variables are twenty chances of a difference. Each p is therefore compared with the smallest p of all variables
after permuting labels (Westfall and Young, 1993): five in a hundred randomised studies have any p ≤ 0.05, however many
variables there are and however they correlate.

A variable can only be mistaken for disease if regions are associated with it. Half of the error rate is therefore
shared among the variables by how much regional variance each explains within the groups, and half equally.
"""

import math
from itertools import groupby
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from rindices.analysis.statistics import (
    GROUPS,
    as_numbers,
    basis,
    coded,
    mean_difference,
    patients_of,
    residuals,
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
        Columns site, group, read, one for each reason that occurs, and used. The rows of site ``all`` come
        first, then those of each site, each beginning with the group ``all``. In every row, reasons and used add up to
        read.

    Examples
    --------
    >>> record = pd.DataFrame({"group": ["control", "patient", "patient"], "used": [True, True, False]})
    >>> flow_table(record.assign(reason=["", "", "outlier"])).to_numpy().tolist()
    [['all', 'all', 3, 1, 2], ['all', 'control', 1, 0, 1], ['all', 'patient', 2, 1, 1]]
    """
    said = people["reason"].astype(object).fillna("").replace("", "not stated")
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


LARGEST_P = 0.05  # for all variables together
# In large cohorts, trivial differences are significant. A standardised difference of 0.1 is the usual limit of balance
# in matched studies; in groups of equal size, a Cramér's V of 0.1 is 45 % women against 55 %.
SMALLEST_DIFFERENCE = 0.1
_SHOWN_CATEGORIES = 4  # more would not fit into a table cell
_BALANCE = ["variable", "kind", "n_controls", "n_patients", "controls", "patients", "difference", "p"]
_GAPS = "number of missing regions"  # per person


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
        missing), ``controls`` and ``patients`` (as text), ``difference`` (numbers: patients minus controls, in pooled
        standard deviations; categories: Cramér's V, 0 to 1), ``p`` (Welch's t test; chi-square test without
        correction; NaN where there is none), ``p_corrected`` (for the number of variables, by permuting labels)
        and ``imbalanced`` (``p_corrected`` of at most 0.05 and a difference beyond 0.1).

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
    return "number" if is_number else "category", *(int(own.sum()) for own in groups), *words, difference, p


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


N_PERMUTATIONS = 499
_CHUNK = 4_000_000  # labels at a time


def corrected_p(
    variables: pd.DataFrame,
    patient: np.ndarray,
    site: pd.Series | None = None,
    regions: np.ndarray | None = None,
    seed: int = 0,
) -> np.ndarray:
    """Return the p value of each variable, corrected for all of them; NaN if it cannot be compared.

    Parameters
    ----------
    variables
        Numbers or text, one row per person.
    patient
        True for patients, false for controls.
    site
        Labels are permuted within sites, except for variables that are constant within each site.
    regions
        Regions of the same people; without them, all variables count equally.
    seed
        Seed of the permutations.
    """
    blocks = np.zeros(len(patient), int) if site is None else pd.factorize(site)[0] + 1
    every = [_Tested.of(column, blocks) for _, column in variables.items()]
    tested, corrected = [one for one in every if one.varies], np.full(len(every), np.nan)
    groups = [list(alike) for _, alike in groupby(tested, key=lambda one: one.known)]
    weights = _weights(groups, len(every), patient, regions)
    rng, p_values = np.random.default_rng([seed, len(patient)]), []
    labels = [(patient[:, None], patient[:, None])]
    step = max(1, min(N_PERMUTATIONS, _CHUNK // max(len(patient), 1)))
    for start in range(0, N_PERMUTATIONS, step):
        size = (len(patient), min(step, N_PERMUTATIONS - start))
        labels.append((_permuted(patient, np.zeros_like(blocks), size, rng), _permuted(patient, blocks, size, rng)))
    for free, within in labels:
        centred = ((group, group[0].centred(free, within)) for group in groups)
        p_values.append(np.array([one.p(left) for group, left in centred for one in group]) / weights[:, None])
    testable = np.array([not np.isnan(one[0]) for one in p_values[0]], bool)
    if testable.any():
        smallest = np.concatenate([np.nanmin(part[testable], axis=0) for part in p_values])
        shares = (smallest <= p_values[0] * (1 + 1e-9)).mean(axis=1)
        corrected[[one.varies for one in every]] = np.where(testable, shares, np.nan)
    return corrected


def _permuted(patient: np.ndarray, blocks: np.ndarray, size: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    """Return labels permuted within blocks ``(people, permutations)``."""
    places = np.argsort(blocks, kind="stable")
    order = np.argsort(rng.random(size) + blocks[:, None], axis=0)
    labels = np.empty(size, bool)
    labels[places] = patient[order]
    return labels


class _Tested:
    """A variable as orthonormal columns, centred within sites unless it is constant within each site."""

    def __init__(self, people: np.ndarray, columns: np.ndarray, places: np.ndarray) -> None:
        self.people, self.columns, self.places = people, columns, places
        self.within = places.shape[1] > 0
        self.varies = columns.shape[1] > 0
        self.known = people.tobytes(), self.within

    @classmethod
    def of(cls, column: pd.Series, blocks: np.ndarray) -> Self:
        variable = coded(column)
        if not variable.people.any():
            return cls(variable.people, np.empty((0, 0)), np.empty((0, 0)))
        numbers, block = as_numbers(variable), np.unique(blocks[variable.people], return_inverse=True)[1]
        places = basis((block[:, None] == np.arange(1, block.max() + 1)).astype(float))
        inside = basis(residuals(numbers, places))
        if places.shape[1] and not inside.shape[1]:
            return cls(variable.people, basis(numbers), places[:, :0])
        return cls(variable.people, inside, places)

    def centred(self, free: np.ndarray, within: np.ndarray) -> np.ndarray:
        """Return labels ``(people, permutations)``, permuted freely or within sites, minus the mean of each site."""
        return residuals((within if self.within else free)[self.people].astype(float), self.places)

    def p(self, centred: np.ndarray) -> np.ndarray:
        """Return the p values of centred labels, from the share of their variance that the columns explain."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.sum(np.square(self.columns.T @ centred), axis=0) / np.sum(np.square(centred), axis=0)
        return chdtrc(self.columns.shape[1], len(centred) * share)

    def within_groups(self, patient: np.ndarray, regions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return a basis of groups and sites, and the residuals of regions given this basis."""
        given = basis(np.column_stack([self.places, patient[self.people]]))
        return given, residuals(regions[self.people], given)

    def explained(self, given: np.ndarray, values: np.ndarray) -> float:
        """Return the mean share of regional variance explained within groups and sites, beyond chance."""
        columns = basis(residuals(self.columns, given))
        total = np.sum(np.square(values), axis=0)
        share = np.sum(np.square(columns.T @ values), axis=0)[total > 0] / total[total > 0]
        return max(float(share.mean()) - 2 * columns.shape[1] / len(values), 0.0) if share.size else 0.0


def _weights(
    groups: list[list[_Tested]], n_variables: int, patient: np.ndarray, regions: np.ndarray | None
) -> np.ndarray:
    """Return the share of the error rate that each variable gets, given in groups known for the same people."""
    equal = np.full(sum(map(len, groups)), 1 / max(n_variables, 1))
    if regions is None:
        return equal
    filled = np.where(np.isnan(regions), np.nanmedian(regions, axis=0), regions)
    parts = ((group, group[0].within_groups(patient, filled)) for group in groups)
    explained = np.array([one.explained(*part) for group, part in parts for one in group])
    return equal if not explained.sum() else (equal + explained / explained.sum()) / 2
