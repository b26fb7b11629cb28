import os
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from itertools import pairwise

import jax
import joblib
import numpy as np
import pytest

from rindices.core import devices
from rindices.core.devices import Device
from rindices.problems import InputError, LostWorkers
from rindices.training import execution as module
from rindices.training.chunks import Chunk, Member, Point, Settings, Stopped, Unfinished, cut
from rindices.training.clusters import Cluster, still_wanted
from rindices.training.execution import Execution, Memory, Progress, executor, parallel, train_all
from rindices.training.journal import Journal
from tests.made_up import scores, trajectory
from tests.refusal import refused_with

POINT = Point(3, 0.8)
CHUNKS = cut([Member(POINT, 0), Member(POINT, 1), Member(POINT, 2), Member(POINT, 3)], 1)
A, B, C, D = CHUNKS


@pytest.fixture(scope="module")
def settings(quick_preset):
    return Settings(quick_preset, 0)


@pytest.fixture(scope="module")
def people(small_people):
    """People of each repetition; the groups are swapped in the last."""
    exchanged = small_people._replace(controls=small_people.patients, patients=small_people.controls)
    return lambda repetition: exchanged if repetition == 3 else small_people


@pytest.fixture(scope="module")
def alone(settings, people):
    """All chunks, trained sequentially."""
    execution = Execution(n_jobs=1)
    train_all(CHUNKS, settings, people, execution)
    return execution.store


def same_bits(found, expected, chunks=CHUNKS):
    for chunk in chunks:
        jax.tree.map(np.testing.assert_array_equal, found[chunk], expected[chunk])


class Fake:
    """Stands in for training: reports some steps, and fails a given number of times for a chunk."""

    def __init__(self, steps=(0, 20, 40), failures=(), error=LostWorkers):
        self.steps, self.failures, self.error, self.calls = steps, dict(failures), error, []

    def __call__(self, chunk, *_, progress):
        self.calls.append(chunk)
        for step in self.steps:
            progress(chunk, step)
            if self.failures.get(chunk, 0) and step:
                self.failures[chunk] -= 1
                raise self.error("lost")
        return trajectory([scores(0.1, 0.1)])


@pytest.fixture
def fake(monkeypatch):
    def put(**options):
        made = Fake(**options)
        monkeypatch.setattr(module, "train_chunk", made)
        return made

    return put


def test_order_and_threads_do_not_change_a_bit(alone, settings, people):
    assert alone[A].steps.tolist() == [20, 40]
    for other in (B, D):  # another repetition, other people
        assert not np.array_equal(alone.get(A).r_indices, alone.get(other).r_indices)
    for n_jobs in (1, 2):
        seen, store = [], Memory()
        train_all(CHUNKS[::-1], settings, people, Execution(store, n_jobs, seen.append))
        same_bits(store, alone)
        assert all(a.done <= b.done for a, b in pairwise(seen))


def test_processes_do_not_change_a_bit(alone, settings, people):
    seen = []
    execution = Execution(progress=seen.append)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        train_all(CHUNKS, settings, people, execution)
        assert execution.device().platform == devices.describe().platform
    same_bits(execution.store, alone)
    # Other processes report nothing until they end.
    assert [(one.done, one.resumed) for one in seen] == [(40 * k, 0) for k in range(5)]


@pytest.mark.usefixtures("cluster")
def test_a_cluster_does_not_change_a_bit(alone, settings, people):
    execution = Execution()
    with joblib.parallel_config(backend="dask"):
        assert (executor().is_here, execution.device()) == (False, devices.describe())
        train_all(CHUNKS, settings, people, execution)
    same_bits(execution.store, alone)


def test_what_is_in_the_store_is_not_trained_again(fake, settings, people):
    made, store, there = fake(), Memory(), trajectory([scores(0.3)])
    store[B] = there
    for _ in range(2):
        train_all(CHUNKS, settings, people, Execution(store, n_jobs=1))
        assert made.calls == [A, C, D]
    assert store[B] is there


