"""Train repetitions on many simulated cohorts as members of one program; intended for a GPU.

While the device trains one group, threads compile the programs of the next ones.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rindices.core import networks
from rindices.core.losses import Losses
from rindices.core.networks import Parameters, predict_r_indices
from rindices.core.step import COPULA_EVERY, Data, TrainState, initial_state, step
from rindices.core.train import held_out
from rindices.presets import LearningRates, LossWeights, Preset, Training, blind

NOT_REGIONS = ["participant_id", "diagnosis", "age", "sex"]
ALL_REGIONS = 128
BATCH_SIZE = blind().schedule.batch_size or 32
N_THREADS = 3  # one trains, the others compile

_device = threading.Lock()


class Cohort(NamedTuple):
    """The parameters of a cohort."""

    n_controls: int
    n_patients: int
    n_regions: int
    seed: int
    kind: str = "null"


class Brains(NamedTuple):
    """Scaled brains of one cohort, the whitening applied for the discriminator, and the patients' severities."""

    controls: np.ndarray
    patients: np.ndarray
    whitening: np.ndarray
    truth: np.ndarray
    others: np.ndarray | None = None  # not trained on; scored after the patients

    def scored(self) -> np.ndarray:
        """Return the people whose R-indices are computed."""
        return self.patients if self.others is None else np.concatenate([self.patients, self.others])


class Group(NamedTuple):
    """Models trained together: repetitions of each cohort with each weighting."""

    n_patterns: int
    cohorts: list[Cohort]
    seeds: list[int]  # of the models of each cohort
    weightings: list[LossWeights] | list[list[LossWeights]]  # the same for all cohorts, or a list for each
    n_repetitions: int
    rates: list[LearningRates] | None = None  # of each cohort, if they differ from the preset's

    def of_cohorts(self) -> list[list[LossWeights]]:
        """Return the weightings of each cohort."""
        if isinstance(self.weightings[0], LossWeights):
            return [self.weightings] * len(self.cohorts)
        return self.weightings

    def n_models(self) -> int:
        """Return the number of models."""
        return len(self.cohorts) * len(self.of_cohorts()[0]) * self.n_repetitions


class Trained(NamedTuple):
    """R-indices of a group's patients, with padding, and the course and cost of training."""

    r_indices: np.ndarray  # (looks, cohorts, weightings, repetitions, rows, patterns)
    seconds: float
    changes: np.ndarray  # (looks, cohorts, weightings, repetitions, patterns, regions): of controls, see `pattern_maps`
    losses: dict[str, np.ndarray]  # (looks, cohorts, weightings, repetitions) each: means since the previous look
    steps: np.ndarray  # (looks, cohorts, weightings, repetitions): steps of each model so far

    def of_cohort(self, place: int, n_patients: int) -> np.ndarray:
        """Return the R-indices of one cohort → ``(looks, weightings, repetitions, patients, patterns)``."""
        return self.r_indices[:, place, :, :, :n_patients]


def stack(brains: list[Brains], n_rows: int, preset: Preset | None = None) -> tuple[Data, Array]:
    """Stack cohorts, padded to `n_rows`, and return the training data and the people to score."""
    schedule = (preset or blind()).schedule
    whitened = bool(schedule.whitening)

    def padded(people: list[np.ndarray], n_rows: int = n_rows) -> Array:
        rows = [np.pad(person, [(0, n_rows - len(person)), (0, 0)]) for person in people]
        return jnp.asarray(np.stack(rows), jnp.float32)

    scored = [one.scored() for one in brains]

    data = Data(
        controls=padded([one.controls for one in brains]),
        drawn=jnp.tile(jnp.arange(n_rows), (len(brains), 1)),  # trains on everybody
        seen_patients=padded([1 + (one.patients - 1) @ one.whitening if whitened else one.patients for one in brains]),
        whitening=jnp.asarray(np.stack([one.whitening for one in brains]), jnp.float32) if whitened else None,
        n_controls=jnp.asarray([len(one.controls) for one in brains]),
        n_patients=jnp.asarray([len(one.patients) for one in brains]),
        min_steps=jnp.full(len(brains), schedule.min_steps),
        region_share=jnp.ones(len(brains)),
    )
    return data, padded(scored, max(n_rows, *map(len, scored)))


