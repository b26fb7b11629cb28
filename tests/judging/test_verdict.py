import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices.judging import verdict as verdicts
from rindices.judging.selection import Study, Swept, sweep
from rindices.judging.verdict import FEWEST_REFITS, calibrated, calibration, refits, threshold, to_json
from rindices.settings import fast, paper
from rindices.training.chunks import Member, Point, Settings
from rindices.training.execution import Execution
from tests.made_up import Trained, judged


def threshold_of(n_patterns=3, sizes=(200, 200), n_regions=128, n_repetitions=10):
    """Return the threshold of a case, and what the table does not cover of it; all tests ask here."""
    return threshold(n_patterns, sizes, n_regions, n_repetitions)


def limit(*case, **named):
    return threshold_of(*case, **named)[0]


def mean_and_sd(m, people, regions, k):
    """Fall with people, regions and repetitions; the mean rises with patterns."""
    return 0.5 + m / 100 + 1 / people + 1 / regions, 0.1 / k + 1 / people


@pytest.fixture
def simple(monkeypatch):
    """A table with known entries in any order."""
    cases = [
        (m, people, regions, k)
        for m in (2, 3, 4)
        for people in (50.0, 200.0, 800.0)
        for regions in (32, 128)
        for k in (2, 5, 10)
    ]
    names = ["n_patterns", "n_people", "n_regions", "n_repetitions", "mean", "sd"]
    table = pd.DataFrame([(*case, *mean_and_sd(*case)) for case in cases], columns=names).assign(n_cohorts=20)
    table = table.sample(frac=1, random_state=0)
    monkeypatch.setattr(verdicts, "calibration", lambda: table)


def expected(*case):
    mean, sd = mean_and_sd(*case)
    return mean + 4 * sd


@pytest.mark.usefixtures("simple")
def test_threshold_at_an_entry_of_the_table_is_four_sd_above_the_mean():
    assert limit() == pytest.approx(expected(3, 200, 128, 10))
    assert limit(2, (50, 50), 32, 5) == pytest.approx(expected(2, 50, 32, 5))


def test_sd_is_never_taken_to_be_tiny(monkeypatch):
    """Some cohorts that happen to be alike prove little."""
    case = {"n_patterns": 3, "n_people": 200.0, "n_regions": 128, "n_repetitions": 10, "mean": 0.6, "n_cohorts": 20}
    for sd, expected in ((0.0, 0.62), (0.001, 0.62), (0.02, 0.68)):
        monkeypatch.setattr(verdicts, "calibration", lambda sd=sd: pd.DataFrame([case | {"sd": sd}]))
        assert limit() == pytest.approx(expected)


@pytest.mark.usefixtures("simple")
def test_groups_count_by_the_harmonic_mean_of_their_sizes():
    assert limit(sizes=(150, 300)) == limit(sizes=(300, 150)) == pytest.approx(limit(sizes=(200, 200)))
    assert limit(sizes=(50, 10**9)) == pytest.approx(limit(sizes=(100, 100)), rel=1e-6)


@pytest.mark.usefixtures("simple")
def test_threshold_between_numbers_of_people_or_regions_is_between_theirs():
    """Half way on a scale of factors."""
    of_people = (expected(3, 50, 128, 10) + expected(3, 200, 128, 10)) / 2
    assert limit(sizes=(100, 100)) == pytest.approx(of_people)
    assert limit(n_regions=64) == pytest.approx((expected(3, 200, 32, 10) + expected(3, 200, 128, 10)) / 2)
    by_people = [limit(sizes=(n, n)) for n in (50, 80, 100, 200, 500, 800)]
    by_regions = [limit(n_regions=n) for n in (32, 50, 90, 128)]
    for limits in (by_people, by_regions):
        assert limits == sorted(limits, reverse=True)


@pytest.mark.usefixtures("simple")
def test_next_smaller_number_of_repetitions_is_used():
    two, four, five, nine, ten, many = (limit(n_repetitions=number) for number in (2, 4, 5, 9, 10, 100))
    assert (four, nine, many) == (two, five, ten)
    assert five > ten


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("case", "nearest", "told"),
    [
        ({}, {}, []),
        ({"sizes": (50, 50)}, {"sizes": (50, 50)}, []),
        ({"sizes": (800, 800)}, {"sizes": (800, 800)}, []),
        ({"n_regions": 500}, {"n_regions": 128}, []),  # which is on the safe side
        ({"n_regions": 10}, {"n_regions": 32}, ["32 to 128 regions, here 10"]),
        ({"n_patterns": 5}, {"n_patterns": 4}, ["2 to 4 patterns, here 5"]),
        ({"n_patterns": 9}, {"n_patterns": 4}, ["2 to 4 patterns, here 9"]),
        ({"sizes": (20, 20)}, {"sizes": (50, 50)}, ["50 to 800 people in a group, here 20"]),
        (
            {"n_patterns": 6, "sizes": (5000, 5000)},
            {"n_patterns": 4, "sizes": (800, 800)},
            ["2 to 4 patterns, here 6", "50 to 800 people in a group, here 5000"],
        ),
    ],
)
def test_what_the_table_does_not_cover_is_told_and_the_nearest_case_taken(case, nearest, told):
    assert threshold_of(**case) == (limit(**nearest), told)


