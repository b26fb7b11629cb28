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
from rindices.core.networks import Parameters
from rindices.problems import LostWorkers
from rindices.training import execution as module
from rindices.training.chunks import Chunk, Member, Point, Settings, Unfinished, cut
from rindices.training.execution import Execution, Memory, Progress, executor, train_all
from rindices.training.journal import Journal
from tests.made_up import scores, trajectory
from tests.refusal import refused_with

POINT = Point(3, 0.8)
CHUNKS = cut([Member(POINT, 0), Member(POINT, 1), Member(POINT, 2), Member(POINT, 0, cohort=1)], 1)
A, B, C, D = CHUNKS


@pytest.fixture(scope="module")
def settings(quick_preset):
    return Settings(quick_preset, 8, 0)


@pytest.fixture(scope="module")
def people(small_people):
    """Cohort 1 has the groups exchanged."""
    exchanged = small_people._replace(controls=small_people.patients, patients=small_people.controls)
    return lambda chunk: exchanged if chunk.cohort else small_people


@pytest.fixture(scope="module")
def alone(settings, people):
    """All chunks, trained one after the other."""
    execution = Execution(n_jobs=1)
    train_all(CHUNKS, settings, people, execution)
    return execution.store


def same_bits(found, expected, chunks=CHUNKS):
    for chunk in chunks:
        jax.tree.map(np.testing.assert_array_equal, found[chunk], expected[chunk])


class Fake:
    """Instead of training: reports some steps, and fails as often as it is told for a chunk."""

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
    for other in (B, D):  # another repetition, another cohort
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
    # Other processes tell nothing on their way.
    assert [(one.done, one.resumed) for one in seen] == [(40 * k, 0) for k in range(5)]


def test_a_cluster_does_not_change_a_bit(alone, settings, people):
    distributed, execution = pytest.importorskip("distributed"), Execution()
    size = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(**size, scheduler_kwargs={"dashboard": False}) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
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
    """Eight losses in all, more than are forgiven in a row without progress."""
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
        # A is finished, B is found at step 20: 60 steps were not made now.
        ([A, B], [A], {"steps": (20, 40)}, [(40, 40), (60, 60), (80, 60), (80, 60)]),
        ([A], [A], {}, [(40, 40)]),
        ([A], [], {"steps": (0, 20)}, [(0, 0), (0, 0), (20, 0), (40, 0)]),
        ([A], [], {"failures": {A: 1}}, [(0, 0), (0, 0), (20, 0), (0, 0), (20, 0), (40, 0), (40, 0)]),
    ],
    ids=["several models", "resumed", "nothing to train", "frozen early", "lost once"],
)
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_progress_counts_steps_of_all_models(fake, settings, people, chunks, there, training, expected, backend):
    """One process of joblib's is this one."""
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


# A finished chunk, one on its way and the plan: to the bit, or not at all.


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
    """The file of a finished chunk."""
    opened(tmp_path)[CHUNK] = FINISHED
    return tmp_path / f"{CHUNK.name}.safetensors"


def same_trajectory(found, expected):
    assert list(found.weights) == list(expected.weights)
    jax.tree.map(_same_array, found._replace(weights=dict(found.weights)), expected)


def _same_array(a, b):
    assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def is_refused(path, chunk=CHUNK, run="this run"):
    """Whether a file is not taken for a chunk of a run, removed and named."""
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
    assert isinstance(found.weights[30], Parameters)
    np.testing.assert_array_equal(
        found.weights[30].discriminator["layer1"]["weight"], FINISHED.weights[30].discriminator["layer1"]["weight"]
    )
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
    """A worker of a cluster may not see the folder of the run."""
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