class Members(NamedTuple):
    """What differs between the models of a group, along a leading axis."""

    cohort: Array
    key: Array
    weights: LossWeights
    rates: LearningRates
    controls: Array  # (members, rows): indices, starting with those that each member trains on
    n_controls: Array


def members_of(group: Group, n_rows: int, preset: Preset) -> Members:
    """Return the models by cohort, weighting and repetition, with the keys that separate fits would use."""
    own = group.of_cohorts()
    shape = (len(group.cohorts), len(own[0]), group.n_repetitions)
    place, weighting, repetition = (axis.ravel() for axis in np.indices(shape))
    seeds = np.asarray(group.seeds)[place]
    keys = jax.vmap(lambda seed, number: jax.random.fold_in(jax.random.key(seed), number))(
        jnp.asarray(seeds), jnp.asarray(repetition)
    )
    weights = jnp.asarray(np.array(own)[place, weighting], jnp.float32)
    rates = jnp.asarray(np.array(group.rates or [preset.rates] * len(group.cohorts))[place], jnp.float32)
    orders, counts = np.zeros((len(place), n_rows), np.int32), np.zeros(len(place), np.int32)
    for row, (of, seed, number) in enumerate(zip(place, seeds, repetition, strict=True)):
        n_controls = group.cohorts[of].n_controls
        without = held_out(n_controls, int(seed), int(number), preset.schedule.folds)
        orders[row, :n_controls], counts[row] = np.argsort(without, kind="stable"), n_controls - without.sum()
    return Members(
        *(jnp.asarray(place), keys, LossWeights(*weights.T), LearningRates(*rates.T)),
        *(jnp.asarray(orders), jnp.asarray(counts)),
    )


@partial(jax.jit, static_argnames=("n_regions", "n_patterns", "preset"))
def start(keys: Array, *, n_regions: int, n_patterns: int, preset: Preset) -> TrainState:
    """Draw the initial weights of all members."""
    sizes = networks.sizes(n_regions, n_patterns)
    return jax.vmap(partial(initial_state, real=sizes, with_padding=sizes, training=preset.training))(keys)


@partial(jax.jit, static_argnames=("training", "batch_size", "precision"), donate_argnames="states")
def advance(
    states: TrainState,
    data: Data,
    members: Members,
    n_steps: int,
    *,
    training: Training,
    batch_size: int = BATCH_SIZE,
    precision: Any = jnp.float32,
) -> tuple[TrainState, Losses]:
    """Advance all members by `n_steps` (traced), each on its own cohort; losses are means over these steps."""

    def one_member(state: TrainState, member: Members) -> tuple[TrainState, Losses]:
        own = jax.tree.map(lambda leaf: leaf[member.cohort], data)
        own = own._replace(drawn=member.controls, n_controls=member.n_controls)

        def one_step(number: Array, carry: tuple[TrainState, Losses]) -> tuple[TrainState, Losses]:
            moves = number % COPULA_EVERY == 0
            before, sums = carry
            after, losses = step(before, own, member.weights, member.rates, training, batch_size, precision, moves)
            return after, jax.tree.map(jnp.add, sums, losses)

        nothing = Losses(*[jnp.zeros(())] * len(Losses._fields))
        after, sums = jax.lax.fori_loop(0, n_steps, one_step, (state, nothing))
        return after, jax.tree.map(lambda total: total / n_steps, sums)

    return jax.vmap(one_member)(states, members)


