"""Random draws of one training step: who is in the batch, and at which severities."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

_NEAR_CONTROL = 0.05  # severities below this must leave the brain almost as it is


class Draw(NamedTuple):
    """The draws of one step for one model."""

    controls: Array  # (batch,) rows
    patients: Array  # (batch,) rows
    earlier: Array  # z ~ U[0, 1], (batch, patterns)
    later: Array  # z' ~ U[z, 1]
    near_control: Array  # z_cn ~ U[0, 0.05]


def draw(key: Array, batch_size: int, n_patterns: int, n_controls: Array, n_patients: Array) -> Draw:
    """Draw a batch with replacement and its severities, all from one call of the generator."""
    uniform = jax.random.uniform(key, (batch_size, 2 + 3 * n_patterns))
    rows, earlier, further, near = jnp.split(uniform, [2, 2 + n_patterns, 2 + 2 * n_patterns], axis=1)
    return Draw(
        controls=_row(rows[:, 0], n_controls),
        patients=_row(rows[:, 1], n_patients),
        earlier=earlier,
        later=earlier + (1 - earlier) * further,
        near_control=_NEAR_CONTROL * near,
    )


def _row(uniform: Array, n_people: Array) -> Array:
    # The last row, should a generator ever give 1 itself.
    return jnp.minimum((uniform * n_people).astype(jnp.int32), n_people - 1)
