"""True severities of simulated patients: uniform between 0 and 1, independent or correlated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtr

Correlation = float | Sequence[Sequence[float]] | np.ndarray


def severity_correlation_matrix(correlation: Correlation | None, n_patterns: int) -> np.ndarray:
    """Turn what the user gave into a valid correlation matrix, or say what is wrong with it.

    Parameters
    ----------
    correlation : float, array of shape (n_patterns, n_patterns) or None
        One number for all pairs of patterns, a whole matrix, or nothing for independence.
    n_patterns : int
        Number of patterns.

    Examples
    --------
    >>> severity_correlation_matrix(0.5, 2).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    try:
        given = np.asarray(0.0 if correlation is None else correlation, dtype=float)
    except (TypeError, ValueError) as error:
        raise _invalid(n_patterns, "rows of different lengths, or something that is not made of numbers") from error
    matrix = given if given.ndim else np.where(np.eye(n_patterns, dtype=bool), 1.0, given)
    if matrix.shape != (n_patterns, n_patterns):
        raise _invalid(n_patterns, f"{' x '.join(map(str, matrix.shape))} numbers")
    if not np.isfinite(matrix).all():
        raise _invalid(n_patterns, "a missing or infinite value")
    if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-8):
        raise _invalid(n_patterns, "a matrix that is not symmetric")
    if not np.allclose(np.diag(matrix), 1, rtol=0, atol=1e-8):
        raise _invalid(n_patterns, f"the diagonal {np.diag(matrix).tolist()} instead of ones")
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest < 1e-8:
        what = "correlations" if given.ndim else f"correlations of {given:g}"
        raise _invalid(n_patterns, f"{what} that cannot occur together (smallest eigenvalue {smallest:.3g})")
    return matrix


def draw_severities(n_patients: int, correlation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw severities, each uniform on [0, 1], joined by a Gaussian copula.

    Parameters
    ----------
    n_patients : int
        Number of rows.
    correlation : ndarray of shape (n_patterns, n_patterns)
        Correlation of the copula; the identity means independence.
    rng : numpy.random.Generator
        Source of randomness.

    Examples
    --------
    >>> draw_severities(5, np.eye(3), np.random.default_rng(0)).shape
    (5, 3)
    """
    scores = rng.standard_normal((n_patients, len(correlation))) @ np.linalg.cholesky(correlation).T
    return ndtr(scores)


def _invalid(n_patterns: int, found: str) -> ValueError:
    lowest = f"{-1 / (n_patterns - 1):.3g}" if n_patterns > 1 else "-1"
    return ValueError(
        f"severity_correlation: expected one number between {lowest} and 1, or a positive definite "
        f"{n_patterns} x {n_patterns} correlation matrix, found {found}. "
        "Correct it, or leave it out for independent severities."
    )
