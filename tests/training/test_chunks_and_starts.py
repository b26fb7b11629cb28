from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from rindices.core.devices import Device
from rindices.core.inference import r_indices
from rindices.core.train import TrainingPeople, make_members, train
from rindices.linear import contrastive_ica, side_by_side
from rindices.presets import Schedule, Training, linear
from rindices.training import chunks
from rindices.training.chunks import (
    Chunk,
    Member,
    Point,
    Settings,
    Stopped,
    cut,
    models_per_chunk,
    starts_of,
    train_chunk,
)
from rindices.training.starts import (
    SCALED_SD,
    beside_networks,
    from_model,
    maps_of_halves,
    power_of_uniform,
    start_of,
)
from tests.conftest import N_PATTERNS
from tests.core import plain

POINTS = [Point(3, 0.8), Point(3, 0.2), Point(2, 0.8)]
PAIR = Chunk((Member(POINTS[0], 4), Member(POINTS[1], 1)))


class Kept:
    """Keeps every unfinished state in memory."""

    def __init__(self, left=None):
        self.left, self.saved = left, []

    def load(self):
        return self.left

    def save(self, unfinished):
        self.saved.append(unfinished)


@pytest.fixture(scope="module")
def settings(quick_preset):
    """Settings with checkpoints after 10, 20, 30 and 40 steps, and weights kept from step 20 on."""
    return Settings(replace(quick_preset, schedule=replace(quick_preset.schedule, checkpoint_every=10)), 7)


@pytest.fixture(scope="module")
def trained(settings, small_people):
    return train_chunk(PAIR, settings, small_people)


