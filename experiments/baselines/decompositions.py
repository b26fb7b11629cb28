"""The decompositions that the paper compares with, with its preparation of the data (section B.4), as one estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import NMF, FactorAnalysis, LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from baselines.discriminant_nmf import DiscriminantNMF
from baselines.opnmf import OrthonormalProjectiveNMF
from rindices.problems import InputError, did_you_mean

_COUNTS_PER_SD = 10  # Dirichlet allocation models word counts: a tenth of a standard deviation is one word


class _Method(NamedTuple):
    make: Callable[[int, Any], Any]  # of the number of components and the random state
    prepare: Callable[[np.ndarray], np.ndarray]  # of z-scores, or of regions scaled to 0–1
    from_everybody: bool = False  # with labels; otherwise from patients, with controls only for mean and sd


def _atrophy(z: np.ndarray) -> np.ndarray:
    """Return losses in sd of controls; values above the controls' mean become 0."""
    return np.maximum(-z, 0)


def _counts(z: np.ndarray) -> np.ndarray:
    return np.rint(_COUNTS_PER_SD * _atrophy(z))


METHODS: Mapping[str, _Method] = MappingProxyType(
    {
        "nmf": _Method(lambda n, random: NMF(n, random_state=random, max_iter=5000), _atrophy),
        "lda": _Method(
            lambda n, random: LatentDirichletAllocation(
                n, random_state=random, max_iter=300, evaluate_every=5, max_doc_update_iter=20
            ),
            _counts,
        ),
        "fa": _Method(lambda n, random: FactorAnalysis(n, random_state=random), np.asarray),
        "opnmf": _Method(lambda n, random: OrthonormalProjectiveNMF(n, random_state=random), _atrophy),
        "dnmf": _Method(
            lambda n, random: DiscriminantNMF(n, random_state=random), lambda share: np.clip(share, 0, 1), True
        ),
    }
)


class Baseline(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """One of the paper's five decompositions of regions into components.

    NMF, opNMF and LDA receive z-scores relative to controls with the sign reversed and negative values set to 0, which
    assumes that disease shrinks regions; LDA in whole tenths. Factor analysis receives the z-scores. These four are
    fitted to patients. Discriminant NMF is fitted to everybody with labels, each region scaled to 0–1. Signs and order
    of components have no meaning; those of discriminant NMF mostly fall with severity, as volumes do.

    Parameters
    ----------
    method : {"nmf", "lda", "fa", "opnmf", "dnmf"}, default="nmf"
        Non-negative matrix factorisation, latent Dirichlet allocation, factor analysis, orthonormal projective NMF or
        discriminant NMF.
    n_components : int, default=3
        Number of components M.
    random_state : int, RandomState or None, default=None
        Determines the initial values.

    Attributes
    ----------
    decomposition_ : estimator
        The decomposition fitted to the prepared regions.
    offset_, scale_ : ndarray of shape (n_features,)
        Regions are first scaled as (X − offset_) / scale_: by mean and sd of controls, or by the range over everybody.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from rindices import simulate_cohort
    >>> table = simulate_cohort("basic", n_controls=100, n_patients=100).table
    >>> regions = table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    >>> Baseline("opnmf", random_state=0).fit(regions, table["diagnosis"] == "PT").transform(regions).shape
    (200, 3)
    """

    def __init__(self, method: str = "nmf", n_components: int = 3, *, random_state: Any = None) -> None:
        self.method = method
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Regional measures of controls and patients, in any units.
        y : array-like of shape (n_samples,)
            0 for controls, 1 for patients.
        """
        if self.method not in METHODS:
            hint = did_you_mean(str(self.method), list(METHODS))
            raise InputError(f"method should be one of {', '.join(METHODS)}; found {self.method!r}.{hint}")
        method = METHODS[self.method]
        X, y = validate_data(self, X, y, dtype=np.float64)
        patient = _patients(y)
        if method.from_everybody:
            self.offset_, self.scale_ = X.min(axis=0), np.ptp(X, axis=0)
        else:
            self.offset_, self.scale_ = X[~patient].mean(axis=0), X[~patient].std(axis=0)
        self._check_scale("everybody" if method.from_everybody else "all controls")
        prepared = self._prepared(X)
        decomposition = method.make(self.n_components, self.random_state)
        if method.from_everybody:
            self.decomposition_ = decomposition.fit(prepared, patient)
        else:
            self.decomposition_ = decomposition.fit(prepared[patient])
        if self.method == "lda" and decomposition.n_iter_ == decomposition.max_iter:  # scikit-learn does not warn
            warnings.warn(f"LDA did not settle in {decomposition.n_iter_} rounds.", ConvergenceWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the components of people, who may be new; those of LDA are proportions that sum to 1."""
        check_is_fitted(self)
        return self.decomposition_.transform(self._prepared(validate_data(self, X, dtype=np.float64, reset=False)))

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def _prepared(self, X: np.ndarray) -> np.ndarray:
        return METHODS[self.method].prepare((X - self.offset_) / self.scale_)

    def _check_scale(self, group: str) -> None:
        constant = np.flatnonzero(self.scale_ == 0)
        if len(constant):
            names = getattr(self, "feature_names_in_", None)
            name = constant[0] if names is None else repr(names[constant[0]])
            raise InputError(f"Region {name} has the same value in {group}: leave it out.")


def _patients(y: np.ndarray) -> np.ndarray:
    labels = np.unique(y)
    if labels.tolist() != [0, 1]:
        raise InputError(
            f"y should hold 0 for controls and 1 for patients, both; found {', '.join(map(repr, labels[:5].tolist()))}."
        )
    return np.asarray(y) == 1
