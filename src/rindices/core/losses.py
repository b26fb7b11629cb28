"""The terms of the objective for one model, one function each, their weighted sum, and the random draws of one step.

All norms are means over people and regions, without which the paper's weights and thresholds would make no sense.
Shapes: brains ``(people, regions)``, changes ``(people, patterns, regions)``, severities ``(people, patterns)``.
A draw selects the people of a batch and their severities. These may be correlated by a Gaussian copula, whose
correlation matrix is R = L Lᵀ, where the rows of L have length 1.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr, ndtri

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
    """The patterns according to a linear model, known before training."""

    maps: Any  # (patterns, regions): the change at severity 1
    exponents: Any  # (patterns,): how the change grows with a severity that is uniform among patients


def cross_entropy(logits: Array, label: int, people: Array | float = 1.0) -> Array:
    """Mean cross entropy of two-class `logits` if everybody belongs to class `label`; `people` are optional weights."""
    return -jnp.mean(people * jax.nn.log_softmax(logits)[:, label])


def discriminator_loss(real_logits: Array, fake_logits: Array, fake_people: Array | float = 1.0) -> Array:
    """Mean of the real and the fake term: patients should be classified as 1, synthesised patients as 0."""
    return 0.5 * (cross_entropy(real_logits, 1) + cross_entropy(fake_logits, 0, fake_people))


def absolute_change(transformed: Array, original: Array) -> Array:
    """Mean l1 distance, for the change term and the near-control term: disease changes few regions, moderately."""
    change = transformed - original
    # JAX gives |0| the gradient 1; this gives it 0, so that padding stays zero.
    return jnp.mean(change * jnp.sign(change))


def decomposition(decomposed: Array, changes: Array) -> Array:
    """Mean squared error of g₁, which has to recover the change that each pattern made."""
    return jnp.mean((decomposed - changes) ** 2)


def reconstruction(severities_by_pattern: Array, z: Array) -> Array:
    """Mean squared error of g₂ ``(people, patterns, patterns)``: pattern i's change should give zᵢ, and zeros."""
    return jnp.mean((severities_by_pattern - z[:, :, None] * jnp.eye(z.shape[1])) ** 2)


def orthogonality_of_batch(changes: Array) -> Array:
    """Mean square of AᵀA − I, the columns of A being the patterns' absolute mean changes, normalised."""
    return _overlap(jnp.abs(jnp.mean(changes, axis=0)))


def orthogonality_of_person(changes: Array) -> Array:
    """As `orthogonality_of_batch`, but for each person, then averaged (the paper's section 2.2.4)."""
    return jnp.mean(jax.vmap(_overlap)(jnp.abs(changes)))


def _overlap(sizes: Array) -> Array:
    # The sum under the root is never exactly zero: a pattern without any change must not give NaN gradients.
    columns = sizes / jnp.sqrt(jnp.sum(sizes**2, axis=1, keepdims=True) + _TINY)
    return jnp.mean((columns @ columns.T - jnp.eye(len(sizes))) ** 2)


def monotonicity(earlier: Array, later: Array) -> Array:
    """Mean squared decrease in absolute change from `earlier` to `later`: changes may only grow with severity."""
    return jnp.mean(jnp.maximum(jnp.abs(earlier) - jnp.abs(later), 0) ** 2)


def prior(changes: Array, z: Array, linear: Prior, whitening: Array | None) -> Array:
    """Mean squared distance of f's changes from those of a linear model, as the discriminator sees them.

    At severity z a pattern's change should be z to the power of its exponent, times its map.
    """
    differences = changes - (z**linear.exponents)[:, :, None] * linear.maps
    return jnp.mean((differences if whitening is None else differences @ whitening) ** 2)


def objective(losses: Losses, weights: LossWeights) -> Array:
    """Add the weighted regularisers to the adversarial term: the objective that f, g₁ and g₂ minimise."""
    return losses.adversarial + sum(getattr(weights, term) * getattr(losses, term) for term in LossWeights._fields)


_NEAR_CONTROL = 0.05  # severities below this must leave the brain almost as it is
_LARGEST = 10.0  # unconstrained entries of a factor beyond this would overflow without further changing the correlation
_SEVERITIES = ("earlier", "later", "near_control")
_EDGE = 1e-4  # normal scores of severities nearer to 0 or 1 would grow without bound


