"""The scale of severities, against formulas and a search over all severities."""

import numpy as np
import pytest
from scipy.stats import norm, percentileofscore

from rindices.errors import InputError
from rindices.scoring.scale import CENTILES, DOSES, KNOTS, LEVELS, SeverityScale, check_level

SD = np.array([0.06, 0.12])  # of R-indices of people of one severity, by pattern
CONTROLS = np.random.default_rng(0).normal(0.1, 0.05, (101, 2))


def expected_r(severity):
    """R-index that people of a severity have on average: the inverse of the curve, whose slope at 1 is 2."""
    return np.where(severity < 1, np.sqrt(np.clip(severity, 0, 1)), 1 + (severity - 1) / 2)


@pytest.fixture(scope="module")
def scale():
    curves = np.tile(KNOTS**2, (2, 1))
    quantiles = expected_r(DOSES)[None, :, None] + SD[:, None, None] * norm.ppf(LEVELS)
    return SeverityScale(curves, np.quantile(CONTROLS, CENTILES, axis=0).T, quantiles)


@pytest.fixture(scope="module")
def people():
    return np.random.default_rng(1).uniform(-0.3, 1.6, (500, 2))


def test_severities_follow_the_curve_and_go_on_straight_outside(scale):
    r = np.array([0.0, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(scale.severities(np.column_stack([r, r])), np.column_stack([r, r]) ** 2, atol=1e-9)
    first, last = KNOTS[1], 1 + KNOTS[-2]  # slopes of the first and the last piece
    found = scale.severities(np.array([[-0.4, 1.5], [-0.1, 2.0]]))
    np.testing.assert_allclose(found, [[-0.4 * first, 1 + 0.5 * last], [-0.1 * first, 1 + last]])
    r = np.linspace(-1, 3, 400)
    assert (np.diff(scale.severities(np.column_stack([r, r])), axis=0) > 0).all()


def test_intervals_hold_every_severity_with_which_the_score_is_no_surprise(scale, people):
    """All severities are tried: where the score is within the central 95 %, the interval has to reach."""
    low, high = scale.intervals(people, 0.95)
    tried, half = np.linspace(0, 2, 2001), norm.ppf(0.975) * SD
    # Quantiles are known at some severities, and straight between.
    between = np.interp(tried, DOSES, expected_r(DOSES))
    for pattern in range(2):
        inside = np.abs(people[:, [pattern]] - between) <= half[pattern]
        seen = inside.any(axis=1)
        first, last = tried[inside.argmax(axis=1)], tried[::-1][inside[:, ::-1].argmax(axis=1)]
        own = np.maximum(scale.severities(people)[:, pattern], 0)
        assert seen.sum() > 400
        np.testing.assert_allclose(low[seen, pattern], np.minimum(first, own)[seen], atol=2e-3)
        np.testing.assert_allclose(high[seen, pattern], np.maximum(last, own)[seen], atol=2e-3)


def test_intervals_hold_the_severity_and_grow_with_the_level(scale, people):
    own = np.maximum(scale.severities(people), 0)
    inner = (own, own)
    for level in (0.5, 0.8, 0.95, 0.99):
        low, high = scale.intervals(people, level)
        assert ((low >= 0) & (low <= inner[0]) & (inner[1] <= high)).all()
        assert (high - low).mean() > (inner[1] - inner[0]).mean()
        inner = low, high


def test_severities_between_the_levels_of_the_table_are_those_of_a_normal_scatter(scale):
    low, high = scale.intervals(np.full((1, 2), expected_r(np.array(0.8))), 0.9)  # 5 % and 95 % are in it
    at = norm.ppf(0.87 / 2 + 0.5)
    inner = scale.intervals(np.full((1, 2), expected_r(np.array(0.8))), 0.87)
    edges = [np.interp(expected_r(np.array(0.8)), expected_r(DOSES) + sign * at * SD[0], DOSES) for sign in (1, -1)]
    np.testing.assert_allclose([inner[0][0, 0], inner[1][0, 0]], edges, rtol=1e-6)
    assert ((low < inner[0]) & (inner[1] < high)).all()


def test_centiles_are_shares_of_the_controls(scale, people):
    found = scale.centiles(np.concatenate([CONTROLS, people]))
    # As many controls as there are centiles: each is at a whole per cent.
    for pattern, column in enumerate(CONTROLS.T):
        below = [percentileofscore(column, value, kind="strict") * 101 / 100 for value in column]
        np.testing.assert_allclose(found[:101, pattern], below, atol=1e-6)
    assert found.min() == 0
    assert found.max() == 100


def test_what_is_not_known_is_not_a_number(people):
    curve_only = SeverityScale(np.tile(KNOTS, (2, 1)))
    for unknown in (curve_only.centiles(people), *curve_only.intervals(people, 0.95)):
        assert unknown.shape == people.shape
        assert np.isnan(unknown).all()
    np.testing.assert_allclose(curve_only.severities(people), people)


@pytest.mark.parametrize("level", [0.0, 0.49, 0.999, 1.0, 95, np.nan])
def test_levels_beyond_the_table_are_refused(level):
    assert check_level(0.8) == 0.8
    with pytest.raises(InputError, match="level"):
        check_level(level)
