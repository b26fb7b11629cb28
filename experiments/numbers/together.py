"""Train repetitions on many cohorts as members of one program; intended for a GPU.

The result is a store of trained chunks for each cohort, from which `SurrealGAN.fit` and `SurrealGANSearch.fit` continue
as if they had trained them: everything measured afterwards is the package's own output.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from rindices.core import networks
from rindices.core.losses import unit_rows
from rindices.core.networks import Parameters, predict_r_indices
from rindices.core.step import COPULA_EVERY, Data, TrainState, initial_state, step
from rindices.core.train import held_out
from rindices.judging.study import Study
from rindices.presets import Preset
from rindices.training.chunks import Chunk, Trajectory
from rindices.training.execution import Memory

_ROWS = 128
_N_THREADS = 3  # one trains, the others compile
_device = threading.Lock()


class Job(NamedTuple):
    """Repetitions of one number of patterns on one cohort."""

    study: Study
    n_patterns: int
    n_repetitions: int
    first: int = 0  # number of the first repetition


class Looks(NamedTuple):
    """R-indices, correlations and weights of the repetitions of a job, at each step that was looked at."""

    steps: list[int]
    r_indices: np.ndarray  # (looks, repetitions, patients, patterns)
    correlations: np.ndarray  # (looks, repetitions, patterns, patterns)
    weights: dict[int, Parameters]


class Pretrained(Memory):
    """A store that contains all chunks of one cohort."""

    def __init__(self, found: dict[int, Looks], until: int | None = None) -> None:
        self._found, self._until = found, until

    def __contains__(self, chunk: object) -> bool:
        return isinstance(chunk, Chunk) and chunk.n_patterns in self._found

    def __getitem__(self, chunk: Chunk) -> Trajectory:
        looks, of = self._found[chunk.n_patterns], [member.repetition for member in chunk.members]
        kept = [place for place, at in enumerate(looks.steps) if self._until is None or at == self._until]
        weights = {
            looks.steps[place]: jax.tree.map(lambda leaf: leaf[of], looks.weights[looks.steps[place]]) for place in kept
        }
        steps, r_indices, correlations = np.array(looks.steps)[kept], looks.r_indices[kept], looks.correlations[kept]
        return Trajectory(steps, r_indices[:, of], {}, correlations[:, of], weights)


def train_jobs(
    jobs: Sequence[Job], preset: Preset, looks: list[int], precision: str = "bfloat16", together: int = 3000
) -> Iterator[tuple[Job, Looks]]:
    """Train all jobs, those with the same shape together, and yield each when its group is done."""
    groups: dict[tuple[int, int], list[list[Job]]] = {}
    for job in jobs:
        of = groups.setdefault((job.study.residuals.shape[1], job.n_patterns), [[]])
        if sum(one.n_repetitions for one in of[-1]) + job.n_repetitions > together:
            of.append([])
        of[-1].append(job)
    n_rows = -(-max(max((~j.study.patient).sum(), j.study.patient.sum()) for j in jobs) // _ROWS) * _ROWS
    began = time.perf_counter()
    with ThreadPoolExecutor(_N_THREADS) as pool:
        running = [
            (group, pool.submit(_train, group, preset, looks, precision, int(n_rows)))
            for of in groups.values()
            for group in of
        ]
        for group, future in running:
            found, seconds = future.result()
            n_models = sum(job.n_repetitions for job in group)
            print(
                f"{time.perf_counter() - began:.0f} s: {group[0].n_patterns} patterns, {n_models} models, trained "
                f"{seconds:.1f} s ({n_models * looks[-1] / seconds:,.0f} models' steps per second)",
                flush=True,
            )
            yield from zip(group, found, strict=True)


class _Members(NamedTuple):
    cohort: Array
    key: Array
    controls: Array
    n_controls: Array


def _train(
    group: list[Job], preset: Preset, looks: list[int], precision: str, n_rows: int
) -> tuple[list[Looks], float]:
    data, patients, members = _stacked(group, preset, n_rows)
    n_regions, n_patterns = data.controls.shape[-1], group[0].n_patterns
    advance = partial(_advance, preset=preset, precision=precision)
    states = _start(members.key, n_regions=n_regions, n_patterns=n_patterns, preset=preset)
    states = advance(states, data, members, 0)  # compiles while another group trains
    found: list[tuple[np.ndarray, np.ndarray, Parameters]] = []
    with _device:
        began, done = time.perf_counter(), 0
        for at in looks:
            states = advance(states, data, members, at - done)
            r_indices = np.asarray(_score(states.parameters, patients, members.cohort))
            found.append((r_indices, _correlations(states, n_patterns), jax.tree.map(np.asarray, states.parameters)))
            done = at
        seconds = time.perf_counter() - began
    results, start = [], 0
    for job in group:
        mine = slice(start, start + job.n_repetitions)
        start, n_patients = mine.stop, int(job.study.patient.sum())
        weights = {
            at: jax.tree.map(lambda leaf, mine=mine: leaf[mine], of)
            for at, (_, _, of) in zip(looks, found, strict=True)
        }
        r_indices = np.stack([of[mine, :n_patients] for of, _, _ in found])
        results.append(Looks(looks, r_indices, np.stack([of[mine] for _, of, _ in found]), weights))
    return results, seconds


def _stacked(group: list[Job], preset: Preset, n_rows: int) -> tuple[Data, Array, _Members]:
    people = [job.study.people() for job in group]

    def padded(rows: list[np.ndarray]) -> Array:
        return jnp.asarray(np.stack([np.pad(of, [(0, n_rows - len(of)), (0, 0)]) for of in rows]), jnp.float32)

    seen = [of.patients if of.whitening is None else 1 + (of.patients - 1) @ of.whitening for of in people]
    data = Data(
        controls=padded([of.controls for of in people]),
        drawn=jnp.zeros((len(people), 1), int),
        seen_patients=padded(seen),
        whitening=None
        if people[0].whitening is None
        else jnp.asarray(np.stack([of.whitening for of in people]), jnp.float32),
        n_controls=jnp.asarray([len(of.controls) for of in people]),
        n_patients=jnp.asarray([len(of.patients) for of in people]),
        min_steps=jnp.zeros(len(people), int),
        region_share=jnp.ones(len(people)),
    )
    place = np.repeat(np.arange(len(group)), [job.n_repetitions for job in group])
    number = np.concatenate([job.first + np.arange(job.n_repetitions) for job in group])
    seeds = np.array([group[p].study.settings.seed for p in place])
    keys = jax.vmap(lambda seed, k: jax.random.fold_in(jax.random.key(seed), k))(
        jnp.asarray(seeds), jnp.asarray(number)
    )
    orders, counts = np.zeros((len(place), n_rows), int), np.zeros(len(place), int)
    for row, (p, k) in enumerate(zip(place, number, strict=True)):
        n_controls = len(people[p].controls)
        without = held_out(n_controls, int(seeds[row]), int(k), preset.schedule.folds)
        orders[row, :n_controls], counts[row] = np.argsort(without, kind="stable"), n_controls - without.sum()
    members = _Members(jnp.asarray(place), keys, jnp.asarray(orders), jnp.asarray(counts))
    return data, padded([of.patients for of in people]), members


@partial(jax.jit, static_argnames=("n_regions", "n_patterns", "preset"))
def _start(keys: Array, *, n_regions: int, n_patterns: int, preset: Preset) -> TrainState:
    sizes = networks.sizes(n_regions, n_patterns)
    return jax.vmap(partial(initial_state, real=sizes, with_padding=sizes, training=preset.training))(keys)


@partial(jax.jit, static_argnames=("preset", "precision"), donate_argnames="states")
def _advance(
    states: TrainState, data: Data, members: _Members, n_steps: int, *, preset: Preset, precision: str
) -> TrainState:
    """Advance all members by `n_steps` (traced), each on its own cohort."""

    def one_member(state: TrainState, member: _Members) -> TrainState:
        own = jax.tree.map(lambda leaf: leaf[member.cohort], data)
        own = own._replace(drawn=member.controls, n_controls=member.n_controls)

        def one_step(number: Array, before: TrainState) -> TrainState:
            moves = number % COPULA_EVERY == 0
            batch = preset.schedule.batch_size or 32
            return step(before, own, preset.weights, preset.rates, preset.training, batch, precision, moves)[0]

        return jax.lax.fori_loop(0, n_steps, one_step, state)

    return jax.vmap(one_member)(states, members)


@jax.jit
def _score(parameters: Parameters, patients: Array, cohort_of: Array) -> Array:
    some = 50  # limits the memory for the decomposed brains
    return jax.lax.map(lambda of: predict_r_indices(of[0], patients[of[1]]), (parameters, cohort_of), batch_size=some)


def _correlations(states: TrainState, n_patterns: int) -> np.ndarray:
    if states.copula is None:
        return np.broadcast_to(np.eye(n_patterns, dtype=np.float32), (len(states.step), n_patterns, n_patterns))
    factors = np.asarray(jax.vmap(unit_rows)(states.copula.raw))
    return factors @ factors.swapaxes(1, 2)
