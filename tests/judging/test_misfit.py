"""Distance of covariances, where it is known."""

import numpy as np
import pytest

from rindices.core import inference
from rindices.core.train import TrainingPeople
from rindices.judging.agreement_and_misfit import Misfit, covariances, misfit, squared_distance
from tests.core import plain


def people(rng, n_people, factors):
    """Return scaled brains whose variances are known, in sd of controls."""
    return 1 + 0.1 * np.sqrt(factors) * rng.standard_normal((n_people, len(factors)))


@pytest.mark.parametrize(("factors", "expected"), [(np.ones(4), 0.0), (np.array([1, 1.5, 1, 2]), 0.5**2 + 1.0**2)])
def test_distance_is_without_bias(factors, expected):
    rng = np.random.default_rng(0)
    samples = [(people(rng, 300, factors), people(rng, 1000, np.ones(4))) for _ in range(100)]
    values = [squared_distance(*map(covariances, pair)) for pair in samples]
    error = np.std(values, ddof=1) / 10
    assert error < 0.05
    assert abs(np.mean(values) - expected) < 3 * error + 0.01 * expected  # means of people are estimated, too


def test_each_repetition_is_compared_with_the_patients_as_the_discriminator_sees_them(monkeypatch):
    rng = np.random.default_rng(0)
    made = iter([people(rng, 4000, np.array([4, 2])), people(rng, 4000, np.array([4, 6]))])
    monkeypatch.setattr(inference, "synthesise", lambda *_: next(made)[None])
    models = plain.stacked([plain.random_parameters(2, 2, seed) for seed in (0, 1)])
    cohort = TrainingPeople(np.ones((50, 2)), people(rng, 4000, np.array([4, 2])), np.diag([0.5, 1.0]))
    found = misfit(models, np.tile(np.eye(2), (2, 1, 1)), cohort, "additive", 0)
    np.testing.assert_allclose(found.distances, [0, 4**2], atol=1.5)


def test_one_is_clearly_above_another_by_standard_errors_of_their_logarithms():
    far, near = Misfit(np.exp([4.0, 5.0, 6.0])), Misfit(np.exp([2.0, 2.1, 0.2, -3.0]))  # below 1 is chance
    assert (far.value, near.value) == pytest.approx((np.exp(5), np.exp((2 + 2.1 + 0.2 + 0) / 4)))
    at = (5 - (2 + 2.1 + 0.2 + 0) / 4) / np.sqrt(np.var([4, 5, 6], ddof=1) / 3 + np.var([2, 2.1, 0.2, 0], ddof=1) / 4)
    assert [far.is_clearly_above(near, factor * at) for factor in (0.99, 1.01)] == [True, False]
    assert not near.is_clearly_above(far, 0)
    assert not far.is_clearly_above(far, 0)
