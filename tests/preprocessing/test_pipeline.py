"""All corrections in sequence, scaling and whitening by the controls, and missing regions."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import cholesky
from sklearn.covariance import ledoit_wolf
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from threadpoolctl import ThreadpoolController, threadpool_limits

from rindices import SurrealGAN, simulate_cohort
from rindices.judging.selection import sweep
from rindices.judging.study import training_set
from rindices.preprocessing import (
    UNCORRECTED,
    ControlScaler,
    CovariateResidualizer,
    HeadSize,
    Preprocessing,
    SiteHarmonizer,
    missing,
    whitening_matrix,
)
from rindices.preprocessing.missing import Population, fill_training
from rindices.preprocessing.pipeline import arrays_of, describe, restore
from rindices.presets import Correction, linear
from rindices.training.chunks import Point
from rindices.training.execution import Execution, Memory
from tests.refusal import refused_with

EVERYTHING = Correction(smooth=["age"], interactions=[("age", "sex")], proportion="head", site="site")


@pytest.fixture
def table(covariates):
    more = pd.concat([covariates, covariates.assign(age=covariates["age"] - 3)], ignore_index=True)
    return more.assign(sex=np.random.default_rng(3).choice(["F", "M"], 120))


@pytest.fixture
def regions(volumes):
    return np.concatenate([volumes, volumes]) + np.random.default_rng(4).normal(0, 20, (120, 4))


@pytest.fixture
def everything(regions, table):
    return Preprocessing.fit(regions, table, EVERYTHING)


def restored(fitted):
    """Return preprocessing after a round trip through the contents of a model file."""
    arrays = arrays_of(fitted)
    return restore(describe(fitted), lambda name, shape: arrays[name].reshape(shape), len(fitted.scaler.mean))


def test_steps_follow_each_other(regions, table):
    fitted, others = Preprocessing.fit(regions[:90], table[:90], EVERYTHING), table[["age", "sex"]]
    curves = {"smooth": ["age"], "interactions": [("age", "sex")]}
    values = HeadSize.fit(table[:90], "head").transform(regions, table)
    sites = SiteHarmonizer.fit(values[:90], table[["age", "site", "sex"]][:90], "site", **curves)
    values = sites.transform(values, table)
    values = CovariateResidualizer.fit(values[:90], others[:90], **curves).transform(values, others)
    expected = ControlScaler.fit(values[:90]).transform(values)
    np.testing.assert_allclose(fitted.transform(regions, table), expected, rtol=1e-12)


def test_covariates_with_another_role_are_not_residualised(regions, table):
    fitted = Preprocessing.fit(regions, table, Correction(proportion="head", site="site"))
    assert [known.name for known in fitted.residualizer.covariates] == ["age", "sex"]
    assert sorted(fitted.covariates) == ["age", "head", "sex", "site"]
    only = Preprocessing.fit(regions, table[["head", "site"]], Correction(proportion="head", site="site"))
    assert (only.residualizer, only.harmonizer.kept) == (None, None)


def test_controls_are_left_without_age_or_site(regions, table, everything):
    made = everything.transform(regions, table)
    assert np.abs(np.corrcoef(made.T, table["age"])[-1, :-1]).max() < 1e-9
    assert np.abs(pd.DataFrame(made).groupby(table["site"].to_numpy()).mean() - 1).to_numpy().max() < 0.01


@pytest.mark.parametrize(
    "correction",
    [
        "no covariates",
        None,
        Correction(smooth=["age", "head"]),
        Correction(interactions=[("age", "site"), ("sex", "site")]),
        Correction(proportion="head"),
        Correction(site="site"),
        EVERYTHING,
    ],
)
def test_there_and_back_through_everything(regions, table, correction):
    if correction == "no covariates":
        table, correction = None, None
    fitted = Preprocessing.fit(regions[:90], None if table is None else table[:90], correction)
    there = fitted.transform(regions, table)
    np.testing.assert_allclose(there[:90].mean(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(there[:90].std(axis=0), 0.1, rtol=1e-11)
    np.testing.assert_allclose(fitted.inverse_transform(there, table), regions, rtol=1e-12)
    again = restored(fitted)
    np.testing.assert_array_equal(again.transform(regions, table), there)
    np.testing.assert_array_equal(again.inverse_transform(there, table), fitted.inverse_transform(there, table))


def test_without_a_correction_effects_are_lines(regions, table):
    plain, empty = (Preprocessing.fit(regions, table, correction) for correction in (None, Correction()))
    np.testing.assert_array_equal(plain.transform(regions, table), empty.transform(regions, table))
    assert all(known.knots is None for known in plain.residualizer.covariates)


def test_an_uncorrected_site_keeps_its_shift(regions, table):
    fitted = Preprocessing.fit(regions, table, Correction(site="site"))
    unknown = fitted.leave_new_sites(table.assign(site="nowhere"))
    assert (unknown["site"] == UNCORRECTED).all()
    pd.testing.assert_frame_equal(Preprocessing.fit(regions, table).leave_new_sites(table), table)
    shifted = fitted.transform(regions + 10, unknown) - fitted.transform(regions, unknown)
    np.testing.assert_allclose(shifted, np.broadcast_to(1 / fitted.scaler.sd, shifted.shape), rtol=1e-9)


@pytest.mark.parametrize(
    ("correction", "message"),
    [
        (Correction(smooth=["Age"]), r"smooth\b.*'Age', which is not a covariate. Did you mean 'age'\?\n.*age, site"),
        (Correction(interactions=[("age", "icv")]), r"interactions\b.*'icv', which is not a covariate"),
        (Correction(proportion="icv"), r"proportion\b.*'icv'"),
        (Correction(site="scanner"), r"site\b.*'scanner'"),
        (Correction(smooth=["head"], proportion="head"), r"'head' cannot .* both \W*smooth\b.* and \W*proportion\b"),
        (
            Correction(interactions=[("age", "site")], site="site"),
            r"'site' cannot .* both \W*interactions\b.* and \W*site\b",
        ),
        (Correction(smooth=["sex"]), r"smooth\b.*'sex', which contains text"),
        (Correction(proportion="sex"), r"proportion\b.*'sex', which contains text"),
        (Correction(site="site"), r"site\b.*'site', which is not a covariate.\nThe covariates are: none"),
    ],
)
def test_corrections_that_do_not_fit_the_table_are_refused(regions, table, correction, message):
    refused_with(
        message,
        Preprocessing.fit,
        regions,
        None if "are: none" in message else table,
        correction,
        error=ValueError,
    )


def test_the_person_of_a_head_without_size_is_that_of_the_whole_table(regions, table):
    table.loc[77, "head"] = 0.0
    controls, correction = np.arange(120) > 40, Correction(proportion="head")
    refused_with(
        "which must be positive but is 0 for person 77",
        Preprocessing.fit,
        regions[controls],
        table[controls],
        correction,
        error=ValueError,
    )


def test_every_covariate_is_needed(regions, table, everything):
    for given, told in (
        *(
            (table.drop(columns=name), f"Covariate '{name}' is missing, but the model")
            for name in ("head", "site", "age")
        ),
        (None, "trained with the covariates age, sex, head, site, but the covariates provided are: none"),
    ):
        refused_with(told, everything.transform, regions, given, error=ValueError)


# What a model file may hold


@pytest.mark.parametrize(
    "change",
    [
        {"covariates": [["age", None, [1.0, 2.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, [1.0, 3.0, 2.0, 4.0, 5.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, [1.0, 2.0, 3.0, 4.0, float("nan")]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, "text"], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", ["a", "b"], [1.0, 2.0, 3.0, 4.0, 5.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [[3, None, None], ["sex", ["F", "M"], None]]},
        {"covariates": 3},
        {"interactions": [["age", "head"]]},
        {"interactions": [["age"]]},
        {"interactions": [["age", None]]},
        {"head_size": ["head", 0.0]},
        {"head_size": ["head", float("nan")]},
        {"head_size": "head"},
        {"site": ["site", ["A", "A", "B"]]},
        {"site": ["site", [1, 2, 3]]},
        {"site": ["site"]},
        {"site": 3},
    ],
)
def test_descriptions_that_make_no_sense_are_refused(everything, change):
    arrays = {(name, array.shape): array for name, array in arrays_of(everything).items()}
    with pytest.raises((ValueError, TypeError, KeyError)):
        restore(describe(everything) | change, lambda *name_and_shape: arrays[name_and_shape], 4)


@pytest.mark.parametrize("name", ["site.sd", "site.scales"])
def test_scales_that_are_not_positive_are_refused(everything, name):
    arrays = arrays_of(everything) | {name: 0 * arrays_of(everything)[name]}
    refused_with(
        f"{name} should be above 0", restore, describe(everything), lambda name, _: arrays[name], 4, error=ValueError
    )


# Scaling


def test_scaling_is_relative_to_controls():
    found = ControlScaler.fit(np.array([[10.0, 1.0], [30.0, 3.0]])).transform(np.array([[40.0, 0.0]]))
    np.testing.assert_allclose(found, [[1.2, 0.8]])


def test_a_region_without_variance_in_a_fold_of_controls_tells_nobody_apart():
    scaler = ControlScaler.fit(np.array([[0.0, 1.0], [0.0, 3.0]]))
    scaled = scaler.transform(np.array([[8.1, 2.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(scaled, np.ones((2, 2)))
    np.testing.assert_array_equal(scaler.inverse_transform(scaled), [[0.0, 2.0], [0.0, 2.0]])


# Whitening


def correlated(n_people, n_regions=6):
    rng = np.random.default_rng(4)
    mixing = rng.normal(size=(n_regions, n_regions))
    raw = rng.normal(size=(n_people, n_regions)) @ mixing
    return ControlScaler.fit(raw).transform(raw)


def test_whitening_decorrelates_many_controls():
    controls = correlated(20_000)
    assert np.abs(np.cov(controls.T) / 0.01 - np.eye(6)).max() > 0.3
    white = 1 + (controls - 1) @ whitening_matrix(controls, 1.0)
    np.testing.assert_allclose(np.cov(white.T) / 0.01, np.eye(6), atol=0.05)


def test_whitening_is_symmetric_and_positive_and_a_weaker_one_a_mixture():
    full, weaker, none = (whitening_matrix(correlated(100), strength) for strength in (1.0, 0.3, 0.0))
    np.testing.assert_allclose(full, full.T)
    assert np.linalg.eigvalsh(full).min() > 0
    np.testing.assert_allclose(weaker, 0.3 * full + 0.7 * np.eye(6))
    assert none is None


def test_fewer_controls_than_regions_can_be_whitened():
    matrix = whitening_matrix(correlated(10, n_regions=25), 1.0)
    assert np.isfinite(matrix).all()
    assert np.linalg.cond(matrix) < 100


# Head size


HEADS = pd.DataFrame({"icv": [1200.0, 1500.0, 1800.0]})


def test_regions_become_a_proportion_of_the_average_head_of_controls():
    fitted, volumes = HeadSize.fit(HEADS, "icv"), np.array([[12.0, 6.0], [30.0, 7.0], [18.0, 9.0]])
    made = fitted.transform(volumes, HEADS)
    np.testing.assert_allclose(made, volumes / HEADS.to_numpy() * 1500)
    np.testing.assert_allclose(fitted.inverse_transform(made, HEADS), volumes)
    of_two = HeadSize.fit(HEADS[:2], "icv")
    np.testing.assert_allclose(of_two.transform(np.array([[18.0]]), HEADS[2:]), [[18 * 1350 / 1800]])


@pytest.mark.parametrize("size", [0.0, -3.0])
def test_heads_without_size_are_refused(size):
    bad, fitted = HEADS.assign(icv=[1200.0, size, 1800.0]), HeadSize.fit(HEADS, "icv")
    told = rf"divided by 'icv', which must be positive but is {size:.0f} for person 1 \(1 person in all"
    refused_with(told, HeadSize.fit, bad, "icv", error=ValueError)
    refused_with(told, fitted.transform, np.ones((3, 1)), bad, error=ValueError)


# Missing regions: against the textbook conditional normal, and in people whose values are known


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
    np.testing.assert_allclose(draws[:, gaps].mean(axis=0), expected)  # draws come in symmetric pairs
    np.testing.assert_allclose(np.cov(draws[:, gaps].T), around, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("n_gaps", [1, 3, 5])
def test_few_draws_vary_as_many_would_whatever_is_read_of_them(covariance, n_gaps):
    """People with the same gaps share random numbers, whose errors would affect all of them."""
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
    """The two draws lie on either side of the expected value: three times as far where the surprise is 3."""
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
        assert abs(np.nanmean(errors[group])) < 0.2  # the groups differ by 3
        assert 0.5 < np.nanstd(errors[group]) < 0.9  # the difference of two draws with sd 0.5
    assert abs(np.nanmean(errors[age > 70])) < 0.2


def test_filled_cells_do_not_know_the_group():
    """Without a group difference, a rule learned from imputed people cannot classify others."""
    rng, found = np.random.default_rng(6), []
    for seed in range(6):
        people = rng.normal(size=(120, 30)) + rng.normal(size=(120, 1))
        people[rng.random(people.shape) < 0.25] = np.nan
        filled, patient = fill_training(people, None, None, seed)[0], np.arange(120) >= 60
        found.append(cross_val_score(LinearDiscriminantAnalysis(), filled, patient, cv=5, scoring="roc_auc").mean())
    assert abs(np.mean(found) - 0.5) < 0.06  # imputation by group would give 0.68


def test_filled_controls_vary_as_new_people_do_along_what_was_learned_from_them():
    """Simulated brains and discriminants of three patterns stand in for networks."""
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
    """Return the sd of people along discriminants learned without them, relative to that of new people."""
    fold, found = np.arange(len(people)) % 10, np.empty((len(people), len(changes)))

    def along(others, who):
        weights = np.linalg.solve(ledoit_wolf(others)[0], changes.T)
        return who @ (weights / (changes @ weights).diagonal())

    for one in range(10):
        found[fold == one] = along(people[fold != one], people[fold == one])
    return (found.std(axis=0) / along(people, new).std(axis=0)).mean()


def test_repetitions_learn_from_draws_of_their_own():
    """Measured values are the same for all and imputed ones differ; each chunk trains on its own draw."""
    rng = np.random.default_rng(8)
    people = rng.normal(10, 1, (60, 6)) + rng.normal(size=(60, 1))
    gaps = np.arange(6) == rng.integers(20, size=(60, 1))  # one region in some people
    model = SurrealGAN(2, n_repetitions=3, random_state=0)
    study = training_set(model, linear(), np.where(gaps, np.nan, people), np.arange(60) >= 30).study
    draws = [np.vstack(study.people(repetition)[:2]) for repetition in range(3)]
    for other in draws[1:]:
        np.testing.assert_array_equal(other == draws[0], ~gaps)
    store = Memory()
    sweep(study, [Point(2, 0.8)], 3, Execution(store, models_per_chunk=3))
    assert {chunk.repetition for chunk in store} == {0, 1, 2}  # a set, as chunks end in any order
    assert len(training_set(model, linear(), people, np.arange(60) >= 30).study.redrawn) == 0


def test_gaps_of_a_large_table_are_filled_by_one_thread_and_its_draws_are_not_copied(monkeypatch):
    """A person's matrices are tiny, so several threads wait for each other: it took fifteen times as long."""
    rng, threads, libraries = np.random.default_rng(5), set(), ThreadpoolController()

    def counted(precision):
        threads.update(one["num_threads"] for one in libraries.info() if one["user_api"] == "blas")
        return cholesky(precision)

    monkeypatch.setattr(missing, "cholesky", counted)
    people = rng.standard_normal((1500, 60))
    people[::150, 3] = np.nan
    with threadpool_limits(2, user_api="blas"):
        tracemalloc.start()
        drawn = missing.fill_training(people, None, None, 0)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert threads == {1}
    assert highest < 2 * drawn.nbytes