@pytest.mark.parametrize("error", [LostWorkers, BrokenProcessPool])
def test_lost_workers_are_replaced_and_finished_chunks_are_not_repeated(fake, settings, people, error):
    """Eight losses in all: more than are tolerated in a row without progress."""
    made, execution = fake(failures={B: 4, D: 4}, error=error), Execution(n_jobs=1)
    train_all(CHUNKS, settings, people, execution)
    assert {chunk: (made.calls.count(chunk), chunk in execution.store) for chunk in CHUNKS} == {
        A: (1, True),
        B: (5, True),
        C: (1, True),
        D: (5, True),
    }


@pytest.mark.parametrize(
    ("failures", "error", "told", "said", "calls"),
    [
        *(({B: 1}, error, error, "lost", [A, B]) for error in (ValueError, MemoryError, OSError)),
        ({A: 1000}, BrokenProcessPool, LostWorkers, "5 times in a row", [A] * 5),
    ],
)
def test_other_errors_pass_at_once_and_losses_without_any_progress_are_given_up(
    fake, settings, people, failures, error, told, said, calls
):
    made, execution = fake(failures=failures, error=error), Execution(n_jobs=1)
    refused_with(said, train_all, CHUNKS, settings, people, execution, error=told)
    assert (made.calls, [chunk in execution.store for chunk in CHUNKS]) == (calls, [B in calls, False, False, False])


def test_threads_stop_at_their_next_checkpoint_when_another_fails(monkeypatch, settings, people):
    going, ended = threading.Event(), threading.Event()

    def train(chunk, *_, progress):
        if chunk == A:
            going.wait(10)
            raise ValueError("lost")
        while progress(chunk, 0):
            going.set()
            time.sleep(0.01)
        ended.set()

    monkeypatch.setattr(module, "train_chunk", train)
    refused_with("lost", train_all, [A, B], settings, people, Execution(n_jobs=2), error=ValueError)
    assert ended.wait(10)


PAIR = Chunk((Member(POINT, 8), Member(POINT, 9)))


@pytest.mark.parametrize(
    ("chunks", "there", "training", "expected"),
    [
        ([A, PAIR], [], {}, [(0, 0), (0, 0), (20, 0), (40, 0), (40, 0), (40, 0), (80, 0), (120, 0), (120, 0)]),
        # A is finished and B resumes at step 20, so 60 steps were not made in this run.
        ([A, B], [A], {"steps": (20, 40)}, [(40, 40), (60, 60), (80, 60), (80, 60)]),
        ([A], [A], {}, [(40, 40)]),
        ([A], [], {"steps": (0, 20)}, [(0, 0), (0, 0), (20, 0), (40, 0)]),
        ([A], [], {"failures": {A: 1}}, [(0, 0), (0, 0), (20, 0), (0, 0), (20, 0), (40, 0), (40, 0)]),
    ],
    ids=["several models", "resumed", "nothing to train", "frozen early", "lost once"],
)
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_progress_counts_steps_of_all_models(fake, settings, people, chunks, there, training, expected, backend):
    """With a single worker, joblib's process is this one."""
    fake(**training)
    store, seen = Memory(), []
    for chunk in there:
        store[chunk] = trajectory([scores(0.1)])
    with joblib.parallel_config(backend=backend, n_jobs=1):
        train_all(chunks, settings, people, Execution(store, progress=seen.append), "A stage")
    total = 40 * sum(len(chunk.members) for chunk in chunks)
    assert seen == [Progress("A stage", done, total, resumed) for done, resumed in expected]


@pytest.mark.parametrize("backend", [None, "threading", "loky"])
@pytest.mark.parametrize("number", [1, 2])
def test_number_of_workers_is_what_was_asked_for_or_the_number_of_cores(monkeypatch, backend, number):
    monkeypatch.setattr(devices, "n_cores", lambda: 7)
    assert (executor().chunks_per_device, executor(number).chunks_per_device) == (7, number)
    with joblib.parallel_config(backend=backend, n_jobs=number) if backend else joblib.parallel_config(n_jobs=number):
        assert executor().chunks_per_device == Execution().ready_executor().chunks_per_device == number
        assert (executor(3).chunks_per_device, executor().is_here) == (3, (backend != "loky" or number == 1))
    monkeypatch.setattr(devices, "describe", lambda: Device("gpu", "made up", 1, 2**30))
    assert 1 < executor().chunks_per_device < 7


