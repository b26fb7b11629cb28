"""Sizes: heads of different size, one scale for all regions, and the decorrelation of regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.covariance import ledoit_wolf

from rindices.preprocessing.covariates import numbers_of
from rindices.problems import InputError, Remedy, counted, shown

SCALED_SD = 0.1  # controls have mean 1 and this sd after scaling; the loss weights are tuned to it


class HeadSize(NamedTuple):
    """Regions as a proportion of the head, times the controls' mean head size, so that units stay.

    Examples
    --------
    >>> heads = pd.DataFrame({"icv": [1000.0, 2000.0]})
    >>> HeadSize.fit(heads, "icv").transform(np.array([[10.0], [20.0]]), heads).ravel().tolist()
    [15.0, 15.0]
    """

    name: str
    mean: float

    @classmethod
    def fit(cls, covariates: pd.DataFrame, name: str) -> HeadSize:
        """Take the mean of controls."""
        return cls(name, float(_sizes(covariates, name).mean()))

    def transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Bring everybody to the mean head size."""
        return features * (self.mean / _sizes(covariates, self.name))[:, None]

    def inverse_transform(self, features: np.ndarray, covariates: pd.DataFrame) -> np.ndarray:
        """Return to each person's own head size."""
        return features * (_sizes(covariates, self.name) / self.mean)[:, None]


def _sizes(covariates: pd.DataFrame, name: str) -> np.ndarray:
    sizes = numbers_of(covariates, name)
    if (sizes <= 0).any():
        first = int(np.flatnonzero(sizes <= 0)[0])
        raise InputError(
            f"Regions are divided by {name!r}, but it is {shown(float(sizes[first]))} for person "
            f"{covariates.index[first]} ({counted(int((sizes <= 0).sum()), 'person', 'people')} in all).\n"
            f"Correct the value, exclude the person, or omit ",
            Remedy("proportion"),
            ".",
        )
    return sizes


@dataclass(frozen=True, eq=False)
class ControlScaler:
    """Gives each region mean 1 and sd 0.1 in controls.

    Examples
    --------
    >>> scaler = ControlScaler.fit(np.array([[1.0], [3.0]]))
    >>> scaler.transform(np.array([[2.0], [4.0]])).ravel().tolist()
    [1.0, 1.2]
    """

    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def fit(cls, controls: np.ndarray) -> ControlScaler:
        """Take mean and sd of controls."""
        return cls(controls.mean(axis=0), controls.std(axis=0))

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Scale."""
        return 1 + SCALED_SD * (features - self.mean) / self.sd

    def inverse_transform(self, scaled: np.ndarray) -> np.ndarray:
        """Return to the units of the table."""
        return self.mean + (scaled - 1) * self.sd / SCALED_SD


def whitening_matrix(controls: np.ndarray, strength: float) -> np.ndarray | None:
    """Return a linear map that decorrelates scaled controls (ZCA), mixed with the identity by `strength`.

    The covariance is shrunk after Ledoit and Wolf, so that it can be inverted with fewer controls than regions.
    """
    if strength == 0:
        return None
    covariance = ledoit_wolf((controls - controls.mean(axis=0)) / SCALED_SD)[0]
    values, vectors = np.linalg.eigh(covariance)
    zca = (vectors / np.sqrt(values)) @ vectors.T
    return strength * zca + (1 - strength) * np.eye(len(zca))
