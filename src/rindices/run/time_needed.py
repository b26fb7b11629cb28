"""About how long a fit takes, before it begins: by what was measured, and how fast this machine is just now."""

from __future__ import annotations

import os
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from rindices.core import devices
from rindices.problems import roughly
from rindices.settings import SearchSettings, get_preset

# Seconds on one core whose `_slowness` is 1: of a step with three patterns, and more for each pair of regions (16 to
# 400 regions measured); the same with other numbers of patterns, relative to so many more than there are.
_STEP, _STEP_BY_REGIONS, _PATTERNS = 0.6e-3, 1.0e-7, 2.5
_BATCH = 32  # people a step, for which that holds
# Of compiling, the table and the report, whatever its size; of linear models and permutations, by people and regions.
_AROUND, _JUDGING = 35.0, 6e-7
# On an H200: ten models take no longer than one, more take longer in proportion; to start it and the rest.
_GPU_STEP, _GPU_STEP_OF_MODEL, _GPU_AROUND = 1.8e-4, 8e-6, 20.0
_LOOPS, _USUAL = 1000, 0.021  # of the arithmetic that tells how slow a core is; seconds that it took


class TimeNeeded(NamedTuple):
    """About how many seconds a fit takes, the report included, and on what."""

    seconds: float
    place: str

    def __str__(self) -> str:
        return f"about {roughly(self.seconds)} on {self.place} of this machine"


def time_needed(n_people: int, n_regions: int, n_patterns: int, search: SearchSettings) -> TimeNeeded:
    """Return about how long a fit takes here.

    Parameters
    ----------
    n_people, n_regions
        Of the training.
    n_patterns
        The largest number of patterns that is trained.
    search
        What is trained.
    """
    schedule = get_preset(search.preset).schedule
    steps = search.max_steps or schedule.max_steps
    models = search.n_repetitions * len(search.orthogonality or (1,))
    if _has_accelerator():
        seconds = _GPU_AROUND + steps * max(_GPU_STEP, models * _GPU_STEP_OF_MODEL)
        return TimeNeeded(seconds, "the GPU")
    people = (schedule.batch_size or n_people / 8) / _BATCH
    a_step = (_STEP + _STEP_BY_REGIONS * n_regions**2) * people * (n_patterns + _PATTERNS) / (3 + _PATTERNS)
    n_cores = devices.n_cores()
    on_each = -(-models // n_cores)
    seconds = slowness() * (_AROUND + _JUDGING * n_people * n_regions**2 + on_each * steps * a_step)
    return TimeNeeded(seconds, f"the {n_cores} cores" if n_cores > 1 else "the one core")


def _has_accelerator() -> bool:
    """Say whether JAX would train on a GPU, without starting it: a page that only asks should not hold its memory."""
    wanted = os.environ.get("JAX_PLATFORMS", "cuda")
    plugins = any(find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    return plugins and "cuda" in wanted and Path("/dev/nvidiactl").exists()


@threadpool_limits.wrap(limits=1, user_api="blas")
def slowness() -> float:
    """Return how slow one core is at what training does, relative to the one that was measured on."""
    weights = np.full((128, 128), 1 / 128, np.float32)
    times = []
    for _ in range(3):
        batch, start = np.ones((_BATCH, 128), np.float32), time.perf_counter()
        for _ in range(_LOOPS):
            batch = np.maximum(batch @ weights, 0.01)
        times.append(time.perf_counter() - start)
    return median(times) / _USUAL
