import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy.stats import kstest

from rindices.core import networks, train
from rindices.core.losses import Prior
from rindices.core.networks import Parameters
from rindices.core.step import seen_by_discriminator
from rindices.core.train import Members, TrainingPeople, held_out, make_members
from rindices.presets import LearningRates, LossWeights, Schedule, Training
from tests.core import plain

N_PATTERNS, BATCH_SIZE, N_MEMBERS = 3, 6, 4
GRID = [LossWeights(change=change, orthogonality=value) for change in (6.0, 2.0) for value in (0.8, 0.2)]
RATES = [LearningRates()] * N_MEMBERS


# One program for all tests: models freeze only after the minimum steps, which are out of reach unless a test sets them.
TRAINING = Training(freeze_below=(1.0, 1.0), latent="independent")


def run(people, members, training=TRAINING, after=None, **schedule):
    """Train `members`, by default for 20 steps with a checkpoint every 10, always with the same shapes."""
    schedule = Schedule(BATCH_SIZE, **{"checkpoint_every": 10, "min_steps": 10**6, "max_steps": 20} | schedule)
    return list(train.train(people, members, training, schedule, n_patterns=N_PATTERNS, after=after))


def members_of(seed, weights, rates=RATES, n_controls=40, **options):
    return make_members(seed, weights, rates, n_controls, **options)


def take(members, which):
    return jax.tree.map(lambda leaf: leaf[which], members)


def same_bits(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


def close(first, second):
    """Compare results that may differ only by rounding; changes are still tiny differences of numbers near 1."""
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), first, second)


def compilations(caplog):
    """Count the compilations of the training program, whether or not it is cached on disk."""
    return sum(message.startswith("Compiling jit(_advance)") for message in caplog.messages)


@pytest.fixture(scope="module")
def members():
    return members_of(5, GRID, RATES)


@pytest.fixture(scope="module")
def together(small_people, members):
    return run(small_people, members)


def test_grids_schedules_and_cohorts_share_one_program(small_people, caplog):
    """This comes first in the file, so that the program is not compiled yet."""
    smaller = TrainingPeople(
        *(1 + 0.1 * np.random.default_rng(0).standard_normal((2, 23, small_people.controls.shape[1])))
    )
    with jax.log_compiles():
        run(small_people, members_of(0, [LossWeights()] * N_MEMBERS, RATES), max_steps=1)
        assert compilations(caplog) == 1
        for seed in (1, 2):
            run(small_people, members_of(seed, GRID, [LearningRates(1e-4, seed * 1e-3)] * N_MEMBERS))
        run(small_people, members_of(0, GRID, RATES), checkpoint_every=3, max_steps=7, min_steps=5)
        run(smaller, members_of(0, GRID, n_controls=23, n_folds=5), max_steps=2)
    assert compilations(caplog) == 1


def test_checkpoints_come_at_regular_steps_and_at_the_end_and_stay_as_they_were(small_people, members, together):
    """Later steps reuse the memory of earlier ones, so checkpoints must be copies."""
    assert [look.step for look in run(small_people, members, checkpoint_every=8, max_steps=20)] == [8, 16, 20]
    same_bits(run(small_people, members, max_steps=10)[0].parameters(), together[0].parameters())


def test_checkpoint_describes_all_models_and_people(small_people, together):
    last = together[-1]
    assert (last.r_indices.shape, last.frozen.tolist()) == ((N_MEMBERS, 40, N_PATTERNS), [False] * N_MEMBERS)
    assert {values.shape for values in last.losses.values()} == {(N_MEMBERS,)}
    shapes = jax.tree.map(lambda leaf: leaf.shape[1:], last.parameters())
    assert shapes == networks.shapes(networks.sizes(12, N_PATTERNS))
    expected = [plain.r_indices(take(last.parameters(), k), small_people.patients) for k in range(N_MEMBERS)]
    np.testing.assert_allclose(last.r_indices, expected, atol=1e-5)


def test_losses_are_means_since_the_last_checkpoint(small_people, members, together):
    each = run(small_people, members, checkpoint_every=1)
    for checkpoint, steps in zip(together, (each[:10], each[10:]), strict=True):
        for name, values in checkpoint.losses.items():
            np.testing.assert_allclose(values, np.mean([step.losses[name] for step in steps], axis=0), rtol=1e-5)


