import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rindices.judging.agreement_threshold import calibration, threshold

from rindices.judging import agreement_threshold
from rindices.judging import verdict as verdicts
from rindices.judging.selection import Study, Swept, sweep
from rindices.judging.verdict import FEWEST_REFITS, calibrated, refits, to_json
from rindices.settings import fast, paper
from rindices.training.chunks import Member, Point, Settings
from rindices.training.execution import Execution
from tests.made_up import Trained, judged


def limit(n_patterns=3, sizes=(200, 200), n_regions=128):
    return threshold(n_patterns, sizes, n_regions)[0]


def mean_and_sd(m, people, regions):
    """Fall with people and regions; the mean rises with patterns."""
    return 0.5 + m / 100 + 1 / people + 1 / regions, 0.01 + 1 / people


@pytest.fixture
def simple(monkeypatch):
    """A table with known entries in any order."""
    cases = [(m, people, regions) for m in (2, 3, 4) for people in (50.0, 200.0, 800.0) for regions in (32, 128)]
    names = ["n_patterns", "n_people", "n_regions", "mean", "sd"]
    table = pd.DataFrame([(*case, *mean_and_sd(*case)) for case in cases], columns=names).assign(n_cohorts=20)
    table = table.sample(frac=1, random_state=0)
    monkeypatch.setattr(agreement_threshold, "calibration", lambda: table)


def expected(*case):
    mean, sd = mean_and_sd(*case)
    return mean + 4 * sd


@pytest.mark.usefixtures("simple")
def test_threshold_at_an_entry_of_the_table_is_four_sd_above_the_mean():
    assert limit() == pytest.approx(expected(3, 200, 128))
    assert limit(2, (50, 50), 32) == pytest.approx(expected(2, 50, 32))


def test_sd_is_never_taken_to_be_tiny(monkeypatch):
    """Some cohorts that happen to be alike prove little."""
    case = {"n_patterns": 3, "n_people": 200.0, "n_regions": 128, "mean": 0.6, "n_cohorts": 20}
    for sd, expected in ((0.0, 0.62), (0.001, 0.62), (0.02, 0.68)):
        monkeypatch.setattr(agreement_threshold, "calibration", lambda sd=sd: pd.DataFrame([case | {"sd": sd}]))
        assert limit() == pytest.approx(expected)


@pytest.mark.usefixtures("simple")
def test_groups_count_by_the_harmonic_mean_of_their_sizes():
    assert limit(sizes=(150, 300)) == limit(sizes=(300, 150)) == pytest.approx(limit(sizes=(200, 200)))
    assert limit(sizes=(50, 10**9)) == pytest.approx(limit(sizes=(100, 100)), rel=1e-6)


@pytest.mark.usefixtures("simple")
def test_threshold_between_numbers_of_people_or_regions_is_between_theirs():
    """Half way on a scale of factors."""
    assert limit(sizes=(100, 100)) == pytest.approx((expected(3, 50, 128) + expected(3, 200, 128)) / 2)
    assert limit(n_regions=64) == pytest.approx((expected(3, 200, 32) + expected(3, 200, 128)) / 2)
    by_people = [limit(sizes=(n, n)) for n in (50, 80, 100, 200, 500, 800)]
    by_regions = [limit(n_regions=n) for n in (32, 50, 90, 128)]
    for limits in (by_people, by_regions):
        assert limits == sorted(limits, reverse=True)


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("case", "nearest", "told"),
    [
        ({}, {}, []),
        ({"sizes": (50, 50)}, {"sizes": (50, 50)}, []),
        ({"sizes": (5000, 5000)}, {"sizes": (800, 800)}, []),  # which is on the safe side
        ({"n_regions": 500}, {"n_regions": 128}, ["32 to 128 regions, here 500"]),
        ({"n_regions": 10}, {"n_regions": 32}, ["32 to 128 regions, here 10"]),
        ({"n_patterns": 1}, {"n_patterns": 2}, ["2 to 4 patterns, here 1"]),
        (
            {"n_patterns": 9, "sizes": (20, 20)},
            {"n_patterns": 4, "sizes": (50, 50)},
            ["2 to 4 patterns, here 9", "50 people in a group or more, here 20"],
        ),
    ],
)
def test_what_the_table_does_not_cover_is_told_and_the_nearest_case_taken(case, nearest, told):
    assert threshold(**{"n_patterns": 3, "sizes": (200, 200), "n_regions": 128} | case) == (limit(**nearest), told)


