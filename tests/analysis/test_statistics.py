import numpy as np
import pytest
from scipy import stats

from rindices.analysis.statistics import (
    basis,
    false_discovery,
    mean_difference,
    mean_interval,
    residuals,
    share_limits,
)


@pytest.mark.parametrize(("between", "within"), [(2, 27), (4, 395), (2, 49_997)])
def test_limits_of_a_share_invert_the_noncentral_f(between, within):
    size = between + within + 1
    ratio = stats.f.isf(1e-4, between, within) * np.array([1.0, 3.0])
    for shares, tail in zip(share_limits(ratio, between, within), (0.975, 0.025), strict=True):
        found = stats.ncf.cdf(ratio, between, within, size * shares / (1 - shares))
        np.testing.assert_allclose(found, tail, atol=1e-6)
    small = stats.f.ppf([0.01, 0.5, 0.97], between, within)
    low, high = share_limits(small, between, within)
    assert (low == 0).all()
    assert (high > 0).tolist() == [False, True, True]


def test_basis_leaves_out_what_repeats():
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((50, 3))
    repeated = np.column_stack([columns, 1e6 * columns[:, 0] + 5, columns[:, 1] - columns[:, 2], np.full(50, 0.1)])
    found = basis(repeated)
    assert found.shape == (50, 3)
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-12)
    assert basis(np.ones((50, 2))).shape == (50, 0)
    assert basis(np.empty((50, 0))).shape == (50, 0)


def test_residuals_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    given, values = rng.standard_normal((40, 2)), 1e3 + rng.standard_normal((40, 2))
    values[:, 1] = 7 - 3 * given[:, 0]
    design = np.column_stack([np.ones(40), given])
    expected = values[:, 0] - design @ np.linalg.lstsq(design, values[:, 0])[0]
    found = residuals(values, basis(given))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)
    assert (found[:, 1] == 0).all()


def test_means_of_few_values():
    assert np.isnan(mean_interval(np.array([[2.0]]))[1:]).all()
    same = mean_interval(np.array([[2.0], [2.0]]))
    assert (same.mean[0], same.low[0], same.high[0], same.p[0]) == (2, 2, 2, 0)


def test_differences_of_few_values():
    alone, others = np.array([[2.0]]), np.array([[1.0], [1.0]])
    for found in (mean_difference(alone, others), mean_difference(others + 1, others)):
        assert found.mean[0] == 1
        assert np.isnan(found[1:]).all()


def test_false_discovery_leaves_out_what_is_missing():
    p = np.array([0.01, np.nan, 0.04, 0.03])
    np.testing.assert_allclose(false_discovery(p), [0.03, np.nan, 0.04, 0.04])
    assert np.isnan(false_discovery(np.array([np.nan]))).all()
