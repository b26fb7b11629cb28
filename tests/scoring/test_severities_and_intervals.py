"""Severities, their reference and their intervals, against formulas, refits without a person, and made-up people."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, percentileofscore
from scipy.stats import t as student_t

from rindices.core import inference
from rindices.core.train import held_out
from rindices.estimator import SurrealGAN
from rindices.preprocessing import SCALED_SD, Preprocessing
from rindices.preprocessing.covariates import design_of, leverage_of
from rindices.record import Results, Summary
from rindices.run.scores_and_analyses import change_of
from rindices.scoring import intervals
from rindices.scoring.intervals import (
    Healthy,
    change_limits,
    draw_others,
    fit_curves,
    fit_scale,
    severity_intervals,
    usual_severities,
    widened,
)
from rindices.scoring.severity_and_reference import (
    CENTILES,
    DOSES,
    KNOTS,
    LEVELS,
    HeldOut,
    SeverityScale,
    _within,
    leave_one_out,
    split_variance,
)
from rindices.simulate import simulate_cohort
from rindices.value_kinds import check_level
from tests.core import plain
from tests.refusal import refused_with

PERSON, REPETITION = 0.10, 0.08  # sd of made-up scores, between people and between repetitions
SPREADS = np.array([0.06, 0.12])  # of R-indices of people of one severity, by pattern
CONTROLS = np.random.default_rng(0).normal(0.1, 0.05, (101, 2))
PEOPLE = np.random.default_rng(1).uniform(-0.3, 1.6, (500, 2))
# R-indices that people of each severity have on average: the inverse of the curve, whose slope at 1 is 2.
EXPECTED = np.where(DOSES < 1, np.sqrt(DOSES), 1 + (DOSES - 1) / 2)
SCALE = SeverityScale(
    np.tile(KNOTS**2, (2, 1)),
    np.quantile(CONTROLS, CENTILES, axis=0).T,
    EXPECTED[None, :, None] + SPREADS[:, None, None] * norm.ppf(LEVELS),
)


def test_severities_follow_the_curve_from_0_and_go_on_straight_beyond_1():
    # The slope of the last piece is 1 + KNOTS[-2].
    expected = np.tile([[0.0], [0.0], [0.25**2], [0.5**2], [1.0], [1 + 0.5 * (1 + KNOTS[-2])]], 2)
    np.testing.assert_allclose(
        SCALE.severities(np.tile([[-0.4], [0.0], [0.25], [0.5], [1.0], [1.5]], 2)), expected, atol=1e-9
    )
    assert (np.diff(SCALE.severities(np.tile(np.linspace(0, 1.5, 400)[:, None], 2)), axis=0) > 0).all()
    assert (SCALE.severities(np.full((1, 2), 9.0)) == DOSES[-1]).all()  # the largest known dose


def test_a_usual_severity_is_the_one_whose_people_have_such_an_r_index_in_the_median():
    root = brentq(lambda dose: np.interp(dose, DOSES, EXPECTED) - KNOTS[9], 0, 2)
    np.testing.assert_allclose(usual_severities(SCALE.quantiles)[:, 9], root, atol=1e-6)
    np.testing.assert_allclose(usual_severities(SCALE.quantiles + 0.2)[:, :4], 0, atol=1e-6)  # below healthy people


@pytest.mark.parametrize("level", [0.87, 0.95])
def test_intervals_hold_every_severity_with_which_the_score_is_no_surprise(level):
    """A grid of severities is tried: the interval must reach those for which the score is among the central ones.

    Below the 16th percentile of healthy people, the upper limit is the one at that percentile.
    """
    tried = np.linspace(0, 2, 2001)
    own, between = SCALE.severities(PEOPLE), np.interp(tried, DOSES, EXPECTED)
    inside, above = (
        np.abs(of[..., None] - between) <= norm.ppf((1 + level) / 2) * SPREADS[:, None]
        for of in (PEOPLE, np.maximum(PEOPLE, EXPECTED[0] + norm.ppf(0.16) * SPREADS))
    )
    seen = inside.any(axis=2)
    assert seen.mean() > 0.8
    first, last = tried[inside.argmax(axis=2)], tried[::-1][above[..., ::-1].argmax(axis=2)]
    low, high = severity_intervals(SCALE, PEOPLE, level)
    np.testing.assert_allclose(low[seen], np.minimum(first, own)[seen], atol=2e-3)
    np.testing.assert_allclose(high[seen], np.maximum(last, own)[seen], atol=2e-3)
    assert (high - low)[high < DOSES[-1]].min() > 0.005  # no interval is a point


def test_intervals_hold_the_severity_and_grow_with_the_level():
    both = np.array(
        [
            [SCALE.severities(PEOPLE)] * 2,
            *(severity_intervals(SCALE, PEOPLE, level) for level in (0.5, 0.8, 0.95, 0.99)),
        ]
    )
    assert both.min() == 0
    assert (np.diff(both, axis=0) * np.array([-1, 1])[:, None, None] >= 0).all()  # low limits fall, high ones rise
    assert (np.diff((both[:, 1] - both[:, 0]).mean(axis=(1, 2))) > 0).all()


def test_centiles_are_shares_of_the_controls():
    """There are as many controls as centiles, so each control is at a whole percentage."""
    for pattern, column in enumerate(CONTROLS.T):
        below = [percentileofscore(column, value, kind="strict") * 101 / 100 for value in column]
        np.testing.assert_allclose(SCALE.centiles(CONTROLS)[:, pattern], below, atol=1e-6)
    assert SCALE.centiles(np.array([[-9.0, 9.0]])).tolist() == [[0, 100]]


@pytest.mark.parametrize("level", [0.0, 0.49, 0.999, 95, np.nan])
def test_levels_beyond_the_table_are_refused(level):
    refused_with("level", check_level, level)


def test_intervals_of_people_who_lack_regions_are_wider():
    sd, level = 0.1, 0.9
    scale = SeverityScale(KNOTS[None], quantiles=(DOSES[:, None] + sd * norm.ppf(LEVELS))[None])
    low, high = severity_intervals(scale, np.full((3, 1), 0.6), level, np.array([[0.0], [0.1], [0.3]]))
    for row, total in enumerate(np.hypot(sd, [0.0, 0.1, 0.3])):
        half = total * norm.ppf(0.95)
        np.testing.assert_allclose((low[row, 0], high[row, 0]), (max(0.6 - half, 0), 0.6 + half), atol=0.02)


# Held-out controls: against refits without them, and against simulated scores


def test_leaving_one_out_is_estimating_without_that_person():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(60, 9, 40), "sex": rng.choice(["F", "M"], 40)})
    volumes = 100 + rng.standard_normal((40, 3)) + np.outer(table["age"] - 60, [0.3, -0.1, 0.0])
    nobody, controls = np.zeros(40, bool), Preprocessing.fit(volumes, table).transform(volumes, table)
    found = leave_one_out(controls, leverage_of(design_of(table, nobody, None), nobody))
    columns = np.column_stack([np.ones(40), table["age"], table["sex"] == "M"]).astype(float)
    for person in range(40):
        others = np.arange(40) != person
        left = volumes - columns @ np.linalg.lstsq(columns[others], volumes[others], rcond=None)[0]
        np.testing.assert_allclose(found[person], 1 + 0.1 * left[person] / left[others].std(axis=0), atol=1e-10)
    assert found.std() > controls.std()


def held_out_scores(scores, held_out, n_repetitions):
    """Return held-out R-indices of the training controls."""
    return HeldOut.of(scores, held_out, n_repetitions).scores(scores, np.arange(scores.shape[1]))


def made_up(n_repetitions, n_people=4000, seed=0):
    """Return scores of controls by repetitions with their own means, each of which holds out another fifth."""
    rng = np.random.default_rng(seed)
    person = PERSON * rng.standard_normal((n_people, 2)) * [1, 2]
    scores = 0.1 + person + REPETITION * rng.standard_normal((n_repetitions, n_people, 2))
    fold = np.stack([rng.permutation(n_people) % 5 for _ in range(-(-n_repetitions // 5))])
    held_out = np.stack([fold[k // 5] == k % 5 for k in range(n_repetitions)])
    return scores + 0.2 * rng.standard_normal((n_repetitions, 1, 1)), held_out, person


@pytest.mark.parametrize("n_repetitions", [10, 20])
def test_held_out_scores_vary_as_the_consensus_would(n_repetitions):
    scores, held_out, person = made_up(n_repetitions)
    variances = split_variance(scores - scores.mean(axis=1, keepdims=True), held_out)
    np.testing.assert_allclose(variances, [[PERSON**2, (2 * PERSON) ** 2], [REPETITION**2] * 2], rtol=0.08)
    found = held_out_scores(scores, held_out, n_repetitions)
    expected = np.sqrt(np.array([PERSON, 2 * PERSON]) ** 2 + REPETITION**2 / n_repetitions)
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.05)
    few = np.stack([scores[held_out[:, k], k].mean(axis=0) for k in range(scores.shape[1])])
    assert few[:, 0].std() > 1.2 * expected[0]  # the spread of a plain mean
    assert np.corrcoef(found[:, 1], person[:, 1])[0, 1] > 0.95


def test_where_nobody_has_two_scores_repetitions_that_saw_a_person_say_how_much_they_differ():
    scores, held_out, _ = made_up(5)
    assert (held_out.sum(axis=0) == 1).all()
    centred = scores - scores.mean(axis=1, keepdims=True)
    variances = split_variance(centred, held_out, np.ones_like(held_out))
    np.testing.assert_allclose(variances, [[PERSON**2, (2 * PERSON) ** 2], [REPETITION**2] * 2], rtol=0.08)
    assert (split_variance(centred, held_out)[1] == 0).all()


def test_what_a_repetition_has_seen_does_not_count_and_who_was_always_seen_is_stretched():
    scores, held_out = (of[[0, 1, 2, 5, 6, 7]] for of in made_up(10)[:2])  # some controls were seen by all six
    # If nobody was held out, scores are the consensus.
    np.testing.assert_allclose(held_out_scores(scores, np.zeros_like(held_out), 6), scores.mean(axis=0))
    unseen = held_out.any(axis=0)
    found = held_out_scores(np.where(held_out[..., None], scores, 0.1 + 0.1 * (scores - 0.1)), held_out, 6)
    np.testing.assert_allclose(found[unseen], held_out_scores(scores, held_out, 6)[unseen])
    np.testing.assert_allclose(found[~unseen].std(axis=0), found[unseen].std(axis=0))


@pytest.mark.parametrize("n_repetitions", [3, 10])  # with three, some controls were seen by all
def test_later_scans_of_a_control_are_scored_as_the_first(n_repetitions):
    scores, held_out, _ = made_up(n_repetitions)
    unseen, some = HeldOut.of(scores, held_out, n_repetitions), np.array([5, 5, 17, 3])
    again = unseen.scores(scores[:, some], some)
    np.testing.assert_allclose(again, held_out_scores(scores, held_out, n_repetitions)[some])
    assert (unseen.scores(scores[:, some] + 0.01, some) > again).all()


def test_people_who_are_scored_once_say_nothing_of_repetitions():
    scores, known = np.random.default_rng(3).normal(size=(3, 2, 4)), np.arange(6).reshape(3, 2) % 2 == 0
    known[0, 1] = True  # only one repetition scored the second person
    np.testing.assert_allclose(_within(scores, known), scores[:, 0].var(axis=0, ddof=1))


def test_a_single_control_that_all_have_seen_is_not_stretched():
    scores, held_out = np.random.default_rng(0).normal(0.1, 0.05, (4, 9, 1)), np.zeros((4, 9), bool)
    held_out[np.arange(8) // 2, np.arange(8)] = True
    again = HeldOut.of(scores, held_out, 4).scores(scores[:, [8]] + 0.01, np.array([8]))
    assert again == pytest.approx(scores[:, held_out.any(axis=0)].mean() + 0.01, abs=0.05)


# Synthesised people, in a world where severities are added to brains and scores are brains with noise

N_CONTROLS, N_PATTERNS = 300, 2
CORRELATION = np.array([[1, 0.6], [0.6, 1]])


@pytest.fixture
def world(monkeypatch):
    """Return a function that makes models and controls; repetitions score brains that they learned from wrongly."""

    def begin(n_models):
        rng = np.random.default_rng(0)
        healthy = np.column_stack([PERSON * rng.standard_normal((N_CONTROLS, N_PATTERNS)), np.arange(N_CONTROLS)])
        folds = np.stack([held_out(N_CONTROLS, 0, number, 5) for number in range(n_models)])
        size = (n_models, N_PATTERNS)
        made_up = SimpleNamespace(
            pattern_changes=lambda *_: np.broadcast_to(np.eye(N_PATTERNS, N_PATTERNS + 1), (*size, N_PATTERNS + 1)),
            doses=lambda _, __, z: np.broadcast_to(z, (*size, len(z))),
            synthesise=lambda _, brains, z, __: (brains + np.pad(z, [(0, 0), (0, 1)]))[None],
            r_indices=lambda _, brains: (
                brains[None, :, :N_PATTERNS]
                + REPETITION * rng.standard_normal((n_models, len(brains), N_PATTERNS))
                + 9 * ~folds[:, brains[:, -1].astype(int), None]
            ),
        )
        monkeypatch.setattr(intervals, "inference", made_up)
        return {"weights": np.zeros(n_models)}, Healthy(healthy, folds)

    return begin


@pytest.mark.parametrize("n_models", [6, 10])
def test_intervals_of_made_up_people_hold_the_truth(world, n_models):
    scale, honest, _ = fit_scale(*world(n_models), "additive", CORRELATION, seed=1)
    rng, sd = np.random.default_rng(5), np.sqrt(PERSON**2 + REPETITION**2 / n_models)
    np.testing.assert_allclose(honest.std(axis=0), sd, rtol=0.15)
    for truth in (np.zeros(4000), rng.uniform(0.05, 1.2, 4000)):
        r = truth[:, None] + sd * rng.standard_normal((4000, N_PATTERNS))
        for level in (0.8, 0.95):
            low, high = severity_intervals(scale, r, level)
            held = ((low <= truth[:, None]) & (truth[:, None] <= high)).mean()
            expected = (1 + level) / 2 if not truth.any() else level  # no interval begins below 0
            assert held == pytest.approx(expected, abs=0.035)
    # New healthy people, ranked among the held-out controls
    fresh = scale.centiles(sd * rng.standard_normal((4000, N_PATTERNS)) + honest.mean(axis=0))
    np.testing.assert_allclose((fresh > 95).mean(axis=0), 0.05, atol=0.025)


@pytest.mark.parametrize("n_models", [3, 4])
def test_intervals_hold_the_truth_with_fewer_repetitions_than_folds(world, n_models):
    """Brains that every repetition has learned from, whose scores are wrong here, are not used."""
    scale = fit_scale(*world(n_models), "additive", CORRELATION, seed=1)[0]
    rng, sd = np.random.default_rng(5), np.sqrt(PERSON**2 + REPETITION**2 / n_models)
    truth = rng.uniform(0.05, 1.2, (4000, 1))
    low, high = severity_intervals(scale, truth + sd * rng.standard_normal((4000, N_PATTERNS)), 0.8)
    assert 0.78 < ((low <= truth) & (truth <= high)).mean() < 0.92
    assert (high - low).mean() < 4 * sd


def test_few_people_widen_intervals_by_what_maps_of_halves_leave_open(world):
    """If a half's second map leaks into the first pattern, the R-index of that pattern shifts by z₂ times the leak."""
    models, healthy = world(6)
    scale = fit_scale(models, healthy, "additive", CORRELATION, seed=1)[0]
    assert widened(scale, models, healthy.brains, np.empty((0, N_PATTERNS, 3)), 1) is scale  # no halves
    leak, everybody = 0.3, np.eye(N_PATTERNS, N_PATTERNS + 1)
    halves = np.stack([everybody, *(everybody + np.outer([0, sign * leak], [1, 0, 0]) for sign in (1, -1) * 5)])
    apart = intervals.inference.r_indices
    quiet = np.random.default_rng(3).standard_normal(N_PATTERNS)  # the same for everybody: only maps differ
    intervals.inference.r_indices = lambda _, brains: (brains[:, :N_PATTERNS] + quiet)[None]
    wide = widened(scale, models, healthy.brains, halves, seed=1)
    intervals.inference.r_indices = apart
    z = draw_others(np.repeat(DOSES, 4000), 0, np.eye(N_PATTERNS), np.random.default_rng(9))[:, 1]
    np.testing.assert_array_equal(wide.curves, scale.curves)
    middle = len(LEVELS) // 2
    np.testing.assert_allclose(wide.quantiles[:, :, middle], scale.quantiles[:, :, middle], atol=1e-6)
    before, after = (of.quantiles[0, :, -4] - of.quantiles[0, :, middle] for of in (scale, wide))
    expected = np.hypot(before, norm.ppf(LEVELS[-4]) * leak * np.median(z) / norm.ppf(0.75))
    np.testing.assert_allclose(after.mean(), expected.mean(), rtol=0.05)
    np.testing.assert_allclose(after, expected, rtol=0.2)
    np.testing.assert_allclose(wide.quantiles[1], scale.quantiles[1], atol=1e-6)  # the second pattern is unaffected


