"""A way to Dask for joblib: tasks outlive their workers, and whoever waits for a task is told how it ended."""

from __future__ import annotations

import hashlib
import itertools
import uuid
from typing import Any

import numpy as np
from joblib.parallel import ParallelBackendBase

from rindices.errors import InputError
from rindices.training.workers import DECIDE_BITS, Failed, call, check_versions, itself, versions

# A chunk whose workers died is given to others. A cluster may lose many, but a chunk that is too much for every worker
# should not go round for ever, and this machine's workers die for a reason. Dask itself tries four workers each time.
_LOSSES_FORGIVEN = 25
_LARGE = 10_000  # bytes of an array that is worth sharing between tasks


class DaskBackend(ParallelBackendBase):
    """Gives joblib's tasks to a Dask cluster that may lose workers; joblib's own backend waits for ever for theirs.

    Large arrays go to the cluster once, as tasks: Dask makes again what was lost with a worker.

    Parameters
    ----------
    client : distributed.Client
        Connected to a scheduler.
    losses_forgiven
        How often a task may be given to others after those who had it died.
    one_machine
        Whether all workers are processes of one machine, and share its devices.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, client: Any, losses_forgiven: int = _LOSSES_FORGIVEN, one_machine: bool = False) -> None:
        super().__init__()
        self.client = client
        self.losses_forgiven, self.one_machine = losses_forgiven, one_machine
        self.versions = versions()
        self._jobs: dict[int, Any] = {}  # those that somebody still waits for
        self._numbers = itertools.count()

    def effective_n_jobs(self, n_jobs: int) -> int:
        """Return the number of the workers' threads; without any yet, chunks wait for the first."""
        return max(1, sum(self.client.nthreads().values()))

    def tasks_per_device(self) -> int:
        """Return how many tasks share the device of a worker."""
        threads = self.client.nthreads().values()
        return max(1, sum(threads) if self.one_machine else max(threads, default=1))

    def check_versions(self) -> None:
        """Refuse a cluster of other versions before it is sent anything that it could not load."""
        found = self.client.get_versions(packages=list(DECIDE_BITS))
        expected = _of_interest(found["client"])
        for address, told in {"the address of the scheduler": found["scheduler"], **found["workers"]}.items():
            if told is not None:  # it has just left
                check_versions(expected, _of_interest(told), f"What runs at {address}")

    def has_workers(self) -> bool:
        """Whether there is anybody to do a task."""
        return bool(self.client.nthreads())

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
        job = self._jobs[number] = self.client.submit(call, self.versions, function, tuple(options), *values, key=key)

        def ended(job: Any) -> None:
            outcome = _outcome(job)
            if number not in self._jobs:
                return
            over = losses == self.losses_forgiven or self.client.status in ("closing", "closed")
            if isinstance(outcome, _Lost) and not over:
                try:
                    self._send(number, items, callback, losses + 1)
                    return
                except Exception as error:  # noqa: BLE001 (raised where the outcome is awaited)
                    outcome = _Lost(error)
            self._jobs.pop(number, None)
            callback(outcome)

        job.add_done_callback(ended)

    def _shared(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray) or value.nbytes < _LARGE:
            return value
        contents = hashlib.sha256(np.ascontiguousarray(value).data)
        contents.update(f"{value.dtype.str} {value.shape}".encode())
        return self.client.submit(itself, value, key=f"rindices-array-{contents.hexdigest()}")

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


def _of_interest(told: dict[str, Any]) -> dict[str, str]:
    packages = told["packages"]
    python = ".".join(str(packages["python"]).split(".")[:2])
    return {"python": python} | {name: str(packages.get(name) or "none") for name in DECIDE_BITS}


class _Lost:
    """The outcome of a task whose workers, or whose cluster, went away."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def _outcome(job: Any) -> Any:
    try:
        result = job.result()
    except BaseException as error:  # noqa: BLE001 (raised where the outcome is awaited)
        # Errors of a task come back as values. An error of Dask is a task that no worker could do, or none did.
        if job.status != "error" or type(error).__name__ == "KilledWorker":
            return _Lost(error)
        unable = isinstance(error, ImportError | AttributeError) or "deserialization" in str(error)
        return _unable(error) if unable else error
    if not isinstance(result, Failed):
        return result
    # A worker that loses sight of the scheduler for a moment sees its task called off, though it is still awaited.
    return _Lost(result.error) if result.kind == "Stopped" else result.error


def _unable(error: BaseException) -> InputError:
    expected = ", ".join(f"{name} {number}" for name, number in versions().items())
    unable = InputError(
        f"The scheduler or a worker of the cluster cannot load rindices as it is here ({str(error).splitlines()[0]}).\n"
        f"All need the same versions as this machine: {expected}. Install them there, start scheduler and workers "
        "again, and repeat the same command."
    )
    unable.__cause__ = error
    return unable
