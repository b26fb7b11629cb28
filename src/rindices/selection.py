"""Repeated trainings of one setting: look at them regularly, stop in time, choose the checkpoint by agreement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from rindices import agreement
from rindices.agreement import Agreement
from rindices.config import Preset, Schedule
from rindices.core.inference import reorder_patterns
from rindices.core.networks import Parameters
from rindices.core.train import Checkpoint, People, make_members, train

_RISE = 1e-3  # agreement that rises by less than this has stopped rising


class Look(NamedTuple):
    """What one checkpoint showed."""

    step: int
    n_models: int  # neither diverged nor collapsed
    agreement: Agreement
    losses: dict[str, float]  # means over these models


class Progress(NamedTuple):
    """For whoever draws a progress bar."""

    step: int
    max_steps: int
    n_models: int
    pattern_agreement: float


@dataclass(frozen=True, eq=False)
class Selected:
    """The models of the chosen checkpoint, brought to one order of patterns, the medoid first."""

    looks: list[Look]
    chosen: int  # position in `looks`
    models: Parameters  # arrays with a leading axis
    members: list[int]  # their numbers
    left_out: dict[int, str]  # number of a member: why


def repeat(
    people: People,
    *,
    n_patterns: int,
    n_repetitions: int,
    preset: Preset,
    batch_size: int,
    seed: int,
    progress: Callable[[Progress], None] | None = None,
) -> Selected:
    """Train `n_repetitions` models that differ in their random numbers only, and keep the best checkpoint."""
    members = make_members(seed, [preset.weights] * n_repetitions, [preset.rates] * n_repetitions)
    schedule = preset.schedule
    checkpoints = train(
        people,
        members,
        preset.training,
        n_patterns=n_patterns,
        batch_size=batch_size,
        checkpoint_every=schedule.checkpoint_every,
        min_steps=schedule.min_steps,
        max_steps=schedule.max_steps,
    )
    first_patient = len(people.controls)
    looks: list[Look] = []
    best = None
    for checkpoint, look, pairs in _judged(checkpoints, first_patient):
        looks.append(look)
        if best is None or _is_better(look, looks[best[0]]):
            best = (len(looks) - 1, checkpoint, pairs)
        if progress is not None:
            progress(Progress(look.step, schedule.max_steps, look.n_models, look.agreement.pattern_agreement))
        if _has_stopped_rising(looks, schedule):
            break
    if best is None:
        raise ValueError(f"max_steps should be at least 1, found {schedule.max_steps}.")
    chosen, checkpoint, pairs = best
    models, kept, left_out = _consensus(checkpoint, checkpoint.r_indices[:, first_patient:], pairs)
    return Selected(looks, chosen, models, kept, left_out)


def _judged(checkpoints: Iterator[Checkpoint], first_patient: int) -> Iterator[tuple[Checkpoint, Look, np.ndarray]]:
    for checkpoint in checkpoints:
        patients = checkpoint.r_indices[:, first_patient:]
        usable = _usable(agreement.faults(patients))
        pairs = agreement.pairwise(patients[usable])
        losses = {
            name: float(values[usable].mean()) if len(usable) else np.nan for name, values in checkpoint.losses.items()
        }
        yield checkpoint, Look(checkpoint.step, len(usable), agreement.mean_agreement(pairs), losses), pairs


def _usable(faults: list[str]) -> np.ndarray:
    """Models without fault; if there are none, those that are at least finite."""
    sound = np.array([i for i, fault in enumerate(faults) if not fault], int)
    return sound if len(sound) else np.array([i for i, fault in enumerate(faults) if fault != "diverged"], int)


def _is_better(look: Look, best: Look) -> bool:
    """Higher agreement; without any (fewer than two models), more models or more steps."""
    value, best_value = look.agreement.pattern_agreement, best.agreement.pattern_agreement
    if np.isnan(value) or np.isnan(best_value):
        return np.isnan(best_value) and (not np.isnan(value) or look.n_models >= best.n_models)
    return value > best_value


def _has_stopped_rising(looks: list[Look], schedule: Schedule) -> bool:
    if schedule.patience is None or looks[-1].step < schedule.min_steps or len(looks) <= schedule.patience:
        return False
    values = [look.agreement.pattern_agreement for look in looks]
    before, recent = values[: -schedule.patience], values[-schedule.patience :]
    return bool(max(recent) < max(before) + _RISE)  # False where undefined


def _consensus(
    checkpoint: Checkpoint, patients: np.ndarray, pairs: np.ndarray
) -> tuple[Parameters, list[int], dict[int, str]]:
    faults = agreement.faults(patients)
    usable = _usable(faults)
    if not len(usable):
        raise FloatingPointError(
            "All models diverged (their weights are no longer finite). Check the table for extreme values, "
            "or lower the learning rates."
        )
    consensus = agreement.find_consensus(patients[usable], pairs)
    left_out = {i: fault for i, fault in enumerate(faults) if i not in usable}
    for position, value in enumerate(consensus.agreement_with_medoid):
        if position not in consensus.kept:
            left_out[int(usable[position])] = f"disagrees with the others ({value:.3f})"
    orders = {int(usable[k]): order for k, order in zip(consensus.kept, consensus.orders, strict=True)}
    medoid = int(usable[consensus.medoid])
    members = [medoid, *(member for member in orders if member != medoid)]
    weights = checkpoint.parameters()
    aligned = [reorder_patterns(_member(weights, k), orders[k]) for k in members]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *aligned), members, dict(sorted(left_out.items()))


def _member(parameters: Parameters, number: int) -> Parameters:
    return jax.tree.map(lambda leaf: leaf[number], parameters)
