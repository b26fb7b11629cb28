"""Do repeated trainings agree? Concordance, matching of patterns, agreement indices, medoid and consensus.

R-indices of one model are ``(people, patterns)``, of several models ``(models, people, patterns)``.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import kendalltau

COLLAPSED_SD = 0.02  # an R-index that varies less than this among patients says nothing about them
_KEPT_SHARE = 0.8  # members must agree with the medoid at least this far above chance, relative to the typical member


class Agreement(NamedTuple):
    """How well models agree; 1 is perfect. NaN where undefined (one model; differences of one pattern)."""

    pattern_agreement: float  # concordance: 0.5 is chance
    dimension_correlation: float  # mean correlation of matched R-indices: 0 is chance
    difference_correlation: float  # mean correlation of rᵢ − rⱼ


class Consensus(NamedTuple):
    """Models brought to the medoid's order of patterns; those that disagree with it are left out."""

    medoid: int
    kept: np.ndarray  # numbers of the models used
    orders: np.ndarray  # (kept, patterns): pattern i of the consensus is orders[k, i] of model kept[k]
    agreement_with_medoid: np.ndarray  # (models,)


def concordance(truth: np.ndarray, score: np.ndarray) -> float:
    """Share of the pairs that differ in `truth` which `score` puts in the same order (Harrell's c-index).

    Pairs tied in `score` count one half. Computed from Kendall's tau, hence in O(n log n).

    Examples
    --------
    >>> concordance([1, 2, 3], [1, 2, 2])
    0.8333333333333334
    """
    truth, score = np.asarray(truth), np.asarray(score)
    untied_truth, untied_score = _untied_pairs(truth), _untied_pairs(score)
    if untied_truth == 0:
        raise ValueError("Concordance is undefined: all values to compare with are equal.")
    if untied_score == 0:
        return 0.5
    tau = kendalltau(truth, score, method="asymptotic").statistic
    # tau-b = (concordant − discordant) / √(untied in truth · untied in score)
    return float(0.5 + 0.5 * tau * np.sqrt(untied_score / untied_truth))


def _untied_pairs(values: np.ndarray) -> float:
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return (len(values) * (len(values) - 1) - np.sum(counts * (counts - 1))) / 2


def match_patterns(reference: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the one-to-one matching of patterns with the largest total concordance.

    Returns
    -------
    order : ndarray of int
        Pattern ``order[i]`` of `other` belongs to pattern i of `reference`.
    concordances : ndarray
        Of the matched pairs.
    """
    table = np.array([[concordance(a, b) for b in other.T] for a in reference.T])
    rows, order = linear_sum_assignment(table, maximize=True)
    return order, table[rows, order]


def pattern_concordance(truth: np.ndarray, r_indices: np.ndarray) -> float:
    """Pattern-c-index: mean concordance with the truth after the best matching of patterns."""
    return float(match_patterns(truth, r_indices)[1].mean())


def compare(reference: np.ndarray, other: np.ndarray) -> Agreement:
    """Agreement of two models about the same people."""
    order, concordances = match_patterns(reference, other)
    other = other[:, order]
    n_patterns = reference.shape[1]
    same = [_correlation(reference[:, i], other[:, i]) for i in range(n_patterns)]
    differences = [
        _correlation(reference[:, i] - reference[:, j], other[:, i] - other[:, j])
        for i, j in combinations(range(n_patterns), 2)
    ]
    return Agreement(
        float(concordances.mean()), float(np.mean(same)), float(np.mean(differences)) if differences else float("nan")
    )


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else 0.0


def pairwise(members: np.ndarray) -> np.ndarray:
    """All three indices for each pair of models → ``(models, models, 3)``, symmetric, NaN on the diagonal."""
    table = np.full((len(members), len(members), 3), np.nan)
    for i, j in combinations(range(len(members)), 2):
        table[i, j] = table[j, i] = compare(members[i], members[j])
    return table


def mean_agreement(pairs: np.ndarray) -> Agreement:
    """Mean over the pairs of a table from `pairwise`."""
    values = pairs[np.triu_indices(len(pairs), 1)]
    if not len(values):
        return Agreement(float("nan"), float("nan"), float("nan"))
    return Agreement(*(float(value) for value in values.mean(axis=0)))


def faults(members: np.ndarray) -> list[str]:
    """For each model "" or what is wrong with it: diverged (not finite) or collapsed (an R-index hardly varies)."""
    reasons = []
    for r_indices in members:
        if not np.isfinite(r_indices).all():
            reasons.append("diverged")
        else:
            reasons.append("collapsed" if r_indices.std(axis=0).min() < COLLAPSED_SD else "")
    return reasons


def find_consensus(members: np.ndarray, pairs: np.ndarray | None = None) -> Consensus:
    """Choose the medoid (highest mean agreement with the others), leave out who disagrees with it, match patterns."""
    pairs = pairwise(members) if pairs is None else pairs
    n_members, _, n_patterns = members.shape
    if n_members == 1:
        return Consensus(0, np.arange(1), np.arange(n_patterns)[None], np.ones(1))
    medoid = int(np.nanmean(pairs[..., 0], axis=1).argmax())
    with_medoid = pairs[medoid, :, 0].copy()
    with_medoid[medoid] = 1.0
    typical = np.median(np.delete(with_medoid, medoid))
    kept = np.flatnonzero(with_medoid - 0.5 >= _KEPT_SHARE * (typical - 0.5))
    orders = np.array([match_patterns(members[medoid], members[k])[0] for k in kept])
    return Consensus(medoid, kept, orders, with_medoid)


def aligned(members: np.ndarray, consensus: Consensus) -> np.ndarray:
    """R-indices of the kept models in the medoid's order of patterns → ``(kept, people, patterns)``."""
    return np.stack([members[k][:, order] for k, order in zip(consensus.kept, consensus.orders, strict=True)])
