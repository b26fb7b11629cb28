"""Tasks on a cluster whose workers are threads of this process; what they are sent travels as to other machines."""

import os
import pickle
import threading
import time

import joblib
import numpy as np
import pytest

from rindices.errors import InputError
from rindices.training.chunks import Stopped
from rindices.training.clusters import DaskBackend, active_backend, parallel
from rindices.training.dask_backend import _outcome
from rindices.training.execution import Execution
from rindices.training.workers import Failed, is_dask_worker, still_wanted

distributed = pytest.importorskip("distributed")

PATIENCE = 300  # seconds; a machine that is busy with other things is no reason to fail
RELEASED, BEGUN = threading.Event(), threading.Event()


@pytest.fixture
def cluster():
    size = {"n_workers": 0, "threads_per_worker": 1, "processes": False}
    place = {"protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**size, **place, scheduler_kwargs={"dashboard": False}) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of a cluster with one worker of one thread."""
    cluster.scale(1)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(1, timeout=PATIENCE)
        yield client


def pool(backend):
    return joblib.Parallel(n_jobs=-1, backend=backend, batch_size=1)


def work(number):
    return number, threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("late", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_workers_work_even_a_single_one_and_one_that_is_yet_to_come(cluster, n_workers, late):
    come = threading.Timer(0.5, lambda: cluster.scale(n_workers))
    come.start()
    if not late:
        come.join()
    with distributed.Client(cluster) as client, joblib.parallel_config(backend=DaskBackend(client)):
        pool = joblib.Parallel(n_jobs=joblib.effective_n_jobs(), prefer="threads", batch_size=1)
        assert pool(joblib.delayed(work)(number) for number in range(3)) == [(0, False), (1, False), (2, False)]
    come.join()


def deep(number):
    return deep(number + 1)


class Unfit(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)


def unfit(number):
    raise Unfit("cannot ", "travel")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [(deep, RecursionError, "recursion depth"), (unfit, RuntimeError, "Unfit: cannot travel")],
)
def test_errors_that_dask_cannot_carry_arrive_all_the_same(client, function, error, message):
    with pytest.raises(error, match=message) as raised:
        pool(DaskBackend(client))([joblib.delayed(function)(0)])
    assert "In a worker on" in raised.value.__notes__[0]
    assert function.__name__ in raised.value.__notes__[0]


def test_an_error_travels_without_those_that_led_to_it():
    try:
        try:
            deep(0)
        except RecursionError as error:
            raise KeyError("lost") from error
    except KeyError as error:
        failed = Failed(error)
    assert isinstance(pickle.loads(pickle.dumps(failed)).error, KeyError)
    assert "RecursionError" in failed.error.__notes__[0]


def test_a_task_that_was_called_off_in_passing_is_lost_and_not_wrong(client):
    job = client.submit(Failed, Stopped("stopped"))
    assert type(_outcome(job)).__name__ == "_Lost"
    assert isinstance(_outcome(client.submit(Failed, ValueError("wrong"))), ValueError)


def test_a_worker_of_other_versions_is_refused(client):
    backend = DaskBackend(client)
    here = backend.versions["jax"]
    backend.versions = backend.versions | {"jax": "0.1.2"}
    with pytest.raises(InputError, match=rf"has jax {here}; expected .*: jax 0\.1\.2\.\n.*Install the same"):
        pool(backend)([joblib.delayed(work)(0)])


def test_a_cluster_that_lacks_rindices_is_refused_before_it_is_sent_anything(client, monkeypatch):
    """A worker that cannot load a task ends, the next one who is given it too, and the run would wait for others."""
    DaskBackend(client).check_versions()
    told = client.get_versions(packages=["rindices"])
    [address] = told["workers"]
    told["workers"][address]["packages"]["rindices"] = None
    monkeypatch.setattr(client, "get_versions", lambda **_: told)
    with (
        joblib.parallel_config(backend=DaskBackend(client)),
        pytest.raises(InputError, match=rf"What runs at {address} has rindices none; .*rindices \d.*\n.*Install"),
    ):
        Execution().device()


class Elsewhere:
    """Cannot be loaded where it is sent to, like a module that is not installed there."""

    def __reduce__(self):
        return __import__, ("rindices.not_there",)


def test_a_scheduler_that_lacks_rindices_is_told_as_such(client):
    with pytest.raises(InputError, match=r"cannot load rindices as it is here \(.+\)\.\nAll need .*rindices \d"):
        pool(DaskBackend(client))([joblib.delayed(work)(Elsewhere())])


@pytest.mark.parametrize(
    ("error", "kind"), [(ModuleNotFoundError("rindices"), InputError), (TypeError("odd"), TypeError)]
)
def test_a_worker_that_lacks_rindices_is_told_as_such(error, kind):
    class Job:
        status = "error"

        def result(self):
            raise error

    assert isinstance(_outcome(Job()), kind)


def test_a_task_that_cannot_be_sent_again_is_lost_and_not_waited_for():
    class Job:
        status = "cancelled"

        def result(self):
            raise distributed.client.FutureCancelledError("key", "lost")

        def add_done_callback(self, function):
            self.ended = function

    class Client:
        status, jobs = "connecting", [Job()]

        def submit(self, *_, **__):
            return self.jobs.pop()

    class Task:
        items = ((work, (0,), {}),)

    client, outcomes = Client(), []
    job, backend = client.jobs[0], DaskBackend(client)
    backend.submit(Task, outcomes.append)
    job.ended(job)
    assert isinstance(outcomes[0].error, IndexError)
    assert not backend._jobs


def until_released(number):
    wanted = still_wanted()
    BEGUN.set()
    end = time.monotonic() + PATIENCE
    while wanted() and time.monotonic() < end:
        time.sleep(0.02)
    if not wanted():
        RELEASED.set()


def test_a_worker_is_free_again_when_nobody_waits_for_its_task_any_more(client):
    backend = DaskBackend(client)

    class Task:
        items = ((until_released, (0,), {}),)

    backend.submit(Task, lambda _: None)
    assert BEGUN.wait(PATIENCE)
    assert not RELEASED.is_set()
    backend.abort_everything()
    assert RELEASED.wait(PATIENCE)


def test_outside_of_dask_everything_is_wanted():
    assert still_wanted() is None
    assert not is_dask_worker()


def where(_):
    with joblib.parallel_config(backend="dask"):
        execution = Execution()
        return execution.is_here(), execution.n_workers(), is_dask_worker()


def test_a_worker_does_not_wait_for_its_own_cluster(client):
    assert client.submit(where, 0).result(timeout=PATIENCE) == (True, 1, True)


def test_waiting_for_the_first_worker_is_told(cluster):
    seen = []

    def show(progress):
        seen.append(progress)
        cluster.scale(1)  # it comes when somebody waits for it

    with distributed.Client(cluster) as client, joblib.parallel_config(backend=DaskBackend(client)):
        execution = Execution(progress=show)
        assert execution.device().platform == "cpu"
        assert [(one.stage, one.done, one.total) for one in seen] == [
            ("Waiting for a worker of the cluster", 0, 1),
            ("Waiting for a worker of the cluster", 1, 1),
        ]
        execution.await_worker()
    assert len(seen) == 2


def test_chunks_share_a_device_with_others_of_their_worker_or_machine():
    class Client:
        def nthreads(self):
            return {"tcp://a:1": 4, "tcp://b:1": 2}

    class Empty:
        def nthreads(self):
            return {}

    assert DaskBackend(Client()).tasks_per_device() == 4
    assert DaskBackend(Client(), one_machine=True).tasks_per_device() == 6
    assert DaskBackend(Empty()).tasks_per_device() == DaskBackend(Empty(), one_machine=True).tasks_per_device() == 1


def test_a_number_of_workers_is_refused_for_a_cluster_that_is_there():
    with pytest.raises(InputError, match="--workers 3 does not go with --dask tcp://"), parallel("tcp://a:1", 3):
        pass


def test_large_arrays_are_sent_once_and_arrive_as_they_are(client):
    array = np.arange(20_000.0)
    backend = DaskBackend(client)
    sums = pool(backend)(joblib.delayed(np.sum)(array) for _ in range(3))
    assert sums == [array.sum()] * 3


def test_the_number_of_this_process_goes_along_to_others_who_end_with_it():
    with parallel(workers=2):
        assert active_backend().backend_kwargs["initargs"] == (os.getpid(),)
