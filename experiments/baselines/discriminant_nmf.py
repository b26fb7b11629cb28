"""Discriminant non-negative matrix factorisation: components in which classes are compact and far apart."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from baselines.opnmf import check_not_negative
from rindices.problems import InputError

_TINY = 1e-12
_OUT_OF_PROPORTION = 10  # without scatter terms, H has the same sum as X
_LOOK_EVERY = 10  # updates: computing the objective costs as much as an update


class DiscriminantNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Approximate X by H W with H, W ≥ 0, where rows of H are similar within classes and differ between them.

    Minimises D(X ‖ H W) + γ tr S_w − δ tr S_b: the Kullback–Leibler divergence, the scatter of H within classes (summed
    over people) and the scatter of class means (summed over classes). Rows of W sum to 1.

    Parameters
    ----------
    n_components : int, default=3
        Number of components.
    within : float, default=0.1
        Weight γ of the scatter within classes.
    between : float, default=1e-4
        Weight δ of the scatter between classes. The objective has no lower bound: `fit` fails if H grows out of
        proportion because the weight is too large.
    max_iter : int, default=3000
        Maximum number of updates.
    tol : float, default=1e-6
        Updates stop when the decrease of the objective per update, relative to its initial value, is below this.
    random_state : int, RandomState or None, default=None
        Determines the initial values.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        W.
    loadings_ : ndarray of shape (n_samples, n_components)
        H of the people in `fit`, for which their labels were used.
    objectives_ : ndarray
        The objective at the start and after every tenth update; it never rises.
    n_iter_ : int
        Number of updates.

    References
    ----------
    Zafeiriou, Tefas, Buciu and Pitas, "Exploiting discriminant information in nonnegative matrix factorization with
    application to frontal face verification", IEEE Transactions on Neural Networks 17, 2006. The updates are not
    theirs: they are derived from bounds, so that each one lowers the objective.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 4.0]])
    >>> model = DiscriminantNMF(2, random_state=0).fit(X, [0, 0, 1, 1])
    >>> model.transform(X).argmax(axis=1).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
    True
    """

    def __init__(
        self,
        n_components: int = 3,
        *,
        within: float = 0.1,
        between: float = 1e-4,
        max_iter: int = 3000,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.within = within
        self.between = between
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find the components of non-negative `X`, given class labels `y`."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_not_negative(X)
        scatter = _Scatter.of(np.unique(y, return_inverse=True)[1], self.within, self.between)
        random = check_random_state(self.random_state)
        basis = _rows_to_one(random.uniform(0.1, 1, (self.n_components, X.shape[1])))
        loadings = random.uniform(0.5, 1, (len(X), self.n_components)) * X.sum(axis=1, keepdims=True)
        loadings /= self.n_components
        objectives, settled = [_objective(X, loadings, basis, scatter)], False
        for iteration in range(1, self.max_iter + 1):
            loadings = _updated_loadings(X, loadings, basis, scatter)
            basis = _rows_to_one(basis * (loadings.T @ (X / _product(loadings, basis))))
            if iteration % _LOOK_EVERY == 0:
                objectives.append(_objective(X, loadings, basis, scatter))
                self._check_bounded(loadings.sum(), X.sum())
                settled = objectives[-2] - objectives[-1] < _LOOK_EVERY * self.tol * abs(objectives[0])
                if settled:
                    break
        if not settled:
            warnings.warn(
                f"Discriminant NMF did not settle within {self.max_iter} updates.", ConvergenceWarning, stacklevel=2
            )
        self.components_, self.loadings_ = basis, loadings
        self.objectives_, self.n_iter_ = np.array(objectives), iteration
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the H that best approximates X with the components of `fit`; no labels are needed."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        check_not_negative(X)
        n_components = len(self.components_)
        loadings = np.repeat(X.sum(axis=1, keepdims=True) / n_components, n_components, axis=1)
        for _ in range(self.max_iter):
            updated = _updated_loadings(X, loadings, self.components_)
            change = np.abs(updated - loadings).max(initial=0)
            loadings = updated
            if change < self.tol * loadings.max(initial=_TINY):
                break
        return loadings

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def _check_bounded(self, loadings: float, total: float) -> None:
        if loadings > _OUT_OF_PROPORTION * total:
            raise InputError(
                f"The scatter between classes outweighs the data: take a smaller `between` than {self.between}."
            )


class _Scatter(NamedTuple):
    """γ tr S_w − δ tr S_b as a quadratic form in H, whose positive and negative entries are bounded differently."""

    membership: np.ndarray  # (people, classes), 0 or 1
    sizes: np.ndarray  # (classes, 1)
    between_means: np.ndarray  # (classes, classes): tr S_b is this quadratic form in the class means
    within: float
    between: float

    @classmethod
    def of(cls, classes: np.ndarray, within: float, between: float) -> _Scatter:
        membership = np.eye(classes.max() + 1)[classes]
        sizes = membership.sum(axis=0)
        centring = np.eye(len(sizes)) - sizes / len(classes)  # class means minus the overall mean
        return cls(membership, sizes[:, None], centring.T @ centring, within, between)

    def value(self, loadings: np.ndarray) -> float:
        means = self.membership.T @ loadings / self.sizes
        inside = np.sum((loadings - self.membership @ means) ** 2)
        return float(self.within * inside - self.between * np.sum(means * (self.between_means @ means)))

    def halves(self, loadings: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the products with H of the form's positive entries and of the absolute values of its negative ones."""
        means = self.membership.T @ loadings / self.sizes
        apart = self.between * np.maximum(-self.between_means, 0) @ means / self.sizes
        together = self.between * np.maximum(self.between_means, 0) @ means / self.sizes
        return self.within * loadings + self.membership @ apart, self.membership @ (self.within * means + together)


def _updated_loadings(
    X: np.ndarray, loadings: np.ndarray, basis: np.ndarray, scatter: _Scatter | None = None
) -> np.ndarray:
    """Minimise a bound on the objective that touches it at the current H and is separable in the entries of H.

    In h, with current value h₀, the bound is h + (p / h₀) h² − h₀ g log h: p and n are the `halves` of the scatter, and
    g = Σ_i w_i x_i / (H W)_i + 2 n. Its minimum is the positive root of a quadratic equation.
    """
    pull = (X / _product(loadings, basis)) @ basis.T
    if scatter is None:
        return loadings * pull
    positive, negative = scatter.halves(loadings)
    pull += 2 * negative
    return 2 * loadings * pull / (1 + np.sqrt(1 + 8 * positive * pull))


def _product(loadings: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return np.maximum(loadings @ basis, _TINY)


def _objective(X: np.ndarray, loadings: np.ndarray, basis: np.ndarray, scatter: _Scatter) -> float:
    product = _product(loadings, basis)
    return float(np.sum(xlogy(X, X / product) - X + product)) + scatter.value(loadings)


def _rows_to_one(basis: np.ndarray) -> np.ndarray:
    return basis / np.maximum(basis.sum(axis=1, keepdims=True), _TINY)