class Draw(NamedTuple):
    """The random draws of one step for one model."""

    controls: Array  # (batch,) rows
    patients: Array  # (batch,) rows
    earlier: Array  # z ~ U[0, 1], (batch, patterns)
    later: Array  # z' ~ U[z, 1]
    near_control: Array  # z_cn ~ U[0, 0.05]


def draw(
    key: Array, batch_size: int, n_patterns: int, n_controls: Array, n_patients: Array, active: Array | None = None
) -> Draw:
    """Draw a batch with replacement and its severities, all in one call to the generator.

    If only some patterns are `active`, a model gets the numbers that it would get without the others.
    """
    uniform = jax.random.uniform(key, (batch_size, 2 + 3 * n_patterns))
    if active is not None:
        uniform = _narrower(uniform, active)
    rows, earlier, further, near = jnp.split(uniform, [2, 2 + n_patterns, 2 + 2 * n_patterns], axis=1)
    drawn = Draw(
        controls=_row(rows[:, 0], n_controls),
        patients=_row(rows[:, 1], n_patients),
        earlier=earlier,
        later=earlier + (1 - earlier) * further,
        near_control=_NEAR_CONTROL * near,
    )
    return drawn if active is None else drawn._replace(**{name: active * getattr(drawn, name) for name in _SEVERITIES})


def _narrower(uniform: Array, active: Array) -> Array:
    """Rearrange numbers as in a draw for the active patterns alone: the generator fills an array row by row."""
    n_active, patterns = active.sum().astype(jnp.int32), jnp.arange(len(active))
    columns = jnp.concatenate([jnp.arange(2), *(2 + part * n_active + patterns for part in range(3))])
    places = jnp.arange(len(uniform))[:, None] * (2 + 3 * n_active) + columns
    return uniform.ravel()[jnp.minimum(places, uniform.size - 1)]


def _row(uniform: Array, n_people: Array) -> Array:
    # The last row, should a generator ever return exactly 1.
    return jnp.minimum((uniform * n_people).astype(jnp.int32), n_people - 1)


def unit_rows(raw: Array) -> Array:
    """Return L, the Cholesky factor of a correlation matrix, from unconstrained numbers; zeros give the identity."""
    raw = jnp.clip(raw, -_LARGEST, _LARGEST)
    rows = jnp.tril(raw, -1) + jnp.diag(jnp.exp(jnp.diagonal(raw)))
    return rows / jnp.sqrt(jnp.sum(rows**2, axis=1, keepdims=True))


def correlated(uniform: Array, factor: Array) -> Array:
    """Turn independent uniform severities ``(people, patterns)`` into correlated ones, each still uniform."""
    return ndtr(_normal_scores(uniform) @ factor.T)


def copula_density(z: Array, factor: Array) -> Array:
    """Density of severities ``(people, patterns)`` under the copula, relative to independence → ``(people,)``."""
    scores = _normal_scores(z)
    independent = _solve(factor, scores)
    exponent = 0.5 * jnp.sum(scores**2 - independent**2, axis=1)
    return jnp.exp(exponent - jnp.sum(jnp.log(jnp.diagonal(factor))))


def divergence_from_independence(factor: Array) -> Array:
    """KL(independent ‖ copula) = ½ (tr R⁻¹ − M + log det R)."""
    inverse = _solve(factor, jnp.eye(len(factor)))
    return 0.5 * (jnp.sum(inverse**2) - len(factor)) + jnp.sum(jnp.log(jnp.diagonal(factor)))


def _normal_scores(uniform: Array) -> Array:
    return ndtri(jnp.clip(uniform, _EDGE, 1 - _EDGE))


def _solve(factor: Array, rows: Array) -> Array:
    """Return L⁻¹ times each row, unrolled: so few steps are fused into one kernel."""
    values: list[Array] = []
    for i in range(len(factor)):
        so_far = sum(factor[i, j] * value for j, value in enumerate(values))
        values.append((rows[:, i] - so_far) / factor[i, i])
    return jnp.stack(values, axis=1)
