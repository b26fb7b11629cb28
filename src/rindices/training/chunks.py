"""The unit of work, a chunk: models that are trained together, from start to end on any available device.

A chunk depends only on its arguments, so it can be trained in any process, in any order and more than once, with the
same result.
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple, Protocol, Self

import jax
import numpy as np

from rindices.core.devices import Device
from rindices.core.networks import Parameters, shapes, sizes, unpad
from rindices.core.train import Checkpoint, TrainingPeople, make_members, saved_states, train
from rindices.linear import side_by_side
from rindices.presets import Preset, Schedule
from rindices.training.starts import Start, beside_networks, start_of

_SAVE_SECONDS = 20.0  # between two saved states: what a killed run may lose
_MEMORY_SHARE = 0.5  # of a device, for the models; the rest is for the compiler's scratch space and fragmentation
_UNKNOWN_MEMORY = 4 * 2**30  # bytes to assume if a device does not report them
_COPIES = 10  # of its weights that a model needs: Adam's moments, gradients, and the input and output of a call


class Point(NamedTuple):
    """One setting of a sweep."""

    n_patterns: int
    orthogonality: float


class Member(NamedTuple):
    """One model: a setting, and the number of its repetition.

    A `prolonged` one is the same model, trained for as long as the schedule allows.
    """

    point: Point
    repetition: int
    prolonged: bool = False

    @property
    def stored(self) -> tuple[object, ...]:
        """What a journal stores of it: 0 stands for the data; `prolonged` only if it is true."""
        return (self.point, self.repetition, 0, *[True] * self.prolonged)


@dataclass(frozen=True)
class Chunk:
    """Models that are trained together; on a processor, all with the same number of patterns."""

    members: tuple[Member, ...]

    @property
    def n_patterns(self) -> int:
        """The number of patterns, or the largest if they differ."""
        return max(member.point.n_patterns for member in self.members)

    @property
    def repetition(self) -> int:
        """The first repetition; the only one if repetitions learn from different draws of missing regions."""
        return self.members[0].repetition

    @property
    def name(self) -> str:
        """The name of the chunk's files."""
        alike = len({member.point.n_patterns for member in self.members}) == 1
        members = [(m.point[1] if alike else tuple(m.point), m.repetition, *m.stored[3:]) for m in self.members]
        numbers = hashlib.sha256(repr(members).encode()).hexdigest()[:10]
        return f"data-{self.n_patterns}-{numbers}"


class Settings(NamedTuple):
    """The settings that all models of a run share: all but the orthogonality, which belongs to a point."""

    preset: Preset
    seed: int  # with a repetition's number, it determines all its random numbers


def schedule_of(chunk: Chunk, settings: Settings) -> Schedule:
    """Return how long a chunk is trained; prolonged models are evaluated only at the end."""
    schedule = settings.preset.schedule
    longest = max(schedule.longest, schedule.max_steps)
    return replace(schedule, min_steps=longest, max_steps=longest) if chunk.members[0].prolonged else schedule


class Trajectory(NamedTuple):
    """The patients' R-indices by a chunk's models at each checkpoint, and the models' weights at later ones.

    R-indices of models with fewer patterns than others in the chunk are padded with zeros.
    """

    steps: np.ndarray
    r_indices: np.ndarray  # (checkpoints, models, patients, patterns)
    losses: dict[str, np.ndarray]  # (checkpoints, models)
    correlations: np.ndarray  # of severities, (checkpoints, models, patterns, patterns)
    weights: Mapping[int, Parameters]  # by step, leading axis: models; from the minimum number of steps on

    def end(self) -> Self:
        """Return only the last checkpoint."""
        losses = {name: values[-1:] for name, values in self.losses.items()}
        return type(self)(self.steps[-1:], self.r_indices[-1:], losses, self.correlations[-1:], self.weights)

    def weights_of(self, place: int, n_patterns: int, step: int) -> Parameters:
        """Return a model's weights at a checkpoint, or the last ones if all models of the chunk were frozen earlier."""
        weights = self.weights[step if step in self.weights else max(self.weights)]
        if weights.decomposer:
            n_regions = weights.decomposer["patterns"]["weight"].shape[1]
        else:
            n_regions = weights.linear["change"]["map"].shape[-1]
        return unpad(jax.tree.map(lambda leaf: leaf[place], weights), sizes(n_regions, n_patterns))


class Unfinished(NamedTuple):
    """An unfinished chunk: its trajectory so far, and the states from which training resumes."""

    trajectory: Trajectory
    states: dict[str, np.ndarray]


class Keeper(Protocol):
    """Storage for everything that an unfinished chunk needs to resume after a crash."""

    def load(self) -> Unfinished | None:
        """Return what was saved, or None."""

    def save(self, unfinished: Unfinished) -> None:
        """Save an unfinished chunk; failure does no harm."""


class Stopped(Exception):
    """Training was asked to stop."""


