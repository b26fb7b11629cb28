"""Whether the regions of a pattern change step by step as its R-index rises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from rindices.analysis.columns import in_group, same_people
from rindices.analysis.statistics import mean_interval
from rindices.errors import InputError, listed

FEWEST_PEOPLE = 5  # of a bin; a mean of fewer is not shown


def dose_response(
    z_scores: pd.DataFrame,
    r_indices: pd.DataFrame,
    group: ArrayLike,
    patterns_table: pd.DataFrame,
    *,
    n_regions: int = 6,
    limits: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
) -> pd.DataFrame:
    """Average the strongest regions of each pattern over patients of similar severity.

    Parameters
    ----------
    z_scores
        One column a region, in sd of controls.
    r_indices
        One column a pattern, the same people.
    group
        ``control``, ``patient`` or ``other``; patients are used.
    patterns_table
        Columns ``region``, ``pattern`` and ``change_sd``.
    n_regions
        How many regions of each pattern: those whose ``change_sd`` is farthest from 0, strongest first.
    limits
        Limits of the bins of the R-index. The end bins also hold who is beyond.

    Returns
    -------
    DataFrame
        ``pattern``, ``region``, ``low`` and ``high`` (limits of the bin), ``n``, ``severity`` (mean R-index), ``mean``,
        ``mean_low`` and ``mean_high`` (z score, 95 % t interval). Bins of fewer than 5 people are left out.

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
    edges = np.asarray(limits, float)
    if len(edges) < 2 or not (np.diff(edges) > 0).all():
        raise InputError(f"Limits of bins should be two or more rising numbers; found {listed(limits)}.")
    same_people(len(r_indices), z_scores=z_scores)
    patients = in_group(group, "patient")
    same_people(len(r_indices), group=patients)
    scores = np.asarray(r_indices, float)[patients]
    rows = []
    for pattern in range(scores.shape[1]):
        regions = _strongest(patterns_table, pattern + 1, n_regions, z_scores)
        own = z_scores[regions].to_numpy(float)[patients]
        bins = np.clip(np.searchsorted(edges, scores[:, pattern], side="right") - 1, 0, len(edges) - 2)
        for place in range(len(edges) - 1):
            inside = bins == place
            if inside.sum() < FEWEST_PEOPLE:
                continue
            severity, found = scores[inside, pattern].mean(), mean_interval(own[inside])
            same = (edges[place], edges[place + 1], int(inside.sum()), severity)
            rows += [
                (pattern + 1, rank, region, *same, found.mean[rank], found.low[rank], found.high[rank])
                for rank, region in enumerate(regions)
            ]
    columns = ["pattern", "rank", "region", "low", "high", "n", "severity", "mean", "mean_low", "mean_high"]
    table = pd.DataFrame(rows, columns=columns).sort_values(["pattern", "rank", "low"], ignore_index=True)
    return table.drop(columns="rank")


def _strongest(patterns_table: pd.DataFrame, pattern: int, n_regions: int, z_scores: pd.DataFrame) -> list[str]:
    own = patterns_table[patterns_table["pattern"] == pattern]
    order = np.argsort(-own["change_sd"].abs().to_numpy(float), kind="stable")[:n_regions]
    regions = own["region"].iloc[order].tolist()
    unknown = [region for region in regions if region not in z_scores]
    if unknown:
        raise InputError(f"Regions of the patterns have no z scores: {listed(unknown)}.")
    return regions
