"""Where chunks go: threads of this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np
from joblib.parallel import ParallelBackendBase

from rindices.core import devices
from rindices.errors import InputError

# A chunk whose workers died is given to others. A cluster may lose many, but a chunk that is too much for every worker
# should not go round for ever, and this machine's workers die for a reason. Dask itself tries four workers each time.
_LOSSES_FORGIVEN = 25
_CONNECT_SECONDS = 10
_ALONE_SECONDS = 5  # without any worker of a cluster of this machine
_LARGE = 10_000  # bytes of an array that is worth sharing between tasks


@contextmanager
def parallel(dask: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Let joblib send chunks to a Dask cluster or to processes; without either, to threads.

    Parameters
    ----------
    dask
        Address of a scheduler (``tcp://host:8786``), or ``local`` for a cluster of this machine's cores.
    workers
        Number of processes; with ``local``, of the cluster's workers.
    """
    if dask is not None:
        _calm_helpers()
        with _dask_backend(dask, workers) as backend, joblib.parallel_config(backend=backend):
            yield
    elif workers is not None:
        _calm_helpers()
        with joblib.parallel_config(backend="loky", n_jobs=workers):
            yield
    else:
        yield


def _calm_helpers() -> None:
    """Let helpers of Python remove what a run that is stopped at once leaves behind, without a complaint."""
    before, ours = os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker:UserWarning"
    if ours not in (before or ""):
        os.environ["PYTHONWARNINGS"] = f"{before},{ours}" if before else ours


@contextmanager
def _dask_backend(address: str, workers: int | None) -> Iterator[DaskBackend]:
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError("--dask needs Dask.\nInstall it with: pip install 'rindices[cluster]'.") from error
    # Cohorts are large on purpose; each goes to the scheduler once.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"})
    if address == "local":
        # One thread a worker, on the loopback address only, and no web page. What goes wrong comes back with the tasks;
        # workers that are sent home in the middle of a heartbeat would complain of that on the user's terminal.
        size = {"n_workers": workers or devices.n_cores(), "threads_per_worker": 1, "processes": True}
        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        with LocalCluster(**size, **quiet, host="127.0.0.1") as cluster, Client(cluster) as client:
            backend = DaskBackend(client, losses_forgiven=0)
            with _watched(cluster, backend):
                yield backend
        return
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no Dask scheduler at {address}: {error}.\n"
            "Give the address that it prints when it starts, such as tcp://127.0.0.1:8786."
        ) from error
    with client:
        yield DaskBackend(client)


@contextmanager
def _watched(cluster: Any, backend: DaskBackend) -> Iterator[None]:
    """Give tasks up when nobody is left to do them: Dask does not replace a worker that dies while it starts."""
    over = threading.Event()

    def watch() -> None:
        seconds = 0
        while not over.wait(1.0):
            seconds = 0 if any(nanny.pid for nanny in cluster.workers.values()) else seconds + 1
            if seconds >= _ALONE_SECONDS:
                backend.give_up()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


class DaskBackend(ParallelBackendBase):
    """Gives joblib's tasks to a Dask cluster that may lose workers; joblib's own backend waits for ever for theirs.

    Large arrays go to the cluster once, as tasks: Dask makes again what was lost with a worker.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    losses_forgiven
        How often a task may be given to others after those who had it died.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, client: Any, losses_forgiven: int = _LOSSES_FORGIVEN) -> None:
        super().__init__()
        self.client = client
        self.losses_forgiven = losses_forgiven
        self._jobs: dict[int, Any] = {}  # those that somebody still waits for
        self._numbers = itertools.count()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of the workers' threads; without any yet, chunks wait for the first."""
        return max(1, sum(self.client.nthreads().values()))

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """Prepare a call of `joblib.Parallel`, which would do the work of a single worker itself, here."""
        self.parallel = parallel
        return max(2, self.effective_n_jobs(n_jobs))

    def submit(self, func: Any, callback: Any = None) -> int:
        """Send a task; its outcome goes to the callback."""
        number = next(self._numbers)
        self._send(number, func.items, callback, losses=0)
        return number

    apply_async = submit  # its name before joblib 1.5

    def _send(self, number: int, items: list[Any], callback: Any, losses: int) -> None:
        [(function, args, options)] = items  # tasks come one by one
        values = [self._shared(value) for value in (*args, *options.values())]
        key = f"rindices-{number}-{uuid.uuid4().hex}"
        job = self._jobs[number] = self.client.submit(_call, function, tuple(options), *values, key=key)

        def ended(job: Any) -> None:
            outcome = _outcome(job)
            if number not in self._jobs:
                return
            over = losses == self.losses_forgiven or self.client.status in ("closing", "closed")
            if isinstance(outcome, _Lost) and not over:
                self._send(number, items, callback, losses + 1)
            else:
                del self._jobs[number]
                callback(outcome)

        job.add_done_callback(ended)

    def _shared(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.nbytes < _LARGE:
            return value
        contents = hashlib.sha256(np.ascontiguousarray(value).data)
        contents.update(f"{value.dtype.str} {value.shape}".encode())
        return self.client.submit(_itself, value, key=f"rindices-array-{contents.hexdigest()}")

    def retrieve_result_callback(self, out: Any) -> Any:
        """Return or raise what came of a task."""
        if isinstance(out, _Lost):
            raise out.error
        if isinstance(out, BaseException):
            raise out
        return out

    def give_up(self) -> None:
        """Let the tasks that somebody waits for be lost."""
        self.client.cancel(list(self._jobs.values()))

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Wait for nothing any more."""
        jobs, self._jobs = self._jobs, {}
        if self.client.status == "running":
            self.client.cancel(list(jobs.values()))


class _Lost:
    """The outcome of a task whose workers, or whose cluster, went away."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _outcome(job: Any) -> Any:
    try:
        return job.result()
    except BaseException as error:  # noqa: BLE001 (raised where the outcome is awaited)
        # A task that failed by its own fault has this state, and so has one that was tried on too many workers.
        own = job.status == "error" and type(error).__name__ != "KilledWorker"
        return error if own else _Lost(error)


def _call(function: Any, names: tuple[str, ...], *values: Any) -> list[Any]:
    """Call a function in a worker; joblib expects a list of one."""
    place = len(values) - len(names)
    return [function(*values[:place], **dict(zip(names, values[place:], strict=True)))]


def _itself(value: np.ndarray) -> np.ndarray:
    return value
