"""Fit the scale of a model: the curve of each pattern, the reference of held-out controls, and intervals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rindices.core import inference
from rindices.core.networks import Parameters
from rindices.scoring.intervals import FEWEST, Healthy, quantiles
from rindices.scoring.reference import HeldOut
from rindices.scoring.scale import CENTILES, DOSES, KNOTS, LEVELS, SeverityScale, increasing


def fit_curves(models: Parameters, brains: np.ndarray, composition: str) -> np.ndarray:
    """Return the curve of each pattern at `KNOTS`, mean over models: never falling, from 0 to 1."""
    means = increasing(inference.doses(models, brains, composition, KNOTS).mean(axis=0))
    return (means - means[:, :1]) / (means[:, -1:] - means[:, :1])


class Scored(NamedTuple):
    """The scale of a consensus, the R-indices of the controls as people whom it has not seen, and how they are made."""

    scale: SeverityScale
    r_indices: np.ndarray
    held_out: HeldOut


def fit_scale(
    models: Parameters, healthy: Healthy, composition: str, correlation: np.ndarray | None, seed: int
) -> Scored:
    """Return the scale of a consensus, and what it says of the controls.

    A person's severity is the one with which such an R-index is the median: R-indices of people whom f changes fully
    are mostly below 1, and those of healthy people above 0. Such curves and intervals need several repetitions, and a
    reference needs controls that were held out; without them there are the curves of f alone, or none.
    """
    n_models = len(healthy.held_out)
    scores = inference.r_indices(models, healthy.brains)
    unseen = HeldOut.of(scores, healthy.held_out, n_models)
    honest = unseen.scores(scores, np.arange(scores.shape[1]))
    reference = np.quantile(honest, CENTILES, axis=0).T if healthy.held_out.any() else None
    if n_models < FEWEST:
        return Scored(SeverityScale(fit_curves(models, healthy.brains, composition), reference), honest, unseen)
    copula = np.eye(honest.shape[1]) if correlation is None else correlation
    by_dose = quantiles(models, healthy, composition, copula, seed)
    return Scored(SeverityScale(usual_severities(by_dose), reference, by_dose), honest, unseen)


def usual_severities(quantiles: np.ndarray) -> np.ndarray:
    """Return the severity with which each of `KNOTS` is the median R-index ``(patterns, knots)``; from 0 on."""
    medians = quantiles[:, :, np.flatnonzero(LEVELS == 0.5)[0]]
    return np.stack([np.interp(KNOTS, increasing(of), DOSES) for of in medians])
