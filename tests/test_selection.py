"""With trainings that are made up, so that what each checkpoint shows is known."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from rindices import selection
from rindices.config import Schedule, fast
from rindices.core.inference import r_indices, reorder_patterns
from rindices.core.networks import sizes
from rindices.core.step import TrainState
from rindices.core.train import Checkpoint, People
from tests.core import plain

N_CONTROLS, N_PATIENTS, N_REGIONS, N_PATTERNS = 10, 50, 12, 3
PEOPLE = People(np.ones((N_CONTROLS, N_REGIONS)), np.ones((N_PATIENTS, N_REGIONS)))
TRUTH = np.random.default_rng(0).uniform(size=(N_PATIENTS, N_PATTERNS))


def members(*noise):
    """R-indices of everybody by models that find the patients' truth with more or less noise; controls say nothing."""
    rng = np.random.default_rng(3)
    controls = rng.standard_normal((len(noise), N_CONTROLS, N_PATTERNS))
    patients = TRUTH + np.array(noise)[:, None, None] * rng.standard_normal((len(noise), N_PATIENTS, N_PATTERNS))
    return np.concatenate([controls, patients], axis=1)


def checkpoint(step, scores, parameters=None):
    n_models = len(scores)
    if parameters is None:
        one = plain.random_parameters(N_REGIONS, N_PATTERNS, seed=step)
        parameters = jax.tree.map(lambda leaf: np.stack([leaf + k for k in range(n_models)]), one)
    losses = {"change": np.arange(n_models) + float(step)}
    states = TrainState(parameters, None, None, None, None)
    return Checkpoint(step, scores, losses, np.zeros(n_models, bool), states, sizes(N_REGIONS, N_PATTERNS))


@pytest.fixture
def select(monkeypatch):
    """Select from given checkpoints instead of training; also return how many of them were asked for."""

    def select(checkpoints, progress=None, **schedule):
        asked = []
        monkeypatch.setattr(selection, "train", lambda *_, **__: (asked.append(c.step) or c for c in checkpoints))
        chosen = {"min_steps": 0, "max_steps": 100, "patience": None} | schedule
        preset = replace(fast(), schedule=Schedule(**chosen))
        settings = {"n_patterns": N_PATTERNS, "n_repetitions": 2, "batch_size": 8, "seed": 0, "progress": progress}
        return selection.repeat(PEOPLE, preset=preset, **settings), asked

    return select


def rising_and_falling(*noise):
    return [checkpoint(10 * (k + 1), members(sd, sd, sd)) for k, sd in enumerate(noise)]


def test_checkpoint_with_the_highest_agreement_is_chosen(select):
    checkpoints = rising_and_falling(0.5, 0.3, 0.05, 0.2, 0.4)
    found, asked = select(checkpoints)
    assert found.chosen == 2
    assert asked == [look.step for look in found.looks] == [10, 20, 30, 40, 50]
    values = [look.agreement.pattern_agreement for look in found.looks]
    assert values[2] == max(values)
    assert sorted(found.members) == [0, 1, 2]
    weights = checkpoints[2].parameters().discriminator["layer1"]["weight"]
    np.testing.assert_array_equal(found.models.discriminator["layer1"]["weight"], weights[found.members])


def test_training_stops_when_agreement_no_longer_rises(select):
    falling = rising_and_falling(0.5, 0.05, 0.2, 0.3, 0.4, 0.4, 0.4)
    found, asked = select(falling, patience=2)
    assert asked == [10, 20, 30, 40]
    assert found.chosen == 1
    assert select(falling, patience=2, min_steps=60)[1] == [10, 20, 30, 40, 50, 60]
    assert select(falling, patience=None)[1] == [10, 20, 30, 40, 50, 60, 70]


def test_training_goes_on_while_agreement_rises(select):
    found, asked = select(rising_and_falling(0.5, 0.4, 0.3, 0.2, 0.1, 0.05), patience=1)
    assert len(asked) == 6
    assert found.chosen == 5


def test_single_repetition_takes_the_last_checkpoint_and_never_stops_early(select):
    found, asked = select([checkpoint(step, members(0.1)) for step in (10, 20, 30)], patience=1)
    assert asked == [10, 20, 30]
    assert found.chosen == 2
    assert np.isnan(found.looks[2].agreement.pattern_agreement)
    assert (found.members, found.left_out) == ([0], {})


def test_checkpoint_with_agreement_is_better_than_one_without(select):
    one_left = members(0.01, 0.01)
    one_left[1] = np.nan
    found, _ = select([checkpoint(10, one_left), checkpoint(20, members(0.5, 0.5)), checkpoint(30, one_left)])
    assert found.chosen == 1


def test_reasons_are_given_for_members_left_out(select):
    scores = members(0.02, 0.02, 0.02, 0.02, 3.0, 0.02)
    scores[1, 30, 0] = np.nan
    scores[3, N_CONTROLS:, 2] = 0.4
    found, _ = select([checkpoint(10, scores)])
    assert list(found.left_out) == [1, 3, 4]
    assert found.left_out[1] == "diverged"
    assert found.left_out[3] == "collapsed"
    assert found.left_out[4].startswith("disagrees with the others (0.")
    assert sorted(found.members) == [0, 2, 5]


def test_losses_and_numbers_are_those_of_sound_models(select):
    scores = members(0.1, 0.1, 0.1)
    scores[1] = np.nan
    look = select([checkpoint(10, scores)])[0].looks[0]
    assert look.n_models == 2
    assert look.losses == {"change": 10 + (0 + 2) / 2}


def test_collapsed_members_are_used_when_there_are_no_others(select):
    found, _ = select([checkpoint(10, 0.01 * members(0.1, 0.1))])
    assert sorted(found.members) == [0, 1]
    assert found.left_out == {}


def test_all_diverged_is_an_error_that_says_what_to_do(select):
    with pytest.raises(FloatingPointError, match=r"All models diverged.*lower the learning rates"):
        select([checkpoint(10, np.full((2, N_CONTROLS + N_PATIENTS, N_PATTERNS), np.nan))])


def test_no_steps_at_all_is_an_error(select):
    with pytest.raises(ValueError, match="max_steps should be at least 1, found 0"):
        select([], max_steps=0)


def test_models_are_brought_to_the_order_of_the_medoid_which_comes_first(select):
    brains = np.random.default_rng(1).normal(1, 0.5, (N_CONTROLS + N_PATIENTS, N_REGIONS))
    one = plain.random_parameters(N_REGIONS, N_PATTERNS, seed=0)
    models = [reorder_patterns(one, np.array(order)) for order in ([2, 0, 1], [0, 1, 2], [1, 0, 2])]
    scores = np.stack([plain.r_indices(model, brains) for model in models])
    scores[[0, 2]] += 0.1 * scores.std() * np.random.default_rng(2).standard_normal((2, *scores.shape[1:]))
    found, _ = select([checkpoint(10, scores, plain.stacked(models))])
    assert found.members[0] == 1
    aligned = r_indices(found.models, brains)
    np.testing.assert_allclose(aligned, np.broadcast_to(scores[1], aligned.shape), rtol=1e-8)


def test_progress_is_told_after_each_checkpoint(select):
    told = []
    found, _ = select(rising_and_falling(0.3, 0.2), progress=told.append)
    values = [look.agreement.pattern_agreement for look in found.looks]
    assert told == [(10, 100, 3, values[0]), (20, 100, 3, values[1])]
