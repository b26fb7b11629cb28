"""Do repeated trainings agree? Concordance, matching of patterns, agreement indices, halves of a cohort, and misfit.

R-indices of one model are ``(people, patterns)``, of several models ``(models, people, patterns)``.

Linear models of two halves of a cohort show whether patterns replicate in other people. Halves with disjoint
patients *and* controls share nobody, so whatever they agree on is in the population. Halves of the patients with all
controls in both share the controls' covariance; they show which of two methods suits a table.

Repetitions may agree on too few patterns. But only with enough of them do synthesised patients covary as real patients
do, which the misfit measures.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, stdtrit
from scipy.stats import kendalltau, rankdata

from rindices.linear import METHODS, Method, side_by_side
from rindices.presets import SCALED_SD

if TYPE_CHECKING:
    from rindices.core.networks import Parameters
    from rindices.core.train import TrainingPeople

COLLAPSED_SD = 0.02  # an R-index that varies less than this among patients says nothing about them
_SPLITS = 3  # into halves
_CLEARLY = 0.005  # margin by which ICA has to agree better: if both agree about equally well, sparse maps lose less
FAILED = 0.5  # agreement if a half cannot be fitted: chance
_ENOUGH_MODELS = 3  # leaving one out must leave a pair

# Signs of all pairs cost about people² · columns, Kendall's tau columns²; they break even, as measured, at
_SIGNS_PAY = 250_000  # people² per column (model and pattern): 1,500 people with 3 models of 3 patterns, 2,700 with 10
_BLOCK_BYTES = 2**20  # stays in the cache; larger blocks were slower
_ALL_EQUAL = "Concordance is undefined: all reference values are equal."


class Agreement(NamedTuple):
    """Agreement of models; 1 is perfect. NaN if undefined (a single model; differences with a single pattern)."""

    pattern_agreement: float  # concordance: 0.5 is chance
    dimension_correlation: float  # mean correlation of matched R-indices: 0 is chance
    difference_correlation: float  # mean correlation of rᵢ − rⱼ


def concordance(truth: np.ndarray, score: np.ndarray) -> float:
    """Return the share of the pairs that differ in `truth` which `score` orders in the same way (Harrell's c-index).

    Pairs tied in `score` count one half. Computed from Kendall's tau, hence in O(n log n).

    Examples
    --------
    >>> round(concordance([1, 2, 3], [1, 2, 2]), 3)
    0.833
    """
    truth, score = np.asarray(truth), np.asarray(score)
    untied_truth, untied_score = _untied_pairs(truth), _untied_pairs(score)
    if untied_truth == 0:
        raise ValueError(_ALL_EQUAL)
    if untied_score == 0:
        return 0.5
    # The p-value is not used, so it is computed the fast way, which SciPy does not offer for two people.
    tau = kendalltau(truth, score, method="asymptotic" if len(truth) > 2 else "exact").statistic
    # tau-b = (concordant − discordant) / √(untied in truth · untied in score)
    return float(np.clip(0.5 + 0.5 * tau * np.sqrt(untied_score / untied_truth), 0, 1))  # rounding may exceed 1


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
        Concordances of the matched pairs.
    """
    table = _concordance_table(reference.T, other.T)
    rows, order = linear_sum_assignment(table, maximize=True)
    return order, table[rows, order]


def _concordance_table(reference: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.array([[concordance(a, b) for b in other] for a in reference])


def pattern_concordance(truth: np.ndarray, r_indices: np.ndarray) -> float:
    """Return the pattern-c-index: mean concordance with the truth after the best matching of patterns."""
    return float(match_patterns(truth, r_indices)[1].mean())


def pairwise(members: np.ndarray) -> np.ndarray:
    """Return all three indices for each pair of models → ``(models, models, 3)``, symmetric, NaN on the diagonal.

    The earlier model of a pair is the reference. A constant R-index correlates with nothing.
    """
    columns = np.ascontiguousarray(np.asarray(members, float).transpose(0, 2, 1))
    n_models, n_patterns, n_people = columns.shape
    table = np.full((n_models, n_models, 3), np.nan)
    first, second = np.triu_indices(n_models, 1)
    if not len(first):
        return table
    concordances = (
        _concordances(columns, first, second)
        if 0 < n_people**2 <= _SIGNS_PAY * n_models * n_patterns
        else np.array([_concordance_table(a, b) for a, b in combinations(columns, 2)])
    )
    orders = np.array([linear_sum_assignment(square, maximize=True)[1] for square in concordances])
    matched = np.take_along_axis(concordances, orders[..., None], axis=2).mean(axis=(1, 2))
    same = _correlations(columns)[first[:, None], np.arange(n_patterns), second[:, None], orders].mean(axis=1)
    indices = np.column_stack([matched, same, _difference_correlations(columns, first, second, orders)])
    table[first, second] = table[second, first] = indices
    return table


def _concordances(columns: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return concordances of the patterns of each pair of models → ``(pairs, patterns of one, patterns of other)``."""
    n_models, n_patterns, n_people = columns.shape
    excess = _concordant_minus_discordant(columns.reshape(-1, n_people))
    untied = excess.diagonal().reshape(n_models, n_patterns)[first]
    if (untied == 0).any():
        raise ValueError(_ALL_EQUAL)
    squares = excess.reshape(n_models, n_patterns, n_models, n_patterns)[first, :, second]
    return 0.5 + 0.5 * squares / untied[..., None]


def _concordant_minus_discordant(columns: np.ndarray) -> np.ndarray:
    """Count pairs of people that two columns order alike, minus those ordered differently, for all pairs of columns.

    The sum over pairs of people of the products of the signs of their differences; the diagonal counts untied pairs.
    Person i is compared with person i + shift, cyclically; shifts up to half the number of people cover each pair once.
    """
    n_people = columns.shape[1]
    ranks = np.ascontiguousarray(rankdata(columns, method="dense", axis=1).T, np.float32)  # rounding creates no ties
    shifted = sliding_window_view(np.concatenate([ranks, ranks]), n_people, axis=0).swapaxes(1, 2)
    n_pairs = n_people * (n_people - 1) // 2  # with an even number, the last shift covers each of its pairs twice
    total = np.zeros((len(columns), len(columns)))
    step = max(1, _BLOCK_BYTES // ranks.nbytes)
    for start in range(0, n_people // 2, step):
        signs = shifted[1 + start : 1 + min(start + step, n_people // 2)] - ranks
        np.clip(signs, -1, 1, out=signs)  # differences of ranks are integers; np.sign takes twenty times as long
        signs = signs.reshape(-1, len(columns))[: n_pairs - start * n_people]
        total += signs.T @ signs  # exact: integers far below 2²⁴
    return total


def _correlations(columns: np.ndarray) -> np.ndarray:
    """Correlate all columns of all models → ``(models, columns, models, columns)``; 0 for a constant column."""
    centred = columns - columns.mean(axis=-1, keepdims=True)
    size = np.linalg.norm(centred, axis=-1, keepdims=True)
    unit = centred / np.where(size > 0, size, 1)
    return np.clip(np.tensordot(unit, unit, axes=(-1, -1)), -1, 1)  # rounding may exceed 1


def _difference_correlations(
    columns: np.ndarray, first: np.ndarray, second: np.ndarray, orders: np.ndarray
) -> np.ndarray:
    n_patterns = columns.shape[1]
    left, right = np.triu_indices(n_patterns, 1)
    if not len(left):
        return np.full(len(first), np.nan)
    number = np.zeros((n_patterns, n_patterns), int)
    number[left, right] = number[right, left] = np.arange(len(left))
    correlations = _correlations(columns[:, left] - columns[:, right])
    other_left, other_right = orders[:, left], orders[:, right]
    matched = correlations[first[:, None], np.arange(len(left)), second[:, None], number[other_left, other_right]]
    return np.where(other_left < other_right, matched, -matched).mean(axis=1)  # rⱼ − rᵢ is stored as rᵢ − rⱼ


def mean_agreement(pairs: np.ndarray) -> Agreement:
    """Return the mean over the pairs of a table from `pairwise`."""
    values = pairs[np.triu_indices(len(pairs), 1)]
    return Agreement(*(values.mean(axis=0) if len(values) else np.full(3, np.nan)).tolist())


def jackknife(pairs: np.ndarray) -> np.ndarray:
    """Return standard errors ``(3,)`` of the means over pairs, leaving out one model at a time.

    Pairs share models, so their spread is not informative; models are independent. NaN with fewer than 3 models.
    """
    n_models = len(pairs)
    if n_models < _ENOUGH_MODELS:
        return np.full(3, np.nan)
    with_model = np.where(np.eye(n_models, dtype=bool)[..., None], 0, pairs).sum(axis=1)
    left = (with_model.sum(axis=0) / 2 - with_model) / ((n_models - 1) * (n_models - 2) / 2)
    return np.sqrt((n_models - 1) * left.var(axis=0))


def interval(pairs: np.ndarray) -> np.ndarray:
    """Return approximate 95 % limits of the three means over pairs → ``(3, 2)``. NaN with fewer than 3 models.

    If trainings sometimes fail but none of these few did, the limits are too narrow.
    """
    half = stdtrit(len(pairs) - 1, 0.975) * jackknife(pairs)
    mean = np.array(mean_agreement(pairs))
    # No concordance is below 0, and no correlation below −1.
    return np.column_stack([np.maximum(mean - half, [0, -1, -1]), np.minimum(mean + half, 1)])


def faults(members: np.ndarray) -> list[str]:
    """Return each model's fault: "" if none, diverged (not finite) or collapsed (an R-index hardly varies)."""
    return [
        "diverged" if not np.isfinite(of).all() else "collapsed" if of.std(axis=0).min() < COLLAPSED_SD else ""
        for of in members
    ]


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
    """Return how well models of two halves agree on all patients: mean concordance, 0.5 is chance.

    Parameters
    ----------
    controls, patients : ndarray of shape (people, regions)
        In sd of the controls.
    n_patterns : int
        Number of patterns M.
    method : {"sparse", "ica"}
        Method by which patterns are found.
    disjoint_controls : bool
        Whether the halves also have different controls; models are then fitted faster, because a test needs many.
    n_splits : int
        Number of splits over which agreement is averaged.
    seed : int
        Seed of the splits.
    """
    values = []
    for split in range(n_splits):
        rng = np.random.default_rng([seed, split])
        sick, healthy = (np.array_split(rng.permutation(len(group)), 2) for group in (patients, controls))
        halves = [(controls[healthy[k]] if disjoint_controls else controls, patients[sick[k]]) for k in (0, 1)]
        try:
            models = [METHODS[method](*half, n_patterns, k, quick=disjoint_controls) for k, half in enumerate(halves)]
            values.append(matched_concordance(*(model.severities(patients) for model in models)))
        except np.linalg.LinAlgError:
            values.append(FAILED)
    return float(np.mean(values))


def suited(
    controls: np.ndarray, patients: np.ndarray, n_patterns: int, seed: int = 0
) -> tuple[Method, dict[Method, float]]:
    """Return the method whose models of two halves of the patients agree better, and the agreement of each method."""
    agreement = partial(halves_agreement, controls, patients, n_patterns, disjoint_controls=False, seed=seed)
    values = dict(zip(METHODS, side_by_side(agreement, METHODS), strict=True))
    return ("ica" if values["ica"] > values["sparse"] + _CLEARLY else "sparse"), values


def matched_concordance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the mean concordance of two models' severities ``(people, patterns)`` after the best matching.

    For two nearly normal scores, it is 0.5 + arcsin(ρ) / π, with ρ from the correlation of ranks: no pairs are formed.
    """
    ranks = [np.apply_along_axis(rankdata, 0, scores) for scores in (first, second)]
    n_patterns = first.shape[1]
    with np.errstate(invalid="ignore", divide="ignore"):  # a constant is not informative: chance
        correlations = np.nan_to_num(np.corrcoef(np.hstack(ranks), rowvar=False)[:n_patterns, n_patterns:])
    table = 0.5 + np.arcsin(np.clip(2 * np.sin(np.pi / 6 * correlations), -1, 1)) / np.pi
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].mean())


_N_BLOCKS = 10
_MADE = 4000  # synthesised patients per repetition
_LEAST = 1.0  # squared distance; smaller ones arise by chance
_LEAST_SD = 0.25  # of the logarithm among repetitions, which cannot be estimated from three of them


class Misfit(NamedTuple):
    """Squared distance between the covariances of synthesised and real patients, for each repetition."""

    distances: np.ndarray

    @property
    def value(self) -> float:
        """Geometric mean over repetitions, because a few of them fail and are then far off."""
        return float(np.exp(self._logarithms.mean()))

    @property
    def _logarithms(self) -> np.ndarray:
        return np.log(np.maximum(self.distances, _LEAST))

    @property
    def _variance(self) -> float:
        """Variance of the mean logarithm; for a mean, the jackknife gives the usual one."""
        logarithms = self._logarithms
        sd = logarithms.std(ddof=1) if len(logarithms) > 1 else 0.0
        return float(max(sd, _LEAST_SD) ** 2 / len(logarithms))

    def is_clearly_above(self, other: Misfit, errors: float) -> bool:
        """Return whether it is larger by more than `errors` standard errors of the difference of logarithms."""
        difference = self._logarithms.mean() - other._logarithms.mean()
        return bool(difference > errors * np.sqrt(self._variance + other._variance))


def misfit(models: Parameters, correlations: np.ndarray, people: TrainingPeople, composition: str, seed: int) -> Misfit:
    """Compare patients that each model synthesises with the real ones, as the discriminator sees them.

    Parameters
    ----------
    models
        Weights of some repetitions.
    correlations
        Correlations of severities that each of them has learned.
    people
        The people that they learned from.
    composition
        How f combines patterns.
    seed
        Seed of the draws.
    """
    import jax  # imported here: comparing results does not need it

    from rindices.core import inference

    rng, whitening = np.random.default_rng([seed, 7]), people.whitening
    whitening = np.eye(people.controls.shape[1]) if whitening is None else whitening
    real, distances = covariances(rng.permutation(people.patients) @ whitening), []
    for k, correlation in enumerate(correlations):
        model = jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], models)
        scores = rng.standard_normal((_MADE, len(correlation))) @ np.linalg.cholesky(correlation).T
        brains = people.controls[rng.integers(len(people.controls), size=_MADE)]
        made = inference.synthesise(model, brains, ndtr(scores), composition)[0]
        distances.append(squared_distance(covariances(made @ whitening), real))
    return Misfit(np.array(distances))


def covariances(people: np.ndarray) -> np.ndarray:
    """Return the covariance of each block of people, in sd of controls → ``(blocks, regions, regions)``."""
    centred = (people - people.mean(axis=0)) / SCALED_SD
    return np.stack([block.T @ block / len(block) for block in np.array_split(centred, _N_BLOCKS)])


def squared_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Return the squared Frobenius distance of two covariances, given by blocks, without the part due to chance.

    The mean product of the differences in two blocks, over all pairs of blocks: errors in different blocks are
    independent, so the mean of their products is zero.
    """
    differences = (first - second).reshape(_N_BLOCKS, -1)
    total = differences.sum(axis=0)
    return float((total @ total - (differences**2).sum()) / (_N_BLOCKS * (_N_BLOCKS - 1)))
