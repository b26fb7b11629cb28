import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kstest, norm

from rindices.core import losses
from rindices.presets import LossWeights
from tests.core import plain

RNG = np.random.default_rng(0)
LOGITS, OTHER_LOGITS = RNG.normal(0, 2, (2, 9, 2))
CHANGES, OTHER_CHANGES = RNG.normal(0, 1, (2, 6, 3, 8))


SURE = jnp.array([[-20.0, 20.0]])
BEFORE, AFTER = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 0.0], [4.0, 5.0]])
Z, AT_ITS_OWN = jnp.array([[0.2, 0.8]]), jnp.array([[[0.2, 0.0], [0.0, 0.8]]])
APART = jnp.array([[[3.0, -1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]]])
ALIKE = jnp.array([[[1.0, 2.0], [-2.0, -4.0]]])  # signs and sizes do not matter: both entries off the diagonal are 1
OPPOSITE = jnp.array([[[1.0, 0.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, -1.0]]])  # the average is orthogonal
EARLIER = jnp.array([[1.0, -2.0, 3.0, -1.0]])
LATER = jnp.array([[2.0, -1.0, -5.0, 1.5]])  # only the second falls, by 1


@pytest.mark.parametrize(
    ("loss", "given", "expected"),
    [
        (losses.cross_entropy, (LOGITS, 0), plain.cross_entropy(LOGITS, 0)),
        # With two classes, softmax is the logistic function of the difference.
        (losses.cross_entropy, (LOGITS, 1), -np.log(expit(LOGITS[:, 1] - LOGITS[:, 0])).mean()),
        # The discriminator should call patients 1 and fakes 0.
        (
            losses.discriminator_loss,
            (LOGITS, OTHER_LOGITS),
            (plain.cross_entropy(LOGITS, 1) + plain.cross_entropy(OTHER_LOGITS, 0)) / 2,
        ),
        (losses.discriminator_loss, (jnp.zeros((4, 2)), jnp.ones((4, 2))), np.log(2)),
        (losses.discriminator_loss, (SURE, -SURE), 0),
        (losses.discriminator_loss, (-SURE, SURE), 40),
        (losses.absolute_change, (AFTER, BEFORE), (0 + 2 + 1 + 1) / 4),
        (losses.decomposition, (jnp.full((2, 3, 5), 3.0), jnp.ones((2, 3, 5))), 4),
        (
            losses.decomposition,
            (CHANGES, OTHER_CHANGES),
            np.linalg.norm(CHANGES - OTHER_CHANGES) ** 2 / CHANGES.size,
        ),
        # Each severity should be read from its own pattern only.
        (losses.reconstruction, (AT_ITS_OWN, Z), 0),
        (losses.reconstruction, (AT_ITS_OWN[:, ::-1], Z), (2 * 0.2**2 + 2 * 0.8**2) / 4),
        (losses.reconstruction, (AT_ITS_OWN.at[0, 0, 1].set(0.6), Z), 0.36 / 4),
        *((loss, (APART,), 0) for loss in (losses.orthogonality_of_batch, losses.orthogonality_of_person)),
        *((loss, (ALIKE,), 2 / 4) for loss in (losses.orthogonality_of_batch, losses.orthogonality_of_person)),
        (losses.orthogonality_of_batch, (CHANGES,), plain.overlap(CHANGES.mean(axis=0))),
        (losses.orthogonality_of_person, (CHANGES,), np.mean([plain.overlap(person) for person in CHANGES])),
        (losses.orthogonality_of_batch, (OPPOSITE,), 0),
        (losses.orthogonality_of_person, (OPPOSITE,), (0.25 + 0.5) / 2),  # cosines 1/√2 and 1
        (
            losses.prior,
            (
                jnp.array([[[0.25, -0.5, 0.0], [0.0, 3.0, 1.0]], [[0.0, 0.0, 0.0], [0.0, 1.5, 0.5]]]),
                jnp.array([[0.5, 1.0], [0.0, 0.25]]),
                losses.Prior(jnp.array([[1.0, -2.0, 0.0], [0.0, 3.0, 1.0]]), jnp.array([2.0, 0.5])),
                None,
            ),
            0,  # f makes the linear model's changes
        ),
        (losses.monotonicity, (EARLIER, LATER), 1 / 4),
        (losses.monotonicity, (LATER, EARLIER), (1 + 4 + 0.25) / 4),
        (losses.monotonicity, (EARLIER, -EARLIER), 0),
    ],
)
def test_losses_have_the_values_of_their_formulas(loss, given, expected):
    assert loss(*given) == pytest.approx(expected, rel=1e-5, abs=1e-6)


