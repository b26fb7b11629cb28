import numpy as np
import pytest
from scipy.stats import kstest

from rindices.simulate import simulate_cohort

UNLIKE = [[1, 0.7, -0.2], [0.7, 1, 0.1], [-0.2, 0.1, 1]]


@pytest.mark.parametrize(("asked", "expected"), [(None, np.eye(3)), (0.5, 0.5 + 0.5 * np.eye(3)), (UNLIKE, UNLIKE)])
def test_severities_are_uniform_and_correlated_as_asked(asked, expected):
    truth = simulate_cohort(n_controls=1, n_patients=20_000, severity_correlation=asked).truth
    severities = truth[["s1", "s2", "s3"]].to_numpy().T
    assert min(kstest(column, "uniform").pvalue for column in severities) > 0.001
    ranks = 6 / np.pi * np.arcsin(np.array(expected) / 2)  # of two uniforms joined by a Gaussian copula
    assert np.abs(np.corrcoef(severities) - ranks).max() < 0.03
