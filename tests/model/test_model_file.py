import hashlib
import json
import subprocess
import sys
from copy import copy
from dataclasses import replace
from functools import reduce
from operator import getitem

import jax
import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.base import clone

from rindices import SurrealGAN, load_model
from rindices.model import ModelFileError
from rindices.presets import PRESETS, Correction, LearningRates, LossWeights, Preset, Schedule, Training
from rindices.scoring.severity_and_reference import SHAPES
from tests.refusal import refused_with

# Repetitions trained for forty steps rarely agree.
pytestmark = pytest.mark.filterwarnings("ignore:Excluded repetitions:UserWarning")

ODD_NAMES = [
    "Größe",
    "海马体",
    'say "hi"',
    "back\\slash",
    "a, b",
    " space ",
    "tab\t",
    "line\nbreak",
    "null",
    "🧠",
    "",
    "é",
]


@pytest.fixture(scope="module")
def table(small_table):
    return small_table.set_axis(ODD_NAMES, axis=1)


@pytest.fixture(scope="module")
def covariates(table):
    rng = np.random.default_rng(5)
    return pd.DataFrame({"âge": rng.uniform(50, 80, len(table)), "site": rng.choice(["A", "北京"], len(table))})


@pytest.fixture(scope="module")
def fitted(quick_preset, table, small_labels, covariates):
    model = SurrealGAN(np.int64(3), n_repetitions=3, preset=quick_preset, orthogonality=np.float32(0.5), random_state=0)
    model.fit(table, small_labels, covariates)
    scatter = np.random.default_rng(0).normal(size=(3, *SHAPES["quantiles"]))
    model.scale_ = replace(model.scale_, quantiles=scatter)  # too few repetitions agree to estimate it
    model.familiar_ = replace(model.familiar_, surprise=np.array([1.7]))
    return model


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    return fitted.save(tmp_path_factory.mktemp("run") / "model.safetensors")


@pytest.fixture(scope="module")
def loaded(saved):
    return load_model(saved)


def refused(path, message=None):
    """Check that the file is refused with a message that names it and a remedy; return the message."""
    said = refused_with(message, load_model, path, error=ModelFileError)
    assert str(path) in said
    assert "\n" in said
    return said


def contents(path):
    with safe_open(path, framework="numpy") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def digest(header, arrays):
    """Return the checksum that the format defines: the header, then each array's name, type, shape and bytes."""
    whole = header.encode()
    for name, array in sorted(arrays.items()):
        whole += f"\n{name} {array.dtype.str} {array.shape}\n".encode() + array.tobytes()
    return hashlib.sha256(whole).hexdigest()


@pytest.fixture
def forge(saved, tmp_path):
    """Return a function that writes the model with altered arrays, header or metadata and a matching checksum."""

    def write(arrays=None, header=None, **metadata):
        kept, weights = contents(saved)
        weights = {name: array for name, array in (weights | (arrays or {})).items() if array is not None}
        text = kept["header"] if header is None else header
        path = tmp_path / "forged.safetensors"
        save_file(weights, path, kept | {"header": text, "sha256": digest(text, weights)} | metadata)
        return path

    return write


GONE = object()


def edited(path, *keys, to):
    """Return the header as text, with one entry replaced or removed."""
    header = json.loads(contents(path)[0]["header"])
    reduce(getitem, keys[:-1], header)[keys[-1]] = to
    return json.dumps({name: value for name, value in header.items() if value is not GONE})


# Round trips


def say_the_same(after, before, table, covariates, *methods):
    for method in methods:
        found, expected = (getattr(model, method)(table, covariates) for model in (after, before))
        np.testing.assert_array_equal(np.asarray(found, object), np.asarray(expected, object))
    found, expected = (model.synthesize(table, [0.3, 0.0, 0.8], covariates) for model in (after, before))
    np.testing.assert_array_equal(found, expected)


