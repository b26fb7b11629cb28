import numpy as np
import pytest
from scipy import stats

from rindices.analysis.statistics import (
    basis,
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


def test_residuals_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    given, values = rng.standard_normal((40, 2)), 1e3 + rng.standard_normal((40, 2))
    values[:, 1] = 7 - 3 * given[:, 0]
    design = np.column_stack([np.ones(40), given])
    expected = values[:, 0] - design @ np.linalg.lstsq(design, values[:, 0])[0]
    found = residuals(values, basis(given))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)
    assert (found[:, 1] == 0).all()
