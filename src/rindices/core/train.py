"""Train many models at once: the only place that knows of more than one model and more than one step.

Models are shared out over the devices; on an accelerator all models of a device advance together (`vmap`), on a
processor one after the other, because there a model that stays in the cache is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rindices.config import LearningRates, LossWeights, Training
from rindices.core import networks
from rindices.core.losses import Losses
from rindices.core.networks import Parameters, Sizes, predict_r_indices
from rindices.core.step import Data, TrainState, initial_state, step

_ROWS = 128  # people are padded to a multiple of this, so that cohorts of similar size share a compiled program

_MATRIX_UNIT = 8  # accelerators multiply matrices of odd sizes more slowly


class Members(NamedTuple):
    """The models of one training: leading axis everywhere, one entry a model."""

    keys: Array
    weights: LossWeights
    rates: LearningRates


class Checkpoint(NamedTuple):
    """A look at all models after some steps."""

    step: int
    r_indices: np.ndarray  # (models, people, patterns)
    losses: dict[str, np.ndarray]  # means since the last checkpoint, (models,) each
    frozen: np.ndarray  # (models,)
    states: TrainState  # on the device, padded
    sizes: Sizes  # without padding

    def parameters(self) -> Parameters:
        """Return the weights of all models as NumPy arrays, leading axis: models."""
        real = networks.unpad(self.states.parameters, self.sizes)
        return jax.tree.map(lambda leaf: np.array(leaf[: len(self.frozen)]), real)


class People(NamedTuple):
    """Scaled brains of those to train on."""

    controls: np.ndarray
    patients: np.ndarray
    whitening: np.ndarray | None = None


def make_members(seed: int, weights: list[LossWeights], rates: list[LearningRates], first: int = 0) -> Members:
    """Give each model its key, which depends on the seed and its number only: neither order nor company matters."""
    numbers = jnp.arange(first, first + len(weights))
    keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(numbers)
    return Members(keys, _stack(weights), _stack(rates))


def _stack(items: list) -> Any:
    return type(items[0])(*(jnp.asarray(column, jnp.float32) for column in zip(*items, strict=True)))


def train(
    people: People,
    members: Members,
    training: Training,
    *,
    n_patterns: int,
    batch_size: int,
    checkpoint_every: int,
    min_steps: int,
    max_steps: int,
) -> Iterator[Checkpoint]:
    """Train all `members` on `people`, yielding a `Checkpoint` of everybody's R-indices at regular steps.

    The caller stops by not asking for the next checkpoint. Everybody: controls first, then patients.
    """
    n_members = len(members.keys)
    mesh, width = plan(n_members)
    shard = NamedSharding(mesh, PartitionSpec("models"))
    members = jax.device_put(_pad_members(members, len(mesh.devices)), shard)
    real = networks.sizes(people.controls.shape[1], n_patterns)
    on_cores = mesh.devices[0].platform == "cpu"
    with_padding = networks.padded(real, 1 if on_cores else _MATRIX_UNIT)
    advance = _advance_on_cores if on_cores else _advance_on_accelerators
    data, everybody = _data(people, with_padding.regions, min_steps)
    n_people = len(people.controls) + len(people.patients)
    program = {"training": training, "mesh": mesh, "width": width}
    states = jax.device_put(_start(members.keys, real=real, with_padding=with_padding, training=training), shard)
    done = 0
    while done < max_steps:
        n_steps = min(checkpoint_every, max_steps - done)
        states, losses = advance(states, members, data, n_steps, batch_size=batch_size, **program)
        done += n_steps
        r_indices = np.asarray(_score(states.parameters, everybody))[:n_members, :n_people]
        means = {name: np.asarray(value)[:n_members] for name, value in losses._asdict().items()}
        frozen = np.asarray(states.frozen)[:n_members]
        yield Checkpoint(done, r_indices, means, frozen, states, real)
        if frozen.all():
            return


def plan(n_members: int) -> tuple[Mesh, int]:
    """Devices to share the models over, and how many models advance together on each."""
    devices = jax.devices()
    rounds = -(-n_members // len(devices))
    used = devices[: -(-n_members // rounds)]
    width = 1 if devices[0].platform == "cpu" else rounds
    return Mesh(np.array(used), ("models",)), width


def _pad_members(members: Members, n_devices: int) -> Members:
    extra = -len(members.keys) % n_devices
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], extra, axis=0)]), members)


def _data(people: People, n_columns: int, min_steps: int) -> tuple[Data, Array]:
    controls, patients, everybody = (
        jnp.asarray(_pad(rows, n_columns), jnp.float32)
        for rows in (people.controls, people.patients, np.concatenate([people.controls, people.patients]))
    )
    seen, whitening = patients, None
    if people.whitening is not None:
        n_regions = len(people.whitening)
        seen = jnp.asarray(_pad(1 + (people.patients - 1) @ people.whitening, n_columns), jnp.float32)
        whitening = jnp.eye(n_columns).at[:n_regions, :n_regions].set(people.whitening)
    counts = (jnp.asarray(len(people.controls)), jnp.asarray(len(people.patients)))
    share = jnp.asarray(people.controls.shape[1] / n_columns)
    return Data(controls, seen, whitening, *counts, jnp.asarray(min_steps), share), everybody


def _pad(rows: np.ndarray, n_columns: int) -> np.ndarray:
    return np.pad(rows, [(0, -len(rows) % _ROWS), (0, n_columns - rows.shape[1])])


@partial(jax.jit, static_argnames=("real", "with_padding", "training"))
def _start(keys: Array, *, real: Sizes, with_padding: Sizes, training: Training) -> TrainState:
    return jax.vmap(partial(initial_state, real=real, with_padding=with_padding, training=training))(keys)


def _advance(
    states: TrainState,
    members: Members,
    data: Data,
    n_steps: Array | int,
    *,
    training: Training,
    batch_size: int,
    mesh: Mesh,
    width: int,
) -> tuple[TrainState, Losses]:
    """Advance all models by `n_steps` (a traced number: any number of steps uses the same program)."""

    def one_model(arguments: tuple[TrainState, Members], data: Data, n_steps: Array | int) -> tuple[TrainState, Losses]:
        state, member = arguments

        def one_step(_: Array, carry: tuple[TrainState, Losses]) -> tuple[TrainState, Losses]:
            state, sums = carry
            state, losses = step(state, data, member.weights, member.rates, training, batch_size)
            return state, jax.tree.map(jnp.add, sums, losses)

        nothing = Losses(*[jnp.zeros(())] * len(Losses._fields))
        state, sums = jax.lax.fori_loop(0, n_steps, one_step, (state, nothing))
        return state, jax.tree.map(lambda total: total / n_steps, sums)

    def one_device(states: TrainState, members: Members, data: Data, n_steps: Array | int) -> tuple[TrainState, Losses]:
        advance = partial(one_model, data=data, n_steps=n_steps)
        if width == len(members.keys):
            return jax.vmap(advance)((states, members))
        return jax.lax.map(advance, (states, members), batch_size=None if width == 1 else width)

    models, everyone = PartitionSpec("models"), PartitionSpec()
    shared = jax.shard_map(
        one_device, mesh=mesh, in_specs=(models, models, everyone, everyone), out_specs=models, check_vma=False
    )
    return shared(states, members, data, n_steps)


_STATIC = ("training", "batch_size", "mesh", "width")
_advance_on_accelerators = jax.jit(_advance, static_argnames=_STATIC)
# One model a core: threads within an operation would only get in each other's way.
_advance_on_cores = jax.jit(_advance, static_argnames=_STATIC, compiler_options={"xla_cpu_multi_thread_eigen": False})


@jax.jit
def _score(parameters: Parameters, everybody: Array) -> Array:
    return jax.vmap(predict_r_indices, in_axes=(0, None))(parameters, everybody)