def same_bits(found, expected):
    assert list(found.weights) == list(expected.weights)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_a_prolonged_model_is_the_same_one_later(settings, trained, small_people):
    longer = settings._replace(preset=replace(settings.preset, schedule=replace(settings.preset.schedule, longest=60)))
    found = train_chunk(Chunk(tuple(one._replace(prolonged=True) for one in PAIR.members)), longer, small_people)
    assert found.steps.tolist() == [10, 20, 30, 40, 50, 60]
    np.testing.assert_array_equal(found.r_indices[:4], trained.r_indices)
    assert (list(found.weights), found.end().steps.tolist(), found.end().r_indices.shape[0]) == ([60], [60], 1)


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("size", [1, 3, 4, 7, 100])
def test_cut_puts_every_member_into_one_chunk_of_its_kind(size, mixed):
    """On an accelerator, chunks mix numbers of patterns, but not lengths."""
    members = [Member(point, k, longer) for longer in (False, True) for k in range(5) for point in POINTS]
    found = cut(members, size, mixed=mixed)
    assert sorted(member for chunk in found for member in chunk.members) == sorted(members)
    assert {len(chunk.members) for chunk in found} <= {*range(1, size + 1)}
    kinds = [{(one.prolonged, mixed or one.point.n_patterns) for one in chunk.members} for chunk in found]
    assert {len(kind) for kind in kinds} == {1}
    assert size < 100 or len(found) == (2 if mixed else 4)
    assert len({chunk.name for chunk in found}) == len(found)
    assert all(set(chunk.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for chunk in found)


def test_a_model_of_a_mixed_chunk_is_what_it_is_alone(trained, settings, small_people):
    few = Member(Point(1, 0.8), 4)
    mixed = train_chunk(Chunk((few, *PAIR.members)), settings, small_people)
    alone = train_chunk(Chunk((few,)), settings, small_people)
    for place, n_patterns, expected, k in ((0, 1, alone, 0), (1, 3, trained, 0), (2, 3, trained, 1)):
        found = mixed.r_indices[:, place]
        np.testing.assert_allclose(found[..., :n_patterns], expected.r_indices[:, k], atol=1e-4)
        assert not found[..., n_patterns:].any()
        again = r_indices(plain.stacked([mixed.weights_of(place, n_patterns, 40)]), small_people.patients)[0]
        np.testing.assert_allclose(again, found[-1, :, :n_patterns], atol=1e-4)


@pytest.mark.parametrize(("number", "size", "sizes"), [(10, 4, [3, 3, 4]), (10, 5, [5, 5]), (0, 4, [])])
def test_chunks_of_a_kind_are_as_few_and_as_alike_as_can_be(number, size, sizes):
    assert [len(chunk.members) for chunk in cut([Member(POINTS[0], k) for k in range(number)], size)] == sizes


def fitting(
    n_regions=145, n_patients=900, n_patterns=3, batch_size=32, memory=16 * 2**30, number=1, at_a_time=4, platform="gpu"
):
    people = TrainingPeople(np.empty((500, n_regions)), np.empty((n_patients, n_regions)))
    return models_per_chunk(
        people, n_patterns, Schedule(batch_size), Device(platform, "made up", number, memory), at_a_time
    )


@pytest.mark.parametrize(
    "larger",
    [
        {"n_regions": 1450},
        {"n_patients": 9000},
        {"n_patterns": 9},
        {"batch_size": 320},
        {"at_a_time": 8},
        {"memory": 8 * 2**30},
        {"memory": None},
    ],
)
def test_fewer_models_fit_where_each_needs_more_or_there_is_less(larger):
    assert 1 <= fitting(**larger) < fitting()


def test_more_devices_hold_more_models_and_one_is_always_tried():
    assert 3.9 < fitting(number=4) / fitting() < 4.1
    assert fitting(memory=1000) == fitting(platform="cpu", memory=None) == 1
    # All copies of the weights alone must fit: f and D have 145 × 72 weights at least.
    assert fitting() * 10 * 4 * 2 * 145 * 72 < 16 * 2**30 / 4


def looks_of_the_engine(preset, people, **priors):
    """Train the two models of `PAIR` with the engine alone."""
    weights = [preset.weights._replace(orthogonality=value) for value in (0.8, 0.2)]
    members = make_members(7, weights, [preset.rates] * 2, 40, numbers=[4, 1], n_folds=5, **priors)
    schedule = Schedule(8, checkpoint_every=10, min_steps=20, max_steps=40)
    return list(train(people, members, preset.training, schedule, n_patterns=3))


def test_chunk_is_trained_as_the_engine_trains(trained, settings, small_people):
    starts = starts_of(PAIR.members, settings, small_people)
    looks = looks_of_the_engine(settings.preset, small_people, priors=[start.prior for start in starts])
    assert trained.steps.tolist() == [look.step for look in looks] == [10, 20, 30, 40]
    beside = [beside_networks(starts, look.r_indices, small_people.patients) for look in looks]
    np.testing.assert_array_equal(trained.r_indices, np.stack([together for _, together in beside]))
    for name, values in trained.losses.items():
        np.testing.assert_array_equal(values, np.stack([look.losses[name] for look in looks]))
    assert list(trained.weights) == [20, 30, 40]  # from the minimum number of steps on
    for asked, k in ((30, 2), (70, 3)):
        second = jax.tree.map(lambda leaf: leaf[1], looks[k].parameters()._replace(linear=beside[k][0]))
        jax.tree.map(np.testing.assert_array_equal, trained.weights_of(1, 3, asked), second)
    np.testing.assert_array_equal(trained.correlations, np.stack([look.correlations() for look in looks]))
    assert not np.array_equal(trained.r_indices[:, 0], trained.r_indices[:, 1])


def test_from_random_weights_a_chunk_is_the_networks_alone(settings, small_people):
    blind = settings._replace(preset=replace(settings.preset, training=Training(start="random")))
    assert starts_of(PAIR.members, blind, small_people) == []
    found, looks = train_chunk(PAIR, blind, small_people), looks_of_the_engine(blind.preset, small_people)
    np.testing.assert_array_equal(found.r_indices, np.stack([look.r_indices for look in looks]))
    assert found.weights[40].linear is None


def test_linear_models_alone_need_no_training(small_people, monkeypatch):
    monkeypatch.setattr(chunks, "train", None)
    few, seen = Member(Point(2, 0.8), 4), []
    mixed = Chunk((few, *PAIR.members))
    found = train_chunk(mixed, Settings(linear(), 7), small_people, progress=lambda _, step: not seen.append(step))
    assert (seen, found.steps.tolist(), found.losses) == ([0], [0], {})
    assert not found.r_indices[0, 0, :, 2:].any()
    for place, member in enumerate(mixed.members):
        model = found.weights_of(place, member.point.n_patterns, 0)
        assert model[:4] == ({}, {}, {}, {})
        again = r_indices(plain.stacked([model]), small_people.patients)[0]
        np.testing.assert_allclose(found.r_indices[0, place, :, : member.point.n_patterns], again, atol=1e-5)
        np.testing.assert_allclose(again.mean(axis=0), 0.5, atol=1e-5)  # like uniform severities
        np.testing.assert_allclose(again.std(axis=0), 12**-0.5, atol=1e-5)
    np.testing.assert_allclose(found.correlations[0, 0, 2], [0, 0, 1])


def test_last_weights_are_kept_where_the_least_steps_are_out_of_reach(settings, small_people):
    short = replace(settings.preset, schedule=replace(settings.preset.schedule, min_steps=1000))
    assert list(train_chunk(PAIR, settings._replace(preset=short), small_people).weights) == [40]


def test_chunk_goes_on_from_any_checkpoint_with_the_same_bits(trained, settings, small_people, monkeypatch):
    keeper = Kept()
    monkeypatch.setattr(chunks, "_SAVE_SECONDS", -1)
    train_chunk(PAIR, settings, small_people, keeper)
    # The final checkpoint needs no saved state.
    assert [int(left.trajectory.steps[-1]) for left in keeper.saved] == [10, 20, 30]
    for left in keeper.saved:
        seen = []
        found = train_chunk(
            PAIR, settings, small_people, Kept(left), progress=lambda _, step, seen=seen: not seen.append(step)
        )
        same_bits(found, trained)
        assert seen == list(range(int(left.trajectory.steps[-1]), 41, 10))


def test_chunk_whose_models_are_all_frozen_ends_and_stays_ended(settings, small_people, monkeypatch):
    monkeypatch.setattr(chunks, "_SAVE_SECONDS", -1)
    frozen = settings._replace(preset=replace(settings.preset, training=Training(freeze_below=(1e9, 1e9))))
    keeper = Kept()
    found = train_chunk(PAIR, frozen, small_people, keeper)
    assert found.steps.tolist() == [10, 20]
    same_bits(train_chunk(PAIR, frozen, small_people, Kept(keeper.saved[-1])), found)


@pytest.mark.parametrize("last", [0, 20])
def test_training_stops_when_told_so(settings, small_people, last):
    seen = []

    def progress(chunk, step):
        seen.append((chunk, step))
        return step < last

    with pytest.raises(Stopped):
        train_chunk(PAIR, settings, small_people, progress=progress)
    assert seen == [(PAIR, step) for step in range(0, last + 1, 10)]


# Where a repetition starts: a linear model, and its contribution alongside the networks


@pytest.fixture(scope="module")
def start(small_people):
    return start_of(small_people.controls, small_people.patients, N_PATTERNS, "ica", 0, 3, 5)


def read_by(start, people):
    return start.offset + (people - 1) @ start.gain


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 4.0, 5.0])
def test_power_of_uniform_gives_the_exponent_of_severities_that_were_drawn(exponent):
    drawn = np.random.default_rng(0).uniform(size=400_000) ** exponent
    assert power_of_uniform(np.array([drawn.mean() / drawn.std()]))[0] == pytest.approx(exponent, rel=0.02)


