"""Strangers (in a world where disease moves people along two directions), errors of sites, and consensus."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import mahalanobis

from rindices.judging import agreement_and_misfit as agreement
from rindices.preprocessing import ControlScaler
from rindices.preprocessing.covariates import leverage_of, without_effects
from rindices.preprocessing.missing import Population
from rindices.scoring import consensus_and_person
from rindices.scoring.consensus_and_person import (
    DRAWS,
    Familiar,
    aligned,
    find_consensus,
    fit_familiar,
    score_people,
    unknown_of,
)
from rindices.scoring.intervals import Healthy
from rindices.scoring.severity_and_reference import leave_one_out
from tests.core import plain
from tests.judging.test_agreement import compare, noisy, severities

N_REGIONS = 30
MAPS = np.repeat(np.eye(2), N_REGIONS // 2, axis=1) * -0.5


def brains(n_people, seed):
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((n_people, 4)) @ np.random.default_rng(9).standard_normal((4, N_REGIONS))
    return 1 + 0.05 * shared + 0.05 * rng.standard_normal((n_people, N_REGIONS))


def familiar_of(healthy, fitted, design):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(consensus_and_person, "make_people", lambda _, healthy, z, *__: healthy + z @ MAPS)
        models = plain.stacked([plain.random_parameters(N_REGIONS, 2, seed) for seed in range(3)])
        return fit_familiar(
            models, Healthy(healthy, np.ones((3, len(healthy)), bool)), fitted, design, "additive", None, seed=1
        )


@pytest.fixture(scope="module")
def familiar():
    return familiar_of(brains(200, 0), brains(200, 0), None)


def test_healthy_people_and_patients_are_no_strangers_and_mixed_up_regions_are(familiar):
    fresh, severities = brains(2000, 1), np.random.default_rng(2).uniform(size=(2000, 2))
    assert 0.002 < (familiar.strangeness(fresh) > 1).mean() < 0.05
    assert (familiar.strangeness(fresh + severities @ MAPS) > 1).mean() < 0.05
    assert (familiar.strangeness(fresh[:, np.random.default_rng(3).permutation(N_REGIONS)]) > 1).mean() > 0.7
    plain_distance = Population.of(brains(200, 0)).distances(fresh + severities @ MAPS)
    assert (plain_distance > np.quantile(Population.of(brains(200, 0)).distances(fresh), 0.98)).mean() > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_few_controls_with_many_covariates_do_not_make_strangers_of_healthy_people(seed):
    """A held-out control must not influence the covariate effects estimated from the others."""
    n_controls, design = 40, np.random.default_rng(seed).standard_normal((1040, 16))
    design[:, 0], fresh = 1, np.arange(1040) >= n_controls
    residuals = without_effects(brains(1040, 10 + seed), design, fresh)
    scaled = ControlScaler.fit(residuals[~fresh]).transform(residuals)
    known = familiar_of(
        leave_one_out(scaled[~fresh], leverage_of(design, fresh)[~fresh]), scaled[~fresh], design[~fresh]
    )
    assert (known.strangeness(scaled[fresh]) > 1).mean() < 0.06
    hidden = np.random.default_rng(seed).random(scaled[fresh].shape) < 0.1
    assert known.surprise[0] == pytest.approx(known.population.surprise(scaled[fresh], hidden), rel=0.25)


def test_strangeness_is_a_distance_after_decorrelation(familiar):
    person, (mean, precision) = brains(1, 4)[0], vars(familiar.population).values()
    logarithm, (usual_mean, usual_sd) = np.log(mahalanobis(person, mean, precision) ** 2 / N_REGIONS), familiar.usual
    np.testing.assert_allclose(
        familiar.strangeness(person[None])[0], np.exp((logarithm - usual_mean - 2.2 * usual_sd) / 2)
    )
    person[7] += 1  # the altered region is the strangest
    assert familiar.strangest(person, 1).tolist() == [7]


def test_regions_that_are_missing_add_nothing(familiar):
    person, (mean, precision) = brains(1, 6), vars(familiar.population).values()
    gaps = np.arange(N_REGIONS)[None] % 7 == 3
    filled, known = familiar.population.fill(np.where(gaps, np.nan, person), 2).mean(axis=0), ~gaps[0]
    covariance = np.linalg.inv(precision)[np.ix_(known, known)]
    square = mahalanobis(person[0, known], mean[known], np.linalg.inv(covariance)) ** 2 / known.sum()
    whole = familiar.strangeness(person)[0] ** 2 / familiar.population.distances(person)[0]
    np.testing.assert_allclose(familiar.strangeness(filled, gaps)[0] ** 2, whole * square)


def test_few_controls_say_nothing_and_who_is_familiar_is_seen_in_the_population_only():
    assert familiar_of(brains(10, 0), brains(10, 0), None) is None
    assert Familiar(Population(np.zeros(2), np.eye(2)), np.zeros(2), np.ones(1)).strangeness(
        np.array([[1.0, 1.0]])
    ).tolist() == [1.0]


def four_regions(harmonizer=None, healthy=None):
    """Return what scoring needs of a model, for four regions with correlations of 0.5."""
    sd = np.array([0.5, 1, 2, 3])
    population = Population(np.zeros(4), np.linalg.inv(np.outer(sd, sd) * (1 + np.eye(4)) / 2))
    return SimpleNamespace(
        models_=None,
        inference="mean",
        familiar_=Familiar(population, np.zeros(2), np.array([1.5])),
        preprocessing_=SimpleNamespace(harmonizer=harmonizer),
        scale_=SimpleNamespace(reference=healthy),
    )


def test_errors_of_a_site_that_was_learned_later_are_those_of_regions_and_of_what_regions_share(monkeypatch):
    """Three people, the first of them from a known site."""
    rng = np.random.default_rng(7)
    values, slopes, r = rng.normal(1, 0.3, (3, 4)), rng.standard_normal((3, 2, 4)), rng.uniform(size=(3, 2))
    healthy, shared, (offsets, scales) = rng.uniform(size=(2, 50)), np.array([0, 0.2, 0.3]), rng.uniform(size=(2, 3, 4))
    made_up = SimpleNamespace(r_indices=lambda *_: np.stack([r, r]), slopes=lambda _, __: slopes[1:])
    monkeypatch.setattr(consensus_and_person, "inference", made_up)
    harmonizer = SimpleNamespace(errors_left=lambda _: (shared, offsets, scales))
    people = SimpleNamespace(values=values, covariates=pd.DataFrame(index=range(3)), gaps=None)
    expected = np.zeros((3, 2))
    for row, pattern in [(1, 0), (1, 1), (2, 0), (2, 1)]:
        alone = slopes[row, pattern] ** 2 @ (0.1**2 * offsets[row] + (values[row] - 1) ** 2 * scales[row])
        away = r[row, pattern] - healthy[pattern].mean()
        together = (shared[row] * healthy[pattern].std()) ** 2 + 0.5**2 * shared[row] ** 2 / 2 * away**2
        expected[row, pattern] = np.sqrt(alone + together)
    np.testing.assert_allclose(score_people(four_regions(harmonizer, healthy), people).more_sd, expected)


def test_regions_that_are_missing_add_the_scatter_of_what_they_are_filled_with(monkeypatch):
    rng, gaps = np.random.default_rng(8), np.array([[False] * 4, [True, False, True, False]])
    values, weights, model = rng.normal(1, 0.3, (2, 4)), rng.standard_normal((3, 4, 2)), four_regions()
    made_up = SimpleNamespace(r_indices=lambda _, brains: np.einsum("pr,mrk->mpk", brains, weights))
    monkeypatch.setattr(consensus_and_person, "inference", made_up)
    found = score_people(model, SimpleNamespace(values=values, covariates=None, gaps=gaps))
    drawn = model.familiar_.population.fill(np.where(gaps, np.nan, values)[1:], DRAWS, spread=1.5)[:, 0]
    filled = drawn @ weights.mean(axis=0)
    np.testing.assert_allclose(found.r_indices, [values[0] @ weights.mean(axis=0), filled.mean(axis=0)])
    np.testing.assert_allclose(found.more_sd, [[0, 0], filled.std(axis=0)])


@pytest.mark.parametrize(
    ("share", "state", "said"),
    [(0.0, "reproducible", 0), (1.0, "reproducible", 1), (1.0, "weak", 1), (1.0, "no difference", 0), (1.0, None, 0)],
)
def test_severities_that_come_from_linear_models_are_said_to_be_too_low_if_patterns_are_found(share, state, said):
    models = plain.stacked([plain.random_parameters(N_REGIONS, 2, seed, linear=True) for seed in range(3)])
    models.linear["change"] |= {"share": np.full(3, share)}
    scale = SimpleNamespace(quantiles=np.zeros(1), reference=np.zeros(1))
    sentences = unknown_of(SimpleNamespace(models_=models, scale_=scale, seed_=0, verdict_=(state, "")))
    assert ["severities are too low" in sentence for sentence in sentences] == [True] * said


def test_medoid_agrees_best_with_the_others():
    members = np.stack([noisy(severities(), sd, seed) for seed, sd in enumerate([0.2, 0.3, 0.05, 0.3])])
    agreements = np.array([[compare(a, b)[0] for b in members] for a in members])
    means, found = (agreements.sum(axis=1) - 1) / 3, find_consensus(members)
    assert found.medoid == means.argmax() == 2
    np.testing.assert_allclose(found.agreement_with_medoid, agreements[2])


def test_outlier_is_left_out_and_the_rest_is_brought_to_one_order():
    orders = np.array([[0, 1, 2], [2, 0, 1], [1, 0, 2], [0, 2, 1]])
    members = np.stack([noisy(severities(), 0.02, seed)[:, order] for seed, order in enumerate(orders)])
    members[1] = severities(seed=7)
    found = find_consensus(members)
    assert (found.kept.tolist(), found.agreement_with_medoid[1] < 0.7) == ([0, 2, 3], True)
    in_order = aligned(members, found)
    assert (in_order.shape, np.abs(in_order - members[found.medoid]).max() < 0.2) == ((3, 60, 3), True)
    alike = np.stack([noisy(severities(200), 0.5, seed) for seed in range(5)])  # all agree weakly, so all are kept
    assert find_consensus(alike).kept.tolist() == [0, 1, 2, 3, 4]


def test_consensus_of_one_and_of_two_members():
    one = find_consensus(severities()[None])
    assert (one.medoid, one.kept.tolist(), one.orders.tolist()) == (0, [0], [[0, 1, 2]])
    two = find_consensus(np.stack([severities(), severities()[:, [1, 2, 0]]]))
    assert (two.medoid, two.kept.tolist(), two.orders.tolist()) == (0, [0, 1], [[0, 1, 2], [2, 0, 1]])
    assert find_consensus(np.stack([severities(), severities(seed=1)])).kept.tolist() == [0, 1]


def test_consensus_takes_pairs_that_are_already_known():
    members = np.stack([noisy(severities(), 0.2, seed) for seed in range(3)])
    pairs = agreement.pairwise(members)
    pairs[..., 0] = [[np.nan, 0.6, 0.7], [0.6, np.nan, 0.9], [0.7, 0.9, np.nan]]
    pairs[0, :, 1:] = 1.0  # correlations do not decide
    assert find_consensus(members, pairs).medoid == 2
