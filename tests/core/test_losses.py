import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from rindices.core import losses
from rindices.presets import LossWeights
from tests.core import plain

RNG = np.random.default_rng(0)
LOGITS, OTHER_LOGITS = RNG.normal(0, 2, (2, 9, 2))
CHANGES, OTHER_CHANGES = RNG.normal(0, 1, (2, 6, 3, 8))


def test_cross_entropy_is_the_log_probability_of_the_label():
    # With two classes, softmax is the logistic function of the difference.
    expected = plain.cross_entropy(LOGITS, 0), -np.log(expit(LOGITS[:, 1] - LOGITS[:, 0])).mean()
    assert tuple(losses.cross_entropy(LOGITS, label) for label in (0, 1)) == pytest.approx(expected, rel=1e-5)


def test_undecided_discriminator_loses_log_two():
    assert losses.discriminator_loss(jnp.zeros((4, 2)), jnp.ones((4, 2))) == pytest.approx(np.log(2), rel=1e-6)


def test_discriminator_wants_patients_called_1_and_fakes_0():
    expected = (plain.cross_entropy(LOGITS, 1) + plain.cross_entropy(OTHER_LOGITS, 0)) / 2
    assert losses.discriminator_loss(LOGITS, OTHER_LOGITS) == pytest.approx(expected, rel=1e-5)
    sure = jnp.array([[-20.0, 20.0]])
    assert losses.discriminator_loss(sure, -sure) < 1e-6
    assert losses.discriminator_loss(-sure, sure) == pytest.approx(40)


def test_absolute_change_is_the_mean_l1_distance():
    before, after = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 0.0], [4.0, 5.0]])
    assert losses.absolute_change(after, before) == pytest.approx((0 + 2 + 1 + 1) / 4)


def test_decomposition_is_a_mean_squared_error():
    assert losses.decomposition(jnp.full((2, 3, 5), 3.0), jnp.ones((2, 3, 5))) == pytest.approx(4)
    expected = np.linalg.norm(CHANGES - OTHER_CHANGES) ** 2 / CHANGES.size
    assert losses.decomposition(CHANGES, OTHER_CHANGES) == pytest.approx(expected, rel=1e-5)


def test_reconstruction_wants_each_severity_at_its_own_pattern_only():
    z, right = jnp.array([[0.2, 0.8]]), jnp.array([[[0.2, 0.0], [0.0, 0.8]]])
    found = [losses.reconstruction(told, z) for told in (right, right[:, ::-1], right.at[0, 0, 1].set(0.6))]
    assert found == pytest.approx([0, (2 * 0.2**2 + 2 * 0.8**2) / 4, 0.36 / 4], rel=1e-5, abs=0)


@pytest.mark.parametrize("loss", [losses.orthogonality_of_batch, losses.orthogonality_of_person])
def test_orthogonality_is_0_apart_and_counts_the_diagonal(loss):
    assert loss(jnp.array([[[3.0, -1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0]]])) == pytest.approx(0, abs=1e-6)
    same = jnp.array([[[1.0, 2.0], [-2.0, -4.0]]])  # signs and sizes do not matter: both entries off the diagonal are 1
    assert loss(same) == pytest.approx(2 / 4, rel=1e-5)


def test_orthogonality_against_numpy():
    assert losses.orthogonality_of_batch(CHANGES) == pytest.approx(plain.overlap(CHANGES.mean(axis=0)), rel=1e-4)
    expected = np.mean([plain.overlap(person) for person in CHANGES])
    assert losses.orthogonality_of_person(CHANGES) == pytest.approx(expected, rel=1e-4)


def test_orthogonality_of_batch_averages_before_taking_sizes():
    opposite = jnp.array([[[1.0, 0.0], [1.0, 1.0]], [[-1.0, 1.0], [1.0, -1.0]]])
    assert losses.orthogonality_of_batch(opposite) == pytest.approx(0, abs=1e-6)
    # cosines 1/√2 and 1
    assert losses.orthogonality_of_person(opposite) == pytest.approx((0.25 + 0.5) / 2, rel=1e-4)


@pytest.mark.parametrize("loss", [losses.orthogonality_of_batch, losses.orthogonality_of_person])
def test_no_change_at_all_gives_finite_gradients(loss):
    for changes in (jnp.zeros((4, 3, 5)), jnp.ones((4, 3, 5)).at[:, 0].set(0.0)):
        assert all(np.isfinite(found).all() for found in jax.value_and_grad(loss)(changes))


def test_monotonicity_only_punishes_what_recedes():
    earlier = jnp.array([[1.0, -2.0, 3.0, -1.0]])
    later = jnp.array([[2.0, -1.0, -5.0, 1.5]])  # only the second falls, by 1
    found = [losses.monotonicity(*pair) for pair in ((earlier, later), (later, earlier), (earlier, -earlier))]
    assert found == pytest.approx([1 / 4, (1 + 4 + 0.25) / 4, 0], abs=0)


def test_remaining_gradients_are_finite_at_zero_change():
    x = jnp.ones((3, 4))
    for loss in (losses.absolute_change, losses.monotonicity, losses.decomposition):
        assert np.isfinite(jax.grad(loss, argnums=(0, 1))(x, x)).all()


def test_objective_is_the_weighted_sum():
    terms = losses.Losses(*np.arange(1.0, 9.0))
    weights = LossWeights(
        change=10.0, decomposition=20.0, reconstruction=30.0, orthogonality=40.0, monotonicity=50.0, near_control=60.0
    )
    assert losses.objective(terms, weights) == pytest.approx(1 + 10 * 2 + 20 * 3 + 30 * 4 + 40 * 5 + 50 * 6 + 60 * 7)
    assert losses.objective(terms, LossWeights(*[0.0] * 6)) == 1


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


def test_prior_is_0_where_f_makes_the_linear_models_changes():
    z, maps = jnp.array([[0.5, 1.0], [0.0, 0.25]]), jnp.array([[1.0, -2.0, 0.0], [0.0, 3.0, 1.0]])
    known = losses.Prior(maps, jnp.array([2.0, 0.5]))
    right = jnp.array([[[0.25, -0.5, 0.0], [0.0, 3.0, 1.0]], [[0.0, 0.0, 0.0], [0.0, 1.5, 0.5]]])
    assert losses.prior(right, z, known, None) == pytest.approx(0, abs=1e-12)


def test_objective_counts_the_prior_by_its_weight():
    nothing = losses.Losses(*[0.0] * len(losses.Losses._fields))
    assert losses.objective(nothing._replace(prior=2.0), LossWeights(prior=7.0)) == pytest.approx(14)
