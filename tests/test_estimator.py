from copy import deepcopy
from dataclasses import replace
from itertools import permutations

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rindices import SurrealGAN, SurrealGANSearch, load_model
from rindices.core import inference
from rindices.core.train import held_out
from rindices.judging.selection import MOST_REPLACED
from rindices.preprocessing import UNCORRECTED, Preprocessing
from rindices.presets import Correction, paper
from rindices.scoring.intervals import severity_intervals
from rindices.scoring.severity_and_reference import SHAPES, leave_one_out
from tests.core import plain
from tests.refusal import refused_with

# Repetitions of forty steps seldom agree.
pytestmark = pytest.mark.filterwarnings("ignore:Excluded repetitions:UserWarning")


@pytest.fixture(scope="module")
def covariates(small_table):
    rng, people = np.random.default_rng(2), len(small_table)
    return pd.DataFrame({"age": rng.uniform(50, 80, people), "sex": rng.choice(["F", "M"], people)})


@pytest.fixture(scope="module")
def regions(small_table, covariates):
    table = small_table.add(-20 * (covariates["age"] - 65) + 300 * (covariates["sex"] == "M"), axis=0)
    return table.set_index("p" + table.index.astype(str))


@pytest.fixture(scope="module")
def unfitted(quick_preset):
    return SurrealGAN(3, n_repetitions=3, preset=quick_preset, random_state=0)


@pytest.fixture(scope="module")
def fitted(unfitted, regions, small_labels, covariates):
    return clone(unfitted).fit(regions, small_labels, covariates)


def member(model, number):
    """All four networks and the linear model of one repetition, in double precision."""
    return jax.tree.map(lambda leaf: np.asarray(leaf[number], float), model.models_)


def decomposed(networks, brains):
    return plain.g1(networks.decomposer, brains)


def scored(networks, brains):
    linear = networks.linear["reading"]
    read = plain.r_indices(networks, brains)
    return (1 - linear["share"]) * read + linear["share"] * (linear["bias"] + (brains - 1) @ linear["weight"])


def transformed(networks, brains, z):
    """y' = x + Σᵢ change(x, zᵢ eᵢ), the additive composition; or the linear model's change where its share is 1."""
    linear, changed = networks.linear["change"], plain.transformed(networks.transformation, brains, z, "additive")
    return np.where(linear["share"] == 1, brains + z ** linear["exponent"] @ linear["map"], changed)


def averaged(model, function, *arguments):
    return np.mean([function(member(model, k), *arguments) for k in range(len(model.members_))], axis=0)


@pytest.fixture(scope="module")
def by_hand(regions, covariates, small_labels):
    """Scaled brains, and the mean, sd and covariate effects (by least squares in controls) used to scale them."""
    is_control = small_labels == 0
    design = np.column_stack([covariates["age"], covariates["sex"] == "M"]).astype(float)
    with_one = np.column_stack([np.ones(is_control.sum()), design[is_control]])
    slopes = np.linalg.lstsq(with_one, regions.to_numpy()[is_control], rcond=None)[0][1:]
    effects = (design - design[is_control].mean(axis=0)) @ slopes
    left = regions.to_numpy() - effects
    mean, sd = left[is_control].mean(axis=0), left[is_control].std(axis=0)
    return 1 + 0.1 * (left - mean) / sd, mean, sd, effects


# Scores


def test_scores_are_those_of_the_training_in_any_company_and_order_of_columns(
    unfitted, fitted, regions, small_labels, covariates
):
    scores = clone(unfitted).fit_transform(regions, small_labels, covariates)
    np.testing.assert_array_equal(scores, fitted.r_indices_)
    assert np.abs(clone(unfitted).fit_transform(regions, small_labels) - scores).max() > 1e-5
    np.testing.assert_array_equal(fitted.transform(regions[regions.columns[::-1]], covariates), fitted.r_indices_)
    np.testing.assert_array_equal(fitted.spread(regions, covariates[["sex", "age"]]), fitted.spread_)
    assert fitted.r_indices_.shape == fitted.spread_.shape == (80, 3)
    alone = [fitted.transform(regions[i : i + 1], covariates[i : i + 1])[0] for i in (0, 41, 79)]
    np.testing.assert_allclose(alone, fitted.r_indices_[[0, 41, 79]], atol=1e-12)


