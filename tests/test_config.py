import json
from dataclasses import fields, replace

import pytest

from rindices import config
from rindices.config import LearningRates, LossWeights, Training


def test_paper_holds_the_values_of_section_3_3():
    preset = config.paper()
    assert preset.weights._replace(orthogonality=0) == LossWeights(
        change=6, decomposition=80, reconstruction=80, orthogonality=0, monotonicity=500, near_control=6
    )
    assert preset.rates == LearningRates(generator=2e-4, discriminator=4e-5)
    assert preset.training == Training(
        composition="joint",
        updates="separate",
        orthogonality="person",
        weight_decay=0,
        gradient_clip=None,
        weight_clip=0.5,
        freeze_below=(0.003, 6e-4),
    )
    assert preset.schedule.batch_size is None  # an eighth of the patients
    assert preset.schedule.min_steps == 100_000
    assert preset.schedule.whitening == 0


def test_official_is_the_released_package():
    preset = config.official()
    assert preset.training == Training("additive", "joint", "batch", 2.5e-3, 100.0, 0.5, None)
    assert preset.rates.discriminator == pytest.approx(preset.rates.generator / 5)
    assert (preset.weights.decomposition, preset.weights.reconstruction, preset.weights.monotonicity) == (80, 80, 500)
    assert preset.schedule.batch_size == 300
    assert preset.schedule.whitening == 0


def test_fast_has_the_formulas_of_the_released_package_and_a_discriminator_as_quick_as_f():
    preset = config.fast()
    assert preset.training == config.official().training
    assert preset.rates.discriminator == preset.rates.generator == 8e-4
    assert preset.schedule.batch_size == 32
    assert preset.schedule.min_steps <= preset.schedule.max_steps


@pytest.mark.parametrize("name", config.PRESETS)
def test_presets_survive_json(name):
    preset = config.get_preset(name)
    assert preset.name == name
    assert config.preset_from_json(json.loads(json.dumps(config.preset_to_json(preset)))) == preset


def test_every_choice_survives_json():
    training = Training("joint", "separate", "person", 0.1, 7.0, 0.9, (0.5, 0.25))
    schedule = config.Schedule(None, 1, 2, 3, 0.5)
    preset = config.Preset("mine", LossWeights(*range(6)), LearningRates(0.5, 0.25), training, schedule)
    for part, default in ((training, Training()), (schedule, config.Schedule())):
        assert all(getattr(part, field.name) != getattr(default, field.name) for field in fields(part))
    assert config.preset_from_json(json.loads(json.dumps(config.preset_to_json(preset)))) == preset


def test_given_preset_is_taken_as_it_is():
    mine = replace(config.fast(), name="mine")
    assert config.get_preset(mine) is mine


def test_unknown_preset_names_the_known_ones():
    with pytest.raises(ValueError, match="Unknown preset 'quick': choose one of fast, paper, official"):
        config.get_preset("quick")


def test_formulas_can_be_compiled_in():
    assert hash(config.paper().training) != hash(config.fast().training)
