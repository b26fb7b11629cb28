import threading
import time
from itertools import pairwise

import jax
import joblib
import numpy as np
import pytest

from rindices.core import devices
from rindices.core.devices import Device
from rindices.errors import InputError, LostWorkers
from rindices.training import execution as module
from rindices.training.chunks import Chunk, Member, Point, Settings, Stopped, cut
from rindices.training.execution import Execution, Memory, Progress, train_all
from tests.made_up import scores, trajectory

POINT = Point(3, 0.8)
CHUNKS = cut([Member(POINT, k) for k in range(4)], 1)
A, B, C, D = CHUNKS


@pytest.fixture(scope="module")
def settings(quick_preset):
    return Settings(quick_preset, 8, 0)


@pytest.fixture(scope="module")
def people(small_people):
    """Cohort 1 has the groups exchanged."""
    exchanged = small_people._replace(controls=small_people.patients, patients=small_people.controls)
    return lambda cohort: exchanged if cohort else small_people


@pytest.fixture(scope="module")
def alone(settings, people):
    """All chunks, trained one after the other."""
    execution = Execution(n_jobs=1)
    train_all(CHUNKS, settings, people, execution)
    return execution.store


def same_bits(found, expected, chunks=CHUNKS):
    for chunk in chunks:
        jax.tree.map(np.testing.assert_array_equal, found.get(chunk), expected.get(chunk))


class KilledWorker(Exception):
    """Has the name of what Dask raises."""


class Fake:
    """Instead of training: reports some steps, and fails as often as it is told for a chunk."""

    def __init__(self, steps=(0, 20, 40), failures=(), error=KilledWorker):
        self.steps, self.failures, self.error, self.calls = steps, dict(failures), error, []

    def __call__(self, chunk, *arguments, progress, **options):
        self.calls.append(chunk)
        if self.failures.get(chunk, 0):
            self.failures[chunk] -= 1
            raise self.error("lost")
        for step in self.steps if progress is not None else ():
            if not progress(chunk, step):
                raise Stopped
        return chunk, trajectory([scores(0.1, 0.1)])


@pytest.fixture
def fake(monkeypatch):
    def put(**options):
        made = Fake(**options)
        monkeypatch.setattr(module, "_train", made)
        return made

    return put


def test_all_chunks_are_stored(alone):
    assert all(chunk in alone for chunk in CHUNKS)
    assert alone.get(A).steps.tolist() == [20, 40]
    assert not np.array_equal(alone.get(A).r_indices, alone.get(B).r_indices)


def test_order_and_threads_do_not_change_a_bit(alone, settings, people):
    for chunks, n_jobs in ((CHUNKS[::-1], 1), (CHUNKS[::-1], 2)):
        execution = Execution(n_jobs=n_jobs)
        train_all(chunks, settings, people, execution)
        same_bits(execution.store, alone)


def test_processes_do_not_change_a_bit(alone, settings, people):
    seen = []
    execution = Execution(progress=seen.append)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert not execution.is_here()
        train_all(CHUNKS, settings, people, execution)
        assert execution.device().platform == devices.describe().platform
    same_bits(execution.store, alone)
    # Other processes tell nothing on their way.
    assert [(one.done, one.resumed) for one in seen] == [(40 * k, 0) for k in range(5)]