def test_scores_are_the_mean_over_members_or_those_of_the_medoid_which_is_the_first(
    unfitted, fitted, regions, small_labels, covariates, by_hand
):
    members = [scored(member(fitted, k), by_hand[0]) for k in range(len(fitted.members_))]
    assert len(members) > 1
    np.testing.assert_allclose(fitted.r_indices_, np.mean(members, axis=0), atol=1e-12)
    np.testing.assert_allclose(fitted.spread_, np.std(members, axis=0, ddof=1), atol=1e-12)
    medoid = clone(unfitted).set_params(inference="medoid").fit(regions, small_labels, covariates)
    np.testing.assert_allclose(medoid.r_indices_, members[0], atol=1e-12)
    np.testing.assert_array_equal(medoid.spread_, fitted.spread_)
    assert np.isfinite(medoid.severities(regions, covariates)).all()
    assert np.isnan(medoid.intervals(regions, covariates)).all()


# Severities, and the reference of held-out controls


def test_severities_are_on_the_curve_of_each_pattern(fitted, regions, covariates):
    found = fitted.severities(regions, covariates)
    np.testing.assert_array_equal(found, fitted.scale_.severities(fitted.r_indices_))
    other = deepcopy(fitted).set_params(output="severities")
    np.testing.assert_array_equal(other.transform(regions, covariates), found)
    assert other.get_feature_names_out().tolist() == ["severity1", "severity2", "severity3"]
    scatter = np.sort(np.random.default_rng(0).normal(0.5, 0.3, (3, *SHAPES["quantiles"])))
    other.scale_ = replace(fitted.scale_, quantiles=scatter)  # too few repetitions agree to estimate it
    np.testing.assert_array_equal(
        other.intervals(regions, covariates, level=0.8), severity_intervals(other.scale_, fitted.r_indices_, 0.8)
    )


def test_controls_are_scored_by_repetitions_that_left_them_out(fitted, covariates, by_hand):
    """Each is also left out when effects, mean and sd are estimated."""
    design = np.column_stack([np.ones(40), covariates["age"][:40], covariates["sex"][:40] == "M"]).astype(float)
    brains = leave_one_out(by_hand[0][:40], np.diag(design @ np.linalg.pinv(design)))
    for k, number in enumerate(fitted.members_):  # shifted and shrunk, but otherwise the same
        out = held_out(40, fitted.seed_, number, 5)
        both = np.hstack([scored(member(fitted, k), brains[out]), fitted.held_out_r_indices_[:40][out]])
        np.testing.assert_allclose(np.diag(np.corrcoef(both.T)[:3, 3:]), 1, atol=1e-9)
    np.testing.assert_array_equal(np.isnan(fitted.held_out_r_indices_).any(axis=1), np.arange(80) >= 40)
    np.testing.assert_allclose(
        fitted.scale_.centiles(np.median(fitted.held_out_r_indices_[:40], axis=0)[None]), 50, atol=1e-6
    )


# What is learned


def test_further_scans_are_of_controls_of_a_model_that_knows_them(fitted, regions, covariates, tmp_path):
    controls, patient = np.arange(40), [40]
    np.testing.assert_allclose(
        fitted.held_out_again(regions.iloc[controls], controls, covariates.iloc[controls]),
        fitted.held_out_r_indices_[controls],
    )
    refused_with(
        r"Row 40 .* does not belong to a control",
        fitted.held_out_again,
        regions.iloc[patient],
        patient,
        covariates.iloc[patient],
    )
    loaded = load_model(fitted.save(tmp_path / "model.safetensors"))
    refused_with(
        "was read from a file", loaded.held_out_again, regions.iloc[controls], controls, covariates.iloc[controls]
    )


def test_history_marks_the_checkpoint_that_agrees_best(fitted):
    history = fitted.history_.set_index("step")
    assert (history.index.tolist(), history.index[history["chosen"]].tolist()) == ([20, 40], [fitted.step_])
    agreements = history["pattern_agreement"]
    assert agreements[fitted.step_] == agreements.max() == fitted.agreement_.pattern_agreement
    repetitions = sorted([*fitted.members_, *fitted.left_out_])
    assert repetitions == list(range(len(repetitions)))
    assert 3 <= len(repetitions) <= 3 + MOST_REPLACED