def test_curves_rise_from_none_to_all_of_the_change():
    models = plain.stacked([plain.random_parameters(12, 3, seed) for seed in (0, 1)])
    brains = np.random.default_rng(3).normal(1, 0.1, (30, 12))
    curves = fit_curves(models, brains)
    raw = inference.doses(models, brains, KNOTS).mean(axis=0)
    np.testing.assert_allclose(curves, np.clip(np.maximum.accumulate(raw, axis=1), 0, None), atol=0.02)
    np.testing.assert_allclose(curves[:, [0, -1]], np.tile([0.0, 1.0], (3, 1)), atol=1e-12)
    assert (np.diff(curves, axis=1) > 0).all()


def test_severities_at_the_edges_leave_others_alone_where_nothing_correlates():
    z = draw_others(np.array([0.0, 1.0, 0.5]), 0, np.eye(2), np.random.default_rng(0))
    assert (z[:, 0].tolist(), np.isfinite(z).all()) == ([0.0, 1.0, 0.5], True)


SD = 0.05


def readings(n_people=4000):
    """Return readings of two noisy scans: 0.8 of the severity, plus differences between people with an sd of 0.3."""
    rng = np.random.default_rng(0)
    person, first, second = 0.3 * rng.standard_normal((n_people, 1)), *SD * rng.standard_normal((2, n_people, 1))
    return np.stack([0.8 * DOSES + person + noise for noise in (first, second)])