NOTHING, ONE_NOTHING = jnp.zeros((4, 3, 5)), jnp.ones((4, 3, 5)).at[:, 0].set(0.0)


@pytest.mark.parametrize(
    ("loss", "given"),
    [
        *((losses.orthogonality_of_batch, (changes,)) for changes in (NOTHING, ONE_NOTHING)),
        *((losses.orthogonality_of_person, (changes,)) for changes in (NOTHING, ONE_NOTHING)),
        *(
            (loss, (jnp.ones((3, 4)),) * 2)
            for loss in (losses.absolute_change, losses.monotonicity, losses.decomposition)
        ),
    ],
)
def test_losses_and_gradients_are_finite_where_nothing_changes(loss, given):
    found = jax.value_and_grad(loss, argnums=tuple(range(len(given))))(*given)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_objective_is_the_weighted_sum():
    terms = losses.Losses(*np.arange(1.0, 10.0))  # the eighth is the discriminator's, which does not count
    weights = LossWeights(
        change=10.0,
        decomposition=20.0,
        reconstruction=30.0,
        orthogonality=40.0,
        monotonicity=50.0,
        near_control=60.0,
        prior=70.0,
    )
    expected = 1 + 10 * 2 + 20 * 3 + 30 * 4 + 40 * 5 + 50 * 6 + 60 * 7 + 70 * 9
    assert losses.objective(terms, weights) == pytest.approx(expected)
    assert losses.objective(terms, LossWeights(*[0.0] * 7)) == 1


def test_regions_without_change_get_no_gradient_from_the_l1_terms():
    """Padding relies on this."""
    before, after = jnp.ones((1, 3)), jnp.array([[1.0, 2.0, 0.5]])
    np.testing.assert_allclose(jax.grad(losses.absolute_change)(after, before), [[0.0, 1 / 3, -1 / 3]], rtol=1e-6)


@pytest.mark.parametrize("whitened", [False, True])
def test_prior_is_the_distance_from_the_linear_models_changes_as_the_discriminator_sees_them(whitened):
    z, maps, exponents = RNG.uniform(0.05, 1, (6, 3)), RNG.normal(0, 1, (3, 8)), np.array([0.25, 1.0, 3.0])
    whitening = RNG.normal(0, 1, (8, 8)) if whitened else np.eye(8)
    total = 0.0
    for person in range(6):
        for pattern in range(3):
            wanted = z[person, pattern] ** exponents[pattern] * maps[pattern]
            total += np.sum(((CHANGES[person, pattern] - wanted) @ whitening) ** 2)
    found = losses.prior(CHANGES, z, losses.Prior(maps, exponents), jnp.asarray(whitening) if whitened else None)
    assert found == pytest.approx(total / CHANGES.size, rel=1e-5)


# Random draws, and severities correlated by a copula


MANY, N_PATTERNS = 20_000, 3


@pytest.fixture(scope="module")
def many():
    return jax.tree.map(np.asarray, losses.draw(jax.random.key(0), MANY, N_PATTERNS, 7, 5))


def test_severities_are_uniform_and_independent(many):
    assert many.controls.shape == many.patients.shape == (MANY,)
    assert many.earlier.shape == many.later.shape == many.near_control.shape == (MANY, N_PATTERNS)
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
    assert set(np.asarray(losses.draw(jax.random.key(1), 500, 1, n_people, 2**24).controls)) == set(range(n_people))


def test_draw_that_rounds_to_one_is_the_last_row(monkeypatch):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jax.numpy.ones(shape))
    drawn = losses.draw(jax.random.key(0), 4, 2, 37, 1)
    assert ({*drawn.controls.tolist()}, {*drawn.patients.tolist()}) == ({36}, {0})