def test_people_of_different_folds_are_drawn_independently():
    """Regions are independent here, so a drawn cell is pure noise."""
    rng, seed = np.random.default_rng(0), 3
    people = rng.normal(size=(900, N_REGIONS))
    people[rng.random(900) < 0.3, -1] = np.nan
    drawn, gap = missing._filled(people, seed, 1)[0, :, -1], np.isnan(people[:, -1])
    fold = np.random.default_rng([seed, 900]).permutation(900) % missing._FOLDS
    first, second = (np.flatnonzero(fold == one) for one in (0, 1))
    both = gap[first] & gap[second]
    assert both.sum() > 20
    assert abs(np.corrcoef(drawn[first[both]], drawn[second[both]])[0, 1]) < 0.5


def test_nobody_is_filled_in_by_a_population_that_they_belong_to(monkeypatch):
    people, with_gaps, fill = np.random.default_rng(0).normal(size=(30, 4)), Population.with_gaps, Population.fill
    people[::3, 3] = np.nan
    learned, filled = [], []
    monkeypatch.setattr(Population, "with_gaps", lambda others: learned.append(others[:, 0]) or with_gaps(others))
    monkeypatch.setattr(Population, "fill", lambda *given: filled.append(given[1][:, 0]) or fill(*given))
    missing._filled(people, seed=0, n_draws=2)
    np.testing.assert_array_equal(np.sort(np.concatenate(filled)), np.sort(people[:, 0]))
    for others, who in zip(learned, filled, strict=True):
        assert not np.isin(who, others).any()
