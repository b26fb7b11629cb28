"""One function per term of the paper's objective, for one model, and their weighted sum.

All norms are means over people and regions: only then do the paper's weights and thresholds make sense.
Shapes: brains ``(people, regions)``, changes ``(people, patterns, regions)``, severities ``(people, patterns)``.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from rindices.presets import LossWeights

_TINY = 1e-12


class Losses(NamedTuple):
    """The terms of the objective, unweighted, and the discriminator's loss."""

    adversarial: Array
    change: Array
    decomposition: Array
    reconstruction: Array
    orthogonality: Array
    monotonicity: Array
    near_control: Array
    discriminator: Array
    prior: Array | float = 0.0


class Prior(NamedTuple):
    """What a linear model knows of the patterns before training."""

    maps: Any  # (patterns, regions): the change at severity 1
    exponents: Any  # (patterns,): how the change grows with a severity that is uniform among patients


def cross_entropy(logits: Array, label: int, people: Array | float = 1.0) -> Array:
    """Mean cross entropy of two-class `logits` when everybody belongs to class `label`; `people` may have weights."""
    return -jnp.mean(people * jax.nn.log_softmax(logits)[:, label])


def discriminator_loss(real_logits: Array, fake_logits: Array, fake_people: Array | float = 1.0) -> Array:
    """Mean of the real and the fake term: patients should be called 1, synthesised patients 0."""
    return 0.5 * (cross_entropy(real_logits, 1) + cross_entropy(fake_logits, 0, fake_people))


def absolute_change(transformed: Array, original: Array) -> Array:
    """Mean l1 distance, for the change term and the near-control term: disease changes few regions, moderately."""
    change = transformed - original
    # JAX gives |0| the gradient 1; this gives it 0, so that padding stays zero.
    return jnp.mean(change * jnp.sign(change))


def decomposition(decomposed: Array, changes: Array) -> Array:
    """Mean squared error of g₁, which must find again the change that each pattern made."""
    return jnp.mean((decomposed - changes) ** 2)


def reconstruction(severities_by_pattern: Array, z: Array) -> Array:
    """Mean squared error of g₂ ``(people, patterns, patterns)``: from pattern i's change it must tell zᵢ, and zeros."""
    return jnp.mean((severities_by_pattern - z[:, :, None] * jnp.eye(z.shape[1])) ** 2)


def orthogonality_of_batch(changes: Array) -> Array:
    """Mean square of AᵀA − I, the columns of A being the patterns' absolute mean changes, normalised."""
    return _overlap(jnp.abs(jnp.mean(changes, axis=0)))


def orthogonality_of_person(changes: Array) -> Array:
    """As `orthogonality_of_batch`, but for each person, then averaged (the paper's section 2.2.4)."""
    return jnp.mean(jax.vmap(_overlap)(jnp.abs(changes)))


def _overlap(sizes: Array) -> Array:
    # The root of a sum that is never exactly zero: a pattern without any change must not give NaN gradients.
    columns = sizes / jnp.sqrt(jnp.sum(sizes**2, axis=1, keepdims=True) + _TINY)
    return jnp.mean((columns @ columns.T - jnp.eye(len(sizes))) ** 2)


def monotonicity(earlier: Array, later: Array) -> Array:
    """Mean square of what is lost from `earlier` to `later`: changes may only grow with severity."""
    return jnp.mean(jnp.maximum(jnp.abs(earlier) - jnp.abs(later), 0) ** 2)


def prior(changes: Array, z: Array, linear: Prior, whitening: Array | None) -> Array:
    """Mean squared distance of f's changes from those of a linear model, as the discriminator sees them.

    At severity z a pattern's change should be z to the power of its exponent, times its map.
    """
    differences = changes - (z**linear.exponents)[:, :, None] * linear.maps
    return jnp.mean((differences if whitening is None else differences @ whitening) ** 2)


def objective(losses: Losses, weights: LossWeights) -> Array:
    """Add the weighted regularisers to the adversarial term: what f, g₁ and g₂ minimise."""
    return losses.adversarial + sum(getattr(weights, term) * getattr(losses, term) for term in LossWeights._fields)