def test_shipped_table_is_complete_and_plausible():
    table = calibration()
    assert not table.isna().any(axis=None)
    assert not table.duplicated(["n_patterns", "n_people", "n_regions"]).any()
    assert {1, 2, 3, 4, 5} <= set(table["n_patterns"])
    assert (table["mean"].between(0.48, 0.8) & (table["sd"] > 0) & (table["n_cohorts"] >= 7)).all()


@pytest.mark.parametrize("n_patterns", range(1, 8))
def test_shipped_thresholds_can_be_passed(n_patterns):
    sizes = [(n_people, n_regions) for n_people in (20, 130, 640, 5000) for n_regions in (20, 145, 500)]
    found = [limit(n_patterns, (n_people, n_people), n_regions) for n_people, n_regions in sizes]
    assert 0.5 < min(found) <= max(found) < 1


def swept_of(*settings, n_repetitions=10):
    chosen = max(settings, key=lambda one: (one.point.n_patterns > 1, np.nan_to_num(one.value)))
    return Swept(list(settings), chosen, 3, n_repetitions, [], [one.point for one in settings])


def study_of(n_controls=200, n_patients=200, preset=None, n_regions=32):
    patient = np.repeat([False, True], [n_controls, n_patients])
    scaled = np.random.default_rng(0).normal(1, 0.1, (len(patient), n_regions))
    return Study(scaled, patient, Settings(preset or fast(), 32, 0))


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("low", "high", "state", "reliable", "words"),
    [
        (1e-6, 0.02, "reproducible", True, "as many people and regions, and the same number of patterns."),
        (-0.02, -1e-6, "not reproducible", False, "There may be nothing to find"),
        (-1e-6, 1e-6, "not testable", None, "more repetitions can tell"),
        (np.nan, np.nan, "not testable", None, "more repetitions can tell"),
    ],
)
def test_the_interval_of_agreement_decides(low, high, state, reliable, words):
    edge = limit(n_regions=32)
    one = judged(edge + np.nan_to_num((low + high) / 2), low=edge + low, high=edge + high)
    verdict = calibrated(swept_of(one), study_of())
    assert (verdict.state, verdict.reliable, verdict.threshold) == (state, reliable, edge)
    assert (verdict.method, verdict.repetitions, verdict.p, verdict.n) == ("calibrated", 10, None, 0)
    assert f"agree at {verdict.statistic:.3f} (95 % interval" in verdict.reason
    assert f"The threshold is {edge:.3f}: 4 sd above the mean of simulated cohorts without disease" in verdict.reason
    assert words in verdict.reason
    assert "made for other cases" not in verdict.reason


def certain(value, *arguments, **options):
    """Return a setting whose agreement is known to the last digit."""
    return judged(value, *arguments, low=value, high=value, **options)


@pytest.mark.usefixtures("simple")
def test_one_of_several_numbers_of_patterns_has_to_pass_the_highest_of_their_thresholds():
    limits = {n: limit(n, n_regions=32) for n in (2, 3, 4)}
    others = [judged(0.5, n) for n in (3, 4)]
    verdict = calibrated(swept_of(certain(limits[4] - 1e-6, 2), *others), study_of())
    assert (verdict.state, verdict.threshold) == ("not reproducible", limits[4])
    assert "Of 2 to 4 patterns one was chosen, so it is the highest of their thresholds." in verdict.reason
    assert calibrated(swept_of(certain(limits[4] - 1e-6, 2)), study_of()).reliable
    assert calibrated(swept_of(certain(limits[4] + 1e-6, 2), *others), study_of()).reliable


def test_one_pattern_has_to_pass_its_own_threshold_only():
    swept = Swept([certain(0.9, 1), judged(0.5, 2), judged(0.5, 5)], certain(0.9, 1), 3, 10, [], [])
    assert calibrated(swept, study_of(n_regions=128)).threshold == limit(1)


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("n_repetitions", "n_models", "state", "words"),
    [
        (1, 1, "not testable", "there is 1 repetition"),
        (2, 2, "not testable", "there are 2 repetitions, and 3 are needed"),
        (5, 1, "not testable", "only 1 that can be used"),
        (5, 0, "not reproducible", "Training failed: in every repetition"),
    ],
)
def test_nothing_to_compare_is_not_reliable(n_repetitions, n_models, state, words):
    verdict = calibrated(swept_of(judged(0.9, n_models=n_models, n_repetitions=n_repetitions)), study_of())
    assert (verdict.state, verdict.method, verdict.threshold) == (state, "none", None)
    assert words in verdict.reason


