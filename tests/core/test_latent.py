import jax
import numpy as np
import pytest
from scipy.stats import kstest

from rindices.core.latent import draw

MANY, N_PATTERNS = 20_000, 3


@pytest.fixture(scope="module")
def many():
    return jax.tree.map(np.asarray, draw(jax.random.key(0), MANY, N_PATTERNS, 7, 5))


def test_shapes(many):
    assert many.controls.shape == many.patients.shape == (MANY,)
    assert many.earlier.shape == many.later.shape == many.near_control.shape == (MANY, N_PATTERNS)


def test_severities_are_uniform_and_independent(many):
    assert min(kstest(many.earlier[:, i], "uniform").pvalue for i in range(N_PATTERNS)) > 1e-3
    assert np.abs(np.corrcoef(many.earlier.T) - np.eye(N_PATTERNS)).max() < 0.03


def test_later_is_uniform_between_earlier_and_one(many):
    assert (many.later >= many.earlier).all()
    assert many.later.max() <= 1
    share = ((many.later - many.earlier) / (1 - many.earlier)).ravel()
    assert kstest(share, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(share, many.earlier.ravel())[0, 1]) < 0.03


def test_near_control_is_uniform_below_a_twentieth(many):
    assert many.near_control.min() >= 0
    assert many.near_control.max() < 0.05
    assert kstest(many.near_control.ravel() / 0.05, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(many.near_control.ravel(), many.earlier.ravel())[0, 1]) < 0.03


def test_rows_are_drawn_evenly_from_all_people(many):
    for rows, n_people in ((many.controls, 7), (many.patients, 5)):
        counts = np.bincount(rows, minlength=n_people)
        assert len(counts) == n_people
        np.testing.assert_allclose(counts / MANY, 1 / n_people, atol=0.015)
    assert abs(np.corrcoef(many.controls, many.patients)[0, 1]) < 0.03
    assert abs(np.corrcoef(many.controls, many.earlier[:, 0])[0, 1]) < 0.03


@pytest.mark.parametrize("n_people", [1, 2, 3])
def test_rows_stay_within_a_tiny_group(n_people):
    rows = np.asarray(draw(jax.random.key(1), 500, 1, n_people, 2**24).controls)
    assert set(rows) == set(range(n_people))


def test_draw_that_rounds_to_one_is_the_last_row(monkeypatch):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jax.numpy.ones(shape))
    drawn = draw(jax.random.key(0), 4, 2, 37, 1)
    assert (np.asarray(drawn.controls) == 36).all()
    assert (np.asarray(drawn.patients) == 0).all()


def test_different_keys_give_different_draws():
    first, second = (draw(jax.random.key(seed), 5, 2, 100, 100) for seed in (0, 1))
    assert not np.array_equal(first.earlier, second.earlier)
    assert not np.array_equal(first.controls, second.controls)
