"""Regions at increasing severity: averages by severity, subgroups compared with controls, and single people."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from rindices.analysis.statistics import design, false_discovery, in_group, mean_interval, same_people
from rindices.problems import InputError, shown
from rindices.settings import OutputSettings

EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0)  # of the bins of severity; the last holds all from 1 upwards
FEWEST_IN_BIN = 5  # a mean of fewer is not shown
LOW, HIGH = OutputSettings.limits
FEWEST_PEOPLE = 10
_LEAST_CHANGE = 0.005  # sd; anything smaller would be written as 0.00


def dose_response(
    z_scores: pd.DataFrame,
    r_indices: pd.DataFrame,
    group: ArrayLike,
    patterns_table: pd.DataFrame,
    *,
    n_regions: int = 6,
) -> pd.DataFrame:
    """Average the strongest regions of each pattern over patients of similar severity.

    There are five bins of severity between 0 and 1, and one from 1 upwards; its upper limit of 2 means 2 or more.

    Parameters
    ----------
    z_scores
        One column per region, in sd of controls.
    r_indices
        One column per pattern, the same people.
    group
        ``control``, ``patient`` or ``other``; patients are used.
    patterns_table
        Columns ``region``, ``pattern`` and ``change_sd``.
    n_regions
        Number of regions per pattern: those whose ``change_sd`` is farthest from 0, strongest first.

    Returns
    -------
    DataFrame
        ``pattern``, ``region``, ``low`` and ``high`` (limits of the bin), ``n``, ``severity`` (mean), ``mean``,
        ``mean_low`` and ``mean_high`` (z score, 95 % t interval). Bins with fewer than 5 people are omitted.

    Examples
    --------
    >>> severity = np.linspace(0, 1, 50)
    >>> table = dose_response(
    ...     pd.DataFrame({"hippocampus": -2 * severity}),
    ...     pd.DataFrame({"r1": severity}),
    ...     ["patient"] * 50,
    ...     pd.DataFrame({"region": ["hippocampus"], "pattern": [1], "change_sd": [-2.0]}),
    ... )
    >>> table["mean"].round(1).tolist()
    [-0.2, -0.6, -1.0, -1.4, -1.8]
    """
    patients, rows = in_group(group, "patient"), []
    same_people(len(r_indices), z_scores=z_scores, group=patients)
    strength = patterns_table.sort_values("change_sd", key=abs, ascending=False, kind="stable")
    for pattern, scores in enumerate(np.asarray(r_indices, float)[patients].T, start=1):
        regions = strength.loc[strength["pattern"] == pattern, "region"].head(n_regions).tolist()
        own = z_scores[regions].to_numpy(float)[patients]
        bins = np.searchsorted(EDGES[1:-1], scores, side="right")
        for place in np.flatnonzero(np.bincount(bins) >= FEWEST_IN_BIN):
            inside = bins == place
            same = (EDGES[place], EDGES[place + 1], int(inside.sum()), scores[inside].mean())
            limits = zip(*mean_interval(own[inside])[:3], strict=True)
            rows += [(pattern, rank, regions[rank], *same, *ends) for rank, ends in enumerate(limits)]
    columns = ["pattern", "rank", "region", "low", "high", "n", "severity", "mean", "mean_low", "mean_high"]
    return (
        pd.DataFrame(rows, columns=columns)
        .sort_values(["pattern", "rank", "low"], ignore_index=True)
        .drop(columns="rank")
    )


def group_effects(
    z_scores: pd.DataFrame,
    group: ArrayLike,
    covariates: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Compare all patients with all controls, region by region, regardless of patterns.

    Parameters
    ----------
    z_scores
        One column per region.
    group
        ``control``, ``patient`` or ``other``, one per person.
    covariates
        Further regressors besides the group; people who lack one are excluded. Regions corrected beforehand keep
        their values, but the intervals then account for the estimation of these effects.

    Returns
    -------
    DataFrame
        ``region``, ``n_controls``, ``n_patients``, ``effect`` (Cohen's d: the difference given the covariates, in
        residual standard deviations; negative: smaller than in controls), ``low`` and ``high`` (95 %, large-sample
        error), ``t`` and ``p`` (Welch's t test, adjusted for the covariates) and ``q`` (Benjamini–Hochberg over the
        regions). Empty with fewer than 10 people in a group.

    Examples
    --------
    >>> z = pd.DataFrame({"insula": [0.0, 1.0] * 10 + [-1.0, 0.0] * 10})
    >>> group_effects(z, ["control"] * 20 + ["patient"] * 20)["effect"].round(2).tolist()
    [-1.95]
    """
    patients, controls = in_group(group, "patient"), in_group(group, "control")
    same_people(len(z_scores), group=patients)
    others, complete = design(pd.DataFrame(index=z_scores.index) if covariates is None else covariates)
    used = (patients | controls) & complete
    sizes = {"n_controls": int((used & controls).sum()), "n_patients": int((used & patients).sum())}
    order = ["region", *sizes, "effect", "low", "high", "t", "p", "q"]
    if min(sizes.values()) < FEWEST_PEOPLE:
        return pd.DataFrame(columns=order)
    table = _compared(z_scores.to_numpy(float)[used], patients[used], np.insert(others, 0, 1, axis=1)[used])
    return table.assign(region=z_scores.columns, q=false_discovery(table["p"].to_numpy()), **sizes)[order]