@pytest.mark.usefixtures("simple")
def test_other_differences_of_the_groups_qualify_what_is_reproducible_and_nothing_else():
    good, bad = (calibrated(swept_of(certain(value)), study_of()) for value in (0.9, 0.5))
    assert good.with_differences([]) is good
    assert bad.with_differences(["age"]) is bad
    confounded = good.with_differences(["age", "site"])
    assert (confounded.state, confounded.reliable, confounded.threshold) == ("confounded", True, good.threshold)
    assert "also differ in age and site" in confounded.reason


def older_patients():
    study = study_of()
    ages = np.linspace(50, 60, len(study.patient)) + 15 * study.patient
    return replace(study, design=np.column_stack([np.ones(len(ages)), ages]))


@pytest.mark.usefixtures("simple")
def test_cases_that_the_table_was_not_made_for_are_told():
    short = replace(fast(), schedule=replace(fast().schedule, max_steps=500, min_steps=0))
    long = replace(fast(), schedule=replace(fast().schedule, max_steps=50_000))
    independent = replace(fast(), training=replace(fast().training, latent="independent"))
    cases = {
        "2 to 4 patterns, here 7": (judged(0.9, 7), study_of()),
        "50 people in a group or more, here 20": (judged(0.9), study_of(20, 20)),
        "preset fast, here paper": (judged(0.9), study_of(preset=paper())),
        "20,000 steps, here 500": (judged(0.9), study_of(preset=short)),
        "20,000 steps, here 50,000": (judged(0.9), study_of(preset=long)),
        "correlated severities, here independent": (judged(0.9), study_of(preset=independent)),
        "groups with covariates alike, here few controls are like the patients": (judged(0.9), older_patients()),
    }
    for words, (one, study) in cases.items():
        state, reason = (getattr(calibrated(swept_of(one), study), name) for name in ("state", "reason"))
        assert state == "not testable"
        assert re.search(rf"{re.escape(f'({words}): test with refits')}.*null\W19", reason)


POINTS = [Point(2, 0.8), Point(3, 0.8)]


@pytest.fixture
def refitted(monkeypatch):
    """Refit with statistics that are given by cohort and number of patterns; records what was asked for."""

    def run(swept, values, n_refits=FEWEST_REFITS, study=None):
        asked, trained = [], []

        def judge(study, point, n_repetitions, chunks, execution, cohort=0):
            asked.append((point, n_repetitions, cohort, chunks))
            return judged(values(cohort, point.n_patterns), point.n_patterns)

        def train_members(study, members, execution, stage):
            trained.extend(members)
            return "chunks of the refits"

        monkeypatch.setattr(verdicts, "judge", judge)
        monkeypatch.setattr(verdicts, "train_members", train_members)
        return refits(swept, study or study_of(), n_refits, Execution()), asked, trained

    return run


TWO = swept_of(judged(0.8, 2), judged(0.9, 3))


@pytest.mark.parametrize("n_refits", [19, 39])
@pytest.mark.parametrize("better", [0, 1, 5])
def test_p_counts_the_data_among_the_refits(refitted, n_refits, better):
    verdict, _, _ = refitted(TWO, lambda cohort, m: 0.9 if cohort == 0 else 0.95 if cohort <= better else 0.6, n_refits)
    p = (1 + better) / (n_refits + 1)
    assert (verdict.p, verdict.reliable) == (pytest.approx(p), p <= 0.05)
    assert (verdict.method, verdict.n, verdict.statistic, verdict.threshold) == ("refits", n_refits, 0.9, None)
    assert sorted(verdict.values) == sorted([0.95] * better + [0.6] * (n_refits - better))
    assert f"p = {p:.3g}" in verdict.reason
    assert ("put together at random" in verdict.reason) == (not verdict.reliable)


def test_ties_count_against_the_data(refitted):
    assert refitted(TWO, lambda cohort, m: 0.7)[0].p == 1


def test_statistic_is_the_best_over_settings_in_the_data_and_in_the_refits(refitted):
    """Otherwise a search over many settings would always look better than chance."""
    verdict, _, _ = refitted(TWO, lambda cohort, m: {(0, 2): 0.6, (0, 3): 0.8, (7, 2): 0.85}.get((cohort, m), 0.55))
    assert (verdict.statistic, verdict.values[6], verdict.p) == (0.8, 0.85, pytest.approx(2 / 20))


