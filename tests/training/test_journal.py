import errno
from contextlib import contextmanager

import jax
import numpy as np
import pytest

from rindices.core.networks import Parameters
from rindices.errors import InputError
from rindices.training import journal as module
from rindices.training.chunks import Chunk, Member, Point, Unfinished
from rindices.training.journal import Journal
from tests.made_up import scores, trajectory

POINT = Point(3, 0.8)
CHUNK = Chunk((Member(POINT, 0), Member(POINT, 1)))
OTHER = Chunk((Member(POINT, 2), Member(POINT, 3)))
FINISHED = trajectory([scores(0.5, 0.4), scores(0.2, 0.3), scores(0.1, 0.1)], min_steps=20)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr(module, "_PAUSE", 0)


@pytest.fixture
def written(tmp_path):
    """A journal with one finished chunk."""
    Journal(tmp_path, "this run").put(CHUNK, FINISHED)
    return tmp_path / f"{CHUNK.name}.safetensors"


def anew(path):
    """Open the journal of a file as another process would."""
    return Journal(path.parent, "this run")


def same_bits(found, expected):
    assert list(found.weights) == list(expected.weights)
    found = found._replace(weights={step: found.weights[step] for step in found.weights})
    jax.tree.map(_same_array, found, expected)


def _same_array(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def is_refused(path):
    """Whether a file is not taken for the chunk, removed and named."""
    journal = anew(path)
    refused = CHUNK not in journal and not path.exists() and journal.damaged == [path.name]
    with pytest.raises(FileNotFoundError, match="removed or damaged"):
        journal.get(CHUNK)
    return refused


def test_finished_chunks_come_back_to_the_bit(written):
    journal = anew(written)
    assert CHUNK in journal
    same_bits(journal.get(CHUNK), FINISHED)
    assert journal.damaged == []
    assert OTHER not in journal


def test_chunk_is_there_for_the_process_that_wrote_it(tmp_path):
    journal = Journal(tmp_path / "not" / "yet", "this run")
    assert CHUNK not in journal
    journal.put(CHUNK, FINISHED)
    assert CHUNK in journal
    same_bits(journal.get(CHUNK), FINISHED)


def test_values_that_are_no_numbers_come_back(tmp_path):
    diverged = trajectory([np.full((2, 50, 3), np.nan)], min_steps=100)
    Journal(tmp_path, "this run").put(CHUNK, diverged)
    found = Journal(tmp_path, "this run").get(CHUNK)
    same_bits(found, diverged)
    assert len(found.weights) == 0


def test_weights_stay_on_disk_until_they_are_asked_for(written):
    found = anew(written).get(CHUNK)
    assert not isinstance(found.weights, dict)
    assert len(found.weights) == 2
    assert isinstance(found.weights_at(30), Parameters)
    same = found.weights_at(70).discriminator["layer1"]["weight"]
    np.testing.assert_array_equal(same, FINISHED.weights[30].discriminator["layer1"]["weight"])
    with pytest.raises(KeyError):
        found.weights[10]
    written.unlink()
    with pytest.raises(OSError, match="No such file"):
        found.weights[20]


def test_file_of_another_run_is_refused(written):
    journal = Journal(written.parent, "another run")
    assert CHUNK not in journal
    assert not written.exists()
    assert journal.damaged == [written.name]


def test_file_of_another_chunk_is_refused(written):
    there = written.with_name(f"{OTHER.name}.safetensors")
    written.rename(there)
    journal = anew(there)
    assert OTHER not in journal
    assert not there.exists()


@pytest.mark.parametrize("share", [0, 0.0001, 0.01, 0.2, 0.5, 0.99])
def test_truncated_file_is_refused(written, share):
    whole = written.read_bytes()
    written.write_bytes(whole[: int(share * len(whole))])
    assert is_refused(written)


def test_file_that_lacks_a_byte_or_has_one_more_is_refused(written):
    whole = written.read_bytes()
    for altered in (whole[:-1], whole + b"\0", b"\0" * len(whole)):
        written.write_bytes(altered)
        assert is_refused(written)


def test_any_flipped_bit_is_found(written):
    whole = written.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    rng = np.random.default_rng(0)
    places = [*range(8), *rng.integers(8, header, 40), *rng.integers(header, len(whole), 20), header, len(whole) - 1]
    for place in places:
        altered = bytearray(whole)
        altered[place] ^= 1 << int(rng.integers(8))
        written.write_bytes(altered)
        assert is_refused(written), place
    written.write_bytes(whole)
    assert CHUNK in anew(written)


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    journal = Journal(tmp_path, "this run")
    assert CHUNK not in journal
    assert (tmp_path / "notes.txt").read_text() == "mine"


UNFINISHED = Unfinished(
    FINISHED,
    {
        ".parameters.discriminator['layer1']['weight']": np.arange(6, dtype=np.float32).reshape(2, 3),
        ".key": np.array([[1, 2], [3, 2**32 - 1]], np.uint32),
        ".frozen": np.array([True, False]),
        ".count": np.array([7, 7], np.int32),
    },
)


def test_chunks_on_their_way_come_back_to_the_bit(tmp_path):
    Journal(tmp_path, "this run").keeper(CHUNK).save(UNFINISHED)
    journal = Journal(tmp_path, "this run")
    found = journal.keeper(CHUNK).load()
    same_bits(found.trajectory, FINISHED)
    assert found.states.keys() == UNFINISHED.states.keys()
    jax.tree.map(_same_array, found.states, UNFINISHED.states)
    assert CHUNK not in journal
    assert journal.keeper(OTHER).load() is None
    assert Journal(tmp_path, "another run").keeper(CHUNK).load() is None


def test_later_state_replaces_the_earlier_and_the_end_removes_both(tmp_path):
    journal = Journal(tmp_path, "this run")
    keeper = journal.keeper(CHUNK)
    keeper.save(UNFINISHED)
    later = UNFINISHED._replace(states={".count": np.array([9, 9], np.int32)})
    keeper.save(later)
    assert keeper.load().states[".count"].tolist() == [9, 9]
    journal.put(CHUNK, FINISHED)
    assert keeper.load() is None
    assert [path.name for path in tmp_path.iterdir()] == [f"{CHUNK.name}.safetensors"]


def test_damaged_state_is_as_good_as_none(tmp_path):
    keeper = Journal(tmp_path, "this run").keeper(CHUNK)
    keeper.save(UNFINISHED)
    whole = keeper.path.read_bytes()
    for altered in (b"", whole[: len(whole) // 2], whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        keeper.path.write_bytes(altered)
        assert keeper.load() is None
    keeper.save(UNFINISHED)
    assert keeper.load() is not None


def test_keeper_does_nothing_where_the_folder_is_not(tmp_path):
    """A worker of a cluster may not see the folder of the run."""
    keeper = Journal(tmp_path / "elsewhere", "this run").keeper(CHUNK)
    assert keeper.load() is None
    keeper.save(UNFINISHED)
    assert not (tmp_path / "elsewhere").exists()


class Disk:
    """Fails to write some times, then works."""

    def __init__(self, failures):
        self.failures, self.tries, self.works = failures, 0, module.atomic_file

    @contextmanager
    def __call__(self, path):
        self.tries += 1
        with self.works(path) as beside:
            yield beside
            if self.tries <= self.failures:
                raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(monkeypatch):
    def fails(times):
        made = Disk(times)
        monkeypatch.setattr(module, "atomic_file", made)
        return made

    return fails


def test_finished_chunk_is_written_again_when_that_fails_once(tmp_path, disk):
    broken = disk(1)
    Journal(tmp_path, "this run").put(CHUNK, FINISHED)
    assert broken.tries == 2
    same_bits(Journal(tmp_path, "this run").get(CHUNK), FINISHED)


def test_failure_that_persists_is_told_and_leaves_nothing_half_done(tmp_path, disk):
    journal = Journal(tmp_path, "this run")
    journal.keeper(CHUNK).save(UNFINISHED)
    broken = disk(1000)
    with pytest.raises(OSError, match="No space left"):
        journal.put(CHUNK, FINISHED)
    assert broken.tries == module._TRIES
    assert CHUNK not in journal
    assert [path.name for path in tmp_path.iterdir()] == [journal.keeper(CHUNK).path.name]
    assert journal.keeper(CHUNK).load() is not None


def test_state_that_cannot_be_left_does_no_harm(tmp_path, disk):
    keeper = Journal(tmp_path, "this run").keeper(CHUNK)
    keeper.save(UNFINISHED)
    broken = disk(1000)
    keeper.save(UNFINISHED._replace(states={}))
    assert broken.tries == 1
    assert keeper.load().states.keys() == UNFINISHED.states.keys()


def test_folder_that_can_no_longer_be_written_does_a_state_no_harm(tmp_path, monkeypatch):
    def refuse(path):
        raise InputError("The folder cannot be written to.")

    monkeypatch.setattr(module, "atomic_file", refuse)
    Journal(tmp_path, "this run").keeper(CHUNK).save(UNFINISHED)
    assert list(tmp_path.iterdir()) == []


def test_journal_tells_whether_there_is_anything_to_go_on_from(tmp_path):
    journal = Journal(tmp_path, "this run")
    (tmp_path / "lock").write_text("")
    journal.plan(lambda: 1)
    assert not journal.has_begun()
    journal.keeper(CHUNK).save(UNFINISHED)
    assert journal.has_begun()
    journal.put(CHUNK, FINISHED)
    assert journal.has_begun()


def test_plan_of_the_beginning_is_kept(tmp_path):
    assert Journal(tmp_path, "this run").plan(lambda: 4) == 4
    assert Journal(tmp_path, "this run").plan(lambda: pytest.fail("planned already")) == 4
    assert Journal(tmp_path, "another run").plan(lambda: 5) == 5


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "3", '{"run": "this run"}', '{"run": "this run", "models_per_chunk": "x"}']
)
def test_damaged_plan_is_made_again(tmp_path, damage):
    (tmp_path / "plan.json").write_text(damage)
    assert Journal(tmp_path, "this run").plan(lambda: 6) == 6
    assert Journal(tmp_path, "this run").plan(lambda: 7) == 6