def test_initial_weights_are_normal_and_biases_zero(small_people):
    model = run(small_people, members_of(8, GRID, [LearningRates(0.0, 0.0)] * N_MEMBERS), max_steps=1)[0].parameters()
    layers = [layer for network in model[:4] for layer in network.values()]
    weights = np.concatenate([layer["weight"].ravel() for layer in layers])
    assert kstest(weights / 0.1, "norm").pvalue > 1e-3
    assert len(np.unique(weights)) > 0.99 * len(weights)
    assert not any(layer["bias"].any() for layer in layers if "bias" in layer)


def test_same_seed_gives_the_same_bits_and_another_other_models(small_people, together):
    for again, before in zip(run(small_people, members_of(5, GRID, RATES)), together, strict=True):
        same_bits(*((look.r_indices, look.losses, look.parameters()) for look in (again, before)))
    other = run(small_people, members_of(6, GRID, RATES))
    assert np.abs(other[-1].r_indices - together[-1].r_indices).min(axis=(1, 2)).max() > 0


def test_members_numbers_decide_their_keys(members):
    tail = members_of(5, GRID[2:], RATES[2:], numbers=[2, 3])
    same_bits(jax.random.key_data(tail.keys), jax.random.key_data(members.keys[2:]))
    assert len(np.unique(jax.random.key_data(members.keys), axis=0)) == N_MEMBERS


def test_priors_of_fewer_patterns_have_zeros_in_the_place_of_the_others():
    priors = [Prior(np.ones((number, 2)), np.full(number, 2.0)) for number in (1, 3)]
    found = members_of(5, GRID[:2], RATES[:2], priors=priors).prior
    assert found.maps.tolist() == [[[1, 1], [0, 0], [0, 0]], [[1, 1]] * 3]
    assert found.exponents.tolist() == [[2, 1, 1], [2, 2, 2]]


def test_each_control_is_left_out_once_in_as_many_repetitions_as_folds():
    dealt = [np.array([held_out(43, 5, number, 5) for number in range(first, first + 5)]) for first in (0, 5, 10)]
    for folds in dealt:
        assert (folds.sum(axis=0) == 1).all()
        assert set(folds.sum(axis=1)) == {8, 9}
    assert not any(np.array_equal(*pair) for pair in combinations(dealt, 2))
    np.testing.assert_array_equal(held_out(43, 5, 7, 5), dealt[1][2])
    assert not np.array_equal(held_out(43, 6, 7, 5), dealt[1][2])
    assert not held_out(43, 5, 7, 0).any()


def test_a_model_never_learns_from_the_controls_it_leaves_out(small_people):
    members = members_of(5, GRID, n_folds=5)
    before = run(small_people, members)[-1]
    for number, out in enumerate(np.array([held_out(40, 5, number, 5) for number in range(N_MEMBERS)])):
        after = run(small_people._replace(controls=np.where(out[:, None], np.nan, small_people.controls)), members)[-1]
        same_bits(after.r_indices[number], before.r_indices[number])
        same_bits(take(after.parameters(), number), take(before.parameters(), number))
        assert np.isnan(np.delete(after.r_indices, number, axis=0)).all()


def test_order_of_members_does_not_matter(small_people, members, together):
    backwards = run(small_people, take(members, slice(None, None, -1)))
    same_bits(take(backwards[-1].parameters(), slice(None, None, -1)), together[-1].parameters())


@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 4), slice(1, 2)])
def test_company_does_not_matter(small_people, members, together, part):
    """Ten steps only: later, rounding that differs between programs is too large to distinguish from an error."""
    found, expected = run(small_people, take(members, part), max_steps=10)[0], together[0]
    close(found.losses, take(expected.losses, part))
    close(found.r_indices, expected.r_indices[part])


@pytest.mark.parametrize(
    ("training", "those_alone"),
    [
        (Training(latent="sampled"), {1: [2], 2: [0, 3]}),
        (Training(latent="weighted", updates="sequential"), {2: [0, 3]}),
        (Training("joint", "separate", "person", latent="independent"), {1: [2]}),
    ],
    ids=["correlated", "weighted", "joint"],
)
def test_company_with_more_patterns_does_not_matter(small_people, members, training, those_alone):
    schedule = Schedule(BATCH_SIZE, 10**6, 10, 10)
    [found] = train.train(small_people, members, training, schedule, n_patterns=[2, 4, 1, 2])
    for number, which in those_alone.items():
        [alone] = train.train(small_people, take(members, np.array(which)), training, schedule, n_patterns=number)
        close(take(found.losses, np.array(which)), alone.losses)
        close(found.r_indices[which, :, :number], alone.r_indices)
        close(found.correlations()[which][:, :number, :number], alone.correlations())
        of = networks.sizes(small_people.controls.shape[1], number)
        close(networks.unpad(take(found.parameters(), np.array(which)), of), alone.parameters())
        assert not found.r_indices[which, :, number:].any()


