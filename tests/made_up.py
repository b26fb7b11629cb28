"""Made-up trainings, whose scores at each checkpoint are known."""

import jax
import numpy as np

from rindices.core.networks import Parameters
from rindices.judging.agreement_and_misfit import Agreement, Misfit
from rindices.judging.selection import CheckpointResult, Judged
from rindices.training.chunks import Chunk, Point, Trajectory
from rindices.training.execution import Memory
from tests.core import plain

N_REGIONS, N_PATIENTS = 12, 50
TRUTH = np.random.default_rng(0).uniform(size=(N_PATIENTS, 6))


def scores(*noise, n_patterns=3, seed=3):
    """R-indices of patients from models that recover the truth with more or less noise: (models, people, patterns)."""
    errors = np.random.default_rng(seed).standard_normal((len(noise), N_PATIENTS, n_patterns))
    return TRUTH[:, :n_patterns] + np.array(noise)[:, None, None] * errors


def weights(n_models, n_patterns=3, seed=0) -> Parameters:
    """Return random weights of several models, each different."""
    one = plain.random_parameters(N_REGIONS, n_patterns, seed=seed)
    return jax.tree.map(lambda leaf: np.stack([leaf + k for k in range(n_models)]).astype(np.float32), one)


def trajectory(checkpoints, steps=None, min_steps=0, models=None) -> Trajectory:
    """Assemble the scores of all checkpoints; the loss `change` is the step plus the model's number."""
    steps = np.arange(10, 10 * len(checkpoints) + 1, 10) if steps is None else np.array(steps)
    r_indices = np.stack(checkpoints).astype(np.float32)
    n_models, n_patterns = r_indices.shape[1], r_indices.shape[3]
    losses = {"change": (steps[:, None] + np.arange(n_models)).astype(np.float32)}
    kept = {
        int(step): weights(n_models, n_patterns, seed=int(step)) if models is None else models
        for step in steps
        if step >= min_steps
    }
    factors = np.random.default_rng(4).normal(size=(*r_indices.shape[:2], n_patterns, n_patterns))
    return Trajectory(steps, r_indices, losses, (factors @ factors.swapaxes(-1, -2)).astype(np.float32), kept)


def misfit(value) -> Misfit:
    """Return the misfit of two repetitions; two such misfits' logarithms differ with a standard error of 0.25."""
    return Misfit(np.array([value, value]))


def judged(
    value,
    n_patterns=3,
    *,
    n_models=10,
    n_repetitions=10,
    low=np.nan,
    high=np.nan,
    weight=0.8,
    distance=None,
) -> Judged:
    """Return a setting with the given agreement and misfit at its only checkpoint."""
    checkpoints = [
        CheckpointResult(20_000, n_models, *[Agreement(number, np.nan, np.nan) for number in (value, low, high)], {})
    ]
    fit = None if distance is None else misfit(distance)
    return Judged(Point(n_patterns, weight), n_repetitions, checkpoints, 0, fit)


class Trained(Memory):
    """A store that holds every chunk; `noise` returns a member's noise at each checkpoint."""

    def __init__(self, noise):
        super().__init__()
        self.noise, self.asked = noise, []

    def __contains__(self, chunk: Chunk) -> bool:
        self.asked.append(chunk)
        return True

    def __getitem__(self, chunk: Chunk) -> Trajectory:
        """Return a made-up trajectory of a chunk."""
        return trajectory(list(np.stack([self._member(member) for member in chunk.members], axis=1)))

    def _member(self, member):
        n_patterns, orthogonality = member.point
        seed = [member.repetition, 0, n_patterns, int(1000 * orthogonality)]
        return np.concatenate(
            [scores(sd, n_patterns=n_patterns, seed=[*seed, k]) for k, sd in enumerate(self.noise(member))]
        )
