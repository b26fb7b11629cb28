"""The consensus: repetitions brought to one order of patterns, without those that disagree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import numpy as np

from rindices.core.inference import reorder_patterns
from rindices.core.networks import Parameters
from rindices.judging.agreement import faults, match_patterns, pairwise
from rindices.judging.selection import Judged, found_models, members_of, usable_models
from rindices.training.chunks import Chunk
from rindices.training.execution import Execution

_KEPT_SHARE = 0.8  # members must agree with the medoid at least this far above chance, relative to the typical member


class Consensus(NamedTuple):
    """Models brought to the medoid's order of patterns; those that disagree with it are left out."""

    medoid: int
    kept: np.ndarray  # numbers of the models used
    orders: np.ndarray  # (kept, patterns): pattern i of the consensus is orders[k, i] of model kept[k]
    agreement_with_medoid: np.ndarray  # (models,)


def find_consensus(members: np.ndarray, pairs: np.ndarray | None = None) -> Consensus:
    """Choose the medoid (highest mean agreement with the others), leave out who disagrees with it, match patterns."""
    pairs = pairwise(members) if pairs is None else pairs
    n_members, _, n_patterns = members.shape
    if n_members == 1:
        return Consensus(0, np.arange(1), np.arange(n_patterns)[None], np.ones(1))
    medoid = int(np.nanmean(pairs[..., 0], axis=1).argmax())
    with_medoid = pairs[medoid, :, 0].copy()
    with_medoid[medoid] = 1.0
    typical = np.median(np.delete(with_medoid, medoid))
    kept = np.flatnonzero(with_medoid - 0.5 >= _KEPT_SHARE * (typical - 0.5))
    orders = np.array([match_patterns(members[medoid], members[k])[0] for k in kept])
    return Consensus(medoid, kept, orders, with_medoid)


def aligned(members: np.ndarray, consensus: Consensus) -> np.ndarray:
    """R-indices of the kept models in the medoid's order of patterns → ``(kept, people, patterns)``."""
    return np.stack([members[k][:, order] for k, order in zip(consensus.kept, consensus.orders, strict=True)])


@dataclass(frozen=True, eq=False)
class Selected:
    """The models of the chosen checkpoint, brought to one order of patterns, the medoid first."""

    models: Parameters  # arrays with a leading axis
    members: list[int]  # their numbers
    left_out: dict[int, str]  # number of a member: why
    correlation: np.ndarray  # of severities, mean over these models


def consensus(judged: Judged, chunks: Sequence[Chunk], execution: Execution) -> Selected:
    """Bring the sound models of a setting's best checkpoint to one order of patterns; leave out who disagrees."""
    n_patterns = judged.point.n_patterns
    trajectories = found_models(members_of([judged.point], range(judged.n_repetitions)), chunks, execution)
    patients = np.stack([of.r_indices[looks[judged.best], k, :, :n_patterns] for of, looks, k in trajectories]).astype(
        float
    )
    wrong = faults(patients)
    usable = usable_models(wrong)
    if not len(usable):
        raise FloatingPointError(
            "All models diverged (their weights are no longer finite). Check the table for extreme values, "
            "or lower the learning rates."
        )
    agreed = find_consensus(patients[usable])
    left_out = {i: fault for i, fault in enumerate(wrong) if i not in usable}
    left_out |= {
        int(usable[place]): f"disagrees with the others ({value:.3f})"
        for place, value in enumerate(agreed.agreement_with_medoid)
        if place not in agreed.kept
    }
    orders = {int(usable[place]): order for place, order in zip(agreed.kept, agreed.orders, strict=True)}
    kept = sorted(orders, key=lambda member: member != usable[agreed.medoid])
    aligned, correlations = [], []
    for member in kept:
        (trajectory, looks, k), order = trajectories[member], orders[member]
        aligned.append(reorder_patterns(trajectory.weights_of(k, n_patterns, judged.look.step), order))
        correlations.append(trajectory.correlations[looks[judged.best], k][np.ix_(order, order)])
    models = jax.tree.map(lambda *leaves: np.stack(leaves), *aligned)
    return Selected(models, kept, dict(sorted(left_out.items())), np.mean(correlations, axis=0))
