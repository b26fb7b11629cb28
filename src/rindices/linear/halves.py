"""Are patterns found again in other people? Linear models of two halves of a cohort, compared on all patients.

Halves with disjoint patients *and* controls share nobody, so that what they agree on is in the population. Halves of
the patients with all controls in both share the controls' covariance; they say which of two methods suits a table.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

from rindices.linear.factors import LinearModel, contrastive_ica, one_thread, sparse_factors

Method = Literal["sparse", "ica"]
METHODS: dict[Method, Callable[..., LinearModel]] = {"sparse": sparse_factors, "ica": contrastive_ica}
_SPLITS = 3
_CLEARLY = 0.005  # by which ICA has to agree better: where both agree about as well, sparse maps lose less
FAILED = 0.5  # agreement where a half cannot be fitted: chance


def fitted(method: Method, controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0) -> LinearModel:
    """Fit a linear model; where maps no longer differ, dense ones, which always do."""
    try:
        return METHODS[method](controls, patients, n_patterns, seed)
    except np.linalg.LinAlgError:
        return contrastive_ica(controls, patients, n_patterns, seed)


@one_thread
def halves_agreement(
    controls: np.ndarray,
    patients: np.ndarray,
    n_patterns: int,
    method: Method,
    *,
    disjoint_controls: bool,
    n_splits: int = _SPLITS,
    seed: int = 0,
) -> float:
    """Return how well models of two halves agree about all patients: mean concordance, 0.5 is chance.

    Parameters
    ----------
    controls, patients : ndarray of shape (people, regions)
        In sd of the controls.
    n_patterns : int
        Number of patterns M.
    method : {"sparse", "ica"}
        How patterns are found.
    disjoint_controls : bool
        Whether the halves have different controls, too; models are fitted quickly then, since a test needs many.
    n_splits : int
        Over which agreement is averaged.
    seed : int
        Of the splits.
    """
    values = []
    for split in range(n_splits):
        rng = np.random.default_rng([seed, split])
        sick, healthy = (
            np.array_split(rng.permutation(len(patients)), 2),
            np.array_split(rng.permutation(len(controls)), 2),
        )
        try:
            scores = [
                METHODS[method](
                    controls[healthy[k]] if disjoint_controls else controls,
                    patients[sick[k]],
                    n_patterns,
                    k,
                    quick=disjoint_controls,
                ).severities(patients)
                for k in (0, 1)
            ]
            values.append(matched_concordance(*scores))
        except np.linalg.LinAlgError:
            values.append(FAILED)
    return float(np.mean(values))


def suited(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0
) -> tuple[Method, dict[Method, float]]:
    """Return the method whose models of two halves of the patients agree better, and how well each does."""
    values: dict[Method, float] = {
        method: halves_agreement(controls, patients, n_patterns, method, disjoint_controls=False, seed=seed)
        for method in METHODS
    }
    return ("ica" if values["ica"] > values["sparse"] + _CLEARLY else "sparse"), values


def matched_concordance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean concordance of two models' severities ``(people, patterns)`` after the best matching.

    By the correlation of ranks, which for two nearly normal scores is 0.5 + arcsin(ρ) / π: people need not be paired.
    """
    ranks = [np.apply_along_axis(rankdata, 0, scores) for scores in (first, second)]
    n_patterns = first.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):  # what is the same for everybody says nothing: chance
        correlations = np.nan_to_num(np.corrcoef(np.hstack(ranks), rowvar=False)[:n_patterns, n_patterns:])
    pearson = 2 * np.sin(np.pi / 6 * correlations)
    table = 0.5 + np.arcsin(np.clip(pearson, -1, 1)) / np.pi
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].mean())