def test_limits_are_those_of_noise_alone_and_in_the_unit_of_severities():
    """Differences between people cancel out; a measured change of 0.16 stands for 0.2."""
    low, high = change_limits(readings(), np.array([0.0, 0.16]), np.array([0.5, 0.5]), 0.9, 20)
    half = student_t.isf(0.05, 20) * np.sqrt(2) * SD / 0.8
    np.testing.assert_allclose((low[0], high[0]), (-half, half), atol=0.03)
    assert (low[1] + high[1]) / 2 == pytest.approx(0.2, abs=0.03)
    assert high[1] - low[1] > high[0] - low[0]  # uncertainty grows with the change


def test_the_visits_lie_on_either_side_of_their_mean():
    """If readings rise half as much above a severity of 1, a change of 0.3 around it stands for one of about 0.5."""
    bent = np.interp(DOSES, [0, 1, 2], [0, 0.8, 1.2]) + np.zeros((2, 100, 1))
    np.testing.assert_allclose(change_limits(bent, np.array([0.3]), np.ones(1), 0.9), [[0.35], [0.85]], atol=0.01)


@pytest.mark.parametrize("surprise", [-1.9, 1.9])
def test_small_changes_are_inside_where_noise_is_small(surprise):
    """Limits at the outermost likely values of the grid would exclude true changes just beyond them."""
    scans = readings()[0] + 0.01 * np.random.default_rng(1).standard_normal((2, 4000, 1))
    true = np.linspace(-0.05, 0.05, 18)
    low, high = change_limits(scans, 0.8 * true + surprise * np.sqrt(2) * 0.01, np.full(18, 0.5), 0.95)
    assert ((low < true) & (true < high) & (high - low < 0.12)).all()