def whole_brain(z_scores: pd.DataFrame, controls: np.ndarray) -> np.ndarray:
    """Return how small each brain is overall: the first principal component of controls, higher for smaller brains.

    Examples
    --------
    >>> whole_brain(pd.DataFrame({"a": [1.0, -1.0, -3.0], "b": [1.0, -1.0, -3.0]}), np.array([1, 1, 0], bool)).round(2)
    array([-1.41,  1.41,  4.24])
    """
    values = z_scores.to_numpy(float)
    direction = np.linalg.svd(values[controls] - values[controls].mean(axis=0), full_matrices=False)[2][0]
    return -np.sign(direction.sum() or 1.0) * (values @ direction)


def subgroup_sizes(
    r_indices: pd.DataFrame, group: ArrayLike, *, low: float = LOW, high: float = HIGH, smallest: int = FEWEST_PEOPLE
) -> pd.DataFrame:
    """Count the patients with a low, middle or high severity of one pattern and low severities of all others.

    Parameters
    ----------
    r_indices
        One column per pattern, for all people.
    group
        ``control``, ``patient`` or ``other``, one per person.
    low, high
        Limits of severity: values below `low` are low, values above `high` are high.
    smallest
        Minimum number of patients and of controls for a comparison.

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
    n_controls, rows = int(in_group(group, "control").sum()), []
    for pattern, level, rule, members in subgroups_of(r_indices, group, low, high):
        n_people = int(members.sum())
        few = "patients" if n_people < smallest else "controls" if n_controls < smallest else ""
        rows.append((pattern, level, rule, n_people, not few, f"fewer than {smallest} {few}" if few else ""))
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
        One column per region, the same people as `r_indices`.
    r_indices, group, low, high, smallest
        As in `subgroup_sizes`.

    Returns
    -------
    DataFrame
        ``pattern``, ``level``, ``region``, ``n`` (patients), ``effect`` (Cohen's d with the pooled standard
        deviation; negative: smaller than in controls), ``low`` and ``high`` (95 %, large-sample error), ``t`` and
        ``p`` (Welch's t test) and ``q`` (Benjamini–Hochberg over all comparisons; the low subgroup has rows for each
        pattern, but counts as one comparison per region).
    """
    same_people(len(r_indices), z_scores=z_scores)
    regions, controls = z_scores.to_numpy(float), in_group(group, "control")
    order, tables = ["pattern", "level", "region", "n", "effect", "low", "high", "t", "p", "q"], []
    for pattern, level, _, members in subgroups_of(r_indices, group, low, high):
        about: Any = {"pattern": pattern, "level": level, "region": z_scores.columns, "n": int(members.sum())}
        used = members | controls
        if min(members.sum(), controls.sum()) >= smallest:
            tables.append(_compared(regions[used], members[used], np.ones((used.sum(), 1))).assign(**about))
    if not tables:
        return pd.DataFrame(columns=order)
    table = pd.concat(tables, ignore_index=True)
    # The low subgroup is the same for all patterns and counts once.
    once = ~table.duplicated(["level", "region"]) | (table["level"] != "low")
    table["q"] = false_discovery(table["p"].where(once).to_numpy())
    table["q"] = table["q"].where(once, table.groupby(["level", "region"])["q"].transform("first"))
    return table[order]


class Subgroup(NamedTuple):
    """The patients of one pattern and level."""

    pattern: int
    level: str
    rule: str  # in words
    members: np.ndarray