@pytest.fixture(scope="module")
def as_in_the_paper(small_table, small_labels):
    preset = replace(paper(), schedule=replace(paper().schedule, min_steps=5, max_steps=10, checkpoint_every=5))
    return SurrealGAN(3, n_repetitions=1, preset=preset, random_state=0).fit(small_table, small_labels)


def test_one_repetition_has_severities_without_spread_and_intervals(as_in_the_paper, small_table):
    model = as_in_the_paper
    assert np.isfinite([model.r_indices_, model.severities(small_table)]).all()
    centiles = model.scale_.centiles(model.r_indices_)  # nobody was held out
    for unknown in (model.spread_, model.agreement_, model.intervals(small_table), centiles):
        assert np.isnan(unknown).all()
    assert model.members_ == [0]


def test_people_are_prepared_once_for_all_questions(fitted, regions, covariates):
    people, given = fitted.prepare(regions, covariates), (regions, covariates)
    for method in ("transform", "spread", "z_scores", "decompose", "pattern_maps", "decomposed_maps"):
        prepared, asked = (np.asarray(getattr(fitted, method)(*who), object) for who in ([people], given))
        np.testing.assert_array_equal(prepared, asked)


# Synthesis and maps


@pytest.mark.parametrize("z", [np.zeros(3), np.array([0.2, 0.0, 0.9]), np.random.default_rng(3).uniform(size=(80, 3))])
def test_synthesis_is_in_units_of_the_table_with_effects_of_covariates(fitted, regions, covariates, by_hand, z):
    scaled, mean, sd, effects = by_hand
    severities = np.broadcast_to(z, (80, 3))  # shared by everybody, or one row per person
    expected = mean + 10 * (averaged(fitted, transformed, scaled, severities) - 1) * sd + effects
    np.testing.assert_allclose(fitted.synthesize(regions, z, covariates), expected, rtol=1e-9)


def test_pattern_maps_compare_synthesised_with_untouched_controls(fitted, regions, covariates, by_hand):
    people, (_, mean, sd, _) = (regions[:40], covariates[:40]), by_hand
    maps = fitted.pattern_maps(*people, severity=0.7)
    untouched, *sick = (fitted.synthesize(people[0], z, people[1]) for z in (np.zeros(3), *0.7 * np.eye(3)))
    changes = np.array([(one - untouched).mean(axis=0) for one in sick])
    expected = pd.DataFrame({"region": [*regions.columns] * 3, "pattern": np.repeat([1, 2, 3], 12)})
    expected["change_sd"], expected["change_percent"] = (changes / sd).ravel(), (100 * changes / mean).ravel()
    pd.testing.assert_frame_equal(maps.drop(columns="spread_sd"), expected, check_dtype=False, rtol=1e-6, atol=1e-9)
    assert maps.columns[-1] == "spread_sd"


def test_patterns_are_numbered_by_size_of_change(fitted, regions, covariates, by_hand):
    networks, controls = [member(fitted, k) for k in range(len(fitted.members_))], by_hand[0][:40]
    means = [
        [transformed(one, controls, np.tile(z, (40, 1))).mean(axis=0) for one in networks]
        for z in (np.zeros(3), *np.eye(3))
    ]
    changes = (np.array(means)[1:] - means[0]).swapaxes(0, 1)
    assert (np.diff(np.abs(changes).mean(axis=(0, 2))) <= 0).all()
    np.testing.assert_allclose(
        fitted.pattern_maps(regions[:40], covariates[:40])["spread_sd"],
        10 * changes.std(axis=0, ddof=1).ravel(),
        rtol=1e-6,
    )


@pytest.mark.parametrize("z", [np.zeros(2), np.zeros((79, 3)), 0.5, [0.1, np.nan, 0.1], [5, 0, 0], [0, -1, 0]])
def test_severities_of_another_shape_or_size_are_refused(fitted, regions, covariates, z):
    refused_with(
        "z should contain 3 severities between 0 and 1", fitted.synthesize, regions, z, covariates, error=ValueError
    )


# Settings


