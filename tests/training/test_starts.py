"""Where a repetition starts: a linear model, and what it adds to the networks' reading."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from rindices.core.inference import r_indices
from rindices.core.networks import Parameters
from rindices.linear import contrastive_ica, side_by_side
from rindices.training.starts import (
    SCALED_SD,
    Start,
    beside_networks,
    from_model,
    maps_of_halves,
    power_of_uniform,
    start_of,
)
from tests.conftest import N_PATTERNS
from tests.core import plain


@pytest.fixture(scope="module")
def start(small_people):
    return start_of(small_people.controls, small_people.patients, N_PATTERNS, "ica", 0, 3, 5)


@pytest.mark.parametrize("exponent", [1.0, 1.5, 2.0, 4.0, 5.0])
def test_power_of_uniform_gives_the_exponent_of_severities_that_were_drawn(exponent):
    drawn = np.random.default_rng(0).uniform(size=400_000) ** exponent
    assert power_of_uniform(np.array([drawn.mean() / drawn.std()]))[0] == pytest.approx(exponent, rel=0.02)


def test_power_of_uniform_stays_within_bounds_and_falls_with_the_mean():
    found = power_of_uniform(np.array([0.0, 1e-6, 0.5, 1.0, 2.0, 3.0, 100.0]))
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) <= 0)
    assert (found[0], found[-1]) == (5.0, 1.0)
    np.testing.assert_array_equal(power_of_uniform(np.array([-2.0])), power_of_uniform(np.array([2.0])))


def test_severities_are_read_with_mean_0_and_sd_1_among_the_patients(start, small_people):
    read = start.read(small_people.patients)
    np.testing.assert_allclose(read.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(read.std(axis=0), 1)


def test_start_finds_patterns_that_are_there(start, small_people, small_truth):
    found = np.abs(np.corrcoef(start.read(small_people.patients).T, small_truth.T)[:N_PATTERNS, N_PATTERNS:])
    assert sorted(found.argmax(axis=1)) == [0, 1, 2]
    assert found.max(axis=1).min() > 0.6


def test_prior_has_the_patients_mean_change_and_grows_with_severity(start, small_people):
    """Severities that are uniform to the power a have the mean 1 / (1 + a)."""
    change = (start.prior.maps / (1 + start.prior.exponents)[:, None]).sum(axis=0)
    seen = small_people.patients.mean(axis=0) - small_people.controls.mean(axis=0)
    np.testing.assert_allclose(change, seen, atol=SCALED_SD / 2)


def test_maps_of_halves_scatter_about_those_of_everybody_more_with_fewer_people(small_people):
    def scatter(controls, patients):
        maps = maps_of_halves(controls, patients, N_PATTERNS, "ica", 0)
        assert maps.shape == (21, N_PATTERNS, controls.shape[1])
        total = maps.sum(axis=1)  # patterns may come in another order
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
    with ThreadPoolExecutor(4) as threads:  # as several trainings do
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
    scaled = read.mean(axis=1, keepdims=True) + read.std(axis=1, keepdims=True) * start.read(patients)
    np.testing.assert_allclose(together, (read + scaled) / 2, atol=1e-4)
    np.testing.assert_allclose(together.mean(axis=1), read.mean(axis=1), atol=1e-4)  # the networks' scale stays
    np.testing.assert_allclose(r_indices(networks._replace(linear=linear), patients), together, atol=1e-4)


def test_without_networks_severities_are_as_uniform_ones(start, small_people):
    patients = small_people.patients
    linear, together = beside_networks([start], None, patients)
    np.testing.assert_allclose(together[0], 0.5 + start.read(patients) / np.sqrt(12), atol=1e-5)
    np.testing.assert_allclose(r_indices(Parameters({}, {}, {}, {}, linear), patients), together, atol=1e-5)


def test_models_with_fewer_patterns_have_zeros_in_the_place_of_others(start, small_people):
    patients = small_people.patients
    few = Start(
        type(start.prior)(start.prior.maps[:2], start.prior.exponents[:2]),
        start.gain[:, :2],
        start.offset[:2],
        start.correlation[:2, :2],
    )
    linear, together = beside_networks([few, start], None, patients)
    assert not together[0, :, 2].any()
    np.testing.assert_array_equal(together[0, :, :2], together[1, :, :2])
    assert {of.shape[0] for kinds in linear.values() for of in kinds.values()} == {2}
    assert not linear["change"]["map"][0, 2].any()
    assert not linear["reading"]["weight"][0, :, 2].any()
