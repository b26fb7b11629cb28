"""Train chunks where joblib is set to: in threads of this process by default, in other processes, or on a cluster.

Results depend neither on where a chunk is trained nor on the order in which chunks end.
"""

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import joblib
from joblib.parallel import ParallelBackendBase, SequentialBackend, get_active_backend

from rindices.core import devices
from rindices.core.train import TrainingPeople
from rindices.linear import unconverged_rotations
from rindices.presets import Schedule
from rindices.problems import InputError, LostWorkers, Remedy
from rindices.training.chunks import (
    Chunk,
    Member,
    Settings,
    Trajectory,
    cut,
    models_per_chunk,
    schedule_of,
    train_chunk,
)
from rindices.training.clusters import LOOK_SECONDS, Cluster, connected, current_task, still_wanted
from rindices.training.journal import Journal

# On an accelerator, threads hide the time of compilation; more of them would only divide its memory.
_ACCELERATOR_THREADS = 4
_ATTEMPTS = 5  # to resume after workers were lost, without a single chunk finished in between
_LOSSES = (LostWorkers, BrokenExecutor)


@contextmanager
def parallel(dask: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Train on a Dask cluster or in processes; without either, in threads.

    Parameters
    ----------
    dask
        Address of a scheduler (``tcp://host:8786``), or ``local`` for a cluster of this machine's cores.
    workers
        Number of processes, or, with ``local``, of the cluster's workers.
    """
    if dask not in (None, "local") and workers is not None:
        raise InputError(
            Remedy("workers", workers),
            " cannot be combined with ",
            Remedy("dask", dask),
            ": a running cluster has its own workers.\nOmit ",
            Remedy("workers"),
            ", or use ",
            Remedy("dask", "local"),
            ".",
        )
    # Python's resource tracker cleans up after a run that is interrupted; its warnings would only confuse.
    calm = [os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker:UserWarning"]
    with ExitStack() as stack:
        if dask is not None or workers is not None:
            os.environ["PYTHONWARNINGS"] = ",".join(filter(None, calm))
        if dask is not None:
            client = stack.enter_context(connected(dask, workers))
            stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        elif workers is not None:
            stack.enter_context(joblib.parallel_config(backend="loky", n_jobs=workers))
        yield


class Local(NamedTuple):
    """Threads of this process, or processes of this machine.

    Attributes
    ----------
    backend
        A backend of joblib.
    chunks_per_device
        Number of chunks that share a device.
    is_here
        Whether chunks are trained in this process.
    """

    backend: ParallelBackendBase
    chunks_per_device: int
    is_here: bool

    def is_ready(self) -> bool:
        """Return True: there are no workers to wait for."""
        return True

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function with the arguments of each task, and yield results as they become available."""
        pool = joblib.Parallel(
            self.chunks_per_device,
            backend=self.backend,
            return_as="generator_unordered",
            batch_size=1,
            initializer=_exit_with,  # for processes; threads do not call it
            initargs=(os.getpid(),),
        )
        return pool(joblib.delayed(function)(*task) for task in tasks)


def _exit_with(master: int) -> None:
    """End this process, whatever it is doing, once its parent `master` is gone: nobody is left to work for."""

    def watch() -> None:
        while os.getppid() == master:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


Executor = Local | Cluster  # where chunks are trained


def executor(n_jobs: int | None = None) -> Executor:
    """Return the executor that trains chunks, as set by `joblib.parallel_config`.

    Parameters
    ----------
    n_jobs
        As in joblib; None: as set by ``joblib.parallel_config``, or one thread per core.
    """
    backend, _ = get_active_backend(prefer="threads")
    asked = get_active_backend()[1] if n_jobs is None else n_jobs
    if type(backend).__name__ == "DaskDistributedBackend":
        if current_task() is None:
            return Cluster(backend.client)
        # A worker that waits for chunks on its own cluster would keep them from being trained.
        backend = SequentialBackend(nesting_level=1)
    shares_memory = bool(getattr(backend, "supports_sharedmem", False))
    if not shares_memory and not backend.supports_return_generator:
        raise InputError(
            f"Models cannot be trained with joblib's {type(backend).__name__}: forked processes may "
            "deadlock.\nUse joblib.parallel_config(backend='loky', n_jobs=2), or omit the backend."
        )
    if asked is not None or not shares_memory:
        number = backend.effective_n_jobs(asked)
    elif backend.nesting_level:  # inside an outer loop, whose other jobs use the other cores
        number = 1
    else:
        number = devices.n_cores() if devices.describe().platform == "cpu" else _ACCELERATOR_THREADS
    return Local(backend, number, shares_memory or number == 1)  # joblib runs a single job in this process


class Progress(NamedTuple):
    """Progress of a stage, for progress bars; steps are summed over all its models, and 0 for a stage without steps."""

    stage: str
    done: int = 0
    total: int = 0
    resumed: int = 0  # steps of those done that preceded this process


class Memory(dict[Chunk, Trajectory]):
    """Keeps finished chunks in memory, with the interface of a `Journal`."""

    def earlier(self) -> list[Chunk]:
        """Return no chunks: there was no earlier run."""
        return []

    def keeper(self, chunk: Chunk) -> None:
        """Return None: nothing of an unfinished chunk outlives the process."""

    def chunk_size(self, propose: Callable[[], int]) -> int:
        """Return the proposed size: every run is a new one."""
        return propose()


Store = Memory | Journal  # where finished chunks are kept


@dataclass
class Execution:
    """How chunks are trained, and where they are kept.

    Parameters
    ----------
    store
        Where finished chunks are kept, and looked for first.
    n_jobs
        As in joblib; None: one thread per core, or as set by ``joblib.parallel_config``.
    progress
        Called during training.
    models_per_chunk
        None: as many as a worker's device can hold.
    mixed
        Whether models with different numbers of patterns are trained together.
    """

    store: Store = field(default_factory=Memory)
    n_jobs: int | None = None
    progress: Callable[[Progress], None] | None = None
    models_per_chunk: int | None = None
    mixed: bool = False

    def device(self) -> devices.Device:
        """Return the device that a worker trains on."""
        try:
            [device] = self.ready_executor().run(_describe, [()])
        except _LOSSES as error:
            raise LostWorkers("a worker was lost before training began.") from error
        return device

    def prepare(self, people: Callable[[], TrainingPeople], numbers: Collection[int], schedule: Schedule) -> None:
        """Decide how models are divided into chunks, before training starts.

        On a GPU of this machine, one program can train models with different numbers of patterns; a cluster needs
        enough chunks to distribute over its workers.

        Parameters
        ----------
        people
            Returns the people that models learn from.
        numbers
            All numbers of patterns that may be trained.
        schedule
            Gives the number of people per step.
        """

        def as_many_as_fit() -> int:
            device = self.device()  # of a worker, which may have to join first
            return models_per_chunk(people(), max(numbers), schedule, device, self.ready_executor().chunks_per_device)

        several = len({*numbers}) > 1
        self.mixed = several and isinstance(executor(self.n_jobs), Local) and self.device().platform != "cpu"
        self.models_per_chunk = self.store.chunk_size(lambda: self.models_per_chunk or as_many_as_fit())

    def ready_executor(self) -> Executor:
        """Return the executor that trains chunks; if the first worker has yet to join, wait and report this."""
        place, stage = executor(self.n_jobs), "Waiting for a worker to join the cluster"
        if not place.is_ready():
            show = self.progress or (lambda _: None)
            show(Progress(stage, 0, 1, 0))
            while not place.is_ready():
                time.sleep(LOOK_SECONDS)
            show(Progress(stage, 1, 1, 0))
        return place


def _describe() -> devices.Device:
    devices.prepare()
    return devices.describe()


def train_members(
    members: Sequence[Member],
    settings: Settings,
    people: Callable[[int], TrainingPeople],
    execution: Execution,
    stage: str,
    *,
    apart: bool = False,
) -> list[Chunk]:
    """Train members in chunks, except those that an earlier run trained; return all chunks.

    The parameters are those of `train_all`, and `apart` is that of `rindices.training.chunks.cut`.
    """
    chunks = [chunk for chunk in execution.store.earlier() if not {*chunk.members}.isdisjoint(members)]
    there = {member for chunk in chunks for member in chunk.members}
    left = [member for member in members if member not in there]
    chunks += cut(left, execution.models_per_chunk or 1, mixed=execution.mixed, apart=apart)
    train_all(chunks, settings, people, execution, stage)
    return chunks


def train_all(
    chunks: Sequence[Chunk],
    settings: Settings,
    people: Callable[[int], TrainingPeople],
    execution: Execution,
    stage: str = "Training",
) -> None:
    """Train all chunks that are not in the store.

    Parameters
    ----------
    chunks, settings
        What to train.
    people
        Returns the people that a repetition learns from.
    execution
        How and where to train.
    stage
        Name of the stage in `Progress`.
    """
    steps = schedule_of(chunks[0], settings).max_steps if chunks else 0
    tally = _Tally(stage, chunks, steps, execution)
    failures = 0
    while waiting := [chunk for chunk in chunks if chunk not in execution.store]:
        try:
            for chunk in _trained(waiting, settings, people, execution, tally.at):
                failures = 0
                tally.finished(chunk)
        except _LOSSES as error:
            failures += 1
            if failures == _ATTEMPTS:
                raise LostWorkers(f"workers were lost {_ATTEMPTS} times in a row ({type(error).__name__}).") from error


def _trained(
    chunks: list[Chunk],
    settings: Settings,
    people: Callable[[int], TrainingPeople],
    execution: Execution,
    progress: Callable[[Chunk, int], None],
) -> Iterator[Chunk]:
    """Train and store chunks; yield each one once it is stored."""
    place, store, stop = execution.ready_executor(), execution.store, threading.Event()

    def report(chunk: Chunk, step: int) -> bool:
        progress(chunk, step)
        return not stop.is_set()

    def train_here(chunk: Chunk, *arguments: Any) -> Chunk:
        """Train a chunk and store it, while other threads continue training."""
        store[chunk] = train_chunk(chunk, *arguments, progress=report)
        return chunk

    tasks = ((chunk, settings, people(chunk.repetition), store.keeper(chunk)) for chunk in chunks)
    try:
        if place.is_here:
            yield from place.run(train_here, tasks)
        else:
            for chunk, trajectory in place.run(_train_elsewhere, tasks):
                store[chunk] = trajectory
                yield chunk
    finally:
        stop.set()  # threads cannot be killed; they end at their next checkpoint


@unconverged_rotations()  # here too, since other processes do not share the warning filters of a fit
def _train_elsewhere(chunk: Chunk, *arguments: Any) -> tuple[Chunk, Trajectory]:
    devices.prepare()
    return chunk, train_chunk(chunk, *arguments, progress=still_wanted())


class _Tally:
    """Counts the steps of all models; chunks report from several threads."""

    def __init__(self, stage: str, chunks: Sequence[Chunk], max_steps: int, execution: Execution) -> None:
        self._stage, self._max_steps, self._show = stage, max_steps, execution.progress or (lambda _: None)
        self._total = max_steps * sum(len(chunk.members) for chunk in chunks)
        self._steps = {chunk: max_steps for chunk in chunks if chunk in execution.store}
        self._resumed = self._done()
        self._lock = threading.Lock()
        self._show(Progress(stage, self._resumed, self._total, self._resumed))

    def at(self, chunk: Chunk, step: int) -> None:
        """Record a chunk's step; the first one recorded is where it begins or resumes."""
        with self._lock:
            if chunk not in self._steps:
                self._resumed += step * len(chunk.members)
            self._steps[chunk] = step
            self._show(Progress(self._stage, self._done(), self._total, self._resumed))

    def finished(self, chunk: Chunk) -> None:
        self._steps.setdefault(chunk, 0)
        self.at(chunk, self._max_steps)

    def _done(self) -> int:
        return sum(step * len(chunk.members) for chunk, step in self._steps.items())
