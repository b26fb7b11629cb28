"""Chunks on a Dask cluster: they outlive their workers, and whoever waits for one is told how it ended."""

import logging
import platform
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rindices.core import devices
from rindices.core.train import TrainingPeople
from rindices.problems import InputError, LostWorkers, Remedy
from rindices.training.chunks import Stopped

_DECIDE_BITS = ("rindices", "jax", "jaxlib", "optax")
_CONNECT_SECONDS = 10
_LOOK_SECONDS = 1.0  # between two looks whether anybody is left of a cluster of this machine
_DESERTED = 5  # such looks in a row at which nobody was
_WAITING = 256  # chunks that a cluster is given at once, so that workers who join it later find some
_SAME_VERSIONS = "Install the same versions everywhere, restart the scheduler and workers, and repeat the command."


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Any]:
    """Give a client of a running scheduler, or of a cluster of this machine's cores (``local``)."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            Remedy("dask", address), " needs Dask.\nInstall it with: pip install 'rindices[cluster]'."
        ) from error
    # Cohorts are large on purpose; each goes to the scheduler once.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
    if address == "local":
        with (
            dask.config.set({"distributed.scheduler.http.routes": []}),
            LocalCluster(
                n_workers=workers or devices.n_cores(),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # Some port is opened for pages in any case; a fixed one is taken when two runs go on, and workers of
                # older versions would listen to everybody.
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                # What goes wrong comes back with the tasks; workers that are sent home in the middle of a heartbeat
                # would complain of that on the user's terminal.
                silence_logs=logging.CRITICAL,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"Cannot connect to a Dask scheduler at {address}: {error}.\n"
            "Provide the address that the scheduler prints when it starts, such as tcp://127.0.0.1:8786."
        ) from error
    with client:
        yield client


class Cluster:
    """Runs tasks on a Dask cluster that may lose workers; joblib's own way there would wait for ever for theirs.

    People go to the cluster once, as a task: Dask makes again what was lost with a worker.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    """

    is_here = False

    def __init__(self, client: Any) -> None:
        from distributed import LocalCluster

        # Results that went with a worker are made again, which is nothing to look at.
        logging.getLogger("distributed.client").setLevel(logging.ERROR)
        self.client = client
        self.one_machine = isinstance(client.cluster, LocalCluster)

    @property
    def chunks_per_device(self) -> int:
        """How many chunks share a device: all of those on one machine, or those of a worker elsewhere."""
        threads = self.client.nthreads().values()
        return max(1, sum(threads) if self.one_machine else max(threads, default=1))

    def is_ready(self) -> bool:
        """Whether there is anybody to do a task; workers of this machine come or fail soon."""
        with self._within_reach():
            return self.one_machine or bool(self.client.nthreads())

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function with the arguments of each task, and give results as they come."""

        def send(task: tuple[Any, ...]) -> Future[Any]:
            values = [
                self.client.submit(TrainingPeople, *value) if isinstance(value, TrainingPeople) else value
                for value in task
            ]
            return pool.submit(_call, expected, function, *values)

        with self._within_reach():
            expected, pool, tasks = self._checked_versions(), self.client.get_executor(pure=False), iter(tasks)
            jobs, deserted = set(map(send, islice(tasks, _WAITING))), 0
            try:
                while jobs:
                    ended, jobs = wait(jobs, _LOOK_SECONDS, FIRST_COMPLETED)
                    deserted = 0 if ended or self._is_inhabited() else deserted + 1
                    if deserted == _DESERTED:
                        raise LostWorkers("no workers are left.")
                    for job in ended:
                        yield _result(job)
                    jobs |= set(map(send, islice(tasks, len(ended))))
            finally:
                if self.client.status == "running":
                    for job in jobs:
                        job.cancel()

    def _is_inhabited(self) -> bool:
        """Whether anybody is left; Dask does not replace a worker of this machine that dies while it starts."""
        workers = self.client.cluster.workers.values() if self.one_machine else [self]
        return any(getattr(worker, "pid", True) for worker in workers) and not self._is_closed()

    @contextmanager
    def _within_reach(self) -> Iterator[None]:
        """Tell of a scheduler that is gone as such; Dask has many ways to."""
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) or self._is_closed():
                raise LostWorkers("the cluster can no longer be reached.") from error
            raise

    def _is_closed(self) -> bool:
        return self.client.status in ("closing", "closed")

    def _checked_versions(self) -> dict[str, str]:
        """Return the versions of this machine; refuse a cluster of others, which could not load what it is sent."""
        report = {} if self.one_machine else self.client.get_versions(packages=list(_DECIDE_BITS))
        places = {"the scheduler's address": report["scheduler"], **report["workers"]} if report else {}
        for address, versions in places.items():
            if versions is not None:  # it has just left
                _check_versions(_versions(), _of_interest(versions), f"The program at {address}")
        return _versions()