def test_cores_are_those_that_a_container_or_the_user_allows_and_inside_a_loop_one_for_each(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert devices.n_cores() == 1
    monkeypatch.setattr(devices, "n_cores", lambda: 7)
    loop = joblib.Parallel(n_jobs=2, backend="threading")
    assert loop(joblib.delayed(lambda asked: executor(asked).chunks_per_device)(asked) for asked in (None, 2)) == [1, 2]


def test_processes_that_are_copies_of_this_one_are_refused(settings, people):
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        for ask in (Execution().device, lambda: train_all([A], settings, people, Execution())):
            refused_with("MultiprocessingBackend", ask)


def test_a_process_that_is_lost_before_the_first_chunk(monkeypatch):
    monkeypatch.setattr(module, "_describe", os.abort)
    with joblib.parallel_config(backend="loky", n_jobs=2), pytest.raises(LostWorkers):
        Execution().device()


def test_a_platform_that_is_not_there_is_refused_and_one_that_is_has_a_name():
    line = [sys.executable, "-c", "from rindices.core import devices; print(devices.in_words())"]
    for platforms, told in (("cpu", " core"), ("nonsense", "InputError: JAX_PLATFORMS=nonsense requests")):
        done = subprocess.run(
            line, capture_output=True, text=True, check=False, env=os.environ | {"JAX_PLATFORMS": platforms}
        )
        assert told in done.stdout + done.stderr


# Tasks on a cluster whose workers are threads of this process; data are serialised as for other machines


PATIENCE = 300  # seconds; a busy machine should not fail the tests
RELEASED, BEGUN = threading.Event(), threading.Event()


@pytest.fixture
def empty():
    """A cluster without workers."""
    distributed = pytest.importorskip("distributed")
    size = {"n_workers": 0, "threads_per_worker": 1, "processes": False}
    place = {"protocol": "tcp://", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**size, **place, scheduler_kwargs={"dashboard": False}) as cluster:
        yield cluster


@pytest.fixture
def client(empty):
    """A client that knows only the address of its cluster."""
    with pytest.importorskip("distributed").Client(empty.scheduler_address) as client:
        yield client


@pytest.fixture
def cluster(empty, client):
    """A cluster with one single-threaded worker."""
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
        empty.scale(n_workers)  # workers join only once they are awaited

    with joblib.parallel_config(backend="dask", client=client):
        execution = Execution(progress=show)
        assert execution.device().platform == "cpu"
        assert seen == [("Waiting for a worker to join the cluster", done, 1) for done in (0, 1)]
        assert sorted(execution.ready_executor().run(work, [(0,), (1,), (2,)])) == [(0, False), (1, False), (2, False)]
    assert len(seen) == 2


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
        (unfit, RuntimeError, "Unfit: cannot"),
        (refuse, InputError, "not like"),
    ],
)
def test_errors_that_dask_cannot_carry_arrive_all_the_same(cluster, function, error, message):
    with pytest.raises(error, match=message) as raised:
        list(cluster.run(function, [(0,)]))
    assert function.__name__ in raised.value.__notes__[0]


class Elsewhere:
    """Cannot be unpickled at its destination, like a module that is not installed there."""

    def __reduce__(self):
        return __import__, ("rindices.not_there",)


def test_a_place_that_cannot_load_what_it_is_sent_is_refused(cluster):
    refused_with("cannot load the version of rindices used on this machine", list, cluster.run(work, [(Elsewhere(),)]))


