"""Chunks through joblib: threads of this process by default, other processes or a cluster where joblib is told so.

Nothing here depends on where a chunk is trained or on the order in which chunks end.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import joblib
from joblib.parallel import get_active_backend

from rindices.core import devices
from rindices.core.devices import Device
from rindices.core.train import People
from rindices.errors import LostWorkers
from rindices.training.chunks import Chunk, Keeper, Settings, Trajectory, train_chunk
from rindices.training.clusters import active_backend, shares_memory
from rindices.training.dask_backend import DaskBackend
from rindices.training.workers import leave_with, still_wanted

# On an accelerator threads hide the time that compiling takes; more of them only share out its memory.
_ACCELERATOR_THREADS = 4
_LOOK_SECONDS = 1.0  # between two looks whether a cluster has a worker
_WAITING = 256  # chunks that a cluster is given at once, so that workers who join it later find some
_ATTEMPTS = 5  # to go on after workers were lost, without a single chunk finished in between
_LOST = {"KilledWorker", "TerminatedWorkerError", "BrokenProcessPool", "CancelledError", "CommClosedError"}


class Progress(NamedTuple):
    """For whoever draws a progress bar; steps are those of all models of a stage together."""

    stage: str
    done: int
    total: int
    resumed: int  # of those done, how many were there before this process began


class Store(Protocol):
    """Where finished chunks are kept."""

    def __contains__(self, chunk: Chunk) -> bool: ...
    def get(self, chunk: Chunk) -> Trajectory:
        """Return a finished chunk."""

    def put(self, chunk: Chunk, trajectory: Trajectory) -> None:
        """Keep a finished chunk."""

    def keeper(self, chunk: Chunk) -> Keeper | None:
        """Return a place for a chunk on its way."""

    def plan(self, propose: Callable[[], int]) -> int:
        """Return the number of models in a chunk: that of the beginning, or the one proposed."""


class Memory:
    """Keeps finished chunks in memory."""

    def __init__(self) -> None:
        self._finished: dict[Chunk, Trajectory] = {}

    def __contains__(self, chunk: Chunk) -> bool:
        return chunk in self._finished

    def get(self, chunk: Chunk) -> Trajectory:
        """Return a finished chunk."""
        return self._finished[chunk]

    def put(self, chunk: Chunk, trajectory: Trajectory) -> None:
        """Keep a finished chunk."""
        self._finished[chunk] = trajectory

    def keeper(self, chunk: Chunk) -> None:
        """Nothing of a chunk on its way outlives the process."""

    def plan(self, propose: Callable[[], int]) -> int:
        """Every run is a new one."""
        return propose()


@dataclass
class Execution:
    """How chunks are trained, and where they are kept.

    Parameters
    ----------
    store
        Where finished chunks are kept, and looked for first.
    n_jobs
        As in joblib; None: one thread a core, or what ``joblib.parallel_config`` says.
    progress
        Called as training goes on.
    models_per_chunk
        None: as many as a worker's device can hold.
    """

    store: Store = field(default_factory=Memory)
    n_jobs: int | None = None
    progress: Callable[[Progress], None] | None = None
    models_per_chunk: int | None = None

    def n_workers(self) -> int:
        """Return how many chunks are trained at the same time."""
        backend = active_backend()
        asked = get_active_backend()[1] if self.n_jobs is None else self.n_jobs
        if asked is not None or not shares_memory(backend):
            return backend.effective_n_jobs(asked)
        if backend.nesting_level:  # others of a loop around this one have the other cores
            return 1
        return devices.n_cores() if devices.describe().platform == "cpu" else _ACCELERATOR_THREADS

    def is_here(self) -> bool:
        """Whether chunks are trained in this process; joblib also does there what one other process should."""
        backend = active_backend()
        return shares_memory(backend) or (not isinstance(backend, DaskBackend) and self.n_workers() == 1)

    def chunks_per_device(self) -> int:
        """Return how many chunks share a device: all of those on this machine, or those of a worker elsewhere."""
        backend = active_backend()
        return backend.tasks_per_device() if isinstance(backend, DaskBackend) else self.n_workers()

    def device(self) -> Device:
        """Ask a worker what it trains on."""
        if self.is_here():
            return devices.describe()
        self.await_worker()
        pool = joblib.Parallel(n_jobs=self.n_workers(), backend=active_backend())
        try:
            return pool([joblib.delayed(_describe)()])[0]
        except Exception as error:
            if _is_loss(error):
                raise LostWorkers(f"a worker was lost before the first chunk ({type(error).__name__}).") from error
            raise

    def await_worker(self) -> None:
        """Wait for the first worker of a cluster, and say so; those of this machine come or fail soon."""
        backend, stage = active_backend(), "Waiting for a worker of the cluster"
        if not isinstance(backend, DaskBackend) or backend.one_machine:
            return
        if not backend.has_workers():
            show = self.progress or (lambda _: None)
            show(Progress(stage, 0, 1, 0))
            while not backend.has_workers():
                time.sleep(_LOOK_SECONDS)
            show(Progress(stage, 1, 1, 0))
        backend.check_versions()


def _is_loss(error: Exception) -> bool:
    return bool(_LOST & {cls.__name__ for cls in type(error).__mro__})


def train_all(
    chunks: Sequence[Chunk],
    settings: Settings,
    people: Callable[[int], People],
    execution: Execution,
    stage: str = "Training",
) -> None:
    """See that all chunks are in the store, by training those that are not.

    Parameters
    ----------
    chunks, settings
        What to train.
    people
        Gives the people of a cohort by its number.
    execution
        How and where.
    stage
        What to call this in `Progress`.
    """
    tally = _Tally(stage, chunks, settings.preset.schedule.max_steps, execution)
    waiting = [chunk for chunk in chunks if chunk not in execution.store]
    failures = 0
    while waiting:
        trouble: Exception = OSError("What was trained cannot be read again where it was stored.")
        try:
            execution.await_worker()
            for chunk, trajectory in _trained(waiting, settings, people, execution, tally):
                if trajectory is not None:
                    execution.store.put(chunk, trajectory)
                tally.finished(chunk)
        except Exception as error:
            if not _is_loss(error):
                raise
            trouble = LostWorkers(f"workers were lost {_ATTEMPTS} times in a row ({type(error).__name__}).")
            trouble.__cause__ = error
        left = [chunk for chunk in waiting if chunk not in execution.store]
        failures = failures + 1 if len(left) == len(waiting) else 0
        if failures == _ATTEMPTS:
            raise trouble
        waiting = left


def _trained(
    waiting: list[Chunk], settings: Settings, people: Callable[[int], People], execution: Execution, tally: _Tally
) -> Iterator[tuple[Chunk, Trajectory | None]]:
    """Train chunks; give those that other processes trained, which are still to be stored, with what they showed."""
    here = execution.is_here()
    stop = threading.Event()

    def report(chunk: Chunk, step: int) -> bool:
        tally.at(chunk, step)
        return not stop.is_set()

    tasks = (
        joblib.delayed(_train)(
            chunk,
            settings,
            *people(chunk.cohort),
            keeper=execution.store.keeper(chunk),
            progress=report if here else None,
            store=execution.store if here else None,
            master=os.getpid(),
        )
        for chunk in waiting
    )
    pool = joblib.Parallel(
        n_jobs=execution.n_workers(),
        backend=active_backend(),
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="2*n_jobs" if here else _WAITING,
    )
    try:
        yield from pool(tasks)
    finally:
        stop.set()  # threads cannot be killed; they end at their next checkpoint


def _train(
    chunk: Chunk, *arguments: object, master: int, store: Store | None = None, **options: object
) -> tuple[Chunk, Trajectory | None]:
    """Train a chunk; a thread also stores it, while others train on."""
    devices.prepare()
    if os.getppid() == master:
        leave_with(master)
    options["progress"] = options["progress"] or still_wanted()
    trajectory = train_chunk(chunk, *arguments, **options)  # type: ignore[arg-type]
    if store is None:
        return chunk, trajectory
    store.put(chunk, trajectory)
    return chunk, None


def _describe() -> Device:
    devices.prepare()
    return devices.describe()


class _Tally:
    """Counts steps of models; chunks report from several threads."""

    def __init__(self, stage: str, chunks: Sequence[Chunk], max_steps: int, execution: Execution) -> None:
        self._stage, self._max_steps, self._progress = stage, max_steps, execution.progress
        self._models = {chunk: len(chunk.members) for chunk in chunks}
        self._steps = {chunk: max_steps if chunk in execution.store else 0 for chunk in chunks}
        self._resumed = self._done()
        self._begun: set[Chunk] = set()
        self._lock = threading.Lock()
        self._show()

    def at(self, chunk: Chunk, step: int) -> None:
        """Take note of a chunk's step; the first is the one at which it begins or goes on."""
        with self._lock:
            if chunk not in self._begun:
                self._begun.add(chunk)
                self._resumed += step * self._models[chunk]
            self._steps[chunk] = step
            self._show()

    def finished(self, chunk: Chunk) -> None:
        self._begun.add(chunk)
        self.at(chunk, self._max_steps)

    def _done(self) -> int:
        return sum(step * self._models[chunk] for chunk, step in self._steps.items())

    def _show(self) -> None:
        if self._progress is not None:
            total = self._max_steps * sum(self._models.values())
            self._progress(Progress(self._stage, self._done(), total, self._resumed))
