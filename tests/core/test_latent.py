import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest, norm

from rindices.core.losses import copula_density, correlated, divergence_from_independence, draw, unit_rows
from tests.core import plain

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
    assert ((many.earlier <= many.later) & (many.later <= 1)).all()
    share = ((many.later - many.earlier) / (1 - many.earlier)).ravel()
    assert kstest(share, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(share, many.earlier.ravel())[0, 1]) < 0.03


def test_near_control_is_uniform_below_a_twentieth(many):
    assert 0 <= many.near_control.min() <= many.near_control.max() < 0.05
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
    assert set(np.asarray(draw(jax.random.key(1), 500, 1, n_people, 2**24).controls)) == set(range(n_people))


def test_draw_that_rounds_to_one_is_the_last_row(monkeypatch):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jax.numpy.ones(shape))
    drawn = draw(jax.random.key(0), 4, 2, 37, 1)
    assert ({*drawn.controls.tolist()}, {*drawn.patients.tolist()}) == ({36}, {0})


def test_different_keys_give_different_draws():
    first, second = (draw(jax.random.key(seed), 5, 2, 100, 100) for seed in (0, 1))
    assert not np.array_equal(first.earlier, second.earlier)
    assert not np.array_equal(first.controls, second.controls)


RAW = np.array(
    [[0.3, 9.0, 9.0], [0.8, -0.5, 9.0], [-0.4, 0.7, 0.2]], np.float32
)  # entries above the diagonal are ignored


def test_free_numbers_become_a_cholesky_factor():
    factor = np.asarray(unit_rows(RAW))
    np.testing.assert_allclose(factor, plain.factor_of(RAW), rtol=1e-6)
    correlation = factor @ factor.T
    np.testing.assert_allclose(np.diag(correlation), 1, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.cholesky(correlation), factor, atol=1e-6)
    assert np.array_equal(unit_rows(np.zeros((4, 4))), np.eye(4))


@pytest.mark.parametrize("size", [5.0, 100.0, 1e20, 3e38])
def test_very_large_numbers_still_give_a_factor(size):
    for signs in np.random.default_rng(0).choice([-1.0, 1.0], (8, 3, 3)):
        factor = np.asarray(unit_rows(jnp.asarray(size * signs, jnp.float32)))
        np.testing.assert_allclose(np.linalg.norm(factor, axis=1), 1, rtol=1e-5)
        assert (np.diag(factor) > 0).all()
        density = copula_density(jnp.array([[0.0, 1.0, 0.5]]), factor)
        assert np.isfinite([divergence_from_independence(factor), *density]).all()


def test_correlated_severities_are_uniform_with_correlated_normal_scores(many):
    factor = np.asarray(unit_rows(RAW))
    severities = np.asarray(correlated(many.earlier, factor))
    assert min(kstest(severities[:, i], "uniform").pvalue for i in range(N_PATTERNS)) > 1e-3
    np.testing.assert_allclose(np.corrcoef(norm.ppf(severities).T), factor @ factor.T, atol=0.02)
    np.testing.assert_allclose(correlated(many.earlier, np.eye(3)), np.clip(many.earlier, 1e-4, 1 - 1e-4), atol=1e-5)


def test_density_is_that_of_the_copula(many):
    factor, z = np.asarray(unit_rows(RAW), float), many.earlier[:500]
    np.testing.assert_allclose(copula_density(z, factor), plain.copula_density(z, factor), rtol=2e-3)
    np.testing.assert_allclose(copula_density(z, np.eye(3)), 1, rtol=1e-6)


def test_density_is_one_on_average(many):
    assert np.mean(copula_density(many.earlier, np.asarray(unit_rows(0.5 * RAW)))) == pytest.approx(1, abs=0.03)


def test_divergence_follows_its_formula():
    factor = np.asarray(unit_rows(RAW), float)
    assert float(divergence_from_independence(factor)) == pytest.approx(plain.divergence(factor), rel=1e-4)
    assert float(divergence_from_independence(np.eye(3))) == 0


def test_everything_is_finite_at_the_edges():
    edges = jnp.array(np.stack(np.meshgrid(*[[0.0, 1e-30, 0.5, 1 - 1e-7, 1.0]] * 3), axis=-1).reshape(-1, 3))

    def total(z, raw):
        factor = unit_rows(raw)
        severities, density = correlated(z, factor), copula_density(z, factor)
        return severities.sum() + density.sum() + divergence_from_independence(factor), (severities, density)

    for raw in (RAW, np.zeros((3, 3), np.float32), 5 * RAW):
        gradients, (severities, density) = jax.grad(total, argnums=(0, 1), has_aux=True)(edges, jnp.asarray(raw))
        assert all(np.isfinite(array).all() for array in (*gradients, severities, density))
        assert 0 <= np.min(severities) <= np.max(severities) <= 1
        assert np.min(density) >= 0