def test_data_and_refits_have_the_same_repetitions_of_all_settings(refitted):
    _, asked, trained = refitted(TWO, lambda cohort, m: 0.6)
    assert {(point, cohort) for point, _, cohort, _ in asked} == {(p, c) for p in POINTS for c in range(20)}
    assert {n for _, n, _, _ in asked} == {3}
    assert all((chunks == []) == (cohort == 0) for _, _, cohort, chunks in asked)
    expected = {Member(p, k, c) for p in POINTS for k in range(3) for c in range(1, 20)}
    assert (len(trained), set(trained)) == (len(expected), expected)


def test_fewer_repetitions_than_a_first_look_are_enough(refitted):
    few = swept_of(judged(0.9, 3, n_repetitions=2), n_repetitions=2)
    verdict, asked, _ = refitted(few, lambda cohort, m: 0.6)
    assert {n for _, n, _, _ in asked} == {verdict.repetitions} == {2}


def test_unknown_agreement_counts_as_chance(refitted):
    verdict, _, _ = refitted(TWO, lambda cohort, m: 0.8 if cohort == 0 else np.nan)
    assert (set(verdict.values), verdict.p) == ({0.5}, pytest.approx(1 / 20))


def test_refits_overrule_the_threshold_and_what_it_was_made_for(refitted):
    few = swept_of(judged(0.55, 3, low=0.5, high=0.6))
    outside = study_of(20, 20, paper())
    assert calibrated(few, outside).state == "not testable"
    verdict, _, _ = refitted(few, lambda cohort, m: 0.5 if cohort else 0.55, study=outside)
    assert (verdict.state, verdict.with_differences(["age"]).state) == ("reproducible", "confounded")


@pytest.mark.parametrize(("n_models", "words"), [(0, "Training failed"), (1, "only 1 that can be used")])
def test_refits_of_models_that_collapsed_do_not_say_that_the_groups_are_alike(refitted, n_models, words):
    few = swept_of(judged(np.nan, 3, n_models=n_models))
    verdict, _, _ = refitted(few, lambda cohort, m: 0.8 if cohort == 0 else 0.5)
    assert not verdict.reliable
    assert words in verdict.reason
    assert "put together at random" not in verdict.reason


def test_refits_use_the_chunks_of_the_sweep_and_cohorts_of_their_own():
    """With made-up trainings: the data agree well, cohorts without disease do not."""
    store = Trained(lambda member: (2.0 if member.cohort else 0.1,))
    study, execution = study_of(30, 50, n_regions=12), Execution(store, models_per_chunk=2)
    swept = sweep(study, POINTS, 4, execution)
    verdict = refits(swept, study, FEWEST_REFITS, execution)
    assert verdict.reliable
    assert max(verdict.values) < 0.75 < verdict.statistic
    assert len(set(verdict.values)) == FEWEST_REFITS
    assert {chunk.cohort for chunk in store.asked} == set(range(20))


def test_verdict_as_json_is_plain(refitted):
    verdict, _, _ = refitted(TWO, lambda cohort, m: 0.9 if cohort == 0 else 0.6)
    found = to_json(verdict)
    assert json.loads(json.dumps(found)) == found
    assert (found["p"], found["values"]) == (pytest.approx(0.05), [0.6] * 19)
    assert "reliable" not in found


AGES = np.concatenate([np.linspace(40, 60, 200), np.linspace(70, 80, 100)])  # patients lie where no controls are
LATER = np.arange(len(AGES)) >= 200


def aged_study(design):
    scaled = 1 + 0.1 * np.random.default_rng(0).standard_normal((len(AGES), 200))
    return Study(scaled, LATER, Settings(fast(), 8, seed=0), design)


def shifts(study, n_cohorts=10):
    """Squared difference of the groups' mean regions in null cohorts, in squared sd of controls."""
    cohorts = [study.people(cohort) for cohort in range(1, n_cohorts + 1)]
    return np.mean([((one.patients.mean(axis=0) - one.controls.mean(axis=0)) / 0.1) ** 2 for one in cohorts])


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
    first, second, data = (study.people(cohort) for cohort in (1, 2, 0))
    assert len(first.controls) == len(data.controls) == 200
    everybody = np.concatenate([first.controls, first.patients])
    # Scaled anew by other controls: the order of values within a region tells who is who.
    order = np.argsort(np.argsort(study.scaled, axis=0), axis=0)
    found = np.argsort(np.argsort(everybody, axis=0), axis=0)
    assert {tuple(row) for row in order.tolist()} == {tuple(row) for row in found.tolist()}
    assert not np.array_equal(first.controls, second.controls)
    np.testing.assert_array_equal(first.controls, study.people(1).controls)
