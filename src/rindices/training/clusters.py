"""Training of chunks on a Dask cluster: chunks survive the loss of their workers, and every failure is reported."""

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
LOOK_SECONDS = 1.0  # between checks that a cluster is alive or has a worker, or that a parent process is alive
_DESERTED = 5  # consecutive failed checks after which a cluster counts as lost
_WAITING = 256  # chunks submitted at a time, so that workers that join later find some
_SAME_VERSIONS = "Install the same versions everywhere, restart the scheduler and workers, and run the command again."


@contextmanager
def connected(address: str, workers: int | None) -> Iterator[Any]:
    """Yield a client of a running scheduler, or of a cluster of this machine's cores (``local``)."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError(
            Remedy("dask", address), " requires Dask.\nInstall it with: pip install 'rindices[cluster]'."
        ) from error
    # Cohorts are expected to be large; each is sent to the scheduler only once.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
    if address == "local":
        with (
            dask.config.set({"distributed.scheduler.http.routes": []}),
            LocalCluster(
                n_workers=workers or devices.n_cores(),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # A port is opened for the dashboard in any case; with a fixed one, two simultaneous runs would clash,
                # and workers of older versions would listen on all interfaces.
                dashboard_address="127.0.0.1:0",
                worker_dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                # Errors come back with the tasks; workers that are shut down in the middle of a heartbeat would
                # report that on the user's terminal.
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
    """Runs tasks on a Dask cluster that may lose workers; joblib's own backend would wait for their tasks forever.

    People are sent to the cluster once, as a task: Dask recomputes whatever is lost with a worker.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    """

    is_here = False

    def __init__(self, client: Any) -> None:
        from distributed import LocalCluster

        # Results lost with a worker are recomputed, which the user need not see.
        logging.getLogger("distributed.client").setLevel(logging.ERROR)
        self.client = client
        self.one_machine = isinstance(client.cluster, LocalCluster)

    @property
    def chunks_per_device(self) -> int:
        """Number of chunks that share a device: those of all workers on one machine, those of one worker otherwise."""
        threads = self.client.nthreads().values()
        return max(1, sum(threads) if self.one_machine else max(threads, default=1))

    def is_ready(self) -> bool:
        """Return whether there are workers; those of this machine start, or fail to, within a short time."""
        with self._check_scheduler():
            return self.one_machine or bool(self.client.nthreads())

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        """Call a function with the arguments of each task, and yield results as they become available."""

        def send(task: tuple[Any, ...]) -> Future[Any]:
            values = [
                self.client.submit(TrainingPeople, *value) if isinstance(value, TrainingPeople) else value
                for value in task
            ]
            return pool.submit(_call, expected, function, *values)

        with self._check_scheduler():
            expected, pool, tasks = self._checked_versions(), self.client.get_executor(pure=False), iter(tasks)
            jobs, deserted = set(map(send, islice(tasks, _WAITING))), 0
            try:
                while jobs:
                    ended, jobs = wait(jobs, LOOK_SECONDS, FIRST_COMPLETED)
                    deserted = 0 if ended or self._has_workers() else deserted + 1
                    if deserted == _DESERTED:
                        raise LostWorkers("no workers are left.")
                    for job in ended:
                        yield _result(job)
                    jobs |= set(map(send, islice(tasks, len(ended))))
            finally:
                if self.client.status == "running":
                    for job in jobs:
                        job.cancel()

    def _has_workers(self) -> bool:
        """Return whether any worker is left; Dask does not replace a local worker that dies while starting."""
        workers = self.client.cluster.workers.values() if self.one_machine else [self]
        return any(getattr(worker, "pid", True) for worker in workers) and not self._is_closed()

    @contextmanager
    def _check_scheduler(self) -> Iterator[None]:
        """Raise `LostWorkers` if the scheduler is gone, which Dask reports in many ways."""
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) or self._is_closed():
                raise LostWorkers("the cluster can no longer be reached.") from error
            raise

    def _is_closed(self) -> bool:
        return self.client.status in ("closing", "closed")

    def _checked_versions(self) -> dict[str, str]:
        """Return this machine's versions; refuse a cluster with others, which could not load what it is sent."""
        report = {} if self.one_machine else self.client.get_versions(packages=list(_DECIDE_BITS))
        places = {"the scheduler's address": report["scheduler"], **report["workers"]} if report else {}
        for address, versions in places.items():
            if versions is not None:  # None: it has just left
                _check_versions(_versions(), _of_interest(versions), f"The program at {address}")
        return _versions()


def _result(job: Future[Any]) -> Any:
    try:
        result = job.result()
    except (Exception, CancelledError) as error:
        # Errors of a task come back as values. An error here is Dask's: no worker could load the task, or none did.
        if isinstance(error, CancelledError | OSError) or type(error).__name__ == "KilledWorker":
            raise LostWorkers(f"some models were lost during training ({type(error).__name__}).") from error
        raise InputError(
            "The scheduler or a worker cannot load the version of rindices used on this machine "
            f"({error!r:.200}).\n"
            f"The scheduler and all workers need the same package versions as this machine. {_SAME_VERSIONS}"
        ) from error
    if isinstance(result, Exception):
        raise result
    return result


def _call(expected: dict[str, str], function: Callable[..., Any], *values: Any) -> Any:
    """Call a function in a worker, if it has the expected versions; return the result or the error.

    Errors are returned as values, without their causes: Dask can lose a raised one, and the caller would wait forever.
    Those of libraries may be impossible to pickle, or unknown where they arrive.
    """
    try:
        _check_versions(expected, _versions(), f"A worker on {platform.node()}")
        return function(*values)
    except Stopped:  # the worker lost contact with the scheduler for a moment; the task is still awaited
        return LostWorkers("the training of some models was cancelled.")
    except Exception as error:  # noqa: BLE001 (raised where the result is awaited)
        trace = "".join(traceback.format_exception(error, limit=-10))
        can_travel = isinstance(error, InputError | MemoryError)
        travels = error.with_traceback(None) if can_travel else RuntimeError(f"{type(error).__name__}: {error}")
        travels.__cause__ = travels.__context__ = None
        travels.add_note(f"In a worker on {platform.node()}:\n{trace}")
        return travels


def _versions() -> dict[str, str]:
    """Return the local versions of everything that results depend on."""
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
    """Return Dask's state of the task that this thread runs in a worker; None elsewhere."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        worker = get_worker()
        return worker.state.tasks[worker.get_current_task()]
    except (ValueError, KeyError):  # not in a worker, or in a thread of it without a task
        return None


def still_wanted() -> Callable[..., bool]:
    """Return a function that returns whether the result of this thread's task is still wanted.

    A task that Dask has cancelled keeps running and would block its worker, so it has to check for itself.
    """
    task = current_task()
    return lambda *_: task is None or task.state != "cancelled"
