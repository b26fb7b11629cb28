import numpy as np
import pytest
from scipy.stats import kstest

from rindices.simulate.patterns import draw_severities, severity_correlation_matrix


def rank_correlation_of_copula(correlation):
    """Correlation of two uniforms joined by a Gaussian copula."""
    return 6 / np.pi * np.arcsin(correlation / 2)


def test_independent_and_uniform():
    severities = draw_severities(20_000, severity_correlation_matrix(None, 3), np.random.default_rng(0))
    for column in severities.T:
        assert kstest(column, "uniform").pvalue > 0.001
    assert np.abs(np.corrcoef(severities.T) - np.eye(3)).max() < 0.03


def test_correlated_as_asked_and_still_uniform():
    asked = [[1, 0.7, -0.2], [0.7, 1, 0.1], [-0.2, 0.1, 1]]
    severities = draw_severities(20_000, severity_correlation_matrix(asked, 3), np.random.default_rng(0))
    for column in severities.T:
        assert kstest(column, "uniform").pvalue > 0.001
    expected = rank_correlation_of_copula(np.array(asked))
    assert np.abs(np.corrcoef(severities.T) - expected).max() < 0.03


def test_one_number_for_all_pairs():
    matrix = severity_correlation_matrix(0.4, 3)
    np.testing.assert_array_equal(matrix, [[1, 0.4, 0.4], [0.4, 1, 0.4], [0.4, 0.4, 1]])


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (1.5, "cannot occur together"),
        (1.0, "cannot occur together"),
        (-0.6, "cannot occur together"),
        (float("nan"), "missing or infinite"),
        ([[1, 0.5], [0.5, 1]], "2 x 2 numbers"),
        ([1, 0.5, 0.5], "found 3 numbers"),
        ([[1, 0.5, 0], [0.4, 1, 0], [0, 0, 1]], "not symmetric"),
        ([[2, 0, 0], [0, 1, 0], [0, 0, 1]], "diagonal"),
        ([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]], "cannot occur together"),
        ("high", "not made of numbers"),
        ([[1, 0], [0]], "not made of numbers"),
    ],
)
def test_impossible_correlations_are_refused(wrong, found):
    with pytest.raises(ValueError, match=f"severity_correlation: expected .* 3 x 3 .*{found}"):
        severity_correlation_matrix(wrong, 3)
