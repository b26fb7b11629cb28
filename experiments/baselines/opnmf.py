"""Orthonormal projective non-negative matrix factorisation: each region belongs to one component."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from rindices.problems import InputError

_TINY = np.finfo(float).tiny


class OrthonormalProjectiveNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate X by its projection X W Wᵀ with W ≥ 0 and WᵀW = I.

    Columns that are non-negative and orthogonal share no region. The multiplicative updates reach this only
    approximately, less closely in noisy data. At the end, each region is therefore assigned to its largest component,
    and each component becomes the best one for its regions: the leading singular vector.

    Parameters
    ----------
    n_components : int, default=3
        Number of components.
    max_iter : int, default=50000
        Maximum number of updates; the time of an update depends on regions², not on the number of people.
    tol : float, default=1e-5
        Updates stop when the change of W, relative to its norm, is below this.
    random_state : int, RandomState or None, default=None
        Determines the initial values.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The rows are the columns of W.
    objectives_ : ndarray of shape (n_iter_ + 1,)
        ‖X − X W Wᵀ‖² at the start and after each update; it falls, apart from ripples below a
        millionth of the initial value.
    reconstruction_err_ : float
        ‖X − X W Wᵀ‖ of the components.
    n_iter_ : int
        Number of updates.

    References
    ----------
    Yang and Oja, "Linear and nonlinear projective nonnegative matrix factorization", IEEE Transactions on Neural
    Networks 21, 2010. Sotiras, Resnick and Davatzikos, NeuroImage 108, 2015, for brain images.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0]])
    >>> model = OrthonormalProjectiveNMF(2, random_state=0).fit(X)
    >>> (model.components_ @ model.components_.T).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(
        self, n_components: int = 3, *, max_iter: int = 50_000, tol: float = 1e-5, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the components of non-negative `X`; `y` is not used."""
        X = validate_data(self, X, dtype=np.float64)
        check_not_negative(X)
        if not 1 <= self.n_components <= X.shape[1]:
            raise InputError(f"n_components should be from 1 to {X.shape[1]}, the regions; found {self.n_components}.")
        gram = X.T @ X
        start = check_random_state(self.random_state).uniform(0.1, 1, (X.shape[1], self.n_components))
        weights, self.objectives_ = _updated(gram, start / np.linalg.norm(start, 2), self.max_iter, self.tol)
        self.n_iter_ = len(self.objectives_) - 1
        if self.n_iter_ == self.max_iter:
            warnings.warn(f"opNMF did not settle within {self.max_iter} updates.", ConvergenceWarning, stacklevel=2)
        self.components_ = _orthonormal(gram, weights).T
        self.reconstruction_err_ = float(np.sqrt(max(0.0, _objective(gram, self.components_.T))))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the projections X W."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) @ self.components_.T

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def check_not_negative(X: np.ndarray) -> None:
    """Refuse negative numbers, which no non-negative factors can approximate."""
    if (X < 0).any():
        row, column = (int(place[0]) for place in np.nonzero(X < 0))
        raise InputError(
            f"Expected no negative numbers, found {X[row, column]:.4g} in row {row}, column {column}. "
            "Scale the regions first, or use `Baseline`, which does."
        )


def _updated(gram: np.ndarray, weights: np.ndarray, max_iter: int, tol: float) -> tuple[np.ndarray, np.ndarray]:
    """Update W by W ∘ √(A W / W WᵀA W) with A = XᵀX; also return the objective before and after each update.

    The published update has no root; the root leaves the fixed points unchanged, and the objective hardly ever rises.
    """
    objectives = [_objective(gram, weights)]
    for _ in range(max_iter):
        product = gram @ weights
        updated = weights * np.sqrt(product / np.maximum(weights @ (weights.T @ product), _TINY))
        change = np.linalg.norm(updated - weights) / np.linalg.norm(updated)
        weights = updated
        objectives.append(_objective(gram, weights))
        if change < tol:
            break
    return weights, np.array(objectives)


def _objective(gram: np.ndarray, weights: np.ndarray) -> float:
    """Return ‖X − X W Wᵀ‖² = tr A − 2 tr WᵀA W + tr WᵀA W WᵀW."""
    inner = weights.T @ gram @ weights
    return float(np.trace(gram) - 2 * np.trace(inner) + np.sum(inner * (weights.T @ weights)))


def _orthonormal(gram: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Assign each region to its largest component; each component is the leading singular vector of its regions."""
    owner = weights.argmax(axis=1)
    result = np.zeros_like(weights)
    for k in range(weights.shape[1]):
        own = np.flatnonzero(owner == k)
        if not len(own):
            warnings.warn(
                f"Component {k} has no region of its own: take fewer components.", ConvergenceWarning, stacklevel=3
            )
            continue
        result[own, k] = np.abs(np.linalg.eigh(gram[np.ix_(own, own)])[1][:, -1])  # of one sign, as A ≥ 0
    return result