@pytest.mark.parametrize("place", ["scheduler", "worker"])
@pytest.mark.parametrize("found", [None, "0.1.2"])
def test_a_cluster_of_other_versions_is_refused_before_it_is_sent_anything(cluster, monkeypatch, place, found):
    """A worker that cannot load a task dies, as does the next one to receive it, and the run would wait forever."""
    told = cluster.client.get_versions(packages=["rindices", "jax", "jaxlib", "optax"])
    (told["scheduler"] if place == "scheduler" else next(iter(told["workers"].values())))["packages"]["jax"] = found
    monkeypatch.setattr(cluster.client, "get_versions", lambda **_: told)
    monkeypatch.setattr(cluster.client, "submit", lambda *_, **__: pytest.fail("it was sent something"))
    refused_with(rf"has jax {found or 'none'}, but this machine has", list, cluster.run(work, [(0,)]))


def test_a_worker_of_other_versions_that_came_later_is_refused(cluster, monkeypatch):
    """It joined after the versions were checked."""
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
    refused_with("some models were lost", list, cluster.run(quick_or_until_released, [(1,)]), error=LostWorkers)


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


@pytest.mark.parametrize(
    ("address", "workers", "told"),
    [
        ("tcp://127.0.0.1:1", 3, "workers=3 cannot be combined with dask='tcp:"),
        pytest.param("tcp://127.0.0.1:1", None, "Cannot connect to a Dask scheduler at tcp:", marks=pytest.mark.slow),
        ("nonsense://", None, "Cannot connect to a Dask scheduler at nonsense:"),
    ],
)
def test_clusters_that_cannot_be_had_are_refused(address, workers, told):
    pytest.importorskip("distributed")
    with pytest.raises(InputError, match=told), parallel(address, workers):
        pass


# The journal: finished and unfinished chunks and the plan are restored exactly or not at all


CHUNK, OTHER = Chunk((Member(POINT, 0), Member(POINT, 1))), Chunk((Member(POINT, 2), Member(POINT, 3)))
FINISHED = trajectory([scores(0.5, 0.4), scores(0.2, 0.3), scores(0.1, 0.1)], min_steps=20)
DIVERGED = trajectory([np.full((2, 50, 3), np.nan)], min_steps=100)  # without any weights
UNFINISHED = Unfinished(
    FINISHED,
    {
        ".parameters.discriminator['layer1']['weight']": np.arange(6, dtype=np.float32).reshape(2, 3),
        ".key": np.array([[1, 2], [3, 2**32 - 1]], np.uint32),
        ".frozen": np.array([True, False]),
        ".count": np.array([7, 7], np.int32),
    },
)


def opened(folder, run="this run"):
    """Open a journal as another process would."""
    return Journal(folder, run)


@pytest.fixture
def written(tmp_path):
    """Path of a finished chunk's file."""
    opened(tmp_path)[CHUNK] = FINISHED
    return tmp_path / f"{CHUNK.name}.safetensors"


def same_trajectory(found, expected):
    assert list(found.weights) == list(expected.weights)
    jax.tree.map(_same_array, found._replace(weights=dict(found.weights)), expected)


def _same_array(a, b):
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def is_refused(path, chunk=CHUNK, run="this run"):
    """Return whether a file was rejected as a chunk of a run, removed and reported as damaged."""
    journal = opened(path.parent, run)
    with pytest.raises(FileNotFoundError):
        journal[chunk]
    return not path.exists() and journal.damaged == [path.name]


def test_a_prolonged_chunk_is_another_one(tmp_path):
    longer = Chunk(tuple(member._replace(prolonged=True) for member in CHUNK.members))
    journal = opened(tmp_path)
    journal[CHUNK], journal[longer] = FINISHED, DIVERGED
    same_trajectory(opened(tmp_path)[CHUNK], FINISHED)
    same_trajectory(opened(tmp_path)[longer], DIVERGED)
    assert {*Journal(tmp_path / "next", "this run", tmp_path).earlier()} == {CHUNK, longer}


@pytest.mark.parametrize("finished", [FINISHED, DIVERGED], ids=["sound", "diverged"])
def test_finished_chunks_come_back_to_the_bit(tmp_path, finished):
    folder = tmp_path / "not" / "yet"
    journal = opened(folder)
    assert CHUNK not in journal
    journal[CHUNK] = finished
    for one in (journal, opened(folder)):
        assert (CHUNK in one, OTHER in one, one.damaged) == (True, False, [])
        same_trajectory(one[CHUNK], finished)


