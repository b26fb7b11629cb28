import json
from dataclasses import asdict, fields

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rindices.judging import Evidence
from rindices.judging import verdict_and_separation as verdicts
from rindices.judging.spectrum import Spectrum
from rindices.judging.study import Study
from rindices.judging.verdict_and_separation import (
    FEWEST_SHUFFLED,
    Verdict,
    differences_that_count,
    halves_test,
    judged,
    not_testable,
    separated,
)
from rindices.presets import fast
from rindices.training.chunks import Settings
from tests.pages.page import missing

N_REGIONS, N_CONTROLS, N_PATIENTS = 30, 90, 120


def spectrum(p=0.005, n_directions=2):
    """Return a spectrum with this p value and number of directions."""
    null = np.tile(np.linspace(2, 1, 10), (199, 1))
    eigenvalues = np.where(np.arange(10) < n_directions, 5.0, 1.0)
    held_out = np.where(np.arange(8) < n_directions, 9.0, 0.0)
    return Spectrum(eigenvalues, null, 2.0, 0.4, np.linspace(-0.2, 0.2, 199), 0.6, held_out, p, p, 0.3)


def study_of(size=2.0, seed=0):
    """Return a study whose patients have two patterns of ten regions each, and their severities."""
    rng, patient = np.random.default_rng(seed), np.repeat([False, True], [N_CONTROLS, N_PATIENTS])
    maps = np.zeros((2, N_REGIONS))
    maps[0, :10] = maps[1, 10:20] = -size
    severities = rng.uniform(size=(N_PATIENTS, 2))
    brains = rng.standard_normal((len(patient), N_REGIONS))
    brains[patient] += 2 * severities @ maps
    healthy = brains[~patient]
    scaled = 1 + 0.1 * (brains - healthy.mean(axis=0)) / healthy.std(axis=0)
    return Study(scaled, patient, Settings(fast(), seed)), severities


@pytest.fixture(scope="module")
def with_patterns():
    study, severities = study_of()
    return study, severities, judged(spectrum(), study, severities, 0.95)


def test_people_are_standardised_by_controls(with_patterns):
    study = with_patterns[0]
    controls, patients = study.standardised()
    spread = (study.trained_on[~study.patient] - 1).std(axis=0) / 0.1
    np.testing.assert_allclose([controls.mean(axis=0), controls.std(axis=0)], [0 * spread, spread], atol=1e-9)
    np.testing.assert_allclose(patients, 10 * (study.trained_on[study.patient] - 1))


def test_patterns_that_halves_repetitions_and_a_linear_model_find_are_reproducible(with_patterns):
    _, _, verdict = with_patterns
    evidence = verdict.evidence
    assert (verdict.state, verdict.reliable) == ("reproducible", True)
    assert (evidence.p, evidence.halves_p, evidence.repetitions) == (0.005, pytest.approx(0.05), 0.95)
    assert evidence.halves > max(0.75, evidence.halves_chance)
    assert evidence.with_linear > 0.85
    assert not missing(
        verdict.message,
        "Patients and controls differ (p = 0.005, permutation test).",
        f"rank {100 * evidence.halves:.0f} of 100 pairs of patients in the same order",
        "On average, two repetitions agree on 95 of 100 pairs.",
    )
    assert "supported" not in verdict.message


def test_evidence_holds_what_the_look_showed_and_is_plain_as_json(with_patterns):
    given, found = spectrum(), asdict(with_patterns[2].evidence)
    expected = {
        "p_spread": given.p_spread,
        "p_shift": given.p_shift,
        "directions": 2,
        "found_again": 2,
        "limit": 2.0,
        "eigenvalues": tuple(given.eigenvalues),
        "band": tuple(given.null[0]),
        "detectable_auc": given.detectable[0],
        "detectable_ratio": given.detectable[1],
    }
    assert {name: found[name] for name in expected} == expected
    assert (set(found), json.loads(json.dumps(found))) == (
        {field.name for field in fields(Evidence)},
        {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()},
    )


def test_groups_that_do_not_differ_are_told_what_would_have_shown():
    verdict = judged(spectrum(p=0.4), study_of(0)[0], np.zeros((N_PATIENTS, 2)), np.nan)
    assert (verdict.state, verdict.reliable, verdict.evidence.halves) == ("no difference", False, None)
    auc, ratio = spectrum().detectable
    assert not missing(
        verdict.message,
        "randomly assigned groups of the same people (p = 0.4)",
        f"an AUC of about {auc:.2f}",
        f"{ratio:.1f} times as much as controls",
    )


@pytest.fixture
def given(monkeypatch, with_patterns):
    """Return a function that judges with made-up halves and returns the verdict."""
    study, severities, _ = with_patterns

    def of(halves=0.8, chance=0.6, p=0.05, r_indices=severities, repetitions=0.9, directions=2):
        monkeypatch.setattr(verdicts, "halves_test", lambda *_: (halves, chance, p))
        return judged(spectrum(n_directions=directions), study, r_indices, repetitions)

    return of


