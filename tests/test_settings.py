from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from rindices import OutputSettings, SearchSettings, TableSettings, presets
from rindices.presets import LearningRates, LossWeights, Preset, Schedule, Training
from tests.refusal import refused_with


def test_two_presets_are_the_paper_and_the_released_package():
    assert presets.paper() == Preset(  # section 3.3, with changes that add up, as the authors released it
        "paper",
        LossWeights(change=6, decomposition=80, reconstruction=80, orthogonality=0.4, monotonicity=500, near_control=6),
        LearningRates(generator=2e-4, discriminator=4e-5),
        Training("additive", "sequential", "person", 0, None, 0.5, (0.003, 6e-4), "independent", start="random"),
        Schedule(None, 100_000, 200_000, 5_000, whitening=0, folds=0),  # an eighth of the patients at a time
    )
    assert presets.official() == Preset(
        "official",
        LossWeights(change=2, decomposition=80, reconstruction=80, orthogonality=0.2, monotonicity=500, near_control=6),
        LearningRates(8e-4, 8e-4 / 5, 8e-4 / 30),
        Training("additive", "joint", "batch", 2.5e-3, 100.0, 0.5, None, "weighted", 0.02, "random"),
        Schedule(300, 20_000, 60_000, 2_500, whitening=0, folds=0),
    )


def test_two_presets_are_parts_of_fast_and_a_shorter_training_is_looked_at_in_the_end():
    fast, blind = presets.fast(), presets.blind()
    no_networks = replace(fast.schedule, min_steps=0, max_steps=0, longest=0)
    assert presets.linear() == replace(fast, name="linear", schedule=no_networks)
    longer = replace(fast.schedule, min_steps=20_000, max_steps=20_000, longest=0)
    assert blind == replace(fast, name="blind", training=replace(fast.training, start="random"), schedule=longer)
    shorter = replace(fast.schedule, min_steps=200, max_steps=200, longest=0)  # never longer than requested
    assert presets.adjusted(fast, max_steps=200).schedule == shorter


@pytest.mark.parametrize(
    ("name", "latent", "expected"),
    [
        ("fast", None, "sampled"),
        ("paper", None, "independent"),
        ("fast", "independent", "independent"),
        ("fast", "correlated", "sampled"),
        ("paper", "correlated", "sampled"),
        ("official", None, "weighted"),
        ("official", "independent", "independent"),
        ("official", "correlated", "weighted"),  # each preset in its own way
    ],
)
def test_severities_can_be_chosen(name, latent, expected):
    preset = presets.get_preset(name)
    found = presets.adjusted(preset, latent=latent)
    assert (found.training.latent, replace(found, training=preset.training)) == (expected, preset)


# Correction


def test_a_correction_is_made_of_tuples():
    given = presets.Correction(["age"], [["age", "sex"]], proportion="icv", site="scanner")
    same = presets.Correction(("age",), (("age", "sex"),), "icv", "scanner")
    assert (given, hash(given)) == (same, hash(same))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (SearchSettings(n_patterns="1-2"), SearchSettings(n_patterns=(1, 2))),
        (SearchSettings(n_patterns="auto", n_repetitions="5"), SearchSettings(n_repetitions=5)),
        (SearchSettings(orthogonality="0.2,0.4"), SearchSettings(orthogonality=(0.2, 0.4))),
        (OutputSettings(limits="0.3,0.6"), OutputSettings(limits=[0.3, 0.6])),
        (TableSettings(features=pd.Index(["a", "b"])), TableSettings(features=("a", "b"))),
        (
            TableSettings(control=np.array(["CN"]), covariates=["age"]),
            TableSettings(control=("CN",), covariates=("age",)),
        ),
        (TableSettings(covariates="age,sex"), TableSettings(covariates="age,sex")),
    ],
)
def test_settings_read_what_a_command_does_and_any_sequence(given, meant):
    assert given == meant


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        *(
            (OutputSettings, {"limits": one}, "`limits` should be two increasing numbers such as")
            for one in ((0.9, 0.1), [0.5], 0.4, (0, 1))
        ),
        *(
            (
                SearchSettings,
                {"n_patterns": one},
                "`n_patterns` should be auto, a number such as 3, a list such as 2,3 or a range such as 2-5, but got",
            )
            for one in ("two", "2-", "5-2", "")
        ),
        (presets.Correction, {"smooth": "age"}, "should be lists, but got a string"),
        (presets.Correction, {"interactions": "age:sex"}, "should be lists, but got a string"),
        (presets.Correction, {"interactions": [("age", "sex", "site")]}, "should be pairs"),
        (presets.Correction, {"interactions": [("age", "age")]}, "should be pairs"),
        (presets.Correction, {"smooth": [3]}, "should be strings"),
        (presets.Correction, {"interactions": [(1, 2)]}, "should be strings"),
        (presets.Correction, {"site": 3}, "should be strings"),
        (presets.Correction, {"smooth": ["age", "age"]}, "twice"),
        (presets.Correction, {"interactions": [("age", "sex"), ("sex", "age")]}, "twice"),
        (presets.Correction, {"proportion": "icv", "site": "icv"}, "both the head size and the site"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_trained(kind, given, told):
    refused_with(told, kind, **given)
