"""Scores of regressions trained on the true severities: roughly the most that regions can reveal about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from rindices.problems import InputError

_REGRESSIONS = {
    "linear": LinearRegression(),
    "ridge": RidgeCV(np.logspace(-1, 4, 20)),
    "svr": MultiOutputRegressor(SVR(kernel="rbf")),
}


def supervised_ceilings(
    patients: Any, truth: Any, score: Callable[[np.ndarray, np.ndarray], float], *, seed: int = 0, n_folds: int = 5
) -> pd.DataFrame:
    """Cross-validate predictions of severities by linear, ridge and support vector regression (section B.6).

    Regions are z-scored by the training patients, within whom ridge regression chooses among 20 penalties from 0.1 to
    10⁴. Support vector regression has a Gaussian kernel and scikit-learn's defaults otherwise.

    Parameters
    ----------
    patients : array-like of shape (n_patients, n_regions)
        Regional measures.
    truth : array-like of shape (n_patients, n_patterns)
        True severities.
    score : callable
        Function of true and predicted severities that returns a number, such as `pattern_concordance`.
    seed : int, default=0
        Seed of the folds.
    n_folds : int, default=5
        Number of folds.

    Returns
    -------
    DataFrame
        One row per method and fold: method, fold, train (score of the training patients) and test (of those left out).

    Examples
    --------
    >>> regions = np.random.default_rng(0).normal(size=(50, 4))
    >>> error = lambda true, predicted: float(np.abs(true - predicted).mean())
    >>> table = supervised_ceilings(regions, regions[:, :2], error)
    >>> bool(table.set_index("method").loc["linear", "test"].max() < 1e-9)
    True
    """
    patients, truth = np.asarray(patients, float), np.asarray(truth, float)
    if truth.ndim != 2 or len(truth) != len(patients):
        raise InputError(f"truth should have a row for each of {len(patients)} patients; its shape is {truth.shape}.")
    rows = []
    for name, regression in _REGRESSIONS.items():
        for fold, (train, test) in enumerate(KFold(n_folds, shuffle=True, random_state=seed).split(patients)):
            model = make_pipeline(StandardScaler(), clone(regression)).fit(patients[train], truth[train])
            scores = {
                part: score(truth[chosen], np.reshape(model.predict(patients[chosen]), (len(chosen), -1)))
                for part, chosen in (("train", train), ("test", test))
            }
            rows.append({"method": name, "fold": fold} | scores)
    return pd.DataFrame(rows)