def test_a_loaded_model_says_the_same_to_the_bit(fitted, loaded, table, covariates):
    methods = ("transform", "spread", "decompose", "pattern_maps", "severities", "intervals")
    say_the_same(loaded, fitted, table, covariates, *methods)
    np.testing.assert_array_equal(loaded.scale_.centiles(fitted.r_indices_), fitted.scale_.centiles(fitted.r_indices_))
    jax.tree.map(np.testing.assert_array_equal, loaded.models_, fitted.models_)
    assert loaded.familiar_.surprise == fitted.familiar_.surprise


def test_fitted_attributes_and_odd_names_are_kept(fitted, loaded, saved, tmp_path):
    for name in ("agreement_", "members_", "left_out_", "step_", "seed_", "preset_", "contract_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(fitted, name), name
    assert type(loaded.agreement_) is type(fitted.agreement_)
    assert (loaded.feature_names_in_.tolist(), loaded.feature_names_in_.dtype) == (ODD_NAMES, object)
    assert [spec.name for spec in loaded.contract_.covariates] == ["âge", "site"]
    assert loaded.preprocessing_.residualizer.covariates[1].categories == ("A", "北京")
    assert loaded.save(tmp_path / "again.safetensors").read_bytes() == saved.read_bytes()


def test_settings_are_kept(fitted, loaded, tmp_path):
    assert loaded.get_params() == fitted.get_params() | {"random_state": 0}
    training = Training("joint", "separate", "person", 0.1, 7.0, 0.9, (0.5, 0.25), "sampled", 0.03)
    mine = Preset(
        "mine", LossWeights(*range(6)), LearningRates(0.5, 0.25, 0.125), training, Schedule(None, 1, 2, 3, 0.5, 4)
    )
    for preset in (mine, *(make() for make in PRESETS.values())):
        assert load_model(copy(fitted).set_params(preset=preset).save(tmp_path / "model.safetensors")).preset == preset


def test_a_loaded_model_can_be_fitted_again_and_a_forgery_without_changes_is_accepted(
    fitted, loaded, forge, table, small_labels, covariates
):
    np.testing.assert_array_equal(load_model(forge()).transform(table, covariates), fitted.r_indices_)
    np.testing.assert_array_equal(clone(loaded).fit(table, small_labels, covariates).r_indices_, fitted.r_indices_)


def test_a_model_without_names_covariates_or_agreement_survives(quick_preset, small_table, small_labels, tmp_path):
    X = small_table.to_numpy()
    model = SurrealGAN(3, n_repetitions=1, preset=quick_preset, random_state=0).fit(X, small_labels)
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    assert not hasattr(loaded, "feature_names_in_")
    assert np.isnan(loaded.agreement_).all()
    np.testing.assert_array_equal(loaded.agreement_, model.agreement_)
    np.testing.assert_array_equal(loaded.transform(X), model.r_indices_)


# Corrections of covariates and sites


@pytest.fixture(scope="module")
def corrected(quick_preset, table, small_labels, covariates):
    correction = Correction(smooth=["âge"], interactions=[("âge", "sex")], proportion="head", site="site")
    rng = np.random.default_rng(7)
    more = covariates.assign(sex=rng.choice(["F", "M"], 80), head=rng.normal(1500, 100, 80))
    return SurrealGAN(3, n_repetitions=2, preset=quick_preset, correction=correction, random_state=0).fit(
        table, small_labels, more
    ), more


def test_a_corrected_model_says_the_same_to_the_bit(corrected, table, tmp_path):
    model, more = corrected
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    assert loaded.get_params() == model.get_params()
    say_the_same(loaded, model, table, more, "transform", "z_scores", "decomposed_maps", "pattern_maps")
    assert contents(loaded.save(tmp_path / "again.safetensors"))[0] == contents(tmp_path / "model.safetensors")[0]


def test_a_model_that_learned_a_site_survives_and_says_the_same_of_others(corrected, table, tmp_path):
    model, more = corrected
    assert (model.scores(table, more).more_sd > 0).all()
    old, local = copy(model), more[:40].assign(site="Graz")  # as in files written before every site had errors
    old.preprocessing_ = replace(old.preprocessing_, harmonizer=replace(old.preprocessing_.harmonizer, errors=None))
    adapted = load_model(old.adapt(table[:40] * 1.05, local).save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(adapted.transform(table, more), model.transform(table, more))
    there = adapted.prepare(table[:40] * 1.05, local)
    assert abs(there.values.mean() - model.prepare(table[:40], more[:40]).values.mean()) < 0.01
    assert (adapted.scores(there).more_sd > 0).all()
    assert (adapted.scores(table, more).more_sd == 0).all()
    assert "Graz" in next(spec for spec in adapted.contract_.covariates if spec.name == "site").categories


def test_controls_of_a_new_site_are_checked_as_all_new_people_are(corrected, table):
    model, more = corrected
    there, local = table[:40] * 1.05, more[:40].assign(site="Graz")
    adapted, reversed_columns = model.adapt(there, local), model.adapt(there[there.columns[::-1]], local)
    np.testing.assert_array_equal(reversed_columns.transform(there, local), adapted.transform(there, local))
    refused_with("in different orders", model.adapt, there, local[::-1])
    refused_with("1000", model.adapt, there * 1000, local)
    message, gappy = (
        "missing values .* row 3, but site effects are estimated only from",
        there.mask(there == there.iloc[3, 3]),
    )
    refused_with(message, model.adapt, gappy, local)


def test_a_site_without_a_name_is_refused(corrected, tmp_path):
    path = corrected[0].save(tmp_path / "model.safetensors")
    (metadata, arrays), header = contents(path), edited(path, "preprocessing", "site", 1, 0, to="")
    save_file(arrays, path, metadata | {"header": header, "sha256": digest(header, arrays)})
    refused(path, "a site has no name")


# Contents of the file


def test_the_file_holds_arrays_and_text_only_and_its_header_is_read_without_loading_the_engine(saved, loaded):
    code = (
        "import sys; from rindices.model import read_header; "
        f"print(read_header({str(saved)!r}).step, {{'jax', 'sklearn'}} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == [
        str(loaded.step_),
        "set()",
    ]
    metadata, arrays = contents(saved)
    assert sorted(metadata) == ["format", "format_version", "header", "sha256"]
    assert (metadata["format"], {array.dtype.str for array in arrays.values()}) == ("rindices-model", {"<f4", "<f8"})
    assert metadata["sha256"] == digest(metadata["header"], arrays)


# Files that are not models


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"format": "rindices-model", "format_version": "1"}])
def test_foreign_safetensors_files_are_refused(tmp_path, metadata):
    path = tmp_path / "foreign.safetensors"
    save_file({"weight": np.zeros(3)}, path, metadata)
    refused(path, "is a safetensors file, but not a rindices model")


