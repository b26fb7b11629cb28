"""Train repetitions on many simulated cohorts as members of one program; made for a GPU.

While the device trains one group, threads compile the programs of the next ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rindices.core import networks
from rindices.core.networks import Parameters, predict_r_indices
from rindices.core.step import COPULA_EVERY, Data, TrainState, initial_state, step
from rindices.settings import LossWeights, Preset, fast

NOT_REGIONS = ["participant_id", "diagnosis", "age", "sex"]
ALL_REGIONS = 128
BATCH_SIZE = fast().schedule.batch_size or 32
N_THREADS = 3  # one trains, the others compile

_device = threading.Lock()


class Cohort(NamedTuple):
    """What decides one cohort."""

    n_controls: int
    n_patients: int
    n_regions: int
    seed: int
    kind: str = "null"


class Brains(NamedTuple):
    """Scaled brains of one cohort, what the discriminator sees them through, and the patients' severities."""

    controls: np.ndarray
    patients: np.ndarray
    whitening: np.ndarray
    truth: np.ndarray
    others: np.ndarray | None = None  # not trained on; scored behind the patients

    def scored(self) -> np.ndarray:
        """Return those whose R-indices are wanted."""
        return self.patients if self.others is None else np.concatenate([self.patients, self.others])


class Group(NamedTuple):
    """Models that train together: repetitions of each cohort with each weighting."""

    n_patterns: int
    cohorts: list[Cohort]
    seeds: list[int]  # of the models of each cohort
    weightings: list[LossWeights]
    n_repetitions: int


class Trained(NamedTuple):
    """R-indices of a group's patients, with padding, and what they cost."""

    r_indices: np.ndarray  # (looks, cohorts, weightings, repetitions, rows, patterns)
    seconds: float
    changes: np.ndarray  # (looks, cohorts, weightings, repetitions, patterns, regions): of controls, see `pattern_maps`

    def of_cohort(self, place: int, n_patients: int) -> np.ndarray:
        """Return the R-indices of one cohort → ``(looks, weightings, repetitions, patients, patterns)``."""
        return self.r_indices[:, place, :, :, :n_patients]


def stack(brains: list[Brains], n_rows: int) -> tuple[Data, Array]:
    """Put cohorts behind each other, padded to `n_rows`: what is trained on, and the patients to score."""

    def padded(people: list[np.ndarray], n_rows: int = n_rows) -> Array:
        rows = [np.pad(person, [(0, n_rows - len(person)), (0, 0)]) for person in people]
        return jnp.asarray(np.stack(rows), jnp.float32)

    scored = [one.scored() for one in brains]

    data = Data(
        controls=padded([one.controls for one in brains]),
        drawn=jnp.tile(jnp.arange(n_rows), (len(brains), 1)),  # everybody is learned from
        seen_patients=padded([1 + (one.patients - 1) @ one.whitening for one in brains]),
        whitening=jnp.asarray(np.stack([one.whitening for one in brains]), jnp.float32),
        n_controls=jnp.asarray([len(one.controls) for one in brains]),
        n_patients=jnp.asarray([len(one.patients) for one in brains]),
        min_steps=jnp.zeros(len(brains), int),
        region_share=jnp.ones(len(brains)),
    )
    return data, padded(scored, max(n_rows, *map(len, scored)))


class Members(NamedTuple):
    """What tells the models of a group apart; a leading axis."""

    cohort: Array
    key: Array
    weights: LossWeights


def members_of(group: Group) -> Members:
    """Return the models by cohort, weighting and repetition, with the keys that separate fits would use."""
    shape = (len(group.cohorts), len(group.weightings), group.n_repetitions)
    place, weighting, repetition = (jnp.asarray(axis.ravel()) for axis in np.indices(shape))
    seeds = jnp.asarray(group.seeds)[place]
    keys = jax.vmap(lambda seed, number: jax.random.fold_in(jax.random.key(seed), number))(seeds, repetition)
    weights = [jnp.asarray(column, jnp.float32)[weighting] for column in zip(*group.weightings, strict=True)]
    return Members(place, keys, LossWeights(*weights))


@partial(jax.jit, static_argnames=("n_regions", "n_patterns", "preset"))
def start(keys: Array, *, n_regions: int, n_patterns: int, preset: Preset) -> TrainState:
    """Draw the weights of all members."""
    sizes = networks.sizes(n_regions, n_patterns)
    return jax.vmap(partial(initial_state, real=sizes, with_padding=sizes, training=preset.training))(keys)