def test_shipped_table_is_complete_and_plausible():
    table = calibration()
    assert not table.isna().any(axis=None)
    keys = [name for name in table.columns if name not in ("mean", "sd", "n_cohorts")]
    assert not table.duplicated(keys).any()
    assert {2, 3, 4, 5} <= set(table["n_patterns"])
    assert {3, 10} <= set(table["n_repetitions"])
    assert (table["mean"].between(0.5, 0.8) & (table["sd"] > 0) & (table["n_cohorts"] >= 7)).all()


@pytest.mark.parametrize("n_patterns", range(1, 8))
@pytest.mark.parametrize("n_people", [20, 130, 640, 5000])
@pytest.mark.parametrize("n_regions", [20, 145, 500])
def test_shipped_thresholds_can_be_passed(n_patterns, n_people, n_regions):
    """A few repetitions of one pattern in few people agree by chance so often that nothing can pass there."""
    for n_repetitions in (2, 3, 7, 10, 30):
        found = limit(n_patterns, (n_people, n_people), n_regions, n_repetitions)
        assert found > 0.5
        assert found < 1 or (n_patterns == 1 and n_people == 20 and n_repetitions < 5)


def swept_of(*settings, n_repetitions=10):
    chosen = max(settings, key=lambda one: (one.point.n_patterns > 1, np.nan_to_num(one.value)))
    return Swept(list(settings), chosen, 3, n_repetitions, [])


def study_of(n_controls=200, n_patients=200, preset=None):
    patient = np.repeat([False, True], [n_controls, n_patients])
    scaled = np.random.default_rng(0).normal(1, 0.1, (len(patient), 32))
    return Study(scaled, patient, Settings(preset or fast(), 32, 0))


@pytest.mark.usefixtures("simple")
def test_agreement_above_the_threshold_is_reliable_and_below_is_not():
    edge = limit(n_regions=32)
    above = calibrated(swept_of(judged(edge + 1e-6)), study_of())
    below = calibrated(swept_of(judged(edge - 1e-6)), study_of())
    assert (above.reliable, below.reliable) == (True, False)
    for verdict in (above, below):
        assert (verdict.method, verdict.repetitions, verdict.p, verdict.n) == ("calibrated", 10, None, 0)
        assert verdict.threshold == edge
        assert f"agree at {verdict.statistic:.3f}, where 0.5 is chance" in verdict.reason
        assert (
            f"The threshold is {edge:.3f}: 4 sd above the mean of simulated cohorts without disease" in verdict.reason
        )
        assert "made for other cases" not in verdict.reason
    assert ["There may be nothing to find" in verdict.reason for verdict in (above, below)] == [False, True]


@pytest.mark.usefixtures("simple")
def test_threshold_is_that_of_the_sound_models_of_the_chosen_setting():
    five = calibrated(swept_of(judged(0.9, n_models=5)), study_of())
    assert five.threshold == limit(n_regions=32, n_repetitions=5)
    several = swept_of(judged(0.6, 2), judged(0.9, 4), judged(0.99, 1))
    assert calibrated(several, study_of(50, 50)).threshold == limit(4, (50, 50), 32)


@pytest.mark.usefixtures("simple")
def test_the_best_of_several_numbers_of_patterns_has_to_pass_the_highest_of_their_thresholds():
    limits = {n: limit(n, n_regions=32) for n in (2, 3, 4)}
    highest = max(limits.values())
    assert min(limits.values()) < highest
    easy = min(limits, key=limits.get)
    others = [judged(0.5, n) for n in limits if n != easy]
    verdict = calibrated(swept_of(judged(highest - 1e-6, easy), *others), study_of())
    assert (verdict.reliable, verdict.threshold) == (False, highest)
    assert "Of 2 to 4 patterns the best was taken, so it is the highest of their thresholds." in verdict.reason
    assert calibrated(swept_of(judged(highest - 1e-6, easy)), study_of()).reliable
    assert calibrated(swept_of(judged(highest + 1e-6, easy), *others), study_of()).reliable


