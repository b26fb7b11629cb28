"""Diagnostic information retained by a few R-indices, compared with that in all regions (section B.8 of the paper)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from rindices.analysis.statistics import patients_of, same_people
from rindices.problems import InputError

# The paper does not specify its grid. A Gaussian kernel is allowed because R-indices may separate groups non-linearly.
_GRID = [{"svc__kernel": ["linear"], "svc__C": [0.01, 0.1, 1]}, {"svc__kernel": ["rbf"], "svc__C": [0.1, 1, 10]}]
_INNER_FOLDS = 3
_FEWEST = 10  # per group, so that each inner fold has a few


def diagnosis_auc(
    r_indices: Any,
    regions: Any,
    y: ArrayLike,
    *,
    n_splits: int = 100,
    test_size: float = 0.2,
    seed: int = 0,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Classify patients and controls with support vector machines on R-indices and on all regions.

    Both use the same people in the same splits. Scaling and the choice of kernel and penalty (by the area under the
    curve in three inner folds) are repeated in the training people of each split. R-indices should come from a model
    trained on other people, such as ``split_half(...).held_out``; otherwise the result is optimistic.

    Parameters
    ----------
    r_indices : array-like of shape (n_people, n_patterns)
        R-indices of controls and patients.
    regions : array-like of shape (n_people, n_regions)
        Regions of the same people, with covariates removed if they were for the R-indices.
    y : array-like of shape (n_people,)
        0 for controls, 1 for patients.
    n_splits : int, default=100
        Number of random splits.
    test_size : float, default=0.2
        Proportion of each group left out per split.
    seed : int, default=0
        Seed of the splits.
    n_jobs : int, optional
        Number of splits processed in parallel, as in joblib.

    Returns
    -------
    DataFrame
        Rows "R-indices", "regions" and "difference" (the first minus the second, per split): features, n_features, auc
        (mean over splits), sd (over splits; not a standard error, as splits share people), n_splits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], 30)
    >>> table = diagnosis_auc(y[:, None] + rng.normal(size=(60, 2)), rng.normal(size=(60, 4)), y, n_splits=2)
    >>> table["features"].tolist()
    ['R-indices', 'regions', 'difference']
    """
    features = {"R-indices": np.asarray(r_indices, float), "regions": np.asarray(regions, float)}
    patient = patients_of(y, len(features["regions"]))
    if min(patient.sum(), (~patient).sum()) < _FEWEST:
        raise InputError(f"At least {_FEWEST} controls and {_FEWEST} patients are needed.")
    same_people(len(patient), r_indices=features["R-indices"])
    for name, table in features.items():
        if table.ndim != 2 or not np.isfinite(table).all():
            raise InputError(f"{name} should be a table of finite numbers, one row a person: fill gaps or drop people.")
    splits = StratifiedShuffleSplit(n_splits, test_size=test_size, random_state=seed)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_auc)(table, patient, train, test, seed)
        for train, test in splits.split(patient[:, None], patient)
        for table in features.values()
    )
    first, second = np.reshape(found, (n_splits, 2)).T
    sizes = [table.shape[1] for table in features.values()]
    return pd.DataFrame(
        {
            "features": [*features, "difference"],
            "n_features": pd.array([*sizes, None], dtype="Int64"),
            "auc": [first.mean(), second.mean(), (first - second).mean()],
            "sd": [_sd(first), _sd(second), _sd(first - second)],
            "n_splits": n_splits,
        }
    )


def _sd(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def _auc(features: np.ndarray, patient: np.ndarray, train: np.ndarray, test: np.ndarray, seed: int) -> float:
    inner = StratifiedKFold(_INNER_FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), _GRID, scoring="roc_auc", cv=inner)
    search.fit(features[train], patient[train])
    return float(roc_auc_score(patient[test], search.decision_function(features[test])))
