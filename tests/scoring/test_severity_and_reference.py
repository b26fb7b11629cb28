"""The scale of severities, against formulas and a search over all severities."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, percentileofscore

from rindices.preprocessing import Preprocessing
from rindices.preprocessing.covariates import design_of, leverage_of
from rindices.scoring.intervals import severity_intervals, usual_severities
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
from rindices.value_kinds import check_level
from tests.refusal import refused_with

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
    r = np.tile([[-0.4], [0.0], [0.25], [0.5], [1.0], [1.5]], 2)
    last = 1 + KNOTS[-2]  # slope of the last piece
    expected = np.tile([[0.0], [0.0], [0.25**2], [0.5**2], [1.0], [1 + 0.5 * last]], 2)
    np.testing.assert_allclose(SCALE.severities(r), expected, atol=1e-9)
    assert (np.diff(SCALE.severities(np.tile(np.linspace(0, 1.5, 400)[:, None], 2)), axis=0) > 0).all()
    assert (SCALE.severities(np.full((1, 2), 9.0)) == DOSES[-1]).all()  # nobody knows of more


def test_a_usual_severity_is_the_one_whose_people_have_such_an_r_index_in_the_median():
    found = usual_severities(SCALE.quantiles)
    root = brentq(lambda dose: np.interp(dose, DOSES, EXPECTED) - KNOTS[9], 0, 2)
    np.testing.assert_allclose(found[:, 9], root, atol=1e-6)
    np.testing.assert_allclose(usual_severities(SCALE.quantiles + 0.2)[:, :4], 0, atol=1e-6)  # less than healthy people


@pytest.mark.parametrize("level", [0.87, 0.95])
def test_intervals_hold_every_severity_with_which_the_score_is_no_surprise(level):
    """All severities are tried: where the score is among their central ones, the interval has to reach.

    The upper limit of whoever scores below 16 % of healthy people is that of somebody who scores as they do.
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
    assert (high - low)[high < DOSES[-1]].min() > 0.005  # nobody's interval is a point


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
    """There are as many controls as centiles, so each of them is at a whole per cent."""
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


# Controls whom nobody has seen: against refits without them, and against simulated scores.


PERSON, REPETITION = 0.10, 0.06  # sd of made-up scores


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
    """Return the R-indices of the controls that it was learned from."""
    return HeldOut.of(scores, held_out, n_repetitions).scores(scores, np.arange(scores.shape[1]))


def made_up(n_repetitions, n_people=4000, seed=0):
    """Scores of controls by repetitions with means of their own; each leaves out another fifth."""
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
    np.testing.assert_allclose(variances.person, [PERSON**2, (2 * PERSON) ** 2], rtol=0.08)
    np.testing.assert_allclose(variances.repetition, REPETITION**2, rtol=0.08)
    found = held_out_scores(scores, held_out, n_repetitions)
    expected = np.sqrt(np.array([PERSON, 2 * PERSON]) ** 2 + REPETITION**2 / n_repetitions)
    np.testing.assert_allclose(found.std(axis=0), expected, rtol=0.05)
    few = np.stack([scores[held_out[:, k], k].mean(axis=0) for k in range(scores.shape[1])])
    assert few[:, 0].std() > 1.2 * expected[0]  # what a plain mean would give
    assert np.corrcoef(found[:, 1], person[:, 1])[0, 1] > 0.95


def test_where_nobody_has_two_scores_repetitions_that_saw_a_person_say_how_much_they_differ():
    scores, held_out, _ = made_up(5)
    assert (held_out.sum(axis=0) == 1).all()
    centred = scores - scores.mean(axis=1, keepdims=True)
    variances = split_variance(centred, held_out, np.ones_like(held_out))
    np.testing.assert_allclose(variances.person, [PERSON**2, (2 * PERSON) ** 2], rtol=0.08)
    np.testing.assert_allclose(variances.repetition, REPETITION**2, rtol=0.08)
    assert (split_variance(centred, held_out).repetition == 0).all()


def test_what_a_repetition_has_seen_does_not_count_and_who_was_always_seen_is_stretched():
    scores, held_out, _ = made_up(3)
    unseen = held_out.any(axis=0)
    found = held_out_scores(np.where(held_out[..., None], scores, 0.1 + 0.1 * (scores - 0.1)), held_out, 3)
    np.testing.assert_allclose(found[unseen], held_out_scores(scores, held_out, 3)[unseen])
    np.testing.assert_allclose(found[~unseen].std(axis=0), found[unseen].std(axis=0))


def test_without_held_out_controls_scores_are_the_consensus():
    scores, held_out, _ = made_up(3)
    np.testing.assert_allclose(held_out_scores(scores, 0 * held_out > 0, 3), scores.mean(axis=0))


@pytest.mark.parametrize("n_repetitions", [3, 10])  # with three, some controls were seen by all
def test_later_scans_of_a_control_are_scored_as_the_first(n_repetitions):
    scores, held_out, _ = made_up(n_repetitions)
    unseen, some = HeldOut.of(scores, held_out, n_repetitions), np.array([5, 5, 17, 3])
    again = unseen.scores(scores[:, some], some)
    np.testing.assert_allclose(again, held_out_scores(scores, held_out, n_repetitions)[some])
    assert (unseen.scores(scores[:, some] + 0.01, some) > again).all()


def test_people_who_are_scored_once_say_nothing_of_repetitions():
    scores, known = np.random.default_rng(3).normal(size=(3, 2, 4)), np.arange(6).reshape(3, 2) % 2 == 0
    known[0, 1] = True  # the second person: by one repetition only
    np.testing.assert_allclose(_within(scores, known), scores[:, 0].var(axis=0, ddof=1))


def test_a_single_control_that_all_have_seen_is_not_stretched():
    scores, held_out = np.random.default_rng(0).normal(0.1, 0.05, (4, 9, 1)), np.zeros((4, 9), bool)
    held_out[np.arange(8) // 2, np.arange(8)] = True
    again = HeldOut.of(scores, held_out, 4).scores(scores[:, [8]] + 0.01, np.array([8]))
    assert again == pytest.approx(scores[:, held_out.any(axis=0)].mean() + 0.01, abs=0.05)
