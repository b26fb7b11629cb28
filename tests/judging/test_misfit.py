"""Distance of covariances, where it is known."""

import numpy as np
import pytest

from rindices.core.train import People
from rindices.judging import misfit as module
from rindices.judging.misfit import misfit
from tests.core import plain

N_REGIONS, N_PATIENTS = 4, 300
MODELS = plain.stacked([plain.random_parameters(N_REGIONS, 2, seed) for seed in (0, 1)])
CORRELATIONS = np.tile(np.eye(2), (2, 1, 1))


def distance(monkeypatch, seed, factors):
    """Return the misfit of models that make people like the controls, to patients with other variances."""
    rng = np.random.default_rng(seed)
    patients = 1 + 0.1 * np.sqrt(factors) * rng.standard_normal((N_PATIENTS, N_REGIONS))
    made = 1 + 0.1 * rng.standard_normal((2, 1, 4000, N_REGIONS))
    monkeypatch.setattr(module.inference, "synthesise", lambda *_: made[rng.integers(2)])
    return misfit(MODELS, CORRELATIONS, People(np.ones((50, N_REGIONS)), patients), "additive", seed)


@pytest.mark.parametrize(("factors", "expected"), [(np.ones(4), 0.0), (np.array([1, 1.5, 1, 2]), 0.5**2 + 1.0**2)])
def test_distance_is_without_bias(monkeypatch, factors, expected):
    values = [distance(monkeypatch, seed, factors).value for seed in range(60)]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - expected) < 3 * error + 0.01 * expected  # the mean of patients is estimated, too
    assert error < 0.05


def test_another_covariance_is_clearly_further_and_the_same_is_not(monkeypatch):
    like, unlike = distance(monkeypatch, 0, np.ones(4)), distance(monkeypatch, 0, np.array([1, 1.5, 1, 2]))
    assert unlike.is_clearly_above(like, 2)
    assert not like.is_clearly_above(unlike, 0)
    assert not like.is_clearly_above(like, 0)
    both = [distance(monkeypatch, seed, np.ones(4)) for seed in range(40)]
    above = [one.is_clearly_above(other, 2) for one, other in zip(both[::2], both[1::2], strict=True)]
    assert sum(above) <= 4
