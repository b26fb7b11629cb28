"""Preparation of regional measures, always estimated in controls: covariates removed, regions put on one scale."""

from __future__ import annotations

import numpy as np
from sklearn.covariance import ledoit_wolf

_SD = 0.1  # controls have mean 1 and this sd after scaling; the loss weights are tuned to it


def whitening_matrix(controls: np.ndarray, strength: float) -> np.ndarray | None:
    """Linear map that decorrelates scaled controls (ZCA), mixed with the identity by `strength`.

    The covariance is shrunk after Ledoit and Wolf, so that it can be inverted with fewer controls than regions.
    """
    if strength == 0:
        return None
    covariance = ledoit_wolf((controls - controls.mean(axis=0)) / _SD)[0]
    values, vectors = np.linalg.eigh(covariance)
    zca = (vectors / np.sqrt(values)) @ vectors.T
    return strength * zca + (1 - strength) * np.eye(len(zca))
