"""Tasks on a cluster inside this process, which needs no network."""

import threading

import joblib
import pytest

from rindices.clusters import DaskBackend

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster():
    size = {"n_workers": 0, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**size, dashboard_address=None) as cluster:
        yield cluster


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
