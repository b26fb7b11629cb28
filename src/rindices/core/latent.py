"""Random draws of one training step: who is in the batch, and at which severities.

Severities may be correlated: a Gaussian copula, whose correlation matrix is R = L Lᵀ with rows of L of length 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr, ndtri

_NEAR_CONTROL = 0.05  # severities below this must leave the brain almost as it is
_LARGEST = 10.0  # free numbers of a factor beyond this would overflow, and change the correlation no further
_SEVERITIES = ("earlier", "later", "near_control")
_EDGE = 1e-4  # normal scores of severities nearer to 0 or 1 would grow without bound


class Draw(NamedTuple):
    """The draws of one step for one model."""

    controls: Array  # (batch,) rows
    patients: Array  # (batch,) rows
    earlier: Array  # z ~ U[0, 1], (batch, patterns)
    later: Array  # z' ~ U[z, 1]
    near_control: Array  # z_cn ~ U[0, 0.05]


def draw(
    key: Array, batch_size: int, n_patterns: int, n_controls: Array, n_patients: Array, active: Array | None = None
) -> Draw:
    """Draw a batch with replacement and its severities, all from one call of the generator.

    Where only some patterns are `active`, a model gets the numbers that it would get without the others.
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
    """Rearrange numbers as a draw for the active patterns alone has them: the generator counts row by row."""
    n_active, patterns = active.sum().astype(jnp.int32), jnp.arange(len(active))
    columns = jnp.concatenate([jnp.arange(2), *(2 + part * n_active + patterns for part in range(3))])
    places = jnp.arange(len(uniform))[:, None] * (2 + 3 * n_active) + columns
    return uniform.ravel()[jnp.minimum(places, uniform.size - 1)]


def _row(uniform: Array, n_people: Array) -> Array:
    # The last row, should a generator ever give 1 itself.
    return jnp.minimum((uniform * n_people).astype(jnp.int32), n_people - 1)


def unit_rows(raw: Array) -> Array:
    """Return L, the Cholesky factor of a correlation matrix, from free numbers; zeros give the identity."""
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
    """Return L⁻¹ times each row, written out: so few steps melt into one kernel."""
    values: list[Array] = []
    for i in range(len(factor)):
        so_far = sum(factor[i, j] * value for j, value in enumerate(values))
        values.append((rows[:, i] - so_far) / factor[i, i])
    return jnp.stack(values, axis=1)
