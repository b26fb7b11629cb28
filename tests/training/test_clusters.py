"""Tasks on a cluster whose workers are threads of this process; what they are sent travels as to other machines."""

import threading
import time

import joblib
import numpy as np
import pytest

from rindices.core.train import TrainingPeople
from rindices.problems import InputError, LostWorkers
from rindices.training.chunks import Stopped
from rindices.training.clusters import Cluster, still_wanted
from rindices.training.execution import Execution, executor, parallel
from tests.refusal import refused_with

distributed = pytest.importorskip("distributed")

PATIENCE = 300  # seconds; a machine that is busy with other things is no reason to fail
RELEASED, BEGUN = threading.Event(), threading.Event()


@pytest.fixture
def empty():
    """A cluster without workers."""
    size = {"n_workers": 0, "threads_per_worker": 1, "processes": False}
    place = {"protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**size, **place, scheduler_kwargs={"dashboard": False}) as cluster:
        yield cluster


@pytest.fixture
def client(empty):
    """A client that knows of its cluster nothing but the address."""
    with distributed.Client(empty.scheduler_address) as client:
        yield client


@pytest.fixture
def cluster(empty, client):
    """A cluster with one worker of one thread."""
    empty.scale(1)
    client.wait_for_workers(1, timeout=PATIENCE)
    return Cluster(client)


def work(number):
    return number, threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("n_workers", [1, 2])
def test_waiting_for_the_first_worker_is_told_and_workers_work_even_a_single_one(empty, client, n_workers):
    seen = []

    def show(progress):
        seen.append((progress.stage, progress.done, progress.total))
        empty.scale(n_workers)  # they come when somebody waits for them

    with joblib.parallel_config(backend="dask", client=client):
        execution = Execution(progress=show)
        assert execution.device().platform == "cpu"
        assert seen == [("Waiting for a worker to join the cluster", done, 1) for done in (0, 1)]
        assert sorted(execution.ready_executor().run(work, [(0,), (1,), (2,)])) == [(0, False), (1, False), (2, False)]
    assert len(seen) == 2


def deep(number):
    return deep(number + 1)


class Unfit(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)


def unfit(_):
    raise Unfit("cannot ", "travel")


def refuse(_):
    raise InputError("not like this")


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (deep, RuntimeError, "RecursionError: "),
        (unfit, RuntimeError, "Unfit: cannot"),
        (refuse, InputError, "not like"),
    ],
)
def test_errors_that_dask_cannot_carry_arrive_all_the_same(cluster, function, error, message):
    with pytest.raises(error, match=message) as raised:
        list(cluster.run(function, [(0,)]))
    assert function.__name__ in raised.value.__notes__[0]


class Elsewhere:
    """Cannot be loaded where it is sent to, like a module that is not installed there."""

    def __reduce__(self):
        return __import__, ("rindices.not_there",)


def test_a_place_that_cannot_load_what_it_is_sent_is_refused(cluster):
    refused_with("cannot load the version of rindices used on this machine", list, cluster.run(work, [(Elsewhere(),)]))


@pytest.mark.parametrize("place", ["scheduler", "worker"])
@pytest.mark.parametrize("found", [None, "0.1.2"])
def test_a_cluster_of_other_versions_is_refused_before_it_is_sent_anything(cluster, monkeypatch, place, found):
    """A worker that cannot load a task ends, the next one who is given it too, and the run would wait for others."""
    told = cluster.client.get_versions(packages=["rindices", "jax", "jaxlib", "optax"])
    (told["scheduler"] if place == "scheduler" else next(iter(told["workers"].values())))["packages"]["jax"] = found
    monkeypatch.setattr(cluster.client, "get_versions", lambda **_: told)
    monkeypatch.setattr(cluster.client, "submit", lambda *_, **__: pytest.fail("it was sent something"))
    refused_with(rf"has jax {found or 'none'}, but this machine has", list, cluster.run(work, [(0,)]))