def test_limits_stay_within_what_can_be():
    low, high = change_limits(readings(), np.array([-0.1, 0.0, 9.0]), np.array([0.0, 1.9, 1.0]), 0.95)
    assert np.isnan([low[2], high[2]]).all()  # no change would give that reading
    assert ((-DOSES[-1] <= low[:2]) & (low[:2] < high[:2]) & (high[:2] <= DOSES[-1])).all()


@pytest.fixture(scope="module")
def model():
    cohort = simulate_cohort("basic", n_controls=150, n_patients=150, n_patterns=2, seed=3).table
    regions = cohort.drop(columns=["participant_id", "diagnosis", "age", "sex"])
    return SurrealGAN(2, n_repetitions=3, preset="linear", random_state=0).fit(regions, cohort["diagnosis"] == "PT")


def seen_twice(model, n_controls, seed=4):
    people = simulate_cohort(
        "basic",
        n_controls=n_controls,
        n_patients=120,
        n_patterns=2,
        n_visits=2,
        progression=0,
        scan_noise=0.3,
        seed=seed,
    ).table
    scaled = model.prepare(people[list(model.feature_names_in_)])
    r_indices = model.transform(scaled)
    scores = np.column_stack([r_indices, model.scale_.severities(r_indices)]).T
    columns = dict(zip(("r1", "r2", "severity1", "severity2"), scores, strict=True))
    years = people["visit"].map({"bl": 0.0, "m12": 1.0})
    who = people[["participant_id"]].assign(years=years, first_visit=years == 0)
    who["group"] = np.where(people["diagnosis"] == "PT", "patient", "control")
    z_scores, nothing = pd.DataFrame((scaled.values - 1) / SCALED_SD), pd.DataFrame()
    return Results(who.assign(**columns), z_scores, nothing, nothing, nothing)


@pytest.mark.filterwarnings("ignore::rindices.problems.OutsideTraining")
def test_unchanged_people_have_no_change_inside_and_without_repeated_controls_there_is_no_interval(model):
    change = change_of(model, seen_twice(model, 40), Summary(status="done"))["change"]
    patients = change[change["group"] == "patient"]
    low, high, reliable = (
        patients.filter(regex=f"^severity[12]_{name}$") for name in ("change_low", "change_high", "reliable")
    )
    inside = (low.to_numpy() <= 0) & (high.to_numpy() >= 0)
    assert inside.shape == (120, 2)
    assert ((reliable == 0) == inside).all(axis=None)
    assert (high.to_numpy() - low.to_numpy() > 0.01).all()
    assert inside.mean() > 0.9
    patients_only = seen_twice(model, 20)
    patients_only.r_indices["group"] = "patient"
    assert (
        change_of(model, patients_only, Summary(status="done"))["change"]
        .filter(regex="low|high|reliable")
        .isna()
        .all(axis=None)
    )