@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"sha256": "0" * 64}, "was altered or damaged"),
        *(
            ({"format_version": version}, "reads version 4.\nInstall a newer version of rindices.")
            for version in ("5", "99", "-1", "", "1.5", "one", "²")
        ),
        *(
            (
                {"format_version": version},
                f"has format version {version}, but .* reads version 4.\nFit or import the model again",
            )
            for version in ("0", "1", "2", "3")
        ),
        *(
            ({"header": header}, "is not a complete model")
            for header in (
                *("", "{", "null", "[]", "3", '"text"', "{}"),
                *('{"preprocessing": []}', '{"preprocessing": 3}', '{"residualized": 3}'),
            )
        ),
    ],
)
def test_other_checksums_versions_and_headers_that_describe_nothing_are_refused(forge, forged, message):
    refused(forge(**forged), message)


# Forged models: the checksum matches, the contents do not


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        *(
            (
                name,
                lambda array, value=value: np.where(
                    np.arange(array.size).reshape(array.shape) == array.size - 1, value, array
                ),
                "array {} should contain finite",
            )
            for name in ("transformation.encode1.weight", "scaler.sd", "residualizer.effects")
            for value in (np.nan, np.inf)
        ),
        *(
            (
                "decomposer.patterns.bias",
                lambda array, kind=kind: array.real.astype(kind),
                "should contain finite floating-point numbers",
            )
            for kind in ("i8", "bool")
        ),
        *(("scaler.sd", lambda array, factor=factor: factor * array, "{} should be above 0") for factor in (0.0, -1.0)),
    ],
)
def test_numbers_that_cannot_be_are_refused(saved, forge, name, change, message):
    refused(forge({name: change(contents(saved)[1][name])}), message.format(name))


