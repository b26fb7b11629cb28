"""Patients in whom one pattern prevails, compared with controls region by region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import t as student_t

from rindices.analysis.columns import in_group, same_people
from rindices.analysis.statistics import false_discovery
from rindices.errors import InputError, shown

LOW, HIGH = 0.4, 0.7
FEWEST_PEOPLE = 10


class _Subgroup(NamedTuple):
    pattern: int
    level: str
    rule: str
    members: np.ndarray


def subgroup_sizes(
    r_indices: pd.DataFrame, group: ArrayLike, *, low: float = LOW, high: float = HIGH, smallest: int = FEWEST_PEOPLE
) -> pd.DataFrame:
    """Count patients with little, some and much of one pattern and little of all others.

    Parameters
    ----------
    r_indices
        One column a pattern, everybody.
    group
        ``control``, ``patient`` or ``other``, one a person.
    low, high
        Limits of the R-index: below `low` is little, above `high` is much.
    smallest
        Least number of patients, and of controls, for a comparison.

    Returns
    -------
    DataFrame
        ``pattern``, ``level`` ("low", "middle", "high"), ``rule`` in words, ``n``, ``used`` (whether there are enough
        for `subgroup_effects`) and ``note`` (why not). The low subgroup is the same for all patterns.

    Examples
    --------
    >>> scores = pd.DataFrame({"r1": [0.0, 0.1, 0.8, 0.9], "r2": [0.0, 0.2, 0.3, 0.9]})
    >>> subgroup_sizes(scores, ["control", "patient", "patient", "patient"])[["rule", "n"]].values.tolist()[:3]
    [['all < 0.4', 1], ['0.4 ≤ r1 ≤ 0.7, others < 0.4', 0], ['r1 > 0.7, others < 0.4', 1]]
    """
    n_controls = int(in_group(group, "control").sum())
    rows = []
    for found in subgroups_of(r_indices, group, low, high):
        n_people = int(found.members.sum())
        note = f"fewer than {smallest} patients" if n_people < smallest else ""
        note = note or (f"fewer than {smallest} controls" if n_controls < smallest else "")
        rows.append((found.pattern, found.level, found.rule, n_people, not note, note))
    return pd.DataFrame(rows, columns=["pattern", "level", "rule", "n", "used", "note"])


def subgroup_effects(
    z_scores: pd.DataFrame,
    r_indices: pd.DataFrame,
    group: ArrayLike,
    *,
    low: float = LOW,
    high: float = HIGH,
    smallest: int = FEWEST_PEOPLE,
) -> pd.DataFrame:
    """Compare each subgroup of `subgroup_sizes` that is large enough with all controls, region by region.

    Parameters
    ----------
    z_scores
        One column a region, the same people as `r_indices`.
    r_indices, group, low, high, smallest
        As in `subgroup_sizes`.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``region``, ``n`` (patients), ``effect`` (Cohen's d with the pooled standard
        deviation; negative: smaller than in controls), ``low`` and ``high`` (95 %, large-sample error), ``t`` and
        ``p`` (Student's t test with the same pooled deviation) and ``q`` (Benjamini–Hochberg over all comparisons; the
        low subgroup has rows for each pattern, but is one comparison a region).
    """
    same_people(len(r_indices), z_scores=z_scores)
    regions = z_scores.to_numpy(float)
    controls = regions[in_group(group, "control")]
    listed: list[tuple[_Subgroup, bytes]] = []
    known: dict[bytes, pd.DataFrame] = {}  # the low subgroup is compared once
    for found in subgroups_of(r_indices, group, low, high):
        n_people, key = int(found.members.sum()), found.members.tobytes()
        if min(n_people, len(controls)) < smallest:
            continue
        if key not in known:
            known[key] = _compared(regions[found.members], controls).assign(region=z_scores.columns, n=n_people)
        listed.append((found, key))
    order = ["pattern", "level", "region", "n", "effect", "low", "high", "t", "p", "q"]
    if not listed:
        return pd.DataFrame(columns=order)
    compared = pd.concat(known)
    compared["q"] = false_discovery(compared["p"].to_numpy(float))
    tables = [compared.loc[key].assign(pattern=found.pattern, level=found.level) for found, key in listed]
    return pd.concat(tables, ignore_index=True)[order]


def subgroups_of(r_indices: pd.DataFrame, group: ArrayLike, low: float, high: float) -> Iterator[_Subgroup]:
    """Give the patients of each pattern and level, one after the other."""
    if not 0 < low < high:
        raise InputError(
            f"Limits of subgroups should be positive and the first below the second; found {shown(float(low))} and "
            f"{shown(float(high))}. The usual ones are {LOW} and {HIGH}."
        )
    scores, patients = np.asarray(r_indices, float), in_group(group, "patient")
    same_people(len(scores), group=patients)
    first, second = shown(float(low)), shown(float(high))
    n_patterns = scores.shape[1]
    for pattern in range(n_patterns):
        own = scores[:, pattern]
        others_low = patients & (np.delete(scores, pattern, axis=1) < low).all(axis=1)
        others, name = f", others < {first}" if n_patterns > 1 else "", f"r{pattern + 1}"
        little = f"all < {first}" if n_patterns > 1 else f"r1 < {first}"
        yield _Subgroup(pattern + 1, "low", little, others_low & (own < low))
        between = others_low & (own >= low) & (own <= high)
        yield _Subgroup(pattern + 1, "middle", f"{first} ≤ {name} ≤ {second}{others}", between)
        yield _Subgroup(pattern + 1, "high", f"{name} > {second}{others}", others_low & (own > high))


def _compared(patients: np.ndarray, controls: np.ndarray) -> pd.DataFrame:
    sizes = len(patients), len(controls)
    freedom = sum(sizes) - 2
    squares = sum(size * part.var(axis=0) for size, part in zip(sizes, (patients, controls), strict=True))
    precision = 1 / sizes[0] + 1 / sizes[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = (patients.mean(axis=0) - controls.mean(axis=0)) / np.sqrt(squares / freedom)
    t = effect / np.sqrt(precision)
    half = student_t.isf(0.025, freedom) * np.sqrt(precision + effect**2 / (2 * freedom))
    p = 2 * student_t.sf(np.abs(t), freedom)
    return pd.DataFrame({"effect": effect, "low": effect - half, "high": effect + half, "t": t, "p": p})
