"""Where chunks go: threads of this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
from joblib.parallel import ParallelBackendBase, SequentialBackend, get_active_backend

from rindices.core import devices
from rindices.errors import InputError
from rindices.training.dask_backend import DaskBackend
from rindices.training.workers import is_dask_worker, leave_with

_CONNECT_SECONDS = 10
_ALONE_SECONDS = 5  # without any worker of a cluster of this machine


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
    if dask not in (None, "local") and workers is not None:
        raise InputError(
            f"--workers {workers} does not go with --dask {dask}: a cluster has the workers that were started for it.\n"
            "Leave out --workers, or take --dask local."
        )
    if dask is not None:
        _calm_helpers()
        with _dask_backend(dask, workers) as backend, joblib.parallel_config(backend=backend):
            yield
    elif workers is not None:
        _calm_helpers()
        loyal = {"initializer": leave_with, "initargs": (os.getpid(),)}
        with joblib.parallel_config(backend="loky", n_jobs=workers, **loyal):
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
        size: dict[str, Any] = {"n_workers": workers or devices.n_cores(), "threads_per_worker": 1, "processes": True}
        # Some port is opened for pages in any case; a fixed one is taken when two runs go on, and workers of older
        # versions would listen to everybody.
        pages: dict[str, Any] = dict.fromkeys(("dashboard_address", "worker_dashboard_address"), "127.0.0.1:0")
        quiet = pages | {"scheduler_kwargs": {"dashboard": False}, "silence_logs": logging.CRITICAL}
        with dask.config.set({"distributed.scheduler.http.routes": []}):
            cluster = LocalCluster(**size, **quiet, host="127.0.0.1")
        with cluster, Client(cluster) as client:
            backend = DaskBackend(client, losses_forgiven=0, one_machine=True)
            with _watched(cluster, backend):
                yield backend
        return
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
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


def active_backend() -> ParallelBackendBase:
    """Return where joblib sends chunks, by default threads; those for Dask go there in our way, which loses none."""
    backend, _ = get_active_backend(prefer="threads")
    if type(backend).__name__ == "DaskDistributedBackend":
        # A worker that waits for chunks on its own cluster would keep them from being done.
        return SequentialBackend(nesting_level=1) if is_dask_worker() else DaskBackend(backend.client)
    if not shares_memory(backend) and not backend.supports_return_generator:
        raise InputError(
            f"Models cannot be trained through joblib's {type(backend).__name__}: processes that are copies of this "
            "one may wait for each other for ever.\nUse joblib.parallel_config(backend='loky', n_jobs=2), or none."
        )
    return backend


def shares_memory(backend: ParallelBackendBase) -> bool:
    """Whether a backend works in this process."""
    return bool(getattr(backend, "supports_sharedmem", False))