def test_settings_override_the_preset(unfitted, fitted, regions, small_labels, covariates):
    model = clone(unfitted).set_params(orthogonality=5.0, max_steps=np.int64(30)).fit(regions, small_labels, covariates)
    assert (model.preset_.weights, model.history_["step"].tolist()) == (
        fitted.preset_.weights._replace(orthogonality=5.0),
        [20, 30],
    )
    assert model.history_["orthogonality"][0] != fitted.history_["orthogonality"][0]


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(3)])
def test_seed_repeats_any_fit(unfitted, small_table, small_labels, random_state, monkeypatch):
    # The generator behind None; without a fixed seed, each run of the tests would train differently.
    monkeypatch.setattr(np.random.mtrand, "_rand", np.random.RandomState(5))
    model = clone(unfitted).set_params(random_state=random_state).fit(small_table, small_labels)
    again = clone(unfitted).set_params(random_state=model.seed_).fit(small_table, small_labels)
    np.testing.assert_array_equal(again.r_indices_, model.r_indices_)


@pytest.mark.parametrize(
    ("kind", "setting", "message"),
    [
        (SurrealGAN, {"n_patterns": 0}, "n_patterns should be a positive integer, but got 0"),
        (SurrealGAN, {"n_patterns": True}, "n_patterns should be a positive integer, but got True"),
        (SurrealGAN, {"correction": "age"}, "correction should be a Correction, such as"),
        (SurrealGAN, {"orthogonality": "a"}, "orthogonality should be a finite non-negative number, but got 'a'"),
        (SurrealGAN, {"n_patterns": 2.0}, "n_patterns should be a positive integer"),
        (SurrealGAN, {"n_repetitions": -1}, "n_repetitions should be a positive integer"),
        (
            SurrealGAN,
            {"preset": "fats"},
            "`preset` should be 'fast', 'linear', 'blind', 'paper' or 'official', but got 'fats'",
        ),
        (SurrealGAN, {"inference": "mean"}, "`inference` should be 'consensus' or 'medoid', but got 'mean'"),
        (SurrealGAN, {"output": "severity"}, "`output` should be 'r_indices' or 'severities', but got 'severity'"),
        (SurrealGAN, {"orthogonality": -0.1}, "orthogonality should be a finite non-negative number"),
        (SurrealGAN, {"orthogonality": np.nan}, "orthogonality should be a finite non-negative number"),
        (SurrealGAN, {"max_steps": 0}, "max_steps should be a positive integer"),
        (SurrealGAN, {"models_per_chunk": -1}, "models_per_chunk should be a positive integer"),
        (SurrealGAN, {"models_per_chunk": 0}, "models_per_chunk should be a positive integer, but got 0"),
        (SurrealGAN, {"latent": "sampled"}, "`latent` should be 'independent' or 'correlated', but got 'sampled'"),
        (SurrealGANSearch, {"n_patterns": (2, 0)}, "n_patterns should be a positive integer, but got 0"),
        (SurrealGANSearch, {"n_patterns": 2.5}, r"n_patterns should be a positive integer, but got 2\.5"),
        (SurrealGANSearch, {"n_patterns": ()}, "should each have at least one value"),
        (
            SurrealGANSearch,
            {"n_patterns": "many"},
            "n_patterns should be 'auto', a number or a list of numbers, but got 'many'",
        ),
        (SurrealGANSearch, {"orthogonality": []}, "each have at least one value"),
        (
            SurrealGANSearch,
            {"orthogonality": (0.4, -0.1)},
            r"orthogonality should be a finite non-negative number, but got -0\.1",
        ),
        (SurrealGANSearch, {"n_repetitions": 0}, "n_repetitions should be a positive integer, but got 0"),
        (SurrealGANSearch, {"preset": "faster"}, "`preset` should be 'fast', 'linear', .*but got 'faster'"),
        (SurrealGANSearch, {"inference": "mean"}, "`inference` should be 'consensus' or 'medoid'"),
        (SurrealGANSearch, {"max_steps": 0}, "max_steps should be a positive integer, but got 0"),
    ],
)
def test_a_bad_setting_is_named_before_any_training(small_table, small_labels, kind, setting, message):
    refused_with(message, kind(**{"n_patterns": 3} | setting).fit, small_table, small_labels, error=ValueError)


# Correlated severities


