"""The scale of severities, against formulas and a search over all severities."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, percentileofscore

from rindices.problems import InputError
from rindices.scoring.intervals import severity_intervals, usual_severities
from rindices.scoring.severity_and_reference import CENTILES, DOSES, KNOTS, LEVELS, SeverityScale
from rindices.value_kinds import check_level

SD = np.array([0.06, 0.12])  # of R-indices of people of one severity, by pattern
CONTROLS = np.random.default_rng(0).normal(0.1, 0.05, (101, 2))
PEOPLE = np.random.default_rng(1).uniform(-0.3, 1.6, (500, 2))
# R-indices that people of each severity have on average: the inverse of the curve, whose slope at 1 is 2.
EXPECTED = np.where(DOSES < 1, np.sqrt(DOSES), 1 + (DOSES - 1) / 2)
SCALE = SeverityScale(
    np.tile(KNOTS**2, (2, 1)),
    np.quantile(CONTROLS, CENTILES, axis=0).T,
    EXPECTED[None, :, None] + SD[:, None, None] * norm.ppf(LEVELS),
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
        np.abs(of[..., None] - between) <= norm.ppf((1 + level) / 2) * SD[:, None]
        for of in (PEOPLE, np.maximum(PEOPLE, EXPECTED[0] + norm.ppf(0.16) * SD))
    )
    seen = inside.any(axis=2)
    assert seen.mean() > 0.8
    first, last = tried[inside.argmax(axis=2)], tried[::-1][above[..., ::-1].argmax(axis=2)]
    low, high = severity_intervals(SCALE, PEOPLE, level)
    np.testing.assert_allclose(low[seen], np.minimum(first, own)[seen], atol=2e-3)
    np.testing.assert_allclose(high[seen], np.maximum(last, own)[seen], atol=2e-3)
    assert (high - low)[high < DOSES[-1]].min() > 0.005  # nobody's interval is a point


def test_intervals_hold_the_severity_and_grow_with_the_level():
    inner = SCALE.severities(PEOPLE)
    both = np.array([(inner, inner), *(severity_intervals(SCALE, PEOPLE, level) for level in (0.5, 0.8, 0.95, 0.99))])
    assert both.min() == 0
    assert (np.diff(both[:, 0], axis=0) <= 0).all()
    assert (np.diff(both[:, 1], axis=0) >= 0).all()
    assert (np.diff((both[:, 1] - both[:, 0]).mean(axis=(1, 2))) > 0).all()


def test_centiles_are_shares_of_the_controls():
    """There are as many controls as centiles, so each of them is at a whole per cent."""
    for pattern, column in enumerate(CONTROLS.T):
        below = [percentileofscore(column, value, kind="strict") * 101 / 100 for value in column]
        np.testing.assert_allclose(SCALE.centiles(CONTROLS)[:, pattern], below, atol=1e-6)
    assert SCALE.centiles(np.array([[-9.0, 9.0]])).tolist() == [[0, 100]]


@pytest.mark.parametrize("level", [0.0, 0.49, 0.999, 95, np.nan])
def test_levels_beyond_the_table_are_refused(level):
    with pytest.raises(InputError, match="level"):
        check_level(level)


def test_intervals_of_people_who_lack_regions_are_wider():
    sd, level = 0.1, 0.9
    scale = SeverityScale(KNOTS[None], quantiles=(DOSES[:, None] + sd * norm.ppf(LEVELS))[None])
    low, high = severity_intervals(scale, np.full((3, 1), 0.6), level, np.array([[0.0], [0.1], [0.3]]))
    for row, total in enumerate(np.hypot(sd, [0.0, 0.1, 0.3])):
        half = total * norm.ppf(0.95)
        np.testing.assert_allclose((low[row, 0], high[row, 0]), (max(0.6 - half, 0), 0.6 + half), atol=0.02)
