"""The sweep: train repetitions of each setting, see how well they agree, keep the best setting and checkpoint.

One setting is a sweep too: there is no other way to train.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd

from rindices.core.inference import reorder_patterns
from rindices.core.networks import Parameters
from rindices.judging import agreement
from rindices.judging.agreement import Agreement
from rindices.judging.study import Study
from rindices.training.chunks import Chunk, Member, Point, cut, models_per_chunk
from rindices.training.execution import Execution, train_all

FIRST_LOOK = 3  # repetitions of each setting before most of them are given up
# Settled on ten cohorts, with the repetitions in 100 orders each: always the choice of all of them, for half the cost.
_CLOSE = 1.0  # standard errors above its agreement at which a setting is still a rival of the best
_MARGIN = 0.02  # agreement below the best that is as good, whatever the standard errors say


class Look(NamedTuple):
    """What one checkpoint of a setting showed."""

    step: int
    n_models: int  # neither diverged nor collapsed
    agreement: Agreement
    error: Agreement  # jackknife standard errors
    low: Agreement  # 95 % jackknife intervals over models
    high: Agreement
    losses: dict[str, float]  # means over these models; without any, this and the agreement are of those that collapsed


@dataclass(frozen=True, eq=False)
class Judged:
    """A setting, and what its repetitions showed."""

    point: Point
    n_repetitions: int
    looks: list[Look]
    best: int  # position in `looks`

    @property
    def look(self) -> Look:
        """The best checkpoint."""
        return self.looks[self.best]

    @property
    def value(self) -> float:
        """Pattern agreement at the best checkpoint, by which settings are chosen."""
        return self.look.agreement.pattern_agreement


@dataclass(frozen=True, eq=False)
class Swept:
    """All settings of a sweep as far as they were trained, and which of them was chosen."""

    judged: list[Judged]
    chosen: Judged
    first_look: int  # repetitions that every setting had
    n_repetitions: int
    chunks: list[Chunk]  # of the data

    @property
    def models_trained(self) -> int:
        """How many models it took."""
        return sum(one.n_repetitions for one in self.judged)

    def ranked(self) -> list[Judged]:
        """Return the settings that were trained in full, best first, and one pattern last: agreement flatters it."""
        full = [one for one in self.judged if one.n_repetitions == self.n_repetitions]
        return sorted(full, key=_rank, reverse=True)

    def table(self) -> pd.DataFrame:
        """Agreement of each setting at each checkpoint."""
        rows = []
        for one in self.judged:
            for place, look in enumerate(one.looks):
                row = one.point._asdict() | {"step": look.step, "n_models": look.n_models}
                row |= look.agreement._asdict()
                for name in Agreement._fields:
                    row |= {f"{name}_low": getattr(look.low, name), f"{name}_high": getattr(look.high, name)}
                best = place == one.best
                rows.append(row | {"best": best, "chosen": best and one is self.chosen})
        return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class Selected:
    """The models of the chosen checkpoint, brought to one order of patterns, the medoid first."""

    models: Parameters  # arrays with a leading axis
    members: list[int]  # their numbers
    left_out: dict[int, str]  # number of a member: why
    correlation: np.ndarray  # of severities, mean over these models


def sweep(
    study: Study, points: Sequence[Point], n_repetitions: int, execution: Execution, *, exhaustive: bool = False
) -> Swept:
    """Train the settings and choose the one whose repetitions agree best.

    Unless `exhaustive`, every setting gets `FIRST_LOOK` repetitions, and only the best and those too close to call get
    the others. Few steps instead of few repetitions would not do: at first, hard cohorts prefer too few patterns.
    """
    points = list(dict.fromkeys(points))
    _plan(study, points, execution)
    first = n_repetitions if exhaustive or len(points) == 1 else min(FIRST_LOOK, n_repetitions)
    stage = "Training" if first == n_repetitions else "First look at all settings"
    chunks = train_members(study, members_of(points, range(first)), execution, stage)
    judged = {point: judge(study, point, first, chunks, execution) for point in points}
    if first < n_repetitions:
        close = rivals(judged.values())
        more = members_of(close, range(first, n_repetitions))
        chunks += train_members(study, more, execution, "All repetitions of the best")
        judged |= {point: judge(study, point, n_repetitions, chunks, execution) for point in close}
    full = [one for one in judged.values() if one.n_repetitions == n_repetitions]
    return Swept(list(judged.values()), max(full, key=_rank), first, n_repetitions, chunks)


def _plan(study: Study, points: Sequence[Point], execution: Execution) -> None:
    """Fix the number of models in a chunk before work starts."""
    most = max(point.n_patterns for point in points)

    def propose() -> int:
        if execution.models_per_chunk is not None:
            return execution.models_per_chunk
        device = execution.device()  # of a worker, who may have to come first
        return models_per_chunk(
            study.people(), most, study.settings.batch_size, device, execution.ready_executor().chunks_per_device
        )

    execution.models_per_chunk = execution.store.plan(propose)


def members_of(points: Iterable[Point], repetitions: Iterable[int], cohort: int = 0) -> list[Member]:
    """Return the models of some settings."""
    return [Member(point, repetition, cohort) for point in points for repetition in repetitions]


def train_members(study: Study, members: Sequence[Member], execution: Execution, stage: str) -> list[Chunk]:
    """Train members in chunks; return the chunks."""
    chunks = cut(members, execution.models_per_chunk or 1)
    train_all(chunks, study.settings, study.people, execution, stage)
    return chunks


def _rank(one: Judged) -> tuple[bool, bool, float, int]:
    known, n_models = not np.isnan(one.value), one.look.n_models
    return one.point.n_patterns > 1, n_models > 0, one.value if known else -1.0, n_models


def rivals(judged: Iterable[Judged]) -> list[Point]:
    """Return the best setting and those that may well be as good."""
    judged = list(judged)
    best = max(judged, key=_rank)
    return [one.point for one in judged if one is best or _may_be_best(one, best)]


def _may_be_best(one: Judged, best: Judged) -> bool:
    if one.point.n_patterns == 1 < best.point.n_patterns or np.isnan(one.value):
        return False
    if one.look.n_models == 0 < best.look.n_models:  # all of them collapsed
        return False
    return one.value + max(_CLOSE * np.nan_to_num(one.look.error.pattern_agreement), _MARGIN) >= best.value


def judge(
    study: Study, point: Point, n_repetitions: int, chunks: Sequence[Chunk], execution: Execution, cohort: int = 0
) -> Judged:
    """See how well the first repetitions of a setting agree at each checkpoint, and find the best one."""
    steps, r_indices, losses = _gather(members_of([point], range(n_repetitions), cohort), chunks, execution)
    schedule = study.settings.preset.schedule
    looks = [
        _look(int(step), r_indices[:, place].astype(float), {name: of[:, place] for name, of in losses.items()})
        for place, step in enumerate(steps)
    ]
    eligible = [place for place, look in enumerate(looks) if look.step >= schedule.min_steps] or [len(looks) - 1]
    return Judged(point, n_repetitions, looks, max(eligible, key=lambda place: _look_rank(looks[place])))


def _gather(
    members: list[Member], chunks: Sequence[Chunk], execution: Execution
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Bring members together: steps, R-indices (models, checkpoints, patients, patterns), losses."""
    place = {member: (chunk, k) for chunk in chunks for k, member in enumerate(chunk.members)}
    found = []
    for member in members:
        chunk, k = place[member]
        trajectory = execution.store[chunk]
        found.append((trajectory.steps, trajectory.r_indices[:, k], {n: v[:, k] for n, v in trajectory.losses.items()}))
    steps = max((steps for steps, _, _ in found), key=len)

    def full(values: np.ndarray) -> np.ndarray:
        """Models that were all frozen before the others ended stay as they were."""
        return np.concatenate([values, np.repeat(values[-1:], len(steps) - len(values), axis=0)])

    losses = {name: np.stack([full(of[name]) for _, _, of in found]) for name in found[0][2]}
    return steps, np.stack([full(r_indices) for _, r_indices, _ in found]), losses