@pytest.fixture(scope="module")
def correlated(unfitted, quick_preset, regions, small_labels, covariates):
    """Fit a model whose correlation moves far in forty steps; also return what training passed to `_keep`."""
    handed_over = []

    class Watched(SurrealGAN):
        def _keep(self, *arguments):
            handed_over.extend(arguments)
            return super()._keep(*arguments)

    training = replace(quick_preset.training, latent="weighted", correlation_penalty=0.0)
    preset = replace(quick_preset, training=training, rates=quick_preset.rates._replace(correlation=0.02))
    return Watched(**unfitted.get_params() | {"preset": preset, "latent": "correlated"}).fit(
        regions, small_labels, covariates
    ), handed_over


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_correlation_is_in_the_order_of_the_patterns(correlated, order):
    """Training yields patterns in arbitrary order; the model numbers them by size, and the correlation follows."""
    model, (prepared, chosen, selected) = correlated
    assert np.ptp(model.correlation_[np.triu_indices(3, k=1)]) > 0.02  # otherwise the order would not show
    members = [jax.tree.map(lambda leaf, k=k: leaf[k], selected.models) for k in range(len(selected.members))]
    reordered = [inference.reorder_patterns(member, np.array(order)) for member in members]
    shuffled = replace(
        selected,
        models=jax.tree.map(lambda *leaves: np.stack(leaves), *reordered),
        correlation=selected.correlation[np.ix_(order, order)],
    )
    again = SurrealGAN(**model.get_params())._keep(prepared, chosen, shuffled)
    np.testing.assert_allclose(again.r_indices_, model.r_indices_, atol=1e-12)
    np.testing.assert_array_equal(again.correlation_, model.correlation_)


def test_correlation_is_saved(correlated, tmp_path):
    model, _ = correlated
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.correlation_, model.correlation_)


# People


@pytest.mark.parametrize("name", ["age", "participant_id", "diagnosis"])
def test_a_name_has_one_role(unfitted, regions, small_labels, covariates, name):
    message, table = f"The name '{name}' is used more than once", regions.rename(columns={"region2": name})
    refused_with(message, clone(unfitted).fit, table, small_labels, covariates, error=ValueError)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"region3": None}, "yet now missing:\n- region3\n"),
        ({"another": 1.0}, "unseen at fit time:\n- another\n"),
        ({"age": None, "sex": None}, "trained with the covariates age, sex, but the covariates provided are: none"),
        ({"sex": None}, r"Covariate 'sex' is missing.*\n.*a table with the column names used"),
        (
            {f"region{k}": np.where(np.arange(80) == 3, np.nan, 1.0) for k in range(4)},
            "33 % of the values in row 3 of X",
        ),
    ],
)
def test_what_new_people_lack_is_named(fitted, regions, covariates, change, message):
    people = pd.concat([regions.reset_index(drop=True), covariates], axis=1).assign(**change).dropna(axis=1, how="all")
    given = [name for name in ("age", "sex") if name in people]
    refused_with(
        message, fitted.transform, people.drop(columns=given), people[given] if given else None, error=ValueError
    )


def test_gaps_that_cannot_be_filled_are_refused(fitted, regions, covariates):
    early = deepcopy(fitted)
    early.familiar_ = None
    refused_with(
        "imported or trained on few controls cannot impute them",
        early.transform,
        regions.mask(regions == regions.iloc[3, 3]),
        covariates,
    )


# Corrections, and maps from patients


def test_a_correction_reaches_the_preprocessing_and_synthesised_people(unfitted, regions, small_labels, covariates):
    rng = np.random.default_rng(8)
    several_sites = covariates.assign(site=rng.permutation(np.tile(["A", "B"], 40)), head=rng.normal(1500, 100, 80))
    correction = Correction(smooth=["age"], interactions=[("age", "sex")], proportion="head", site="site")
    model = clone(unfitted).set_params(correction=correction, max_steps=1)
    assert clone(model).get_params() == model.get_params()
    model.fit(regions, small_labels, several_sites)
    controls = small_labels == 0
    expected = Preprocessing.fit(regions.to_numpy()[controls], several_sites[controls], correction)
    brains = expected.transform(regions.to_numpy(), several_sites)
    np.testing.assert_allclose(model.z_scores(regions, several_sites), (brains - 1) / 0.1, atol=1e-12)
    made = inference.synthesise(model.models_, brains, np.zeros((80, 3)), "additive").mean(axis=0)
    np.testing.assert_allclose(
        model.synthesize(regions, [0, 0, 0], several_sites), expected.inverse_transform(made, several_sites)
    )
    refused_with(
        "come from A, B, but 'site' contains 'C'",
        model.transform,
        regions,
        several_sites.assign(site="C"),
        error=ValueError,
    )
    assert np.isfinite(model.transform(regions, several_sites.assign(site=UNCORRECTED))).all()