def test_weights_stay_on_disk_until_they_are_asked_for(written):
    found = opened(written.parent)[CHUNK]
    with pytest.raises(KeyError):
        found.weights[10]
    written.unlink()
    with pytest.raises(OSError, match="No such file"):
        found.weights[20]


def test_file_of_another_run_or_chunk_is_refused(written):
    whole = written.read_bytes()
    assert is_refused(written, run="another run")
    there = written.with_name(f"{OTHER.name}.safetensors")
    there.write_bytes(whole)
    assert is_refused(there, OTHER)


def test_file_that_was_cut_or_lengthened_or_of_which_a_bit_was_flipped_is_refused(written):
    whole, rng = written.read_bytes(), np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [*range(8), *rng.integers(8, header, 40), *rng.integers(header, len(whole), 20), header, len(whole) - 1]
    cuts = [whole[: int(share * len(whole))] for share in (0, 0.0001, 0.01, 0.2, 0.5, 0.99)]
    flips = [whole[:k] + bytes([whole[k] ^ 1 << int(rng.integers(8))]) + whole[k + 1 :] for k in places]
    for number, altered in enumerate([*cuts, whole[:-1], whole + b"\0", b"\0" * len(whole), *flips]):
        written.write_bytes(altered)
        assert is_refused(written), number
    written.write_bytes(whole)
    assert CHUNK in opened(written.parent)


def test_chunks_on_their_way_come_back_to_the_bit(tmp_path):
    opened(tmp_path).keeper(CHUNK).save(UNFINISHED)
    found = opened(tmp_path).keeper(CHUNK).load()
    same_trajectory(found.trajectory, FINISHED)
    assert found.states.keys() == UNFINISHED.states.keys()
    jax.tree.map(_same_array, found.states, UNFINISHED.states)
    of_others = opened(tmp_path).keeper(OTHER), opened(tmp_path, "another run").keeper(CHUNK)
    assert (CHUNK in opened(tmp_path), *(keeper.load() for keeper in of_others)) == (False, None, None)


def test_later_state_replaces_the_earlier_and_the_end_removes_both(tmp_path):
    journal = opened(tmp_path)
    (tmp_path / "lock").write_text("")
    journal.chunk_size(lambda: 1)
    assert not journal.has_begun()
    keeper = journal.keeper(CHUNK)
    for count in (7, 9):
        keeper.save(UNFINISHED._replace(states={".count": np.array([count, count], np.int32)}))
        assert keeper.load().states[".count"].tolist() == [count, count]
    journal[CHUNK] = FINISHED
    assert (keeper.load(), journal.has_begun()) == (None, True)
    assert {path.name for path in tmp_path.iterdir()} == {f"{CHUNK.name}.safetensors", "lock", "plan.json"}


def test_keeper_does_nothing_where_the_folder_is_not(tmp_path):
    """A cluster worker may have no access to the run folder."""
    keeper = opened(tmp_path / "elsewhere").keeper(CHUNK)
    assert keeper.load() is None
    keeper.save(UNFINISHED)
    assert not (tmp_path / "elsewhere").exists()


def test_chunk_size_of_the_beginning_is_kept(tmp_path):
    sizes = [opened(tmp_path).chunk_size(make) for make in (lambda: 4, lambda: pytest.fail("planned already"))]
    assert [*sizes, opened(tmp_path, "another run").chunk_size(lambda: 5)] == [4, 4, 5]


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "3", '{"run": "this run"}', '{"run": "this run", "models_per_chunk": "x"}']
)
def test_damaged_plan_is_made_again(tmp_path, damage):
    (tmp_path / "plan.json").write_text(damage)
    assert (opened(tmp_path).chunk_size(lambda: 6), opened(tmp_path).chunk_size(lambda: 7)) == (6, 6)