@jax.jit
def score(parameters: Parameters, patients: Array, cohort_of: Array) -> Array:
    """Return the R-indices of each member's patients → ``(members, rows, patterns)``."""
    some = 50  # limits the memory for the decomposed brains
    return jax.lax.map(lambda of: predict_r_indices(of[0], patients[of[1]]), (parameters, cohort_of), batch_size=some)


@jax.jit
def pattern_maps(parameters: Parameters, data: Data, cohort_of: Array) -> Array:
    """Return the controls' mean change by each pattern alone, relative to none → ``(members, patterns, regions)``.

    This assumes the additive composition, which all experiments use.
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


def batch_of(preset: Preset, brains: list[Brains]) -> int:
    """Return the batch size per group: an eighth of the patients unless the preset sets it."""
    return preset.schedule.batch_size or max(1, min(len(one.patients) for one in brains) // 8)


def precision_here() -> Any:
    """Return the precision that `rindices.core.train` uses on this device."""
    return jnp.float32 if jax.devices()[0].platform == "cpu" else jnp.bfloat16


def train(
    group: Group,
    brains: list[Brains],
    n_rows: int,
    preset: Preset,
    looks: Sequence[int] | None = None,
    precision: Any = None,
    after_look: Callable[[Trained], None] | None = None,
) -> Trained:
    """Train a group and score its patients at each step in `looks`; `after_look` receives the results so far.

    Once all models have stopped by the preset's rule, the remaining looks are skipped.
    """
    looks = steps_of_looks(preset) if looks is None else looks
    data, patients = stack(brains, n_rows, preset)
    members = members_of(group, n_rows, preset)
    program = {"training": preset.training, "batch_size": batch_of(preset, brains)}
    program["precision"] = precision or precision_here()
    states = start(members.key, n_regions=data.controls.shape[-1], n_patterns=group.n_patterns, preset=preset)
    states, _ = advance(states, data, members, 0, **program)  # compiles while another group trains
    score(states.parameters, patients, members.cohort).block_until_ready()
    pattern_maps(states.parameters, data, members.cohort).block_until_ready()
    shape = (len(group.cohorts), len(group.of_cohorts()[0]), group.n_repetitions)
    found: list[tuple[np.ndarray, ...]] = []
    done = 0
    with _device:
        began = time.perf_counter()
        for at in looks:
            states, losses = advance(states, data, members, at - done, **program)
            of = (score(states.parameters, patients, members.cohort), states.step)
            of = (*of, pattern_maps(states.parameters, data, members.cohort), *losses)
            found.append(tuple(np.asarray(array).reshape(*shape, *array.shape[1:]) for array in of))
            done = at
            r_indices, steps, changes, *terms = (np.stack(column) for column in zip(*found, strict=True))
            named = dict(zip(Losses._fields, terms, strict=True))
            trained = Trained(r_indices, time.perf_counter() - began, changes, named, steps)
            if after_look is not None:
                after_look(trained)
            if np.asarray(states.frozen).all():
                break
    return trained


def train_all(
    groups: list[Group], brains: dict[Cohort, Brains], preset: Preset, **how: Any
) -> Iterator[tuple[Group, Trained]]:
    """Train groups one after another; yield each when it is done."""
    n_rows = max(max(cohort[:2]) for group in groups for cohort in group.cohorts)  # one program for all sizes
    began = time.perf_counter()
    with ThreadPoolExecutor(N_THREADS) as pool:
        running = {}
        for group in groups:
            own = [brains[cohort] for cohort in group.cohorts]
            running[pool.submit(train, group, own, n_rows, preset, **how)] = group
        for finished in as_completed(running):
            group, trained = running.pop(finished), finished.result()
            rate = group.n_models() * trained.steps.max() / trained.seconds
            print(
                f"{time.perf_counter() - began:.0f} s: {group.n_patterns} patterns, {group.n_models()} models, "
                f"trained {trained.seconds:.1f} s ({rate:,.0f} models' steps per second)",
                flush=True,
            )
            yield group, trained