def test_decomposition_is_in_units_of_the_table_and_its_maps_are_lines_through_the_origin(
    fitted, regions, covariates, small_labels, by_hand
):
    patients, (brains, mean, sd, _) = small_labels == 1, by_hand
    expected = averaged(fitted, decomposed, brains) * 10 * sd
    np.testing.assert_allclose(fitted.decompose(regions, covariates), expected, rtol=1e-9, atol=1e-6)
    found = []
    for networks in (member(fitted, k) for k in range(len(fitted.members_))):
        scores, changes = scored(networks, brains[patients]), decomposed(networks, brains[patients])
        found.append([np.linalg.lstsq(scores[:, [i]], changes[:, i], rcond=None)[0][0] for i in range(3)])
    slopes = 10 * np.array(found)  # in sd
    columns = {
        "decomposed_sd": slopes.mean(axis=0),
        "decomposed_percent": 100 * slopes.mean(axis=0) * sd / mean,
        "decomposed_spread_sd": slopes.std(axis=0, ddof=1),
    }
    who = {"region": [*regions.columns] * 3, "pattern": np.repeat([1, 2, 3], 12)}
    expected = pd.DataFrame(who | {name: values.ravel() for name, values in columns.items()})
    table = fitted.decomposed_maps(regions[patients], covariates[patients])
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, rtol=1e-9, atol=0)


# No leakage, no half-fitted models


def test_a_fit_that_ends_early_leaves_what_was_there(fitted, unfitted, regions, small_labels, covariates):
    def interrupt(_):
        raise KeyboardInterrupt

    old, new = deepcopy(fitted), clone(unfitted)
    refused_with(None, old.fit, 2 * regions, small_labels, covariates, error=KeyboardInterrupt, progress=interrupt)
    np.testing.assert_array_equal(old.transform(regions, covariates), fitted.r_indices_)
    refused_with("same value", new.fit, regions.assign(region0=1.0), small_labels, error=ValueError)
    for ask, *more in ((new.transform,), (new.save,), (new.network_r_indices,), (new.held_out_again, np.arange(40))):
        refused_with(None, ask, regions, *more, error=NotFittedError)


def test_few_people_and_covariates_that_few_controls_share_with_patients_are_warned_of(
    unfitted, small_table, small_labels
):
    few = np.r_[0:30, 40:46]
    with pytest.warns(UserWarning, match="Only 30 controls and 6 patients"):
        clone(unfitted).fit(small_table.iloc[few], small_labels[few])
    ages = pd.DataFrame({"age": np.tile(np.linspace(50, 70, 40), 2) + 15 * small_labels})
    with pytest.warns(UserWarning, match=r"times as uncertain .* in patients as in\s+controls"):
        clone(unfitted).set_params(n_repetitions=2).fit(small_table, small_labels, ages)


def test_people_who_lack_regions_are_learned_from_and_scored(unfitted, regions, small_labels, covariates):
    gappy = regions.mask(np.random.default_rng(8).random(regions.shape) < 0.08)
    gappy = gappy.where(gappy.isna().mean(axis=1) <= 0.2, regions)
    lacking = gappy.isna().any(axis=1).to_numpy()
    model = clone(unfitted).fit(gappy, small_labels, covariates)
    scores = model.scores(gappy, covariates)
    assert np.isfinite(scores.r_indices).all()
    assert ((scores.more_sd > 0) == lacking[:, None]).all()
    assert 0 < lacking.mean() < 1
    np.testing.assert_array_equal(model.transform(gappy[::-1], covariates[::-1])[::-1], scores.r_indices)
    np.testing.assert_allclose(
        model.z_scores(gappy, covariates)[~lacking], model.z_scores(regions, covariates)[~lacking]
    )