def test_any_array_that_is_missing_or_of_another_shape_is_refused(saved, forge):
    for name, array in contents(saved)[1].items():
        optional = name in ("scale.reference", "scale.quantiles", "familiar.surprise")
        for other in (*([] if optional else [None]), array[..., :-1].copy(), array[None]):
            refused(forge({name: other}), "is not a complete model")


FORGED = [
    (("step",), "20", "step: "),
    (("seed",), True, "seed: "),
    (("members",), [0, "1", 2], "members"),
    (("members",), [], "members: "),
    (("named",), 1, "named: "),
    (("package_version",), None, "package_version: "),
    (("agreement", "pattern_agreement"), "0.9", "agreement.pattern_agreement: "),
    (("left_out",), [["1", "why"]], "left_out.0.0: "),
    (("correlation",), [[1.0]], "correlation matrix should be 3 x 3"),
    (("verdict",), [True, "why"], "verdict.0: "),
    (("reliability",), ["yes", "why"], "reliability: "),
    (("parameters", "n_patterns"), 2, "correlation matrix should be 2 x 2"),
    (("parameters", "n_layers"), 3, "parameters.n_layers: "),
    (("parameters", "inference"), "mean", "parameters.inference: "),
    (("parameters", "preset", "optimiser"), "sgd", "parameters.preset.optimiser: "),
    (("parameters", "correction"), {"smooth": "age"}, "parameters.correction."),
    (("parameters", "random_state"), 1.5, "parameters.random_state: "),
    (("parameters", "preset", "weights", "change"), 10**400, "parameters.preset.weights.change: "),
    (("parameters", "preset", "training", "composition"), "other", "parameters.preset.training.composition: "),
    (("parameters", "preset", "schedule", "max_steps"), 2.5, "parameters.preset.schedule.max_steps: "),
    (("contract", "features", 0), "\ud800", "is not a complete model"),
    (("contract", "feature_maximum", 0), 10**400, "feature_maximum"),
    (("contract", "covariates", 1, "categories"), [], "at least one category and no duplicates"),
    (
        ("contract", "covariates", 1, "categories"),
        ["A", "A"],
        "at least one category and no duplicates",
    ),
    (("contract", "covariates", 0, "codes"), [1, 2, 3], "codes"),
    (("contract", "covariates", 0, "name"), "years", "correction needs 'âge', which is not one of the covariates"),
    (("preprocessing", "covariates", 0), ["site", None, None], "a covariate is named twice"),
    (("preprocessing", "covariates", 1, 1), [], "'site' should have at least one category"),
    (("preprocessing", "covariates", 1, 1), "AB", "covariates.1.1: "),
    (("preprocessing", "covariates", 0, 2), [1, 2, 10**400], "covariates.0.2.2: "),
    (("preprocessing", "head_size"), ["âge", "1500"], "head_size.1: "),
    *(
        ((name,), GONE, f"is not a complete model: .?{name}")
        for name in (
            *("parameters", "contract", "members", "step", "seed", "agreement", "left_out", "named", "preprocessing"),
            *("verdict", "correlation"),
        )
    ),
    *(
        ((name,), value, "is not a complete model")
        for name in ("parameters", "contract", "agreement", "left_out", "preprocessing")
        for value in (3, "text", {"a": 1})
    ),
]


@pytest.mark.parametrize(("keys", "to", "message"), FORGED, ids=[".".join(map(str, keys)) for keys, _, _ in FORGED])
def test_forged_entries_are_refused(saved, forge, keys, to, message):
    refused(forge(header=edited(saved, *keys, to=to)), message)


def test_entries_nested_without_end_and_with_endless_names_are_refused_in_few_words(saved, forge):
    assert len(refused(forge(header=edited(saved, "contract", to={"A" * 100_000: 1})))) < 1000
    refused(
        forge(header=edited(saved, "step", to="deep").replace('"deep"', "[" * 100_000 + "]" * 100_000)),
        "is not a complete model",
    )