def test_a_worker_of_other_versions_that_came_later_is_refused(cluster, monkeypatch):
    """It was not there when the cluster was asked."""
    submit, told = cluster.client.submit, cluster.client.get_versions(packages=["rindices", "jax", "jaxlib", "optax"])
    monkeypatch.setattr(cluster.client, "get_versions", lambda **_: told | {"workers": {}})
    monkeypatch.setattr(
        cluster.client, "submit", lambda call, here, *rest, **how: submit(call, here | {"jax": "0.1.2"}, *rest, **how)
    )
    refused_with(r"A worker on .* has jax .*, but this machine has .*jax 0\.1\.2\.", list, cluster.run(work, [(0,)]))


def stopped(number):
    raise Stopped


def test_a_task_that_was_called_off_or_cancelled_is_lost(cluster, monkeypatch):
    refused_with("cancelled", list, cluster.run(stopped, [(7,)]), error=LostWorkers)
    submit, jobs = cluster.client.submit, []
    monkeypatch.setattr(cluster.client, "submit", lambda *args, **how: jobs.append(submit(*args, **how)) or jobs[-1])
    BEGUN.clear()
    threading.Thread(target=lambda: BEGUN.wait(PATIENCE) and jobs[0].cancel()).start()
    refused_with("a chunk was lost", list, cluster.run(quick_or_until_released, [(1,)]), error=LostWorkers)


def quick_or_until_released(number):
    wanted, end = still_wanted(), time.monotonic() + PATIENCE
    if number:
        BEGUN.set()
        while wanted() and time.monotonic() < end:
            time.sleep(0.02)
        RELEASED.set()


def test_a_worker_is_free_again_when_nobody_waits_for_its_task_any_more(cluster):
    BEGUN.clear()
    RELEASED.clear()
    results = cluster.run(quick_or_until_released, [(0,), (1,)])
    next(results)
    assert BEGUN.wait(PATIENCE)
    assert not RELEASED.is_set()
    results.close()
    assert RELEASED.wait(PATIENCE / 2)


def where(_):
    with joblib.parallel_config(backend="dask"):
        place = executor()
        return place.is_here, place.chunks_per_device


def test_a_worker_does_not_wait_for_its_own_cluster(cluster):
    assert list(cluster.run(where, [(0,)])) == [(True, 1)]


@pytest.mark.parametrize(("threads", "elsewhere", "here"), [({"a": 4, "b": 2}, 4, 6), ({}, 1, 1)])
def test_chunks_share_a_device_with_others_of_their_worker_or_machine(
    empty, client, monkeypatch, threads, elsewhere, here
):
    monkeypatch.setattr(client, "nthreads", lambda: threads)
    assert Cluster(client).chunks_per_device == elsewhere
    monkeypatch.setattr(client, "cluster", empty)
    assert Cluster(client).chunks_per_device == here


def total(people, number):
    return type(people).__name__, people.patients.sum() + number


def test_people_are_sent_once_and_arrive_as_they_are(cluster, monkeypatch):
    people, jobs = TrainingPeople(np.zeros((3, 2)), np.arange(20_000.0).reshape(-1, 2)), []
    submit = cluster.client.submit
    monkeypatch.setattr(cluster.client, "submit", lambda *args, **how: jobs.append(submit(*args, **how)) or jobs[-1])
    sums = sorted(cluster.run(total, [(people, number) for number in range(3)]))
    assert sums == [("TrainingPeople", people.patients.sum() + number) for number in range(3)]
    assert len({job.key for job in jobs}) == 4


@pytest.mark.parametrize(
    ("address", "workers", "told"),
    [
        ("tcp://127.0.0.1:1", 3, "workers=3 cannot be combined with dask='tcp:"),
        pytest.param("tcp://127.0.0.1:1", None, "Cannot connect to a Dask scheduler at tcp:", marks=pytest.mark.slow),
        ("nonsense://", None, "Cannot connect to a Dask scheduler at nonsense:"),
    ],
)
def test_clusters_that_cannot_be_had_are_refused(address, workers, told):
    with pytest.raises(InputError, match=told), parallel(address, workers):
        pass
