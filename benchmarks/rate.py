"""Model steps per second on a device: the measurement shared by the benchmarks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from rindices.core import devices
from rindices.core.train import Checkpoint, TrainingPeople, make_members, train
from rindices.presets import LearningRates, LossWeights, Schedule, Training


def models_steps_per_second(
    people: TrainingPeople, *, n_models: int, n_patterns: int, batch_size: int, every: int, seconds: float
) -> float:
    """Train as in a run (all models at once on an accelerator, otherwise one per core), without compilation."""
    on_cores = devices.describe().platform == "cpu"
    n_threads, models_each = (devices.n_cores(), 1) if on_cores else (1, n_models)
    schedule = {"batch_size": batch_size, "checkpoint_every": every, "min_steps": 0, "max_steps": 10**9}

    def looks() -> Iterator[Checkpoint]:
        members = make_members(0, [LossWeights()] * models_each, [LearningRates()] * models_each, len(people.controls))
        return train(people, members, Training(), Schedule(**schedule), n_patterns=n_patterns)

    def keep_on(checkpoints: Iterator[Checkpoint], until: float) -> int:
        steps = 0
        while time.perf_counter() < until:
            next(checkpoints)
            steps += every * models_each
        return steps

    running = [looks() for _ in range(n_threads)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(next, running))
        start = time.perf_counter()
        steps = sum(pool.map(lambda one: keep_on(one, start + seconds), running))
        return steps / (time.perf_counter() - start)
