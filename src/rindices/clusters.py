"""Where chunks go: threads of this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib

from rindices.core import devices
from rindices.errors import InputError

# A chunk whose workers died is given to others. A cluster may lose many, but a chunk that is too much for every worker
# should not go round for ever; Dask itself tries four workers each time.
_LOSSES_FORGIVEN = 25
_CONNECT_SECONDS = 10
_WAIT_SECONDS = 7 * 24 * 3600  # for the first worker, or for one after all were lost: a queue may be long


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
        with _client(dask, workers) as client, joblib.parallel_config(backend=_backend(client)):
            yield
    elif workers is not None:
        _calm_helpers()
        with joblib.parallel_config(backend="loky", n_jobs=workers):
            yield
    else:
        yield


def _calm_helpers() -> None:
    """A run that is stopped at once leaves semaphores to helpers of Python, who remove them, but complain."""
    before, ours = os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker:UserWarning"
    if ours not in (before or ""):
        os.environ["PYTHONWARNINGS"] = f"{before},{ours}" if before else ours


@contextmanager
def _client(address: str, workers: int | None) -> Iterator[Any]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise InputError("--dask needs Dask.\nInstall it with: pip install 'rindices[cluster]'.") from error
    if address == "local":
        # One thread a worker, on the loopback address only, and no web page.
        options = {"n_workers": workers or devices.n_cores(), "threads_per_worker": 1, "processes": True}
        with LocalCluster(**options, host="127.0.0.1", dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(address, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no Dask scheduler at {address}: {error}.\n"
            "Give the address that it prints when it starts, such as tcp://127.0.0.1:8786."
        ) from error
    with client:
        yield client


def _backend(client: Any) -> Any:
    """Return joblib's Dask backend, made to outlive its workers: on its own it waits for ever for what was lost."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError
    from joblib._dask import DaskDistributedBackend

    lost = (KilledWorker, CommClosedError, asyncio.CancelledError, concurrent.futures.CancelledError)

    class Backend(DaskDistributedBackend):
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(1, super().effective_n_jobs(n_jobs))  # the last worker may just have died

        def submit(self, func: Any, callback: Any = None, losses: int = 0) -> Any:
            def received(out: Any) -> None:
                over = losses == _LOSSES_FORGIVEN or self.client.status in ("closing", "closed")
                if over or not isinstance(out, lost):
                    callback(out)
                else:
                    self.call_data_futures.clear()  # shared arrays may have been lost too
                    self.submit(func, callback, losses + 1)

            def failed(job: Any) -> None:
                if job.exception() is not None:
                    received(job.exception())

            job = super().submit(func, received)
            job.add_done_callback(failed)
            return job

    return Backend(client=client, wait_for_workers_timeout=_WAIT_SECONDS)
