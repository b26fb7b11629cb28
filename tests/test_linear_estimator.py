"""The linear model alone, on cohorts with a known truth."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import FastICA

from rindices import ContrastiveFactors, SurrealGAN, SurrealGANSearch, linear, simulate_cohort
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.linear import Whitening
from rindices.problems import OutsideTraining
from rindices.training import chunks
from tests.refusal import refused_with


@pytest.fixture(scope="module")
def cohort():
    return simulate_cohort("basic", n_controls=150, n_patients=250, n_patterns=2, seed=4)


@pytest.fixture(scope="module")
def given(cohort):
    table = cohort.table
    return table.iloc[:, 4:], table["diagnosis"] == "PT", table[["age", "sex"]]


@pytest.fixture(scope="module")
def fitted(given):
    return ContrastiveFactors(random_state=0).fit(*given)


def test_it_counts_and_finds_patterns_that_are_there(cohort, given, fitted):
    regions, patient, covariates = given
    assert fitted.spectrum_.p <= 0.05
    assert fitted.n_patterns_ == fitted.spectrum_.found_again == 2
    severities = fitted.transform(regions, covariates)
    assert pattern_concordance(cohort.truth.iloc[:, 1:].to_numpy(), severities[patient]) > 0.85
    assert np.abs(severities[~patient].mean(axis=0)).max() < 0.4 < severities[patient].mean(axis=0).min()
    changed = {name for pattern in cohort.patterns.values() for name in pattern}
    assert (np.diff(np.abs(fitted.changes_).mean(axis=1)) < 0).all()
    strongest = np.abs(fitted.changes_).argmax(axis=1)
    assert {regions.columns[place] for place in strongest} <= changed
    assert (fitted.changes_[range(2), strongest] < 0).all()


def test_number_and_method_can_be_given_and_the_same_seed_repeats(given, fitted):
    asked, again = ContrastiveFactors(3, method="ica", random_state=0).fit(*given), clone(fitted).fit(*given)
    assert (asked.n_patterns_, asked.method_, asked.maps_.shape) == (3, "ica", (3, 128))
    np.testing.assert_array_equal(again.maps_, fitted.maps_)
    assert again.get_feature_names_out().tolist() == ["contrastivefactors0", "contrastivefactors1"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"method": "varimax"}, "'sparse' or 'ica'"), ({"n_patterns": 0}, "n_patterns"), ({"n_patterns": 200}, "few")],
)
def test_what_cannot_be_is_refused(given, options, message):
    refused_with(message, ContrastiveFactors(**options).fit, *given, error=ValueError)


EVERY_ESTIMATOR = pytest.mark.parametrize(
    "model",
    [
        ContrastiveFactors(random_state=0),
        SurrealGAN(2, n_repetitions=2, preset="linear", random_state=0),
        SurrealGANSearch(n_repetitions=2, preset="linear", random_state=0),
    ],
)


@pytest.mark.filterwarnings("error:FastICA did not converge")
@EVERY_ESTIMATOR
def test_rotations_that_do_not_converge_are_accepted(monkeypatch, given, model):
    monkeypatch.setattr(linear, "FastICA", lambda number, **options: FastICA(number, **{**options, "max_iter": 1}))
    assert np.isfinite(clone(model).fit(*given).transform(given[0], given[2])).all()


def test_threads_of_a_training_do_not_change_which_warnings_are_shown(monkeypatch, given):
    """Filters belong to the process: a thread that outlives a refused training would undo later changes to them."""
    seen, start_of = [], chunks.start_of
    monkeypatch.setattr(chunks, "start_of", lambda *a: (seen.append(warnings.filters), start_of(*a))[1])
    SurrealGANSearch(2, n_repetitions=2, preset="linear").fit(*given, progress=lambda _: seen.append(warnings.filters))
    assert len(seen) > 2
    assert all(one is seen[0] for one in seen)


@pytest.mark.filterwarnings("ignore:Only 40 controls and 3 patients")
@pytest.mark.parametrize(
    "model", [ContrastiveFactors(4), SurrealGAN(4, preset="linear"), SurrealGANSearch(4, preset="linear")]
)
def test_more_patterns_than_patients_are_refused(model):
    regions, told = np.random.default_rng(0).normal(5, 1, (43, 12)), r"patients[\s\S]*`n_patterns`"
    refused_with(rf"4 patterns cannot be distinguished in the [23] {told}", model.fit, regions, np.arange(43) >= 40)


@pytest.mark.filterwarnings("ignore:Only 4 controls and [248] patients")
@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered")  # correlations in two patients
@pytest.mark.filterwarnings("ignore:Excluded repetitions")
@pytest.mark.parametrize("n_patients", [2, 8])
@EVERY_ESTIMATOR
def test_the_fewest_people_that_are_accepted_are_enough(model, n_patients):
    regions = np.random.default_rng(0).normal(5, 1, (4 + n_patients, 20))
    model.fit(regions, np.arange(4 + n_patients) >= 4)
    assert np.isfinite(model.transform(regions)).all()


def test_two_controls_have_a_covariance_with_an_inverse():
    """Four controls are compared in halves of two."""
    whitening = Whitening.of(np.random.default_rng(0).normal(size=(2, 20)))
    identity = whitening.inverse_root @ whitening.covariance @ whitening.inverse_root
    np.testing.assert_allclose(identity, np.eye(20), atol=1e-9)


def test_new_people_are_checked_as_those_of_networks(given, fitted):
    regions, _, covariates = given
    reversed_columns = regions[regions.columns[::-1]]
    np.testing.assert_array_equal(*(fitted.transform(table, covariates) for table in (reversed_columns, regions)))
    refused_with("1000", fitted.transform, regions * 1000, covariates)
    gone = regions.mask((regions.index == 3)[:, None] & np.ones(regions.shape, bool))
    refused_with(r"% of the values in row 3 of X are missing", fitted.transform, gone, covariates)


@pytest.mark.filterwarnings("error::rindices.problems.OutsideTraining")
def test_people_of_the_training_are_not_warned_of(given):
    regions, patient, covariates = given
    model = ContrastiveFactors(2, random_state=0)
    severities = model.fit_transform(regions, patient, covariates)
    with pytest.warns(OutsideTraining, match="of 400 people"):
        np.testing.assert_array_equal(model.transform(regions, covariates), severities)


def test_missing_regions_are_expected_from_the_others(cohort, given, fitted):
    regions, patient, covariates = given
    gappy = regions.mask(np.random.default_rng(8).random(regions.shape) < 0.05)
    severities = ContrastiveFactors(2, random_state=0).fit_transform(gappy, patient, covariates)
    assert pattern_concordance(cohort.truth.iloc[:, 1:].to_numpy(), severities[patient]) > 0.8
    complete, filled = (fitted.transform(table, covariates) for table in (regions, gappy))
    assert np.corrcoef(complete.T, filled.T)[[0, 1], [2, 3]].min() > 0.97