def test_different_keys_give_different_draws():
    first, second = (losses.draw(jax.random.key(seed), 5, 2, 100, 100) for seed in (0, 1))
    assert not np.array_equal(first.earlier, second.earlier)
    assert not np.array_equal(first.controls, second.controls)


RAW = np.array(
    [[0.3, 9.0, 9.0], [0.8, -0.5, 9.0], [-0.4, 0.7, 0.2]], np.float32
)  # entries above the diagonal are ignored


def test_free_numbers_become_a_cholesky_factor():
    factor = np.asarray(losses.unit_rows(RAW))
    np.testing.assert_allclose(factor, plain.factor_of(RAW), rtol=1e-6)
    correlation = factor @ factor.T
    np.testing.assert_allclose(np.diag(correlation), 1, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.cholesky(correlation), factor, atol=1e-6)
    assert np.array_equal(losses.unit_rows(np.zeros((4, 4))), np.eye(4))


@pytest.mark.parametrize("size", [5.0, 100.0, 1e20, 3e38])
def test_very_large_numbers_still_give_a_factor(size):
    for signs in np.random.default_rng(0).choice([-1.0, 1.0], (8, 3, 3)):
        factor = np.asarray(losses.unit_rows(jnp.asarray(size * signs, jnp.float32)))
        np.testing.assert_allclose(np.linalg.norm(factor, axis=1), 1, rtol=1e-5)
        assert (np.diag(factor) > 0).all()
        density = losses.copula_density(jnp.array([[0.0, 1.0, 0.5]]), factor)
        assert np.isfinite([losses.divergence_from_independence(factor), *density]).all()


def test_correlated_severities_are_uniform_with_correlated_normal_scores(many):
    factor = np.asarray(losses.unit_rows(RAW))
    severities = np.asarray(losses.correlated(many.earlier, factor))
    assert min(kstest(severities[:, i], "uniform").pvalue for i in range(N_PATTERNS)) > 1e-3
    np.testing.assert_allclose(np.corrcoef(norm.ppf(severities).T), factor @ factor.T, atol=0.02)
    np.testing.assert_allclose(
        losses.correlated(many.earlier, np.eye(3)), np.clip(many.earlier, 1e-4, 1 - 1e-4), atol=1e-5
    )


def test_density_is_that_of_the_copula_and_one_on_average(many):
    factor, z = np.asarray(losses.unit_rows(RAW), float), many.earlier[:500]
    np.testing.assert_allclose(losses.copula_density(z, factor), plain.copula_density(z, factor), rtol=2e-3)
    np.testing.assert_allclose(losses.copula_density(z, np.eye(3)), 1, rtol=1e-6)
    assert np.mean(losses.copula_density(many.earlier, np.asarray(losses.unit_rows(0.5 * RAW)))) == pytest.approx(
        1, abs=0.03
    )


def test_divergence_follows_its_formula():
    factor = np.asarray(losses.unit_rows(RAW), float)
    assert float(losses.divergence_from_independence(factor)) == pytest.approx(plain.divergence(factor), rel=1e-4)
    assert float(losses.divergence_from_independence(np.eye(3))) == 0


def test_everything_is_finite_at_the_edges():
    edges = jnp.array(np.stack(np.meshgrid(*[[0.0, 1e-30, 0.5, 1 - 1e-7, 1.0]] * 3), axis=-1).reshape(-1, 3))

    def total(z, raw):
        factor = losses.unit_rows(raw)
        severities, density = losses.correlated(z, factor), losses.copula_density(z, factor)
        return severities.sum() + density.sum() + losses.divergence_from_independence(factor), (severities, density)

    for raw in (RAW, np.zeros((3, 3), np.float32), 5 * RAW):
        gradients, (severities, density) = jax.grad(total, argnums=(0, 1), has_aux=True)(edges, jnp.asarray(raw))
        assert all(np.isfinite(array).all() for array in (*gradients, severities, density))
        assert 0 <= np.min(severities) <= np.max(severities) <= 1
        assert np.min(density) >= 0