@partial(jax.jit, static_argnames="preset", donate_argnames="states")
def advance(states: TrainState, data: Data, members: Members, n_steps: int, *, preset: Preset) -> TrainState:
    """Advance all members by `n_steps` (traced), each on its own cohort."""

    def one_member(state: TrainState, member: Members) -> TrainState:
        own = jax.tree.map(lambda leaf: leaf[member.cohort], data)

        def one_step(number: Array, before: TrainState) -> TrainState:
            moves = number % COPULA_EVERY == 0
            return step(before, own, member.weights, preset.rates, preset.training, BATCH_SIZE, moves_copula=moves)[0]

        return jax.lax.fori_loop(0, n_steps, one_step, state)

    return jax.vmap(one_member)(states, members)


@jax.jit
def score(parameters: Parameters, patients: Array, cohort_of: Array) -> Array:
    """R-indices of each member's patients → ``(members, rows, patterns)``."""
    some = 50  # bounds the memory of the decomposed brains
    return jax.lax.map(lambda of: predict_r_indices(of[0], patients[of[1]]), (parameters, cohort_of), batch_size=some)


@jax.jit
def pattern_maps(parameters: Parameters, data: Data, cohort_of: Array) -> Array:
    """Mean change of controls by each pattern alone, relative to no severity → ``(members, patterns, regions)``.

    For the additive composition, which all experiments use.
    """

    def one_member(of: tuple[Parameters, Array]) -> Array:
        f, controls, n_controls = of[0].transformation, data.controls[of[1]], data.n_controls[of[1]]
        n_patterns = len(f["severity"]["weight"])
        severities = jnp.concatenate([jnp.zeros((1, n_patterns)), jnp.eye(n_patterns)])
        everybody = jnp.broadcast_to(severities, (len(controls), *severities.shape))
        changes = networks.decode(f, networks.encode(f, controls), everybody)
        real = jnp.arange(len(controls)) < n_controls
        return jnp.tensordot(real / n_controls, changes[:, 1:] - changes[:, :1], axes=1)

    some = 50  # as in `score`
    return jax.lax.map(one_member, (parameters, cohort_of), batch_size=some)


def steps_of_looks(preset: Preset) -> list[int]:
    """Return the steps of the checkpoints that may be chosen."""
    schedule = preset.schedule
    return list(range(schedule.min_steps, schedule.max_steps + 1, schedule.checkpoint_every))


def train(group: Group, brains: list[Brains], n_rows: int, preset: Preset) -> Trained:
    """Train a group, and score its patients at each look."""
    data, patients = stack(brains, n_rows)
    members = members_of(group)
    states = start(members.key, n_regions=data.controls.shape[-1], n_patterns=group.n_patterns, preset=preset)
    states = advance(states, data, members, 0, preset=preset)  # compiles while another group still trains
    score(states.parameters, patients, members.cohort).block_until_ready()
    pattern_maps(states.parameters, data, members.cohort).block_until_ready()
    looks, maps, done = [], [], 0
    with _device:
        began = time.perf_counter()
        for at in steps_of_looks(preset):
            states = advance(states, data, members, at - done, preset=preset)
            looks.append(score(states.parameters, patients, members.cohort))
            maps.append(pattern_maps(states.parameters, data, members.cohort))
            done = at
        r_indices, changes = (np.stack([np.asarray(look) for look in of]) for of in (looks, maps))
        seconds = time.perf_counter() - began
    shape = (len(looks), len(group.cohorts), len(group.weightings), group.n_repetitions)
    r_indices, changes = (of.reshape(*shape, *of.shape[2:]) for of in (r_indices, changes))
    return Trained(r_indices, seconds, changes)


def train_all(groups: list[Group], brains: dict[Cohort, Brains], preset: Preset) -> Iterator[tuple[Group, Trained]]:
    """Train groups one after the other; yield each as soon as it is done."""
    n_rows = max(max(cohort[:2]) for group in groups for cohort in group.cohorts)  # one program for all sizes
    began = time.perf_counter()
    with ThreadPoolExecutor(N_THREADS) as pool:
        running = {}
        for group in groups:
            own = [brains[cohort] for cohort in group.cohorts]
            running[pool.submit(train, group, own, n_rows, preset)] = group
        for finished in as_completed(running):
            group, trained = running.pop(finished), finished.result()
            n_models = len(group.cohorts) * len(group.weightings) * group.n_repetitions
            rate = n_models * preset.schedule.max_steps / trained.seconds
            print(
                f"{time.perf_counter() - began:.0f} s: {group.n_patterns} patterns, {n_models} models, "
                f"trained {trained.seconds:.1f} s ({rate:,.0f} models' steps per second)",
                flush=True,
            )
            yield group, trained
