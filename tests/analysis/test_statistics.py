"""A small version of experiments/calibrate_associations.py, with made-up R-indices that are skewed."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import false_discovery_control

from rindices.analysis import associations
from rindices.analysis.statistics import (
    basis,
    correlation,
    explained_variance,
    residuals,
    share_limits,
)


@pytest.mark.parametrize(("between", "within"), [(2, 27), (4, 395), (2, 49_997)])
def test_limits_of_a_share_invert_the_noncentral_f(between, within):
    size, ratio = between + within + 1, stats.f.isf(1e-4, between, within) * np.array([1.0, 3.0])
    for shares, tail in zip(share_limits(ratio, between, within), (0.975, 0.025), strict=True):
        np.testing.assert_allclose(stats.ncf.cdf(ratio, between, within, size * shares / (1 - shares)), tail, atol=1e-6)
    low, high = share_limits(stats.f.ppf([0.01, 0.5, 0.97], between, within), between, within)
    assert (low == 0).all()
    assert (high > 0).tolist() == [False, True, True]


def test_residuals_are_those_of_least_squares():
    rng = np.random.default_rng(1)
    given, values = rng.standard_normal((40, 2)), 1e3 + rng.standard_normal((40, 2))
    values[:, 1] = 7 - 3 * given[:, 0]
    design = np.column_stack([np.ones(40), given])
    expected = values[:, 0] - design @ np.linalg.lstsq(design, values[:, 0])[0]
    found = residuals(values, basis(given))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)
    assert (found[:, 1] == 0).all()


N_PEOPLE, N_SETS = 20_000, 500


def population(seed, noise):
    """R-indices of which most are near 0, and a score that correlates with them."""
    rng = np.random.default_rng(seed)
    r = rng.beta(0.7, 2.5, N_PEOPLE) + 0.05 * rng.standard_normal(N_PEOPLE)
    drawn = rng.standard_normal(N_PEOPLE) if noise == "normal" else rng.exponential(size=N_PEOPLE) - 1
    return r, 0.5 * (r - r.mean()) / r.std() + np.sqrt(0.75) * drawn, rng


@pytest.mark.parametrize("noise", ["normal", "skewed"])
@pytest.mark.parametrize("shares", [None, (0.8, 0.2), (0.6, 0.25, 0.15)], ids=["line", "two values", "three values"])
def test_intervals_hold_the_truth_in_95_percent(shares, noise):
    r, score, rng = population(9, noise)
    if shares is not None:
        score = np.searchsorted(np.quantile(score, np.cumsum(shares)[:-1]), score).astype(float)

    def estimate(chosen):
        own, values = r[chosen, None], score[chosen]
        if shares is not None and len(shares) == 3:
            return explained_variance(own - own.mean(), (values[:, None] == [1, 2]).astype(float))
        return correlation(own - own.mean(), values - values.mean())

    truth = estimate(np.arange(N_PEOPLE)).value[0]
    found = [estimate(rng.integers(N_PEOPLE, size=150)) for _ in range(N_SETS)]
    held = np.mean([each.low[0] <= truth <= each.high[0] for each in found])
    assert 0.925 <= held <= 0.975  # 0.95 and 2.5 standard errors; Fisher's z and the noncentral F fall below


def test_false_discoveries_are_rare_where_nothing_is_associated():
    r, _, rng = population(8, "normal")
    p = []
    for _ in range(4):  # 200 data sets of three patterns each share their variables
        chosen = pd.DataFrame(rng.choice(r, (100, 600)))
        scores = {f"skewed{k}": rng.exponential(size=100) for k in range(4)}
        scores |= {f"two{k}": rng.choice(["no", "yes"], 100, p=[0.7, 0.3]) for k in range(3)}
        scores |= {f"three{k}": rng.choice(list("ABC"), 100) for k in range(3)}
        p.append(associations(chosen, pd.DataFrame(scores))["p"].to_numpy().reshape(200, 30))
    found = false_discovery_control(np.concatenate(p), axis=1) < 0.05
    assert 0.045 < np.mean(np.concatenate(p) < 0.05) < 0.055
    assert found.any(axis=1).mean() <= 0.065
