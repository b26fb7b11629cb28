"""Split-half reproducibility: whether both halves of a cohort show the same patterns (section B.7 of the paper)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from rindices.analysis.statistics import patients_of
from rindices.judging.agreement_and_misfit import match_patterns, mean_agreement, pairwise, pattern_concordance
from rindices.problems import InputError

_FEWEST = 4  # per group: two in each half, the fewest that can be ordered


class SplitHalf(NamedTuple):
    """Two models, each trained on one half of a cohort; patterns are numbered as in the first."""

    half: np.ndarray  # (people,): 1 or 2
    r_indices: np.ndarray  # (2, people, patterns): everybody's, from the model of each half
    patterns: pd.DataFrame  # a row per pattern: agreement of the models
    agreement: pd.DataFrame  # a row per group of patients: agreement of the models
    maps: pd.DataFrame  # region, pattern, half1, half2: change_sd; empty if the estimator has no maps

    @property
    def held_out(self) -> np.ndarray:
        """R-indices of each person from the model trained without that person, (people, patterns)."""
        return np.where((self.half == 1)[:, None], self.r_indices[1], self.r_indices[0])


def split_half(
    estimator: Any, X: Any, y: ArrayLike, covariates: Any = None, *, seed: int = 0, truth: Any = None
) -> SplitHalf:
    """Train on each half of a cohort and compare the two models.

    Halves are stratified by group. Each half has its own random numbers, so that models cannot agree because of the
    same start. Maps are those of all controls.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator such as `rindices.SurrealGAN`; it is cloned. It has ``fit(X, y)`` and ``transform(X)``, with
        ``covariates`` as the last argument if they are given, and optionally ``pattern_maps``.
    X : array-like of shape (n_people, n_regions)
        Regional measures of controls and patients.
    y : array-like of shape (n_people,)
        0 for controls, 1 for patients.
    covariates : array-like of shape (n_people, n_covariates), optional
        Passed to the estimator.
    seed : int, default=0
        Determines the halves, and the estimator's ``random_state`` if it has one.
    truth : array-like of shape (n_patients, n_true_patterns), optional
        Known severities of the patients, in their order in `X`.

    Returns
    -------
    SplitHalf
        ``patterns``: pattern, matched (its number in the second model), concordance and correlation of the two
        R-indices across all patients, map_correlation across regions.
        ``agreement``: patients ("half 1", "half 2", "all"), n_patients, pattern_agreement, dimension_correlation and
        difference_correlation of the two models, and with `truth` concordance_half1 and concordance_half2 of the
        models of these halves. For each half, one of the models was trained without its patients.

    Examples
    --------
    >>> from sklearn.decomposition import FactorAnalysis
    >>> from rindices import simulate_cohort
    >>> cohort = simulate_cohort("basic", n_controls=100, n_patients=200)
    >>> regions = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    >>> found = split_half(FactorAnalysis(3), regions, cohort.table["diagnosis"] == "PT")
    >>> found.r_indices.shape, found.agreement["n_patients"].tolist()
    ((2, 300, 3), [100, 100, 200])
    """
    patient = patients_of(y, len(X))
    if min(patient.sum(), (~patient).sum()) < _FEWEST:
        raise InputError(f"At least {_FEWEST} controls and {_FEWEST} patients are needed.")
    half = np.ones(len(patient), int)
    folds = StratifiedKFold(2, shuffle=True, random_state=seed).split(patient[:, None], patient)
    half[next(folds)[1]] = 2
    models = [_trained(estimator, X, patient, covariates, half == k, [seed, k]) for k in (1, 2)]
    first, second = (np.asarray(_called(model.transform, X, covariates=covariates), float) for model in models)
    if first.shape != second.shape:
        raise InputError(
            f"The halves found {first.shape[1]} and {second.shape[1]} patterns: set the number for both, "
            "such as n_patterns=3."
        )
    order, concordances = match_patterns(first[patient], second[patient])
    scores = np.stack([first, second[:, order]])
    maps = _maps(models, X, covariates, ~patient, order)
    patterns = pd.DataFrame(
        {
            "pattern": np.arange(len(order)) + 1,
            "matched": order + 1,
            "concordance": concordances,
            "correlation": [_correlation(*scores[:, patient, i]) for i in range(len(order))],
            "map_correlation": [
                _correlation(*maps.loc[maps["pattern"] == i + 1, ["half1", "half2"]].to_numpy(float).T)
                for i in range(len(order))
            ],
        }
    )
    return SplitHalf(half, scores, patterns, _agreement(scores[:, patient], half[patient], truth), maps)


def _trained(estimator: Any, X: Any, patient: np.ndarray, covariates: Any, chosen: np.ndarray, seed: list[int]) -> Any:
    model = clone(estimator)
    if "random_state" in model.get_params(deep=False):
        model.set_params(random_state=int(np.random.default_rng(seed).integers(2**31)))
    return _called(model.fit, _rows(X, chosen), patient[chosen].astype(int), covariates=_rows(covariates, chosen))


def _called(method: Any, *arguments: Any, covariates: Any) -> Any:
    return method(*arguments) if covariates is None else method(*arguments, covariates)


def _rows(table: Any, chosen: np.ndarray) -> Any:
    if table is None:
        return None
    return table.loc[chosen] if isinstance(table, pd.DataFrame | pd.Series) else np.asarray(table)[chosen]


def _agreement(scores: np.ndarray, half: np.ndarray, truth: Any) -> pd.DataFrame:
    rows = []
    for name, inside in {"half 1": half == 1, "half 2": half == 2, "all": half > 0}.items():
        row = {"patients": name, "n_patients": int(inside.sum())} | mean_agreement(
            pairwise(scores[:, inside])
        )._asdict()
        if truth is not None:
            known = np.asarray(truth, float)[inside]
            row |= {f"concordance_half{k}": pattern_concordance(known, scores[k - 1, inside]) for k in (1, 2)}
        rows.append(row)
    return pd.DataFrame(rows)


def _maps(models: list[Any], X: Any, covariates: Any, controls: np.ndarray, order: np.ndarray) -> pd.DataFrame:
    """Return the maps of both models side by side, with patterns numbered as in the first."""
    if not all(hasattr(model, "pattern_maps") for model in models):
        return pd.DataFrame(columns=["region", "pattern", "half1", "half2"])
    first, second = (
        _called(model.pattern_maps, _rows(X, controls), covariates=_rows(covariates, controls))[
            ["region", "pattern", "change_sd"]
        ]
        for model in models
    )
    in_first = {int(number) + 1: i + 1 for i, number in enumerate(order)}
    second = second.assign(pattern=second["pattern"].map(in_first)).rename(columns={"change_sd": "half2"})
    return first.rename(columns={"change_sd": "half1"}).merge(second, on=["region", "pattern"], how="left")


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    varies = len(a) and np.ptp(a) and np.ptp(b)
    return float(np.corrcoef(a, b)[0, 1]) if varies else float("nan")
