"""Distance of covariances, where it is known."""

import numpy as np
import pytest

from rindices.core.train import People
from rindices.judging import misfit as module
from rindices.judging.misfit import Misfit, misfit
from tests import made_up
from tests.core import plain

N_REGIONS, N_PATIENTS = 4, 300
MODELS = plain.stacked([plain.random_parameters(N_REGIONS, 2, seed) for seed in (0, 1)])
CORRELATIONS = np.tile(np.eye(2), (2, 1, 1))


def distance(monkeypatch, seed, factors):
    """Return the misfit of models that make people like the controls, to patients with other variances."""
    rng = np.random.default_rng(seed)
    patients = 1 + 0.1 * np.sqrt(factors) * rng.standard_normal((N_PATIENTS, N_REGIONS))

    def synthesise(model, brains, z, composition):
        return 1 + 0.1 * rng.standard_normal((1, *brains.shape))

    monkeypatch.setattr(module.inference, "synthesise", synthesise)
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


def test_errors_are_those_of_repetitions_and_of_patients():
    """By the jackknife over blocks, and the variance over repetitions, each written out."""
    rng = np.random.default_rng(0)
    one, other = (Misfit(rng.normal(1, 0.3, (5, 10, 10))) for _ in range(2))

    def value(products, blocks):
        return np.mean([products[i, j] for i in blocks for j in blocks if i != j])

    left = [[block for block in range(10) if block != out] for out in range(10)]
    means = [of.products.mean(axis=0) for of in (one, other)]
    differences = np.array([value(means[0], blocks) - value(means[1], blocks) for blocks in left])
    patients = 9 / 10 * ((differences - differences.mean()) ** 2).sum()
    singles = [[value(products, range(10)) for products in of.products] for of in (one, other)]
    error = np.sqrt(patients + sum(np.var(of, ddof=1) / 5 for of in singles))
    assert one.value == pytest.approx(value(means[0], range(10)))
    first, second = (one, other) if one.value > other.value else (other, one)
    at = (first.value - second.value) / error
    assert first.is_clearly_above(second, 0.99 * at)
    assert not first.is_clearly_above(second, 1.01 * at)


def test_made_up_misfits_have_the_error_they_are_told():
    far, near = made_up.misfit(1.15), made_up.misfit(1.0)
    assert (far.value, far.error_of_repetitions(near)) == pytest.approx((1.15, np.sqrt(2) * 0.05))