def train_chunk(
    chunk: Chunk,
    settings: Settings,
    people: TrainingPeople,
    keeper: Keeper | None = None,
    *,
    progress: Callable[[Chunk, int], bool] | None = None,
) -> Trajectory:
    """Train one chunk to its end.

    Parameters
    ----------
    chunk, settings
        What to train.
    people
        The people to learn from.
    keeper
        Storage to resume from, and to save to during training.
    progress
        Called with the chunk and its step, at the beginning and after each checkpoint; if it returns False, training
        ends with `Stopped`.
    """
    schedule = schedule_of(chunk, settings)
    left = None if keeper is None else keeper.load()
    so_far = [] if left is None else [left.trajectory]
    after = None if left is None else (int(left.trajectory.steps[-1]), left.states)
    weights = [settings.preset.weights._replace(orthogonality=member.point.orthogonality) for member in chunk.members]
    starts = starts_of(chunk.members, settings, people)
    if not schedule.max_steps:
        _report(progress, chunk, 0)
        return untrained(starts, people.patients)
    members = make_members(
        settings.seed,
        weights,
        [settings.preset.rates] * len(weights),
        len(people.controls),
        [member.repetition for member in chunk.members],
        schedule.folds,
        [start.prior for start in starts] or None,
    )
    _report(progress, chunk, 0 if after is None else after[0])
    saved = time.monotonic()
    for checkpoint in train(
        people,
        members,
        settings.preset.training,
        schedule,
        n_patterns=[member.point.n_patterns for member in chunk.members],
        after=after,
    ):
        with_weights = checkpoint.step >= min(schedule.min_steps, schedule.max_steps)
        so_far.append(_at_checkpoint(checkpoint, with_weights, starts, people.patients))
        _report(progress, chunk, checkpoint.step)
        if keeper is not None and checkpoint.step < schedule.max_steps and time.monotonic() - saved > _SAVE_SECONDS:
            so_far = [_joined(so_far)]
            keeper.save(Unfinished(so_far[0], saved_states(checkpoint.states)))
            saved = time.monotonic()
    return _joined(so_far)


def _report(progress: Callable[[Chunk, int], bool] | None, chunk: Chunk, step: int) -> None:
    if progress is not None and not progress(chunk, step):
        raise Stopped


def starts_of(members: Sequence[Member], settings: Settings, people: TrainingPeople) -> list[Start]:
    """Return the linear model from which each member starts; none if training starts from random weights."""
    if settings.preset.training.start == "random":
        return []

    def start(member: Member) -> Start:
        n_patterns, folds = member.point.n_patterns, settings.preset.schedule.folds
        method, groups = people.methods[n_patterns], (people.controls, people.patients)
        return start_of(*groups, n_patterns, method, settings.seed, member.repetition, folds)

    return list(side_by_side(start, members))


def untrained(starts: list[Start], patients: np.ndarray) -> Trajectory:
    """Return the trajectory of linear models alone, as its only checkpoint."""
    linear, r_indices = beside_networks(starts, None, patients)
    most = r_indices.shape[-1]
    correlations = np.stack([np.eye(most) for _ in starts])
    for matrix, start in zip(correlations, starts, strict=True):
        matrix[: len(start.offset), : len(start.offset)] = start.correlation
    return Trajectory(np.array([0]), r_indices[None], {}, correlations[None], {0: Parameters({}, {}, {}, {}, linear)})


def _at_checkpoint(checkpoint: Checkpoint, with_weights: bool, starts: list[Start], patients: np.ndarray) -> Trajectory:
    linear, r_indices = (
        beside_networks(starts, checkpoint.r_indices, patients) if starts else (None, checkpoint.r_indices)
    )
    return Trajectory(
        np.array([checkpoint.step]),
        r_indices[None],
        {name: values[None] for name, values in checkpoint.losses.items()},
        checkpoint.correlations()[None],
        {checkpoint.step: checkpoint.parameters()._replace(linear=linear)} if with_weights else {},
    )


def _joined(parts: list[Trajectory]) -> Trajectory:
    losses = {name: np.concatenate([part.losses[name] for part in parts]) for name in parts[0].losses}
    weights = {step: tree for part in parts for step, tree in part.weights.items()}
    steps, r_indices, correlations = (np.concatenate([part[place] for part in parts]) for place in (0, 1, 3))
    return Trajectory(steps, r_indices, losses, correlations, weights)


def models_per_chunk(
    people: TrainingPeople, n_patterns: int, schedule: Schedule, device: Device, at_a_time: int
) -> int:
    """Return the number of models to train together: one per core on a processor, as many as fit on an accelerator.

    Parameters
    ----------
    people, n_patterns, schedule
        What to train.
    device
        The device of a worker.
    at_a_time
        Number of chunks that share the device.
    """
    if device.platform == "cpu":
        return 1
    n_regions = people.controls.shape[1]
    layers = jax.tree.leaves(shapes(sizes(n_regions, n_patterns)), is_leaf=lambda part: type(part) is tuple)
    weights = sum(int(np.prod(shape)) for shape in layers)
    passes = schedule.people_per_step(len(people.patients)) * (3 * n_patterns + 8) * n_regions * 4
    scores = len(people.patients) * (2 * n_patterns + 2) * n_regions
    memory = _MEMORY_SHARE * (device.memory or _UNKNOWN_MEMORY) * device.number / at_a_time
    return max(1, int(memory / (4 * (_COPIES * weights + passes + scores))))


def members_of(points: Iterable[Point], repetitions: Iterable[int]) -> list[Member]:
    """Return the models of all given settings and repetitions."""
    return [Member(point, repetition) for point in points for repetition in repetitions]


def cut(members: Sequence[Member], size: int, *, mixed: bool = False, apart: bool = False) -> list[Chunk]:
    """Cut models into chunks of at most `size` and nearly equal length, so that they share compiled programs.

    In `mixed` chunks, different numbers of patterns are trained together: an accelerator takes hardly longer.
    Repetitions that learn from different data are kept `apart`.
    """
    chunks: list[Chunk] = []
    alone = ["repetition"] if apart else []
    kind = attrgetter("prolonged", *alone, *([] if mixed else ["point.n_patterns"]))
    for _, group in groupby(sorted(members, key=kind), key=kind):
        alike = list(group)
        n_chunks = -(-len(alike) // size)
        bounds = [len(alike) * part // n_chunks for part in range(n_chunks + 1)]
        chunks += [Chunk(tuple(alike[a:b])) for a, b in pairwise(bounds)]
    return chunks