@pytest.mark.parametrize(
    ("found", "state", "words"),
    [
        ({}, "reproducible", "Patients and controls differ (p = 0.005"),
        ({"repetitions": np.nan}, "reproducible", "rank 80 of 100 pairs"),
        ({"halves": 0.6}, "reproducible", "rank 60 of 100 pairs"),
        ({"halves": 0.599}, "weak", "rank 60 of 100 pairs"),
        ({"p": 0.1}, "not reproducible", "rank 80 of 100 pairs"),
        ({"repetitions": 0.599}, "not reproducible", "the training runs did not capture this difference"),
        (
            {"r_indices": np.random.default_rng(3).uniform(size=(N_PATIENTS, 2))},
            "not reproducible",
            "the training runs did not capture this difference",
        ),
        ({"directions": 0}, "reproducible", "controls in any direction. If all patients show the same change"),
        ({"p": 0.1, "halves": 0.55}, "not reproducible", "rank 55 of 100 pairs"),
    ],
)
def test_halves_repetitions_and_the_linear_model_decide(given, found, state, words):
    verdict = given(**found)
    assert (verdict.state, verdict.reliable) == (state, state != "not reproducible")
    assert words in verdict.message
    assert (verdict.evidence.repetitions is None) == ("two repetitions agree" not in verdict.message)


def test_more_patterns_than_are_found_again_are_not_called_supported(given):
    five = np.random.default_rng(4).uniform(size=(N_PATIENTS, 3))
    five[:, :2] = study_of()[1]
    verdict = given(r_indices=five)
    assert (
        "held-out controls in only 2 directions, so the data do not support 3 patterns. Use fewer." in verdict.message
    )
    assert verdict.state == "reproducible"  # one pattern more than directions is tolerated
    seven = np.column_stack([five, np.random.default_rng(5).uniform(size=(N_PATIENTS, 4))])
    assert given(r_indices=seven).state == "weak"


def test_the_verdict_does_not_depend_on_the_order_of_patterns(given):
    first, turned = (given(r_indices=study_of()[1][:, order]) for order in ([0, 1], [1, 0]))
    assert first == turned


@pytest.mark.parametrize(
    ("better", "expected"),
    [
        (None, (0.8, 0.5 + FEWEST_SHUFFLED / 1000, 1 / 20, 1 + FEWEST_SHUFFLED)),
        (1, (0.8, 0.8, 2 / 2, 2)),
        (7, (0.8, 0.8, 2 / 8, 8)),
    ],
)
def test_p_of_halves_counts_the_data_and_ends_with_the_first_that_agrees_as_well(monkeypatch, better, expected):
    asked = []

    def agreement(controls, patients, n_patterns, method, *, disjoint_controls, n_splits, seed):
        asked.append((len(controls), len(patients), n_patterns, disjoint_controls))
        number = len(asked) - 1  # number 0: the data
        return 0.8 if number in (0, better) else 0.5 + number / 1000

    study = study_of()[0]
    monkeypatch.setattr(Study, "method", lambda *_: "sparse")
    monkeypatch.setattr(verdicts, "halves_agreement", agreement)
    monkeypatch.setattr(verdicts, "side_by_side", lambda work, items: (work(item) for item in items))
    assert (*halves_test(study, 2), len(asked)) == expected  # the data's, the largest of others, p, and how many
    assert set(asked) == {(N_CONTROLS, N_PATIENTS, 2, True)}


def test_halves_without_disease_are_not_found_again():
    own, largest, p = halves_test(study_of(0)[0], 2)
    assert p > 0.05
    assert largest >= own
    assert own < 0.65


def test_people_who_cannot_be_permuted_are_not_judged():
    verdict = not_testable("no site has both controls and patients")
    assert (verdict.state, verdict.reliable, verdict.evidence) == ("not testable", None, Evidence())
    told = "No site has both controls and patients."
    assert verdict.message == told


@pytest.mark.parametrize("state", ["reproducible", "weak"])
def test_other_differences_of_the_groups_qualify_what_is_found_again(state):
    good = Verdict(state, "Why.", Evidence(p=0.01))
    assert good.with_differences([]) is good
    confounded = good.with_differences(["age", "site"])
    assert (confounded.state, confounded.reliable, confounded.evidence) == ("confounded", True, good.evidence)
    assert str(confounded.message).startswith("Why. However, patients and controls also differ in age and site")


@pytest.mark.parametrize("state", ["no difference", "not reproducible", "not testable"])
def test_other_differences_change_nothing_where_nothing_was_found(state):
    bad = Verdict(state, "Why.")
    assert bad.with_differences(["age"]) is bad


def test_only_large_differences_count():
    balance = pd.DataFrame(
        [
            {"variable": "age", "kind": "number", "difference": -0.25, "imbalanced": True},
            {"variable": "iq", "kind": "number", "difference": 0.24, "imbalanced": True},
            {"variable": "sex", "kind": "category", "difference": 0.2, "imbalanced": True},
            {"variable": "site", "kind": "category", "difference": 0.19, "imbalanced": True},
            {"variable": "height", "kind": "number", "difference": 0.4, "imbalanced": False},
        ]
    )
    assert differences_that_count(balance) == ["age", "sex"]


