"""Workers of a cluster come and go; processes of ours end with the command, however it ends."""

import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from tests.survival import deadly
from tests.survival.conftest import (
    COMMAND,
    FINISHED,
    PATIENCE,
    assert_kept,
    assert_same,
    ended,
    finished_chunks,
    held,
    kill,
    send,
    until,
)

PROCESSES, LOCAL = ("--workers", "2"), ("--dask", "local", "--workers", "2")


class Cluster:
    """A scheduler and workers of one thread each, all processes of their own on the loopback address."""

    def __init__(self, folder):
        self.folder, self.workers = folder, []
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        self.address = f"tcp://127.0.0.1:{port}"
        self.scheduler = self._begin("dask_scheduler", "--host", "127.0.0.1", "--port", port)

    def _begin(self, program, *options):
        command = [sys.executable, "-m", f"distributed.cli.{program}", *options, "--no-dashboard"]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)

    def add_worker(self):
        options = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--preload", str(COMMAND))
        self.workers.append(self._begin("dask_worker", self.address, *options))

    def kill_worker(self, place):
        worker = self.workers.pop(place)
        worker.kill()
        worker.wait()

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    yield cluster
    cluster.close()


@pytest.fixture
def begin(start, tmp_path):
    """Return a function that starts a run and waits for its first chunk; gives its folder, and what is finished."""

    def begin(*where):
        process, out = start("--no-report", *where), tmp_path / "run"
        until(lambda: finished_chunks(out), process)
        return process, out, finished_chunks(out)

    return begin


def test_a_killed_worker_changes_nothing(begin, undisturbed, cluster):
    for _ in range(2):
        cluster.add_worker()
    process, out, chunks = begin("--dask", cluster.address)
    cluster.kill_worker(0)
    until(lambda: len(finished_chunks(out)) > len(chunks), process)
    assert_kept(chunks, out)
    assert ended(process)[::2] == (0, "")
    assert_same(out, undisturbed)


@pytest.mark.slow
def test_20_killed_workers_change_nothing(start, tmp_path, undisturbed, cluster):
    for _ in range(3):
        cluster.add_worker()
    random, killed, number = np.random.default_rng(3), 0, 0
    while killed < 20:
        out = tmp_path / f"run{number}"
        process, chunks = start("--no-report", "--dask", cluster.address, out=out.name), {}
        until(lambda out=out: (out / "journal" / "plan.json").exists(), process, timeout=120)
        while process.poll() is None and killed < 20:
            time.sleep(random.uniform(0.1, 3.0))
            cluster.kill_worker(random.integers(len(cluster.workers)))
            cluster.add_worker()
            killed += 1
            chunks = assert_kept(chunks, out)
        assert ended(process, timeout=300)[::2] == (0, "")
        assert_same(out, undisturbed)
        number += 1


@pytest.mark.slow
def test_a_cluster_that_is_gone_ends_the_run_with_a_sentence(start, begin, cluster, undisturbed):
    cluster.add_worker()
    process, out, chunks = begin("--dask", cluster.address)
    cluster.close()
    code, _, err = ended(process, timeout=60)
    assert (code, err.splitlines()[-1][:7]) == (3, "Failed.")
    assert_kept(chunks, out)
    assert ended(start("--no-report"))[0] == 0
    assert_same(out, undisturbed)


@pytest.mark.parametrize("where", [pytest.param(PROCESSES, marks=pytest.mark.slow), LOCAL], ids=["processes", "dask"])
def test_our_own_processes_give_the_same_and_listen_to_nobody_else(begin, undisturbed, where):
    process, out, _ = begin(*where)
    ours = psutil.Process(process.pid)
    assert {
        connection.laddr.ip
        for one in (ours, *ours.children(recursive=True))
        for connection in one.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    } == ({"127.0.0.1"} if where == LOCAL else set())
    assert ended(process)[::2] == (0, "")
    assert_same(out, undisturbed)


@pytest.mark.slow
def test_clusters_of_two_runs_at_the_same_time(start, tmp_path, undisturbed):
    for name, process in {name: start("--no-report", *LOCAL, out=name) for name in ("one", "two")}.items():
        assert ended(process)[::2] == (0, "")
        assert_same(tmp_path / name, undisturbed)


@pytest.mark.slow
def test_workers_that_always_die_end_the_run_with_a_sentence(start, tmp_path, undisturbed):
    process = start("--no-report", "--dask", "local", DASK_DISTRIBUTED__WORKER__PRELOAD=deadly.__file__)
    code, _, err = ended(process, timeout=300)
    assert (code, "workers were lost 5 times in a row" in err, ended(start("--no-report"))[0]) == (3, True, 0)
    assert_same(tmp_path / "run", undisturbed)


def children_of(process):
    found = psutil.Process(process.pid).children(recursive=True)
    return found if len(found) >= 2 else []


def have_left(processes):
    return not psutil.wait_procs(processes, timeout=PATIENCE / 4)[1]  # joblib's own would stay for five minutes


@pytest.mark.slow
@pytest.mark.parametrize("trains", [False, True], ids=["starting", "training"])
@pytest.mark.parametrize("where", [PROCESSES, LOCAL], ids=["processes", "dask"])
def test_a_killed_command_takes_its_processes_along(start, tmp_path, where, trains):
    process = start("--no-report", *where)
    until(lambda: list(tmp_path.glob("run/journal/data-*")) if trains else children_of(process), process)
    children = children_of(process)
    kill(process)
    assert children
    assert have_left(children)


@pytest.mark.slow
@pytest.mark.parametrize("where", [PROCESSES, LOCAL], ids=["processes", "dask"])
def test_ctrl_c_takes_the_workers_along(start, where):
    process = held(start(*where, alone=True, hold=(FINISHED, 1)))
    children = children_of(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    code, _, err = send(process, signal.SIGCONT)
    assert code == 130
    assert "\nStopped before the run was finished. To resume, repeat the same command" in err
    assert children
    assert have_left(children)
