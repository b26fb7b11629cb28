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


@pytest.mark.parametrize("loss", [losses.orthogonality_of_batch, losses.orthogonality_of_person])
def test_no_change_at_all_gives_finite_gradients(loss):
    for changes in (jnp.zeros((4, 3, 5)), jnp.ones((4, 3, 5)).at[:, 0].set(0.0)):
        assert all(np.isfinite(found).all() for found in jax.value_and_grad(loss)(changes))


def test_remaining_gradients_are_finite_at_zero_change():
    x = jnp.ones((3, 4))
    for loss in (losses.absolute_change, losses.monotonicity, losses.decomposition):
        assert np.isfinite(jax.grad(loss, argnums=(0, 1))(x, x)).all()


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