AGES = np.concatenate([np.linspace(40, 60, 200), np.linspace(70, 80, 100)])  # no control is as old as any patient
LATER = np.arange(len(AGES)) >= 200


def aged_study(design, seed=0):
    scaled = 1 + 0.1 * np.random.default_rng(0).standard_normal((len(AGES), 200))
    return Study(scaled, LATER, Settings(fast(), seed), design)


def shifts(study, n_cohorts=10):
    """Mean squared difference between the groups' regional means in null cohorts, in squared sd of controls."""
    cohorts = [study.standardised(cohort) for cohort in range(1, n_cohorts + 1)]
    return np.mean([(patients.mean(axis=0) - controls.mean(axis=0)) ** 2 for controls, patients in cohorts])


def test_null_cohorts_hold_the_error_of_removing_covariates():
    """The variance of a predicted mean is 1/n + (mean age − controls' mean)² / Σ(age − mean)²."""
    sampling = 1 / 200 + 1 / 100
    assert shifts(aged_study(None)) == pytest.approx(sampling, rel=0.15)
    controls = AGES[~LATER]
    error = (AGES[LATER].mean() - controls.mean()) ** 2 / ((controls - controls.mean()) ** 2).sum()
    design = np.column_stack([np.ones(len(AGES)), AGES / 80])
    assert error > 2 * sampling
    assert shifts(aged_study(design)) == pytest.approx(sampling + error, rel=0.15)


def test_people_keep_their_group_and_get_values_of_another():
    study = aged_study(None)
    first, second, data = (study.standardised(cohort) for cohort in (1, 2, 0))
    assert len(first[0]) == len(data[0]) == 200
    everybody = np.concatenate(first)
    # Other controls change the scale, so people are recognised by the order of values within regions.
    order = np.argsort(np.argsort(study.trained_on, axis=0), axis=0)
    found = np.argsort(np.argsort(everybody, axis=0), axis=0)
    assert {tuple(row) for row in order.tolist()} == {tuple(row) for row in found.tolist()}
    np.testing.assert_allclose([first[0].mean(axis=0), first[0].std(axis=0)], np.tile([[0], [1]], 200), atol=1e-12)
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[0], aged_study(None).standardised(1)[0])
    assert not np.array_equal(first[0], aged_study(None, seed=1).standardised(1)[0])


# The AUC of patients versus controls, all held out from the rule, and its interval.


def people(shift, seed, n=40, n_regions=12):
    rng, patient = np.random.default_rng(seed), np.arange(2 * n) >= n
    return 100 + rng.normal(size=(2 * n, n_regions)) + shift * patient[:, None], patient


def test_groups_that_do_not_differ_have_an_auc_of_a_half_and_the_interval_holds_it():
    found = [separated(*people(0.0, seed)) for seed in range(12)]
    assert abs(np.mean([one.auc for one in found]) - 0.5) < 0.08
    assert sum(one.low <= 0.5 <= one.high for one in found) >= 10
    width = np.mean([one.high - one.low for one in found])
    fixed_rule = 2 * 1.96 * np.sqrt((80 + 1) / (12 * 40 * 40))  # Hanley and McNeil at 0.5
    assert width > 1.15 * fixed_rule


def test_a_rule_that_is_given_and_knows_nothing_has_the_variance_of_mann_and_whitney():
    assert verdicts._fixed_rule(0.5, 40, 30) == pytest.approx((40 + 30 + 1) / (12 * 40 * 30))


def test_the_discriminant_is_that_of_scikit_learn_also_with_a_region_that_never_varies_in_patients():
    regions, patient = people(0.5, 1)
    regions[patient, 3] = 101
    own = verdicts._discriminant(regions[~patient], regions[patient])
    other = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(regions, patient).coef_[0]
    assert own / np.linalg.norm(own) == pytest.approx(other / np.linalg.norm(other), abs=1e-9)


def test_the_interval_stays_inside_and_follows_the_difference():
    low, high = separated(*people(0.3, 0)), separated(*people(3.0, 0))
    assert 0 < low.low < low.auc < low.high < 1
    assert high.auc > 0.99
    assert 0.9 < high.low < high.high <= 1


def test_few_people_and_small_sites_have_none():
    assert separated(*people(1.0, 0, n=9)) is None
    regions, patient = people(1.0, 0)
    assert separated(regions, patient, pd.DataFrame({"kind": [*"ab" * 39, "c", "d"]})) is None


@pytest.mark.parametrize("older", [0.0, 2.0])
def test_covariates_are_removed_in_each_fold(older):
    regions, patient = people(0.0, 3)
    age = np.random.default_rng(4).normal(size=len(patient)) + older * patient
    found = separated(regions + age[:, None], patient, pd.DataFrame({"age": age}))
    assert found.low < 0.5 < found.high
