"""How far synthesised patients are from the real ones, and how well regions tell real patients from controls.

Repetitions may agree about too few patterns. But only with enough of them do synthesised patients covary as the
patients do.

Patients are told from controls whom the rule was not learned from: an AUC with an interval, which has to hold the AUC,
in new people, of a rule learned from everybody. The standard error of Hanley and McNeil (1982) is that of a fixed rule.
Here rules are learned from the same people and folds share most of them, so it is too small, by a third where the
groups hardly differ. A jackknife over groups of people learns all rules again, but counts the part that pairs of people
contribute together twice. The true variance therefore lies between the two; the weight was settled on simulated cohorts
and measured on others. The jackknife also shows what a tenth of the people adds to the AUC, and the centre of the
interval is moved by as much, because each fold learns from nine tenths.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, stdtrit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from rindices.core import inference
from rindices.core.networks import Parameters
from rindices.core.train import People
from rindices.linear import side_by_side
from rindices.preprocessing import SCALED_SD, Preprocessing
from rindices.presets import Correction

_N_BLOCKS = 10
_MADE = 4000  # synthesised patients of each repetition
_LEAST = 1.0  # squared distance; chance makes what is smaller
_LEAST_SD = 0.25  # of the logarithm among repetitions, which three of them do not tell


class Misfit(NamedTuple):
    """Squared distance between the covariances of synthesised and of real patients, by each repetition."""

    distances: np.ndarray

    @property
    def value(self) -> float:
        """Geometric mean over repetitions: a few of them fail, and are then far off."""
        return float(np.exp(self._logarithms.mean()))

    @property
    def _logarithms(self) -> np.ndarray:
        return np.log(np.maximum(self.distances, _LEAST))

    @property
    def _variance(self) -> float:
        """Of the mean logarithm: the jackknife's, which is that of any mean."""
        logarithms = self._logarithms
        sd = logarithms.std(ddof=1) if len(logarithms) > 1 else 0.0
        return float(max(sd, _LEAST_SD) ** 2 / len(logarithms))

    def is_clearly_above(self, other: Misfit, errors: float) -> bool:
        """Whether it is larger by more than so many standard errors of the difference of logarithms."""
        difference = self._logarithms.mean() - other._logarithms.mean()
        return bool(difference > errors * np.sqrt(self._variance + other._variance))


def misfit(models: Parameters, correlations: np.ndarray, people: People, composition: str, seed: int) -> Misfit:
    """Compare patients that each model synthesises with the real ones, as the discriminator sees them.

    Parameters
    ----------
    models
        Some repetitions.
    correlations
        Of severities, that each has learned.
    people
        Whom they learned from.
    composition
        How patterns add up in f.
    seed
        Of the draws.
    """
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
    """Return the squared Frobenius distance of two covariances, given by blocks, without what chance adds.

    Products of the differences of two blocks, over all pairs of blocks: errors of different blocks are independent, so
    that their products have no mean.
    """
    differences = (first - second).reshape(_N_BLOCKS, -1)
    total = differences.sum(axis=0)
    return float((total @ total - (differences**2).sum()) / (_N_BLOCKS * (_N_BLOCKS - 1)))


_FOLDS = 10
_GROUPS = 10  # of people who are left out in turn
_QUANTILE = float(stdtrit(_GROUPS - 1, 0.975))
_JACKKNIFE = 0.3  # weight of its variance; the rest is that of a fixed rule


class Separated(NamedTuple):
    """An AUC and its 95 % interval."""

    auc: float
    low: float
    high: float


def separated(
    regions: np.ndarray,
    patient: np.ndarray,
    covariates: pd.DataFrame | None = None,
    correction: Correction | None = None,
    sites: np.ndarray | None = None,
) -> Separated | None:
    """Tell patients from controls by regions, complete people; None where groups or sites are too small.

    Ten folds, each with its share of both groups and of every site. Corrections and scales are estimated in the
    controls of the other nine, as is a discriminant of shrunken covariances (Ledoit and Wolf). The AUC is the mean over
    folds.
    """
    if min(patient.sum(), (~patient).sum()) < 2 * _FOLDS:
        return None
    rng, strata = np.random.default_rng(0), [patient] if sites is None else [sites, patient]
    fold = _dealt(strata, _FOLDS, rng)
    group = _dealt([*strata[:-1], fold, patient], _GROUPS, rng)  # so that no fold loses all its patients at once

    def auc(people: np.ndarray) -> float:
        own = None if covariates is None else covariates[people]
        return _cross_validated(regions[people], patient[people], own, correction, fold[people])

    try:
        some = [group >= 0, *(group != one for one in range(_GROUPS))]
        whole, *others = side_by_side(auc, some)
    except ValueError:  # too few controls of a site, or a category that nobody else has
        return None
    without = np.array(others)
    jackknife = (_GROUPS - 1) * np.mean((without - without.mean()) ** 2)
    n_controls, n_patients = int((~patient).sum()), int(patient.sum())
    edge = 0.5 / min(n_controls, n_patients)  # no AUC is certain
    fixed = _fixed_rule(np.clip(whole, edge, 1 - edge), n_controls, n_patients)
    error = np.sqrt(_JACKKNIFE * jackknife + (1 - _JACKKNIFE) * fixed)
    centre = np.clip(2 * whole - without.mean(), edge, 1 - edge)
    half = _QUANTILE * error / (centre * (1 - centre))
    low, high = (float(expit(logit(centre) + side * half)) for side in (-1, 1))
    return Separated(whole, min(low, whole), max(high, whole))


def _dealt(strata: list[np.ndarray], n_parts: int, rng: np.random.Generator) -> np.ndarray:
    """Deal people out to parts, so that each has its share of every stratum."""
    order, part = rng.permutation(len(strata[0])), np.empty(len(strata[0]), int)
    part[order[np.lexsort([of[order] for of in strata])]] = np.arange(len(order)) % n_parts
    return part


def _cross_validated(
    regions: np.ndarray,
    patient: np.ndarray,
    covariates: pd.DataFrame | None,
    correction: Correction | None,
    fold: np.ndarray,
) -> float:
    values = []
    for one in range(_FOLDS):
        learned = fold != one
        own = None if covariates is None else covariates[learned & ~patient]
        scaled = Preprocessing.fit(regions[learned & ~patient], own, correction).transform(regions, covariates)
        rule = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(scaled[learned], patient[learned])
        values.append(roc_auc_score(patient[~learned], rule.decision_function(scaled[~learned])))
    return float(np.mean(values))


def _fixed_rule(auc: float, n_controls: int, n_patients: int) -> float:
    """Return the variance of the AUC of a rule that is given (Hanley and McNeil, 1982)."""
    pairs = auc * (1 - auc) + (n_patients - 1) * (auc / (2 - auc) - auc**2)
    pairs += (n_controls - 1) * (2 * auc**2 / (1 + auc) - auc**2)
    return pairs / (n_controls * n_patients)