def test_exponents_stay_within_bounds_and_fall_with_the_mean():
    found = power_of_uniform(np.array([0.0, 1e-6, 0.5, 1.0, 2.0, 3.0, 100.0]))
    assert np.all(np.diff(found) <= 0)
    assert (found[0], found[-1]) == (5.0, 1.0)


def test_start_finds_patterns_that_are_there_and_has_the_patients_mean_change(start, small_people, small_truth):
    """A uniform severity raised to the power a has mean 1 / (1 + a)."""
    read = read_by(start, small_people.patients)
    np.testing.assert_allclose([read.mean(axis=0), read.std(axis=0)], [[0] * N_PATTERNS, [1] * N_PATTERNS], atol=1e-9)
    found = np.abs(np.corrcoef(read.T, small_truth.T)[:N_PATTERNS, N_PATTERNS:])
    assert (sorted(found.argmax(axis=1)), found.max(axis=1).min() > 0.6) == ([0, 1, 2], True)
    change = (start.prior.maps / (1 + start.prior.exponents)[:, None]).sum(axis=0)
    seen = small_people.patients.mean(axis=0) - small_people.controls.mean(axis=0)
    np.testing.assert_allclose(change, seen, atol=SCALED_SD / 2)


def test_maps_of_halves_scatter_about_those_of_everybody_more_with_fewer_people(small_people):
    def scatter(controls, patients):
        maps = maps_of_halves(controls, patients, N_PATTERNS, "ica", 0)
        assert maps.shape == (21, N_PATTERNS, controls.shape[1])
        total = maps.sum(axis=1)  # patterns may come in a different order
        return np.sqrt(((total[1:] - total[0]) ** 2).mean()), total[0]

    controls, patients = small_people.controls, small_people.patients
    everybody, all_maps = scatter(controls, patients)
    model = contrastive_ica(*((of - 1) / SCALED_SD for of in (controls, patients)), N_PATTERNS)
    np.testing.assert_allclose(all_maps, from_model(model, patients).prior.maps.sum(axis=0), rtol=1e-5)
    assert scatter(controls[::4], patients[::4])[0] > 1.5 * everybody > 0


