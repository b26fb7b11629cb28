"""A run that is killed, stopped or damaged goes on when its command is repeated, and ends with the same bits."""

import os
import signal
import socket
import subprocess
import sys
import time

import psutil
import pytest

from tests.pages.page import missing
from tests.survival.conftest import (
    COMMAND,
    FINISHED,
    PATIENCE,
    UNFINISHED,
    assert_kept,
    assert_same,
    ended,
    finished_chunks,
    held,
    kill,
    send,
    status,
    until,
)

TRAINING = (UNFINISHED, 1)  # where a run waits for its signal: it cannot end before it comes


def test_a_killed_run_goes_on_and_ends_with_the_same_bits(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    assert kill(held(start("--no-report", hold=TRAINING)))
    assert list(out.glob(f"journal/*{UNFINISHED}"))
    assert kill(held(start("--no-report", hold=(FINISHED, 1))))
    chunks = finished_chunks(out)
    assert chunks
    process = held(start("--no-report", "--quiet", hold=(FINISHED, 1)))  # the lock was there, but nobody held it
    assert len(assert_kept(chunks, out)) > len(chunks)
    assert send(process, signal.SIGCONT) == (0, "", "")
    assert_same(out, undisturbed)
    assert not (out / "journal").exists()


def test_damaged_files_are_trained_again_and_named(start, tmp_path, undisturbed):
    out = tmp_path / "run"
    assert send(held(start("--no-report", hold=(FINISHED, 2))), signal.SIGTERM)[0] == 143
    cut, flipped, *_ = sorted((out / "journal").glob("*.safetensors"))
    for path in (cut, out / "summary.json", *out.glob("journal/*.unfinished"), out / "journal" / "plan.json"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    contents = bytearray(flipped.read_bytes())
    contents[-5] ^= 1
    flipped.write_bytes(contents)
    code, said, _ = ended(start("--no-report"))
    assert code == 0
    assert_same(out, undisturbed)
    sentences = [f"{path.name} in the journal was damaged and has been retrained." for path in (cut, flipped)]
    assert not missing(said, *sentences) + missing((out / "summary.json").read_text(), *sentences)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_at_once_and_it_can_go_on(start, tmp_path, undisturbed, number, code):
    out = tmp_path / "run"
    found, _, err = send(held(start(hold=TRAINING)), number)
    assert (found, "To resume, repeat the same command" in err, "Traceback" in err) == (code, True, False)
    assert (status(out), (out / "report.html").exists()) == ("unfinished", False)
    if number == signal.SIGTERM:
        assert ended(start())[0] == 0
        assert_same(out, undisturbed)


@pytest.mark.parametrize(
    "seconds", [pytest.param(0.0, marks=pytest.mark.slow), 1.0, pytest.param(2.0, marks=pytest.mark.slow)]
)
def test_ctrl_c_is_obeyed_while_programs_are_loaded_and_compiled(start, seconds):
    """However far the run is by then: before its first line it would not yet be ours, and it waits when it trains."""
    process = start(hold=TRAINING)
    assert process.stdout.readline().startswith("Read ")
    time.sleep(seconds)
    code, _, err = send(process, signal.SIGINT)
    assert (code, "Stopped" in err, "Traceback" in err) == (130, True, False)


DROPPED = """
class Dropped:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

@exits.guarded
def command():
    Dropped()
    exits.interruptible(lambda: time.sleep(3600), "Go on.", exits.Ending())
"""
# As some libraries do that are written in C++; others end the process with a message of their own.
MADE_ANOTHER_ERROR = """
@exits.guarded
def command():
    import odd
"""
ODD = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(1)
except BaseException:
    pass
raise ImportError("initialisation failed")
"""


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (DROPPED, "Stopped before the run was finished. Go on."),
        (MADE_ANOTHER_ERROR, "Stopped before the results were complete, so no results were written."),
    ],
    ids=["dropped by Python", "made another error by a library"],
)
def test_ctrl_c_is_obeyed_even_where_it_gets_lost(program, told, tmp_path):
    (tmp_path / "odd.py").write_text(ODD)
    begin = "import os, signal, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # as in command.py
    line = [sys.executable, "-c", f"{begin}from rindices.cli import console_and_exits as exits\n{program}\ncommand()"]
    process = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
    assert (process.returncode, process.stderr.splitlines()[-1], "Traceback" in process.stderr) == (130, told, False)


# Workers of a cluster come and go; processes of ours end with the command, however it ends


PROCESSES, LOCAL = ("--workers", "2"), ("--dask", "local", "--workers", "2")


@pytest.fixture
def cluster(tmp_path_factory):
    """Start a scheduler and two workers of one thread each on the loopback address; return that and the processes."""
    folder = tmp_path_factory.mktemp("cluster")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    worker = ("dask_worker", address, "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--preload", str(COMMAND))
    processes = []
    for program, *options in (("dask_scheduler", "--host", "127.0.0.1", "--port", port), worker, worker):
        line = [sys.executable, "-m", f"distributed.cli.{program}", *options, "--no-dashboard"]
        with (folder / "log").open("a") as log:
            processes.append(subprocess.Popen(line, cwd=folder, stdout=log, stderr=log))
    yield address, processes
    for process in processes:
        kill(process)


@pytest.fixture
def begin(start, tmp_path):
    """Return a function that starts a run and waits for its first chunk; gives its folder, and what is finished."""

    def begin(*where):
        process, out = start("--no-report", *where), tmp_path / "run"
        until(lambda: finished_chunks(out), process)
        return process, out, finished_chunks(out)

    return begin


def test_a_killed_worker_changes_nothing(begin, undisturbed, cluster):
    address, (_, worker, _) = cluster
    process, out, chunks = begin("--dask", address)
    kill(worker)
    until(lambda: len(finished_chunks(out)) > len(chunks), process)
    assert_kept(chunks, out)
    assert ended(process)[::2] == (0, "")
    assert_same(out, undisturbed)


@pytest.mark.slow
def test_a_cluster_that_is_gone_ends_the_run_with_a_sentence(start, begin, cluster, undisturbed):
    address, processes = cluster
    process, out, chunks = begin("--dask", address)
    for one in processes:
        kill(one)
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
    told = "\nStopped before the run was finished. To resume, repeat the same command" in err
    assert (code, told, len(children) > 0) == (130, True, True)
    assert have_left(children)