def test_members_that_diverge_do_not_spoil_others(small_people, members, together):
    weights = [GRID[0], LossWeights(change=float("nan")), GRID[2], GRID[3]]
    rates = [LearningRates(), LearningRates(), LearningRates(1e6, 1e6), LearningRates()]
    mixed = run(small_people, members_of(5, weights, rates))
    assert np.isnan(mixed[-1].r_indices[1]).all()
    for healthy in (0, 3):
        same_bits(mixed[-1].r_indices[healthy], together[-1].r_indices[healthy])
        same_bits(take(mixed[-1].parameters(), healthy), take(together[-1].parameters(), healthy))


def test_groups_may_be_smaller_than_the_batch(small_people, members):
    last = run(TrainingPeople(small_people.controls[:2], small_people.patients[:1]), members_of(5, GRID, n_controls=2))[
        -1
    ]
    assert last.r_indices.shape == (N_MEMBERS, 1, N_PATTERNS)
    assert all(np.isfinite(values).all() for values in last.losses.values())


def test_only_rows_within_a_group_are_used(small_people, members, monkeypatch):
    """Padding rows are set to NaN here, so that a single one drawn would spoil everything."""
    pad = train._pad
    monkeypatch.setattr(
        train, "_pad", lambda rows, n: np.where(np.arange(128)[:, None] < len(rows), pad(rows, n), np.nan)
    )
    last = run(small_people, members)[-1]
    assert all(np.isfinite(values).all() for values in (last.r_indices, *last.losses.values()))


def test_weights_but_for_the_discriminator_stay_within_the_clip(small_people):
    model = run(small_people, members_of(0, GRID, [LearningRates(0.3, 0.3)] * N_MEMBERS))[-1].parameters()
    largest = [max(np.abs(leaf).max() for leaf in jax.tree.leaves(network)) for network in model[:4]]
    assert max(largest[:3]) == 0.5
    assert largest[3] > 0.5


def test_padding_of_regions_changes_nothing_and_stays_zero(small_people, members, together, monkeypatch):
    """As on an accelerator."""
    padded = networks.padded
    monkeypatch.setattr(networks, "padded", lambda sizes, multiple: padded(sizes, 8))
    first, last = run(small_people, members, max_steps=30, checkpoint_every=10)[::2]
    close(first.losses, together[0].losses)
    close(first.r_indices, together[0].r_indices)
    assert last.states.parameters.transformation["encode1"]["weight"].shape == (N_MEMBERS, 16, 8)
    moments = [states[-1] for states in last.states.optimisers[:4]]  # Adam's, the last of each chain
    for tree in (last.states.parameters, Parameters(*(m.mu for m in moments)), Parameters(*(m.nu for m in moments))):
        for array, inside in zip(jax.tree.leaves(tree), jax.tree.leaves(last.parameters()), strict=True):
            outside = np.array(array)
            outside[tuple(map(slice, inside.shape))] = 0
            assert not outside.any()


def test_discriminator_sees_padded_people_whitened_and_padded(small_people):
    whitening = np.eye(12) + 0.3 * np.random.default_rng(0).normal(size=(12, 12))
    data, patients = train._data(small_people._replace(whitening=whitening), 16, min_steps=3)
    expected = np.pad(1 + (small_people.patients - 1) @ whitening, [(0, 0), (0, 4)])
    np.testing.assert_allclose(data.seen_patients[:40], expected, atol=1e-6)
    seen = seen_by_discriminator(patients[:40], data.whitening)
    np.testing.assert_allclose(seen, expected, atol=1e-5)
    assert not np.asarray(seen)[:, 12:].any()
    assert (data.n_controls, data.n_patients, data.min_steps, data.region_share) == (40, 40, 3, 0.75)


def test_model_below_the_thresholds_is_frozen_after_the_least_steps(small_people):
    """The others are made to unlearn the reconstruction, so they go on."""
    weights = [GRID[0], *[LossWeights(reconstruction=-100.0)] * 3]
    rates = [LearningRates(), *[LearningRates(0.02, 1e-3)] * 3]
    looks = run(small_people, members_of(0, weights, rates), min_steps=20, max_steps=40)
    assert [look.frozen.tolist() for look in looks] == [[False] * 4] + 3 * [[True, False, False, False]]
    same_bits(take(looks[1].parameters(), 0), take(looks[-1].parameters(), 0))
    found = [look.parameters().discriminator["layer1"]["weight"] for look in looks]  # not clipped
    assert not np.array_equal(found[0][0], found[1][0])
    for earlier, later in pairwise(found):
        assert (earlier[1:] != later[1:]).any(axis=(1, 2)).all()


