"""Train many models at once: the only module that deals with more than one model and more than one step.

Models are distributed over the devices; on an accelerator, all models of a device advance together (`vmap`); on a
processor, one after the other, because a model that stays in the cache is faster there. Several threads may train at
the same time: on a processor, each keeps one core busy.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rindices.core import networks
from rindices.core.losses import Losses, Prior, unit_rows
from rindices.core.networks import Parameters, Sizes, predict_r_indices
from rindices.core.step import COPULA_EVERY, Data, TrainState, initial_state, seen_by_discriminator, step
from rindices.presets import LearningRates, LossWeights, Schedule, Training

_ROWS = 128  # people are padded to a multiple of this, so that cohorts of similar size share a compiled program

_MATRIX_UNIT = 8  # accelerators multiply matrices of odd sizes more slowly
# A loop of known length need not query an accelerator before each step: up to 23 % faster with few models.
_STEPS_AT_ONCE = 100

_compiling: defaultdict[Any, Lock] = defaultdict(Lock)  # of threads that need the same program, one compiles it


Steps = tuple[Array | int, Array | int]  # done so far, and to do


class Program(NamedTuple):
    """Everything but shapes that a compiled program depends on."""

    training: Training
    batch_size: int
    precision: Any
    mesh: Mesh
    width: int  # models that advance together on a device
    inner: int  # steps of a loop of known length


class Members(NamedTuple):
    """The models that are trained together: one entry per model along the leading axis of every array."""

    keys: Array
    weights: LossWeights
    rates: LearningRates
    controls: Array  # (models, rows): numbers of those that each model learns from, then the others, then padding
    n_controls: Array  # that each model learns from
    active: Array | None = None  # (models, patterns) 1 for those of each model, if numbers of patterns differ
    prior: Prior | None = None  # (models, patterns, ...) of the linear models that f is kept close to


class Checkpoint(NamedTuple):
    """The state of all models after some steps."""

    step: int
    r_indices: np.ndarray  # of the patients, (models, patients, patterns)
    losses: dict[str, np.ndarray]  # means since the last checkpoint, (models,) each
    frozen: np.ndarray  # (models,)
    states: TrainState  # on the device, padded
    sizes: Sizes  # without padding

    def parameters(self) -> Parameters:
        """Return the weights of all models as NumPy arrays with a leading axis of models."""
        weights = jax.tree.map(np.asarray, self.states.parameters)
        return jax.tree.map(lambda leaf: leaf[: len(self.frozen)].copy(), networks.unpad(weights, self.sizes))

    def correlations(self) -> np.ndarray:
        """Return the correlation of severities that each model has learned → ``(models, patterns, patterns)``."""
        n_models = len(self.frozen)
        if self.states.copula is None:
            return np.broadcast_to(
                np.eye(self.sizes.patterns, dtype=np.float32), (n_models, *[self.sizes.patterns] * 2)
            )
        factors = np.asarray(_factors(self.states.copula.raw))[:n_models]
        return factors @ factors.swapaxes(1, 2)


class TrainingPeople(NamedTuple):
    """Scaled brains of the people to train on."""

    controls: np.ndarray
    patients: np.ndarray
    whitening: np.ndarray | None = None
    methods: Mapping[int, Literal["sparse", "ica"]] = MappingProxyType({})  # of linear models, by number of patterns


def held_out(n_controls: int, seed: int, number: int, n_folds: int) -> np.ndarray:
    """Return which controls repetition `number` does not learn from → ``(controls,)`` of bool.

    Controls are split at random into folds, each of which one repetition leaves out; then they are split again. The
    result depends only on the seed and the number, so repetitions can be added. With 0 folds, nobody is left out.
    """
    left_out = np.zeros(n_controls, bool)
    if n_folds:
        dealt = np.random.default_rng([seed, number // n_folds]).permutation(n_controls)
        left_out[dealt[number % n_folds :: n_folds]] = True
    return left_out


def make_members(
    seed: int,
    weights: list[LossWeights],
    rates: list[LearningRates],
    n_controls: int,
    numbers: Sequence[int] | None = None,
    n_folds: int = 0,
    priors: Sequence[Prior] | None = None,
) -> Members:
    """Assemble models, each with a key that depends only on the seed and its number, not on the other models.

    The same holds for the controls that it does not learn from (see `held_out`). Priors with fewer patterns than others
    are padded with patterns that change nothing.
    """
    numbers = range(len(weights)) if numbers is None else numbers
    keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(seed)))(jnp.asarray(numbers))
    without = [held_out(n_controls, seed, number, n_folds) for number in numbers]
    orders = [np.pad(np.argsort(left_out, kind="stable"), (0, -n_controls % _ROWS)) for left_out in without]
    counts = jnp.asarray([n_controls - left_out.sum() for left_out in without])
    members = Members(keys, _stack(weights), _stack(rates), jnp.asarray(np.stack(orders)), counts)
    return members if priors is None else members._replace(prior=_stacked_priors(priors))


def _stacked_priors(priors: Sequence[Prior]) -> Prior:
    most = max(len(prior.exponents) for prior in priors)
    lacking = [most - len(prior.exponents) for prior in priors]
    maps = [np.pad(prior.maps, [(0, lack), (0, 0)]) for prior, lack in zip(priors, lacking, strict=True)]
    exponents = [
        np.pad(prior.exponents, (0, lack), constant_values=1) for prior, lack in zip(priors, lacking, strict=True)
    ]
    return Prior(jnp.asarray(np.stack(maps), jnp.float32), jnp.asarray(np.stack(exponents), jnp.float32))


def _stack(items: list) -> Any:
    return type(items[0])(*(jnp.asarray(column, jnp.float32) for column in zip(*items, strict=True)))


def train(
    people: TrainingPeople,
    members: Members,
    training: Training,
    schedule: Schedule,
    *,
    n_patterns: int | Sequence[int],
    after: tuple[int, dict[str, np.ndarray]] | None = None,
) -> Iterator[Checkpoint]:
    """Train all `members` on `people`, yielding a `Checkpoint` of the patients' R-indices at regular steps.

    The caller stops by not requesting the next checkpoint. `after` resumes from a step and its `saved_states`. If
    `n_patterns` differs between members, all are padded to the largest number with zeros that stay zero: apart from
    rounding, each learns what it would learn alone.
    """
    n_members, every, max_steps = len(members.keys), schedule.checkpoint_every, schedule.max_steps
    mesh, width = plan(n_members)
    shard = NamedSharding(mesh, PartitionSpec("models"))
    numbers = np.broadcast_to(n_patterns, n_members)
    real = networks.sizes(people.controls.shape[1], int(numbers.max()))
    if len(set(numbers)) > 1:
        members = members._replace(active=jnp.float32(np.arange(real.patterns) < numbers[:, None]))
    on_cores = mesh.devices[0].platform == "cpu"
    with_padding = networks.padded(real, 1 if on_cores else _MATRIX_UNIT)
    if members.prior is not None:
        maps = jnp.pad(members.prior.maps, [(0, 0), (0, 0), (0, with_padding.regions - real.regions)])
        members = members._replace(prior=members.prior._replace(maps=maps))
    members = jax.device_put(_pad_members(members, len(mesh.devices)), shard)
    data, patients = _data(people, with_padding.regions, schedule.min_steps)
    precision = jnp.float32 if on_cores else jnp.bfloat16  # a third faster on accelerators, and as accurate
    inner = 1 if on_cores else math.gcd(every, max_steps, _STEPS_AT_ONCE)
    program = Program(training, schedule.people_per_step(len(people.patients)), precision, mesh, width, inner)
    advance = partial(_advance_on_cores if on_cores else _advance_on_accelerators, program=program)
    with _compiling[(with_padding, program)]:
        states = _starts(members, numbers, real, with_padding, training)
        advance(jax.device_put(states, shard), members, data, 0, 0)
    done, states = (0, states) if after is None else (after[0], restored_states(after[1], states))
    states = jax.device_put(states, shard)
    while done < max_steps and not np.asarray(states.frozen).all():
        n_steps = min(every, max_steps - done)
        states, losses = advance(states, members, data, done, n_steps)
        done += n_steps
        scores = _score(states.parameters, patients, members.active)
        r_indices = np.asarray(scores)[:n_members, : len(people.patients)]
        means = {name: np.asarray(value)[:n_members] for name, value in losses._asdict().items()}
        yield Checkpoint(done, r_indices, means, np.asarray(states.frozen)[:n_members], states, real)


def saved_states(states: TrainState) -> dict[str, np.ndarray]:
    """Return everything needed to resume training later, as named arrays."""
    numbers = states._replace(key=jax.random.key_data(states.key))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in jax.tree.leaves_with_path(numbers)}


def restored_states(arrays: dict[str, np.ndarray], like: TrainState) -> TrainState:
    """Return the states from the arrays of `saved_states`; `like` provides their structure."""
    numbers = like._replace(key=jax.random.key_data(like.key))
    states = jax.tree.map_with_path(lambda path, _: jnp.asarray(arrays[jax.tree_util.keystr(path)]), numbers)
    return states._replace(key=jax.random.wrap_key_data(states.key))


def plan(n_members: int) -> tuple[Mesh, int]:
    """Return the devices to distribute models over, and the number of models that advance together on each."""
    devices = jax.devices()
    rounds = -(-n_members // len(devices))
    used = devices[: -(-n_members // rounds)]
    width = 1 if devices[0].platform == "cpu" else rounds
    return Mesh(np.array(used), ("models",)), width


def _pad_members(members: Members, n_devices: int) -> Members:
    extra = -len(members.keys) % n_devices
    if not extra:
        return members
    return jax.tree.map(lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], extra, axis=0)]), members)


def _data(people: TrainingPeople, n_columns: int, min_steps: int) -> tuple[Data, Array]:
    controls, patients = (
        jnp.asarray(_pad(rows, n_columns), jnp.float32) for rows in (people.controls, people.patients)
    )
    seen, whitening = patients, None
    if people.whitening is not None:
        square = np.eye(n_columns, dtype=np.float32)
        square[: len(people.whitening), : len(people.whitening)] = people.whitening
        whitening = jnp.asarray(square)
        # Not by NumPy, whose last bits may depend on the number of threads.
        seen = _whitened(patients, whitening)
    counts = (jnp.asarray(len(people.controls)), jnp.asarray(len(people.patients)))
    share = jnp.asarray(people.controls.shape[1] / n_columns)
    everybody = jnp.asarray(np.arange(len(controls), dtype=np.int32))
    return Data(controls, everybody, seen, whitening, *counts, jnp.asarray(min_steps), share), patients


def _pad(rows: np.ndarray, n_columns: int) -> np.ndarray:
    return np.pad(rows, [(0, -len(rows) % _ROWS), (0, n_columns - rows.shape[1])])


@partial(jax.jit, static_argnames=("real", "with_padding", "training"))
def _start(keys: Array, *, real: Sizes, with_padding: Sizes, training: Training) -> TrainState:
    return jax.vmap(partial(initial_state, real=real, with_padding=with_padding, training=training))(keys)


def _starts(members: Members, numbers: np.ndarray, real: Sizes, with_padding: Sizes, training: Training) -> TrainState:
    """Initialise all models, grouped by their number of patterns, and return them in the order of the members."""
    numbers = np.pad(numbers, (0, len(members.keys) - len(numbers)), mode="edge")
    groups = [np.flatnonzero(numbers == number) for number in sorted(set(numbers))]
    of_sizes = partial(_start, with_padding=with_padding, training=training)
    if len(groups) == 1:
        return of_sizes(members.keys, real=real)
    started = [of_sizes(members.keys[of], real=real._replace(patterns=int(numbers[of[0]]))) for of in groups]
    order = np.argsort(np.concatenate(groups))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves)[order], *started)


def _advance(
    states: TrainState,
    members: Members,
    data: Data,
    done: Array | int,
    n_steps: Array | int,
    *,
    program: Program,
) -> tuple[TrainState, Losses]:
    """Advance all models from step `done` by `n_steps`, a multiple of `inner`; one program serves any such number."""
    training, batch_size, precision, mesh, width, inner = program

    def one_model(arguments: tuple[TrainState, Members], data: Data, steps: Steps) -> tuple[TrainState, Losses]:
        state, member = arguments
        done, n_steps = steps
        data = data._replace(
            drawn=member.controls, n_controls=member.n_controls, active=member.active, prior=member.prior
        )

        def one_step(number: Array, carry: tuple[TrainState, Losses]) -> tuple[TrainState, Losses]:
            state, sums = carry
            moves = number % COPULA_EVERY == 0  # the same for all models, so that only one branch is computed
            state, losses = step(state, data, member.weights, member.rates, training, batch_size, precision, moves)
            return state, jax.tree.map(jnp.add, sums, losses)

        def some_steps(block: Array, carry: tuple[TrainState, Losses]) -> tuple[TrainState, Losses]:
            return jax.lax.fori_loop(0, inner, lambda k, carry: one_step(done + block * inner + k, carry), carry)

        nothing = Losses(*[jnp.zeros(())] * len(Losses._fields))
        if inner == 1:
            state, sums = jax.lax.fori_loop(done, done + n_steps, one_step, (state, nothing))
        else:
            state, sums = jax.lax.fori_loop(0, n_steps // inner, some_steps, (state, nothing))
        return state, jax.tree.map(lambda total: total / n_steps, sums)

    def one_device(states: TrainState, members: Members, data: Data, steps: Steps) -> tuple[TrainState, Losses]:
        advance = partial(one_model, data=data, steps=steps)
        if width == len(members.keys):
            return jax.vmap(advance)((states, members))
        return jax.lax.map(advance, (states, members), batch_size=None if width == 1 else width)

    models, everyone = PartitionSpec("models"), PartitionSpec()
    shared = jax.shard_map(
        one_device, mesh=mesh, in_specs=(models, models, everyone, everyone), out_specs=models, check_vma=False
    )
    return shared(states, members, data, (done, n_steps))


_ONE_THREAD = {"xla_cpu_multi_thread_eigen": False}
_factors = jax.jit(jax.vmap(unit_rows))
_whitened = jax.jit(seen_by_discriminator, compiler_options=_ONE_THREAD)
_advance_on_accelerators = jax.jit(_advance, static_argnames="program")
# One model per core: threads within an operation would only get in each other's way.
_advance_on_cores = jax.jit(_advance, static_argnames="program", compiler_options=_ONE_THREAD)


@jax.jit
def _score(parameters: Parameters, people: Array, active: Array | None) -> Array:
    return jax.vmap(predict_r_indices, in_axes=(0, None, 0))(parameters, people, active)
