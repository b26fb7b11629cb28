"""Strangers, in a world where disease moves people along two directions."""

import numpy as np
import pytest
from scipy.spatial.distance import mahalanobis

from rindices.preprocessing.missing import Population
from rindices.scoring import consensus_and_person
from rindices.scoring.consensus_and_person import Familiar, fit_familiar
from rindices.scoring.intervals import Healthy
from tests.core import plain

N_REGIONS = 30
MAPS = np.repeat(np.eye(2), N_REGIONS // 2, axis=1) * -0.5


def brains(n_people, seed):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_people, 4)) @ np.random.default_rng(9).standard_normal((4, N_REGIONS))
    return 1 + 0.05 * shared + 0.05 * rng.standard_normal((n_people, N_REGIONS))


@pytest.fixture(scope="module")
def familiar():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(consensus_and_person, "make_people", lambda _, healthy, z, *__: healthy + z @ MAPS)
        models = plain.stacked([plain.random_parameters(N_REGIONS, 2, seed) for seed in range(3)])
        return fit_familiar(models, Healthy(brains(200, 0), np.ones((3, 200), bool)), "additive", None, seed=1)


def test_healthy_people_and_patients_are_no_strangers_and_mixed_up_regions_are(familiar):
    fresh = brains(2000, 1)
    severities = np.random.default_rng(2).uniform(size=(2000, 2))
    assert 0.002 < (familiar.strangeness(fresh) > 1).mean() < 0.05
    assert (familiar.strangeness(fresh + severities @ MAPS) > 1).mean() < 0.05
    mixed = fresh[:, np.random.default_rng(3).permutation(N_REGIONS)]
    assert (familiar.strangeness(mixed) > 1).mean() > 0.7
    plain_distance = Population.of(brains(200, 0)).distances(fresh + severities @ MAPS)
    assert (plain_distance > np.quantile(Population.of(brains(200, 0)).distances(fresh), 0.98)).mean() > 0.5


def test_strangeness_is_a_distance_after_decorrelation(familiar):
    person, (mean, precision) = brains(1, 4)[0], vars(familiar.population).values()
    logarithm = np.log(mahalanobis(person, mean, precision) ** 2 / N_REGIONS)
    usual_mean, usual_sd = familiar.usual
    np.testing.assert_allclose(
        familiar.strangeness(person[None])[0], np.exp((logarithm - usual_mean - 2.2 * usual_sd) / 2)
    )


def test_regions_that_are_missing_add_nothing(familiar):
    person, (mean, precision) = brains(1, 6), vars(familiar.population).values()
    gaps = np.arange(N_REGIONS)[None] % 7 == 3
    filled = familiar.population.fill(np.where(gaps, np.nan, person), 2).mean(axis=0)
    known = ~gaps[0]
    covariance = np.linalg.inv(precision)[np.ix_(known, known)]
    square = mahalanobis(person[0, known], mean[known], np.linalg.inv(covariance)) ** 2 / known.sum()
    whole = familiar.strangeness(person)[0] ** 2 / familiar.population.distances(person)[0]
    np.testing.assert_allclose(familiar.strangeness(filled, gaps)[0] ** 2, whole * square)


def test_the_strangest_region_is_the_one_that_is_wrong(familiar):
    person = brains(1, 5)[0]
    person[7] += 1
    assert familiar.strangest(person, 1).tolist() == [7]


def test_few_controls_say_nothing():
    assert (
        fit_familiar(
            plain.stacked([plain.random_parameters(N_REGIONS, 2, seed) for seed in range(3)]),
            Healthy(brains(10, 0), np.ones((3, 10), bool)),
            "additive",
            None,
            0,
        )
        is None
    )


def test_who_is_familiar_is_seen_in_the_population_only():
    population = Population(np.zeros(2), np.eye(2))
    assert Familiar(population, np.array([0.0, 0.0])).strangeness(np.array([[1.0, 1.0]])).tolist() == [1.0]
