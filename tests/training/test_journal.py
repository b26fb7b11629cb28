"""A finished chunk, one on its way and the plan: to the bit, or not at all."""

import jax
import numpy as np
import pytest

from rindices.core.networks import Parameters
from rindices.training.chunks import Chunk, Member, Point, Unfinished
from rindices.training.journal import Journal
from tests.made_up import scores, trajectory

POINT = Point(3, 0.8)
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


def same_bits(found, expected):
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
    same_bits(opened(tmp_path)[CHUNK], FINISHED)
    same_bits(opened(tmp_path)[longer], DIVERGED)
    assert {*Journal(tmp_path / "next", "this run", tmp_path).earlier()} == {CHUNK, longer}


@pytest.mark.parametrize("finished", [FINISHED, DIVERGED], ids=["sound", "diverged"])
def test_finished_chunks_come_back_to_the_bit(tmp_path, finished):
    folder = tmp_path / "not" / "yet"
    journal = opened(folder)
    assert CHUNK not in journal
    journal[CHUNK] = finished
    for one in (journal, opened(folder)):
        assert CHUNK in one
        same_bits(one[CHUNK], finished)
        assert OTHER not in one
        assert one.damaged == []


def test_weights_stay_on_disk_until_they_are_asked_for(written):
    found = opened(written.parent)[CHUNK]
    assert isinstance(found.weights[30], Parameters)
    same = found.weights[30].discriminator["layer1"]["weight"]
    np.testing.assert_array_equal(same, FINISHED.weights[30].discriminator["layer1"]["weight"])
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
    same_bits(found.trajectory, FINISHED)
    assert found.states.keys() == UNFINISHED.states.keys()
    jax.tree.map(_same_array, found.states, UNFINISHED.states)
    assert CHUNK not in opened(tmp_path)
    assert opened(tmp_path).keeper(OTHER).load() is None
    assert opened(tmp_path, "another run").keeper(CHUNK).load() is None


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
    assert keeper.load() is None
    assert journal.has_begun()
    assert {path.name for path in tmp_path.iterdir()} == {f"{CHUNK.name}.safetensors", "lock", "plan.json"}


def test_keeper_does_nothing_where_the_folder_is_not(tmp_path):
    """A worker of a cluster may not see the folder of the run."""
    keeper = opened(tmp_path / "elsewhere").keeper(CHUNK)
    assert keeper.load() is None
    keeper.save(UNFINISHED)
    assert not (tmp_path / "elsewhere").exists()


def test_chunk_size_of_the_beginning_is_kept(tmp_path):
    assert (
        opened(tmp_path).chunk_size(lambda: 4),
        opened(tmp_path).chunk_size(lambda: pytest.fail("planned already")),
    ) == (4, 4)
    assert opened(tmp_path, "another run").chunk_size(lambda: 5) == 5


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", "3", '{"run": "this run"}', '{"run": "this run", "models_per_chunk": "x"}']
)
def test_damaged_plan_is_made_again(tmp_path, damage):
    (tmp_path / "plan.json").write_text(damage)
    assert (opened(tmp_path).chunk_size(lambda: 6), opened(tmp_path).chunk_size(lambda: 7)) == (6, 6)
