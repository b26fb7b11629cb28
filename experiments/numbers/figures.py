"""Compare a fitted model's numbers with the truth of a simulated cohort."""

from __future__ import annotations

import warnings

import numpy as np
from people import Given
from sklearn.covariance import LedoitWolf
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict

from rindices import SurrealGAN
from rindices.core import inference
from rindices.judging.agreement_and_misfit import concordance, match_patterns
from rindices.preprocessing import SCALED_SD
from rindices.scoring.intervals import severity_intervals

BINS = {"absent": (-1, 0), "low": (0, 1 / 3), "middle": (1 / 3, 2 / 3), "high": (2 / 3, 9)}


def told(patients: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return predictions of held-out patients by ridge regression trained on the true severities of the others."""
    standardised = (patients - patients.mean(axis=0)) / patients.std(axis=0)
    folds = KFold(5, shuffle=True, random_state=0)
    return cross_val_predict(RidgeCV(np.logspace(-1, 4, 20)), standardised, truth, cv=folds)


def ridge(patients: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean concordance of ridge regression's held-out predictions with the truth."""
    predicted = told(patients, truth)
    return float(np.mean([concordance(truth[:, i], predicted[:, i]) for i in range(truth.shape[1])]))


def errors_told(patients: np.ndarray, truth: np.ndarray, factor: float) -> dict[str, float]:
    """Return the error of ridge regression in the model's units: as predicted, shrunk to the mean, and unbiased.

    Unbiased predictions are rescaled until their mean, among people of a given severity, is that severity.
    """
    predicted = told(patients, truth)
    lines = [np.polyfit(true, said, 1) for true, said in zip(truth.T, predicted.T, strict=True)]
    right = np.column_stack([(said - b) / a for (a, b), said in zip(lines, predicted.T, strict=True)])
    return {
        name: float(factor * np.sqrt(((values - truth) ** 2).mean()))
        for name, values in (("told_rmse", predicted), ("told_rmse_right", right))
    }


def unit(model: SurrealGAN, given: Given, order: np.ndarray) -> np.ndarray:
    """Return the true full change of each pattern in units of the learned one.

    True maps are written as mixtures of all learned maps, and the unit is the weight of a pattern's own map: projecting
    on that map alone would also credit a pattern with what it shares with the others. Like the estimation of
    severities, least squares weight most the directions in which healthy people vary least (Mahalanobis).
    """
    controls = model.prepare(given.regions[~given.patient], _of(given.covariates, ~given.patient)).values
    learned = inference.pattern_changes(model.models_, controls).mean(axis=0)[order]
    scaler = model.preprocessing_.scaler
    mean = given.regions[~given.patient].to_numpy().mean(axis=0)
    true = -given.full_change * mean / scaler.sd * SCALED_SD
    root = np.linalg.cholesky(LedoitWolf().fit(controls).precision_).T
    return np.diag(np.linalg.lstsq(root @ learned.T, root @ true.T, rcond=None)[0]).copy()


def _of(table, who):
    return None if table is None else table[who].reset_index(drop=True)


def measure(model: SurrealGAN, given: Given, with_ridge: bool = True) -> dict[str, float]:
    """Compare a fitted model with the truth."""
    truth, scale = given.truth, model.scale_
    r_indices = model.r_indices_[given.patient]
    order, concordances = match_patterns(truth, r_indices)
    factor = unit(model, given, order)
    row = {"concordance": float(concordances.mean()), "members": len(model.members_), "unit": float(factor.mean())}
    row["agreement"] = model.agreement_.pattern_agreement
    if with_ridge:
        regions = model.prepare(given.regions, given.covariates).values
        row["ridge"] = ridge(regions[given.patient], truth)
        row["less_ridge"] = row["concordance"] - row["ridge"]
    row |= _severity(scale, r_indices[:, order], truth, factor, order, "")
    if len(given.fresh):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fresh = model.transform(given.fresh, given.fresh_covariates)
        row |= _severity(scale, fresh[given.fresh_patient][:, order], given.fresh_truth, factor, order, "fresh_")
        healthy = fresh[~given.fresh_patient]
        row["fresh_controls_severity"] = float(scale.severities(healthy).mean())
        row["above_95"] = float((scale.centiles(healthy) > 95).mean())
        row["seen_above_95"] = float((healthy > np.quantile(model.r_indices_[~given.patient], 0.95, axis=0)).mean())
        row["zero_inside"] = float((severity_intervals(scale, healthy, 0.95)[0] <= 0).mean())
    return row


def _severity(scale, r_indices, truth, factor, order, prefix) -> dict[str, float]:
    """Return errors and coverage; `r_indices` and `truth` share the same order of patterns, `scale` has its own."""
    back = np.argsort(order)
    own = r_indices[:, back]
    severity, target = scale.severities(own)[:, order], truth * factor
    row = {
        "rmse": float(np.sqrt(((severity - target) ** 2).mean())),
        "bias": float((severity - target).mean()),
        "raw_rmse": float(np.sqrt(((severity - truth) ** 2).mean())),
        "r_rmse": float(np.sqrt(((r_indices - truth) ** 2).mean())),
    }
    for level in (0.95, 0.8):
        low, high = (side[:, order] for side in severity_intervals(scale, own, level))
        inside = (low <= target) & (target <= high)
        row[f"cover{level * 100:.0f}"], row[f"width{level * 100:.0f}"] = (
            float(inside.mean()),
            float((high - low).mean()),
        )
        row[f"below{level * 100:.0f}"] = float((target < low).mean())
        if level == 0.95:
            row["raw_cover95"] = float(((low <= truth) & (truth <= high)).mean())
            for name, (a, b) in BINS.items():
                of = (truth > a) & (truth <= b)
                row[f"cover_{name}"] = float(inside[of].mean()) if of.any() else np.nan
    return {prefix + name: value for name, value in row.items()}