def subgroups_of(r_indices: pd.DataFrame, group: ArrayLike, low: float, high: float) -> Iterator[Subgroup]:
    """Yield the subgroup of patients of each pattern and level."""
    if not 0 < low < high:
        raise InputError(
            f"The subgroup limits should be positive and increasing, but got {shown(float(low))} and "
            f"{shown(float(high))}. The defaults are {LOW} and {HIGH}."
        )
    scores, patients = np.asarray(r_indices, float), in_group(group, "patient")
    same_people(len(scores), group=patients)
    first, second, several = shown(float(low)), shown(float(high)), scores.shape[1] > 1
    others = f", others < {first}" if several else ""
    for number, (name, own) in enumerate(zip(r_indices, scores.T, strict=True), start=1):
        others_low = patients & (np.delete(scores, number - 1, axis=1) < low).all(axis=1)
        little, between = f"{'all' if several else name} < {first}", (own >= low) & (own <= high)
        yield Subgroup(number, "low", little, others_low & (own < low))
        yield Subgroup(number, "middle", f"{first} ≤ {name} ≤ {second}{others}", others_low & between)
        yield Subgroup(number, "high", f"{name} > {second}{others}", others_low & (own > high))


def _compared(regions: np.ndarray, patients: np.ndarray, others: np.ndarray) -> pd.DataFrame:
    """Return one row per region: patients minus controls, given the columns `others`, which include a constant.

    Each group has its own residual variance, since patients vary more; without covariates, this is Welch's t test.
    """
    design, groups = np.column_stack([patients, others]), np.stack([patients, ~patients]).astype(float)
    inverse = np.linalg.pinv(design)
    coefficients = inverse @ regions
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = groups @ (1 - (design * inverse.T).sum(axis=1))
        variances = groups @ (regions - design @ coefficients) ** 2 / freedom[:, None]
        errors = (groups @ inverse[0] ** 2)[:, None] * variances
        own, pooled = errors.sum(axis=0), freedom @ variances / freedom.sum()
        t, effect = (coefficients[0] / np.sqrt(of) for of in (own, pooled))
        of_t = own**2 / (errors**2 / freedom[:, None]).sum(axis=0)
        of_sd = freedom @ variances**2 / (2 * (freedom.sum() * pooled) ** 2)  # variance of the pooled sd's logarithm
        half = -stdtrit(of_t, 0.025) * np.sqrt(own / pooled + effect**2 * of_sd)
    p = 2 * stdtr(of_t, -np.abs(t))
    return pd.DataFrame({"effect": effect, "low": effect - half, "high": effect + half, "t": t, "p": p})


def drivers(
    decomposed: ArrayLike,
    z_scores: pd.DataFrame,
    participant_id: ArrayLike,
    visit: ArrayLike | None = None,
    n: int = 6,
) -> pd.DataFrame:
    """List the regions that each pattern changed most in each person, omitting those that it did not change.

    Parameters
    ----------
    decomposed
        The change that g₁ attributes to each pattern, in sd of controls: people × patterns × regions.
    z_scores
        One column per region, the same people.
    participant_id, visit
        The people, and their visits if there are several.
    n
        Number of regions per person and pattern.

    Returns
    -------
    DataFrame
        ``participant_id``, ``visit`` (if given), ``pattern``, ``rank`` (1 is the largest change), ``region``,
        ``change_sd`` and ``z`` (the person's z score there).

    Examples
    --------
    >>> z = pd.DataFrame({"insula": [-0.5], "hippocampus": [-1.8]})
    >>> drivers([[[-0.1, -1.2]]], z, ["P1"], n=1).values.tolist()
    [['P1', 1, 1, 'hippocampus', -1.2, -1.8]]
    """
    changes, named = np.asarray(decomposed, float), {"participant_id": participant_id, "visit": visit}
    who = {name: np.asarray(values, object) for name, values in named.items() if values is not None}
    same_people(len(z_scores), **who, decomposed=changes)
    order = np.argsort(-np.abs(changes), axis=2, kind="stable")[:, :, :n]
    changed = np.abs(np.take_along_axis(changes, order, axis=2)) >= _LEAST_CHANGE
    person, pattern, rank = np.nonzero(changed)
    region = order[changed]
    return pd.DataFrame(
        {name: values[person] for name, values in who.items()}
        | {
            "pattern": pattern + 1,
            "rank": rank + 1,
            "region": z_scores.columns.to_numpy()[region],
            "change_sd": changes[person, pattern, region],
            "z": z_scores.to_numpy(float)[person, region],
        }
    )
