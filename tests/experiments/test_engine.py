"""Many cohorts in one program give what one cohort alone gives through the product's own training."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from cases import Case, whole
from many_cohorts import Group, members_of, pattern_maps, stack, start, train
from tables import scope

from rindices.core import inference
from rindices.core.train import TrainingPeople, make_members
from rindices.core.train import train as train_one

PRESET, CASES = scope(small=True).preset, [Case(40, 45, "basic", 3), Case(35, 50, "mild", 4)]


@pytest.fixture(scope="module")
def brains():
    first, second = (whole(case) for case in CASES)
    return [first, second._replace(others=first.patients)]


def test_people_who_are_not_trained_on_are_scored_behind_the_patients(brains):
    data, scored = stack(brains, 50)
    assert scored.shape == (2, 95, 128)
    np.testing.assert_allclose(scored[1, 50:], brains[0].patients, rtol=1e-6)
    assert (data.controls.shape, data.n_patients.tolist()) == ((2, 50, 128), [45, 50])


def test_maps_are_those_of_inference_for_each_members_own_controls(brains):
    group = Group(2, CASES, [3, 4], [PRESET.weights], 1)
    data, _ = stack(brains, 50)
    members = members_of(group, 50, PRESET)
    parameters = start(members.key, n_regions=128, n_patterns=2, preset=PRESET).parameters
    found = np.asarray(pattern_maps(parameters, data, members.cohort))
    for place, one in enumerate(brains):
        model = jax.tree.map(lambda leaf, place=place: np.asarray(leaf[place : place + 1]), parameters)
        expected = inference.pattern_changes(model, one.controls, "additive")[0]
        np.testing.assert_allclose(found[place], expected, atol=1e-5)


def test_each_cohort_may_have_its_own_weightings_and_rates_and_folds_are_left_out():
    weightings = [[PRESET.weights._replace(orthogonality=value)] for value in (0.1, 0.6)]
    rates = [PRESET.rates, PRESET.rates._replace(generator=1e-4)]
    members = members_of(Group(2, CASES, [3, 4], weightings, 3, rates), 50, PRESET)
    assert members.cohort.tolist() == [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(members.weights.orthogonality, np.repeat([0.1, 0.6], 3), rtol=1e-6)
    np.testing.assert_allclose(members.rates.generator, np.repeat([8e-4, 1e-4], 3), rtol=1e-6)
    assert members.n_controls.tolist() == [32, 32, 32, 28, 28, 28]  # four fifths of 40 and 35


@pytest.mark.slow
def test_cohorts_together_train_as_each_alone(brains):
    weightings = [PRESET.weights, PRESET.weights._replace(orthogonality=0.1)]
    trained, steps = train(Group(3, CASES, [3, 4], weightings, 2), brains, 50, PRESET), PRESET.schedule
    for place, (case, one) in enumerate(zip(CASES, brains, strict=True)):
        members = make_members(case.seed, [weightings[1]] * 2, [PRESET.rates] * 2, case.n_controls, n_folds=steps.folds)
        first = next(
            train_one(
                TrainingPeople(one.controls, one.patients, one.whitening),
                members,
                PRESET.training,
                replace(steps, batch_size=32),
                n_patterns=3,
            )
        )
        together = trained.of_cohort(place, case.n_patients)[0, 1]
        np.testing.assert_allclose(together, first.r_indices, atol=1e-3)  # rounding grows from step to step
    own = trained.of_cohort(1, 95)[-1]
    assert np.isfinite(own).all()
    assert np.abs(own[..., 50:, :]).max() > 0  # the others are scored too