def test_training_ends_when_all_are_frozen(small_people):
    looks = run(small_people, members_of(0, GRID, RATES), min_steps=20, max_steps=1000)
    assert [look.step for look in looks] == [10, 20]
    assert looks[-1].frozen.all()


CORRELATED = replace(TRAINING, latent="weighted", correlation_penalty=0.0)


@pytest.fixture(scope="module")
def correlated(small_people):
    """Models whose correlations move far in a few steps."""
    members = members_of(5, GRID, [LearningRates(correlation=0.02)] * N_MEMBERS)
    return members, run(small_people, members, CORRELATED)


def test_independent_severities_have_no_correlation(together):
    found = together[-1].correlations()
    assert together[-1].states.copula is None
    np.testing.assert_array_equal(found, np.tile(np.eye(N_PATTERNS), (N_MEMBERS, 1, 1)))


def test_checkpoint_tells_the_correlation_of_each_model(correlated):
    checkpoint = correlated[1][-1]
    raw, found = np.asarray(checkpoint.states.copula.raw, float), checkpoint.correlations()
    assert found.shape == (N_MEMBERS, N_PATTERNS, N_PATTERNS)
    for one, free in zip(found, raw, strict=True):
        factor = plain.factor_of(free)
        np.testing.assert_allclose(one, factor @ factor.T, atol=1e-6)
    off = found[:, *np.triu_indices(N_PATTERNS, k=1)]
    assert np.abs(off).max() > 0.05
    assert len(np.unique(off[:, 0])) == N_MEMBERS


def test_looks_on_the_way_do_not_change_when_correlations_move(small_people, correlated):
    members, looks = correlated
    same_bits(run(small_people, members, CORRELATED, checkpoint_every=5)[-1].correlations(), looks[-1].correlations())


def test_saved_states_hold_the_correlation(small_people, correlated):
    """A training that is saved halfway and resumed ends with the same bits."""
    members, looks = correlated
    arrays = train.saved_states(looks[0].states)
    assert any("copula" in name for name in arrays)
    same_bits(train.saved_states(train.restored_states(arrays, looks[0].states)), arrays)
    [last] = run(small_people, members, CORRELATED, after=(10, arrays))
    ends = [
        (look.step, look.correlations(), look.parameters(), look.states.copula.moments.nu) for look in (last, looks[-1])
    ]
    same_bits(*ends)
    assert last.step == 20


FOUR_DEVICES = """
import sys
import jax, numpy as np
from rindices.presets import LearningRates, LossWeights, Schedule, Training
from rindices.core import devices, train
devices.prepare()
assert jax.device_count() == 4
controls, patients = np.load(sys.argv[1])
weights = [LossWeights(change=change, orthogonality=value) for change in (6.0, 2.0) for value in (0.8, 0.2)]
# A fifth on three of the four devices: the last device has one model twice.
members = train.make_members(5, [*weights, LossWeights()], [LearningRates()] * 5, len(controls))
schedule = Schedule(6, 10**6, 20, 20)
training = Training(freeze_below=(1.0, 1.0), latent="independent")
[found] = train.train(train.TrainingPeople(controls, patients), members, training, schedule, n_patterns=3)
np.save(sys.argv[2], found.r_indices[:4])
"""


def test_four_devices_give_the_same_r_indices(small_people, together, tmp_path):
    given, found = tmp_path / "people.npy", tmp_path / "r_indices.npy"
    np.save(given, np.stack(small_people[:2]))
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", FOUR_DEVICES, given, found], env=os.environ | flags, check=True)
    np.testing.assert_allclose(np.load(found), together[-1].r_indices, atol=1e-5)


def test_plan_uses_as_many_devices_as_finish_soonest(monkeypatch):
    def planned(platform, n_devices, n_members):
        monkeypatch.setattr(train.jax, "devices", lambda: [SimpleNamespace(platform=platform)] * n_devices)
        monkeypatch.setattr(train, "Mesh", lambda used, names: used)
        used, width = train.plan(n_members)
        return len(used), width

    given = [("cpu", 4, 1), ("cpu", 4, 5), ("cpu", 4, 8), ("gpu", 1, 10), ("gpu", 4, 10)]
    assert [planned(*case) for case in given] == [(1, 1), (3, 1), (4, 1), (1, 10), (4, 3)]
    assert isinstance(members_of(0, GRID, RATES), Members)