def _result(job: Future[Any]) -> Any:
    try:
        result = job.result()
    except (Exception, CancelledError) as error:
        # Errors of a task come back as values. An error of Dask is a task that no worker could load, or none did.
        if isinstance(error, CancelledError | OSError) or type(error).__name__ == "KilledWorker":
            raise LostWorkers(f"a chunk was lost ({type(error).__name__}).") from error
        raise InputError(
            "The scheduler or a worker cannot load the version of rindices used on this machine "
            f"({error!r:.200}).\n"
            f"All of them need the package versions installed on this machine. {_SAME_VERSIONS}"
        ) from error
    if isinstance(result, Exception):
        raise result
    return result


def _call(expected: dict[str, str], function: Callable[..., Any], *values: Any) -> Any:
    """Call a function in a worker that has the expected versions; return its result or its error.

    An error travels as a value, without those that led to it: Dask can lose one on its way, and who waits for it would
    wait for ever. Those of libraries may hold what cannot travel, or be unknown where they arrive.
    """
    try:
        _check_versions(expected, _versions(), f"A worker on {platform.node()}")
        return function(*values)
    except Stopped:  # the worker lost sight of the scheduler for a moment; the task is still awaited
        return LostWorkers("a chunk was cancelled.")
    except Exception as error:  # noqa: BLE001 (raised where the result is awaited)
        trace = "".join(traceback.format_exception(error, limit=-10))
        can_travel = isinstance(error, InputError | MemoryError)
        travels = error.with_traceback(None) if can_travel else RuntimeError(f"{type(error).__name__}: {error}")
        travels.__cause__ = travels.__context__ = None
        travels.add_note(f"In a worker on {platform.node()}:\n{trace}")
        return travels


def _versions() -> dict[str, str]:
    """Return the versions that a result depends on, as they are here."""
    from distributed.versions import get_versions

    return _of_interest(get_versions(packages=_DECIDE_BITS))


def _of_interest(report: dict[str, Any]) -> dict[str, str]:
    python = ".".join(report["packages"]["python"].split(".")[:2])
    return {"python": python} | {name: str(report["packages"].get(name) or "none") for name in _DECIDE_BITS}


def _check_versions(expected: dict[str, str], versions: dict[str, str], whose: str) -> None:
    differing = [name for name in expected if versions[name] != expected[name]]
    if differing:
        there, here = (", ".join(f"{name} {of[name]}" for name in differing) for of in (versions, expected))
        raise InputError(
            f"{whose} has {there}, but this machine has {here}.\n"
            f"Results could differ, or training could fail. {_SAME_VERSIONS}"
        )


def current_task() -> Any | None:
    """Return what Dask knows of the task that this thread does as one of its workers; None elsewhere."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        worker = get_worker()
        return worker.state.tasks[worker.get_current_task()]
    except (ValueError, KeyError):  # no worker, or a thread of it that does no task
        return None


def still_wanted() -> Callable[..., bool]:
    """Return a function that says whether anybody still waits for what this thread does.

    A task that Dask called off runs on, and would keep the worker from others; it has to see by itself.
    """
    task = current_task()
    return lambda *_: task is None or task.state != "cancelled"
