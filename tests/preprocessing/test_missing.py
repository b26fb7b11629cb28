"""Missing regions: against the textbook's conditional normal, and in people whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

from rindices import SurrealGAN, simulate_cohort
from rindices.judging.selection import sweep
from rindices.judging.study import training_set
from rindices.preprocessing import missing
from rindices.preprocessing.missing import Population, fill_training
from rindices.presets import linear
from rindices.training.chunks import Point
from rindices.training.execution import Execution, Memory

N_REGIONS = 6


@pytest.fixture(scope="module")
def covariance():
    factor = np.random.default_rng(0).normal(size=(N_REGIONS, N_REGIONS))
    return factor @ factor.T + np.eye(N_REGIONS)


def test_draws_have_the_mean_and_covariance_of_the_conditional_normal(covariance):
    mean, person = np.arange(N_REGIONS, dtype=float), np.array([[1.0, np.nan, 3.0, 2.0, np.nan, 6.0]])
    gaps = np.isnan(person[0])
    draws = Population(mean, np.linalg.inv(covariance)).fill(person, 40_000)[:, 0]
    np.testing.assert_array_equal(draws[:, ~gaps], np.broadcast_to(person[0, ~gaps], (len(draws), 4)))
    weights = covariance[np.ix_(gaps, ~gaps)] @ np.linalg.inv(covariance[np.ix_(~gaps, ~gaps)])
    expected = mean[gaps] + weights @ (person[0, ~gaps] - mean[~gaps])
    around = covariance[np.ix_(gaps, gaps)] - weights @ covariance[np.ix_(~gaps, gaps)]
    np.testing.assert_allclose(draws[:, gaps].mean(axis=0), expected)  # draws come in pairs
    np.testing.assert_allclose(np.cov(draws[:, gaps].T), around, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("n_gaps", [1, 3, 5])
def test_few_draws_vary_as_many_would_whatever_is_read_of_them(covariance, n_gaps):
    """All people with such gaps have the same random numbers, which would be wrong about all of them."""
    person, weights = np.zeros((1, N_REGIONS)), np.random.default_rng(6).normal(size=n_gaps)
    person[:, :n_gaps] = np.nan
    precision = np.linalg.inv(covariance)
    read = Population(np.zeros(N_REGIONS), precision).fill(person, 20, spread=1.5)[:, 0, :n_gaps] @ weights
    variance = 1.5**2 * weights @ np.linalg.inv(precision[:n_gaps, :n_gaps]) @ weights
    np.testing.assert_allclose((read**2).mean(), variance)


def test_people_do_not_depend_on_others_in_the_table(covariance):
    population = Population(np.zeros(N_REGIONS), np.linalg.inv(covariance))
    people = np.random.default_rng(1).normal(size=(5, N_REGIONS))
    people[[0, 3, 4], [1, 2, 5]] = np.nan
    np.testing.assert_array_equal(population.fill(people, 4)[:, 3:], population.fill(people[3:], 4))


def test_surprise_is_how_far_hidden_regions_lie_from_what_others_let_expect(covariance):
    precision, people = np.linalg.inv(covariance), np.random.default_rng(5).normal(size=(3, N_REGIONS))
    squares = [(precision @ person)[k] ** 2 / precision[k, k] for k, person in enumerate(people)]  # one hidden each
    found = Population(np.zeros(N_REGIONS), precision).surprise(people, np.eye(3, N_REGIONS, dtype=bool))
    assert found == pytest.approx(np.sqrt(np.mean([1.0, *squares])))


def test_a_population_is_found_in_spite_of_gaps(covariance):
    rng = np.random.default_rng(2)
    people = rng.multivariate_normal(np.arange(N_REGIONS), covariance, 4000)
    people[rng.random(people.shape) < 0.15] = np.nan
    found = Population.with_gaps(people)
    np.testing.assert_allclose(found.mean, np.arange(N_REGIONS), atol=0.2)
    np.testing.assert_allclose(np.linalg.inv(found.precision), covariance, rtol=0.1, atol=0.3)


def test_draws_of_training_people_are_never_nearer_than_the_population_says(monkeypatch):
    """Two draws lie on both sides of what is expected: three times as far where hidden regions do."""
    people, drawn = np.random.default_rng(4).normal(size=(60, N_REGIONS)), {}
    people[::7, 2] = np.nan
    for surprise in (0.2, 1.0, 3.0):
        monkeypatch.setattr(Population, "surprise", lambda *_, told=surprise: told)
        drawn[surprise] = missing._filled(people, seed=0, n_draws=2)
    np.testing.assert_array_equal(drawn[0.2], drawn[1.0])
    near, far = (drawn[surprise] - drawn[1.0].mean(axis=0) for surprise in (1.0, 3.0))
    np.testing.assert_allclose(far, 3 * near, atol=1e-12)


def test_training_people_are_filled_in_by_other_regions_and_covariates():
    rng = np.random.default_rng(3)
    patient, age = np.arange(400) % 2 == 1, rng.uniform(50, 80, 400)
    truth = 10 - 0.1 * (age - 65)[:, None] - 3 * patient[:, None] + 0.5 * rng.standard_normal((400, 8))
    gaps = rng.random(truth.shape) < 0.1
    filled = fill_training(np.where(gaps, np.nan, truth), pd.DataFrame({"age": age}), None, seed=0)[0]
    np.testing.assert_array_equal(filled[~gaps], truth[~gaps])
    errors = np.where(gaps, filled - truth, np.nan)
    for group in (patient, ~patient):
        assert abs(np.nanmean(errors[group])) < 0.2  # of a difference of 3
        assert 0.5 < np.nanstd(errors[group]) < 0.9  # a draw of sd 0.5 against another
    assert abs(np.nanmean(errors[age > 70])) < 0.2


def test_filled_cells_do_not_know_the_group():
    """Without a difference between the groups, no rule that is learned from filled people tells others apart."""
    rng, found = np.random.default_rng(6), []
    for seed in range(6):
        people = rng.normal(size=(120, 30)) + rng.normal(size=(120, 1))
        people[rng.random(people.shape) < 0.25] = np.nan
        filled, patient = fill_training(people, None, None, seed)[0], np.arange(120) >= 60
        found.append(cross_val_score(LinearDiscriminantAnalysis(), filled, patient, cv=5, scoring="roc_auc").mean())
    assert abs(np.mean(found) - 0.5) < 0.06  # filled by group, it is 0.68


def test_filled_controls_vary_as_new_people_do_along_what_was_learned_from_them():
    """Brains, and discriminants of three patterns; without networks."""
    cohort = simulate_cohort("basic", n_controls=650, n_patients=40, seed=5)
    regions = cohort.table.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    patient = (cohort.table["diagnosis"] == "PT").to_numpy()
    regions = regions / regions[~patient].std()
    controls, new = np.split(regions[~patient].to_numpy(), [150])
    changes = np.array([regions.columns.isin(of) for of in cohort.patterns.values()]) * controls.mean(axis=0)
    gaps = np.random.default_rng(5).random((190, regions.shape[1])) < 0.2
    filled = fill_training(np.where(gaps, np.nan, np.vstack([controls, regions[patient]])), None, None, seed=5)[0, :150]
    after, complete = (_scatter(who, changes, new) for who in (filled, controls))
    assert abs(after / complete - 1) < 0.15


def _scatter(people, changes, new):
    """How far people lie along discriminants that were learned without them, relative to new people."""
    fold, found = np.arange(len(people)) % 10, np.empty((len(people), len(changes)))

    def along(others, who):
        weights = np.linalg.solve(ledoit_wolf(others)[0], changes.T)
        return who @ (weights / (changes @ weights).diagonal())

    for one in range(10):
        found[fold == one] = along(people[fold != one], people[fold == one])
    return (found.std(axis=0) / along(people, new).std(axis=0)).mean()


def test_repetitions_learn_from_draws_of_their_own():
    """What was measured is the same for all, and what was missing differs; each chunk trains on its own draw."""
    rng = np.random.default_rng(8)
    people = rng.normal(10, 1, (60, 6)) + rng.normal(size=(60, 1))
    gaps = np.arange(6) == rng.integers(20, size=(60, 1))  # one region of some people
    model = SurrealGAN(2, n_repetitions=3, random_state=0)
    study = training_set(model, linear(), np.where(gaps, np.nan, people), np.arange(60) >= 30).study
    draws = [np.vstack(study.people(0, repetition)[:2]) for repetition in range(3)]
    for other in draws[1:]:
        np.testing.assert_array_equal(other == draws[0], ~gaps)
    store = Memory()
    sweep(study, [Point(2, 0.8)], 3, Execution(store, models_per_chunk=3))
    assert {chunk.repetition for chunk in store} == {0, 1, 2}  # in the order in which they end
    assert len(training_set(model, linear(), people, np.arange(60) >= 30).study.redrawn) == 0


def test_people_of_different_folds_are_drawn_independently():
    """Regions are independent here, so that a drawn cell is its noise alone."""
    rng, seed = np.random.default_rng(0), 3
    people = rng.normal(size=(900, N_REGIONS))
    people[rng.random(900) < 0.3, -1] = np.nan
    drawn, gap = missing._filled(people, seed, 1)[0, :, -1], np.isnan(people[:, -1])
    fold = np.random.default_rng([seed, 900]).permutation(900) % missing._FOLDS
    first, second = (np.flatnonzero(fold == one) for one in (0, 1))
    both = gap[first] & gap[second]
    assert both.sum() > 20
    assert abs(np.corrcoef(drawn[first[both]], drawn[second[both]])[0, 1]) < 0.5