@pytest.mark.usefixtures("simple")
@pytest.mark.parametrize(
    ("n_repetitions", "n_models", "words"),
    [(1, 1, "only one repetition"), (5, 1, "only 1 of them"), (5, 0, "Training failed: in every repetition")],
)
def test_nothing_to_compare_is_not_reliable(n_repetitions, n_models, words):
    verdict = calibrated(swept_of(judged(np.nan, n_models=n_models, n_repetitions=n_repetitions)), study_of())
    assert (verdict.reliable, verdict.method, verdict.threshold) == (False, "none", None)
    assert words in verdict.reason


def older_patients():
    study = study_of()
    ages = np.linspace(50, 60, len(study.patient)) + 15 * study.patient
    return replace(study, design=np.column_stack([np.ones(len(ages)), ages]))


@pytest.mark.usefixtures("simple")
def test_cases_that_the_table_was_not_made_for_are_told():
    short = replace(fast(), schedule=replace(fast().schedule, max_steps=500, min_steps=0))
    long = replace(fast(), schedule=replace(fast().schedule, max_steps=50_000))
    correlated = replace(fast(), training=replace(fast().training, latent="correlated"))
    cases = {
        "2 to 4 patterns, here 7": (judged(0.9, 7), study_of()),
        "50 to 800 people in a group, here 20": (judged(0.9), study_of(20, 20)),
        "preset fast, here paper": (judged(0.9), study_of(preset=paper())),
        "20,000 steps, here 500": (judged(0.9), study_of(preset=short)),
        "20,000 steps, here 50,000": (judged(0.9), study_of(preset=long)),
        "independent severities, here correlated": (judged(0.9), study_of(preset=correlated)),
        "groups with covariates alike, here few controls are like the patients": (judged(0.9), older_patients()),
    }
    for words, (one, study) in cases.items():
        reason = calibrated(swept_of(one), study).reason
        assert re.search(rf"{re.escape(f'({words}): test with refits')}.*null\W19", reason)


POINTS = [Point(2, 0.8), Point(3, 0.8)]


@pytest.fixture
def refitted(monkeypatch):
    """Refit with statistics that are given by cohort and number of patterns; records what was asked for."""

    def run(swept, values, n_refits=FEWEST_REFITS):
        asked, trained = [], []

        def judge(study, point, n_repetitions, chunks, execution, cohort=0):
            asked.append((point, n_repetitions, cohort, chunks))
            return judged(values(cohort, point.n_patterns), point.n_patterns)

        def train_members(study, members, execution, stage):
            trained.extend(members)
            return "chunks of the refits"

        monkeypatch.setattr(verdicts, "judge", judge)
        monkeypatch.setattr(verdicts, "train_members", train_members)
        return refits(swept, study_of(), n_refits, Execution()), asked, trained

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


def test_one_pattern_is_left_out_unless_it_is_all_there_is(refitted):
    verdict, _, _ = refitted(swept_of(judged(0.99, 1), judged(0.8, 2)), lambda cohort, m: 0.99 if m == 1 else 0.6)
    assert verdict.statistic == 0.6
    assert refitted(swept_of(judged(0.99, 1)), lambda cohort, m: 0.9)[0].statistic == 0.9


def test_unknown_agreement_counts_as_chance(refitted):
    verdict, _, _ = refitted(TWO, lambda cohort, m: 0.8 if cohort == 0 else np.nan)
    assert (set(verdict.values), verdict.p) == ({0.5}, pytest.approx(1 / 20))


@pytest.mark.parametrize(("n_models", "words"), [(0, "Training failed"), (1, "only 1 of them can be used")])
def test_refits_of_models_that_collapsed_do_not_say_that_the_groups_are_alike(refitted, n_models, words):
    few = swept_of(judged(np.nan, 3, n_models=n_models))
    verdict, _, _ = refitted(few, lambda cohort, m: 0.8 if cohort == 0 else 0.5)
    assert not verdict.reliable
    assert words in verdict.reason
    assert "put together at random" not in verdict.reason


def test_refits_use_the_chunks_of_the_sweep_and_cohorts_of_their_own():
    """With made-up trainings: the data agree well, cohorts without disease do not."""
    store = Trained(lambda member: (2.0 if member.cohort else 0.1,))
    study, execution = study_of(30, 50), Execution(store, models_per_chunk=2)
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