def test_halves_without_enough_patients_are_left_out(small_people):
    assert len(maps_of_halves(small_people.controls, small_people.patients[:4], N_PATTERNS, "ica", 0)) <= 1


def test_threads_start_alike_and_neither_warn_nor_leave_limits_behind(start, small_people):
    def again(_):
        return start_of(small_people.controls, small_people.patients, N_PATTERNS, "ica", 0, 3, 5)

    before = threadpool_info()
    with ThreadPoolExecutor(4) as threads:  # as concurrent trainings do
        made = threads.map(lambda _: list(side_by_side(again, range(2))), range(4))
        assert all(np.array_equal(other.gain, start.gain) for pair in made for other in pair)
    assert threadpool_info() == before


def test_start_depends_on_seed_and_number_only(start, small_people):
    people = small_people.controls, small_people.patients
    np.testing.assert_array_equal(start_of(*people, N_PATTERNS, "ica", 0, 3, 5).gain, start.gain)
    for seed, number in ((0, 4), (1, 3)):
        assert not np.allclose(start_of(*people, N_PATTERNS, "ica", seed, number, 5).gain, start.gain)


def test_networks_and_linear_model_are_averaged_on_one_scale(start, small_people):
    patients = small_people.patients
    networks = plain.stacked([plain.random_parameters(12, N_PATTERNS, seed) for seed in (0, 1)])
    read = r_indices(networks, patients)
    linear, together = beside_networks([start, start], read, patients)
    scaled = read.mean(axis=1, keepdims=True) + read.std(axis=1, keepdims=True) * read_by(start, patients)
    np.testing.assert_allclose(together, (read + scaled) / 2, atol=1e-4)
    np.testing.assert_allclose(together.mean(axis=1), read.mean(axis=1), atol=1e-4)  # on the networks' scale
    np.testing.assert_allclose(r_indices(networks._replace(linear=linear), patients), together, atol=1e-4)