def _look(step: int, r_indices: np.ndarray, losses: dict[str, np.ndarray]) -> Look:
    faults = agreement.faults(r_indices)
    usable = _usable(faults)
    pairs = agreement.pairwise(r_indices[usable])
    means = {name: float(values[usable].mean()) if len(usable) else np.nan for name, values in losses.items()}
    error, interval = Agreement(*agreement.jackknife(pairs).tolist()), agreement.interval(pairs)
    low, high = (Agreement(*interval[:, side].tolist()) for side in (0, 1))
    return Look(step, faults.count(""), agreement.mean_agreement(pairs), error, low, high, means)


def _look_rank(look: Look) -> tuple[bool, float, int, int]:
    """Sound models; higher agreement; without any (fewer than two models), more models, then more steps."""
    value = look.agreement.pattern_agreement
    return (
        (look.n_models > 0, value, 0, 0) if not np.isnan(value) else (look.n_models > 0, -1.0, look.n_models, look.step)
    )


def _usable(faults: list[str]) -> np.ndarray:
    """Models without fault; if there are none, those that are at least finite, so that there is something to show."""
    sound = np.array([i for i, fault in enumerate(faults) if not fault], int)
    return sound if len(sound) else np.array([i for i, fault in enumerate(faults) if fault != "diverged"], int)


def consensus(judged: Judged, chunks: Sequence[Chunk], execution: Execution) -> Selected:
    """Bring the sound models of a setting's best checkpoint to one order of patterns; leave out who disagrees."""
    members = members_of([judged.point], range(judged.n_repetitions))
    _, r_indices, _ = _gather(members, chunks, execution)
    patients = r_indices[:, judged.best].astype(float)
    faults = agreement.faults(patients)
    usable = _usable(faults)
    if not len(usable):
        raise FloatingPointError(
            "All models diverged (their weights are no longer finite). Check the table for extreme values, "
            "or lower the learning rates."
        )
    agreed = agreement.find_consensus(patients[usable])
    left_out = {i: fault for i, fault in enumerate(faults) if i not in usable}
    for position, value in enumerate(agreed.agreement_with_medoid):
        if position not in agreed.kept:
            left_out[int(usable[position])] = f"disagrees with the others ({value:.3f})"
    orders = {int(usable[k]): order for k, order in zip(agreed.kept, agreed.orders, strict=True)}
    medoid = int(usable[agreed.medoid])
    kept = [medoid, *(member for member in orders if member != medoid)]
    place = {member: (chunk, k) for chunk in chunks for k, member in enumerate(chunk.members)}
    aligned, correlations = [], []
    for number in kept:
        chunk, k = place[members[number]]
        trajectory, order = execution.store[chunk], orders[number]
        weights = trajectory.weights_at(judged.look.step)
        aligned.append(reorder_patterns(jax.tree.map(lambda leaf, k=k: leaf[k], weights), order))
        look = min(judged.best, len(trajectory.steps) - 1)
        correlations.append(trajectory.correlations[look, k][np.ix_(order, order)])
    models = jax.tree.map(lambda *leaves: np.stack(leaves), *aligned)
    return Selected(models, kept, dict(sorted(left_out.items())), np.mean(correlations, axis=0))