def test_joblibs_own_way_to_dask_becomes_ours_and_changes_no_bit(monkeypatch, alone, settings, people):
    """With a single worker of one thread, joblib's own would do all the work in this one."""
    distributed = pytest.importorskip("distributed")
    threads, execution = [], Execution()

    def spied(*args, train=module.train_chunk, **options):
        threads.append(threading.current_thread())
        return train(*args, **options)

    monkeypatch.setattr(module, "train_chunk", spied)
    size = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    no_page = {"scheduler_kwargs": {"dashboard": False}}
    with (
        distributed.LocalCluster(**size, **no_page) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        assert not execution.is_here()
        assert (execution.n_workers(), execution.chunks_per_device()) == (1, 1)
        assert execution.device() == devices.describe()
        train_all(CHUNKS, settings, people, execution)
    same_bits(execution.store, alone)
    assert len(threads) == len(CHUNKS)
    assert threading.main_thread() not in threads


def test_each_chunk_learns_from_its_cohort(alone, settings, people):
    null = Chunk((Member(POINT, 0, cohort=1),))
    execution = Execution(n_jobs=1)
    train_all([null], settings, people, execution)
    assert execution.store.get(null).r_indices.shape == alone.get(A).r_indices.shape
    assert not np.array_equal(execution.store.get(null).r_indices, alone.get(A).r_indices)


def test_what_is_in_the_store_is_not_trained_again(fake, settings, people):
    made, store = fake(), Memory()
    there = trajectory([scores(0.3)])
    store.put(B, there)
    train_all(CHUNKS, settings, people, Execution(store, n_jobs=1))
    assert made.calls == [A, C, D]
    assert store.get(B) is there
    train_all(CHUNKS, settings, people, Execution(store, n_jobs=1))
    assert len(made.calls) == 3


def test_lost_workers_are_replaced_and_finished_chunks_are_not_repeated(fake, settings, people):
    """Eight losses in all, more than are forgiven in a row without progress."""
    made, execution = fake(failures={B: 4, D: 4}), Execution(n_jobs=1)
    train_all(CHUNKS, settings, people, execution)
    assert all(chunk in execution.store for chunk in CHUNKS)
    assert {chunk: made.calls.count(chunk) for chunk in CHUNKS} == {A: 1, B: 5, C: 1, D: 5}


def test_errors_that_derive_from_a_loss_are_losses(fake, settings, people):
    class Special(KilledWorker):
        pass

    made = fake(failures={A: 1}, error=Special)
    train_all([A], settings, people, Execution(n_jobs=1))
    assert made.calls == [A, A]


def test_losses_without_any_progress_are_given_up(fake, settings, people):
    made = fake(failures={A: 1000})
    with pytest.raises(LostWorkers, match=r"5 times in a row \(KilledWorker\)") as raised:
        train_all(CHUNKS, settings, people, Execution(n_jobs=1))
    assert isinstance(raised.value.__cause__, KilledWorker)
    assert made.calls == [A] * module._ATTEMPTS


@pytest.mark.parametrize("error", [ValueError, MemoryError, FloatingPointError])
def test_other_errors_pass_at_once(fake, settings, people, error):
    made, execution = fake(failures={B: 1}, error=error), Execution(n_jobs=1)
    with pytest.raises(error, match="lost"):
        train_all(CHUNKS, settings, people, execution)
    assert made.calls == [A, B]
    assert [chunk in execution.store for chunk in CHUNKS] == [True, False, False, False]


def test_failure_of_the_store_passes(fake, settings, people):
    made, execution = fake(), Execution(n_jobs=1)

    def full(chunk, one):
        raise OSError(28, "No space left on device")

    execution.store.put = full
    with pytest.raises(OSError, match="No space left"):
        train_all(CHUNKS, settings, people, execution)
    assert made.calls[0] == A


def test_threads_stop_at_their_next_checkpoint_when_another_fails(monkeypatch, settings, people):
    ended, going = {}, threading.Event()

    def train(chunk, *arguments, progress, **options):
        if chunk == A:
            going.wait(10)
            raise ValueError("lost")
        begin = time.monotonic()
        while progress(chunk, 0) and time.monotonic() - begin < 10:
            going.set()
            time.sleep(0.01)
        ended[chunk] = time.monotonic() - begin
        raise Stopped

    monkeypatch.setattr(module, "_train", train)
    with pytest.raises(ValueError, match="lost"):
        train_all([A, B], settings, people, Execution(n_jobs=2))
    time.sleep(0.5)
    assert ended[B] < 5


def shown(chunks, settings, people, store=None, n_jobs=1):
    seen: list[Progress] = []
    train_all(chunks, settings, people, Execution(store or Memory(), n_jobs=n_jobs, progress=seen.append), "A stage")
    return seen


def test_progress_counts_steps_of_all_models(fake, settings, people):
    fake()
    pair = Chunk((Member(POINT, 8), Member(POINT, 9)))
    seen = shown([A, pair], settings, people)
    assert {(one.stage, one.total, one.resumed) for one in seen} == {("A stage", 3 * 40, 0)}
    assert [one.done for one in seen] == [0, 0, 20, 40, 40, 40, 80, 120, 120]


def test_progress_counts_in_threads_too(settings, people):
    seen = shown(CHUNKS, settings, people, n_jobs=2)
    assert (seen[0].done, seen[-1].done, seen[-1].total) == (0, 160, 160)
    assert all(a.done <= b.done for a, b in pairwise(seen))


def test_progress_after_a_resume_tells_what_was_there_before(fake, settings, people):
    """A is finished, B is found at step 20: 60 steps were not made now."""
    fake(steps=(20, 40))
    store = Memory()
    store.put(A, trajectory([scores(0.1)]))
    seen = shown([A, B], settings, people, store)
    assert (seen[0].done, seen[0].resumed) == (40, 40)
    assert [(one.done, one.resumed) for one in seen[1:]] == [(60, 60), (80, 60), (80, 60)]


def test_nothing_to_train_is_shown_as_done(fake, settings, people):
    fake()
    store = Memory()
    store.put(A, trajectory([scores(0.1)]))
    assert shown([A], settings, people, store) == [Progress("A stage", 40, 40, 40)]


def test_chunk_that_is_frozen_early_counts_as_done(fake, settings, people):
    fake(steps=(0, 20))
    assert [one.done for one in shown([A], settings, people)] == [0, 0, 20, 40]


def test_steps_of_a_lost_chunk_are_not_counted_twice(monkeypatch, settings, people):
    lost = [True]

    def train(chunk, *arguments, progress, **options):
        for step in (0, 20):
            progress(chunk, step)
        if lost.pop() if lost else False:
            raise KilledWorker
        return chunk, trajectory([scores(0.1)])

    monkeypatch.setattr(module, "_train", train)
    seen = shown([A], settings, people)
    assert [one.done for one in seen] == [0, 0, 20, 0, 20, 40]
    assert {one.resumed for one in seen} == {0}


def test_number_of_workers_is_what_was_asked_for_or_the_number_of_cores(monkeypatch):
    monkeypatch.setattr(devices, "n_cores", lambda: 7)
    assert Execution().n_workers() == 7
    assert Execution(n_jobs=1).n_workers() == 1
    assert Execution(n_jobs=3).n_workers() == 3
    for number in (1, 3):
        with joblib.parallel_config(n_jobs=number):
            assert Execution().n_workers() == number
    with joblib.parallel_config(backend="threading"):
        assert Execution().n_workers() == 7
    for backend, number in (("threading", 1), ("threading", 2), ("loky", 1), ("loky", 2)):
        with joblib.parallel_config(backend=backend, n_jobs=number):
            assert Execution().n_workers() == number
            assert Execution(n_jobs=3).n_workers() == 3
    monkeypatch.setattr(devices, "describe", lambda: Device("gpu", "made up", 1, 2**30))
    assert 1 < Execution().n_workers() < 7


def test_inside_a_loop_of_somebody_else_there_is_one_core_for_each(monkeypatch):
    monkeypatch.setattr(devices, "n_cores", lambda: 7)
    loop = joblib.Parallel(n_jobs=2, backend="threading")
    assert loop(joblib.delayed(Execution().n_workers)() for _ in range(2)) == [1, 1]
    assert loop(joblib.delayed(Execution(n_jobs=2).n_workers)() for _ in range(2)) == [2, 2]


def test_chunks_are_trained_here_unless_there_are_other_processes():
    assert Execution().is_here()
    for number in (1, 2):
        with joblib.parallel_config(backend="loky", n_jobs=number):
            assert Execution().is_here() == (number == 1)
            assert Execution(n_jobs=1).is_here()
            assert Execution().chunks_per_device() == number


def test_progress_is_shown_where_joblib_needs_no_other_process(fake, settings, people):
    fake()
    with joblib.parallel_config(backend="loky", n_jobs=1):
        assert [one.done for one in shown([A], settings, people)] == [0, 0, 20, 40, 40]


def test_processes_that_are_copies_of_this_one_are_refused(settings, people):
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        for ask in (Execution().device, Execution().n_workers, lambda: train_all([A], settings, people, Execution())):
            with pytest.raises(InputError, match=r"MultiprocessingBackend.*\nUse .*loky"):
                ask()


def test_a_worker_that_is_lost_before_the_first_chunk(monkeypatch):
    def lost():
        raise KilledWorker

    monkeypatch.setattr(module, "_describe", lost)
    monkeypatch.setattr(Execution, "is_here", lambda _: False)
    with pytest.raises(LostWorkers, match=r"before the first chunk \(KilledWorker\)"):
        Execution(n_jobs=1).device()
