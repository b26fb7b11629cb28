import re

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from rindices import load_model
from rindices.core import networks
from rindices.interop.checkpoint_contents import read_checkpoint
from rindices.interop.checkpoint_to_model import import_official
from rindices.interop.muse import MUSE72_NAMES, with_muse72
from rindices.interop.torch_archive import ArchiveError
from rindices.run.apply_table import people_for
from rindices.settings import ApplySettings
from tests.core.plain import leaky
from tests.interop.archives import Tensor, checkpoint, data_folder, save
from tests.refusal import refused_with
from tests.schema.contracts import check_people


def linear(arrays, place, inputs):
    return inputs @ arrays[f"{place}.weight"].T + arrays.get(f"{place}.bias", 0)


def plain_r_indices(content, arrays, regions, covariates):
    """Compute R-indices as the authors describe them, from torch's arrays as they are."""
    correction, scale = content["correction_variables"], content["normalization_variables"]
    share = (covariates - correction["min_cov"]) / (correction["max_cov"] - correction["min_cov"])
    brains = 1 + (regions - share @ correction["beta"] - scale["cn_mean"]) / (10 * scale["cn_std"])
    changes = linear(arrays["netDecomposer"], "model.1", leaky(brains)).reshape(len(brains), -1, brains.shape[1])
    hidden = leaky(linear(arrays["netReconstruction"], "model.0", changes))
    hidden = leaky(linear(arrays["netReconstruction"], "model.2", hidden))
    return linear(arrays["netReconstruction"], "model.4", hidden).sum(axis=1)


def plain_change(arrays, brains, z):
    """Compute what f adds to brains at severities `z`."""
    f = arrays["netMapping"]
    hidden = leaky(linear(f, "model.2", leaky(linear(f, "model.0", brains))))
    gate = 1 / (1 + np.exp(-linear(f, "model.4.add_noise.0", z)))
    return leaky(linear(f, "model.7", leaky(linear(f, "model.5", hidden * gate))))


@pytest.mark.parametrize("n_patterns", [1, 2, 3])
def test_layers_go_where_they_belong(tmp_path, n_patterns):
    content, arrays = checkpoint(12, n_patterns, seed=n_patterns)
    model, rng = read_checkpoint(save(tmp_path / "model.pt", content)), np.random.default_rng(0)
    regions, covariates = rng.uniform(2000, 9000, (20, 12)), np.c_[rng.integers(0, 2, 20), rng.uniform(55, 95, 20)]
    brains = model.preprocessing(("sex", "age")).transform(regions, pd.DataFrame(covariates, columns=["sex", "age"]))
    one = jax.tree.map(lambda array: array[0], model.models)
    np.testing.assert_allclose(
        networks.predict_r_indices(one, brains),
        plain_r_indices(content, arrays, regions, covariates),
        rtol=1e-4,
        atol=1e-4,
    )
    z = rng.uniform(size=(20, n_patterns))
    change = networks.decode(one.transformation, networks.encode(one.transformation, brains), z[:, None])[:, 0]
    np.testing.assert_allclose(change, plain_change(arrays, brains, z), rtol=1e-4, atol=1e-4)
    assert (model.models.linear, {array.dtype for array in jax.tree.leaves(model.models)}) == (None, {np.dtype("f4")})


@pytest.mark.parametrize("outside", [False, True])
def test_correlation_of_severities(tmp_path, outside):
    content, _ = checkpoint(12, 3, phi_outside=outside)
    # Rows of ones: unit vectors along (1, 0, 0), (1, 1, 0) and (1, 1, 1).
    expected = [[1, 2**-0.5, 3**-0.5], [2**-0.5, 1, 2 / 6**0.5], [3**-0.5, 2 / 6**0.5, 1]]
    np.testing.assert_allclose(read_checkpoint(save(tmp_path / "model.pt", content)).correlation, expected, rtol=1e-6)
    (content if outside else content[15000]).pop("phi")
    assert read_checkpoint(save(tmp_path / "model.pt", content)).correlation is None


def test_entries_are_chosen_by_number(tmp_path):
    content, arrays = checkpoint(entries=(10, 30, 20))
    path = save(tmp_path / "model.pt", content)
    for missing in (None, 15):
        refused_with(r"3 entries: 10, 20, 30.\nChoose one with `entry`", read_checkpoint, path, missing)
    np.testing.assert_array_equal(
        read_checkpoint(path, 20).models.reconstructor["layer1"]["weight"][0],
        arrays["netReconstruction"]["model.0.weight"].T,
    )


def changed(content, *keys, to=None):
    """Return a checkpoint with something in it replaced, or left out."""
    content = dict(content)
    if len(keys) > 1:
        content[keys[0]] = changed(content[keys[0]], *keys[1:], to=to)
    elif to is None:
        del content[keys[0]]
    else:
        content[keys[0]] = to
    return content


SCALE, CORRECTION = "normalization_variables", "correction_variables"


@pytest.mark.parametrize(
    ("keys", "to", "words"),
    [
        ((15000,), None, "no numbered entry"),
        ((15000,), [1], "entry 15000 should be a dictionary"),
        ((15000, "netMapping"), None, "netMapping should have an array"),
        ((15000, "netMapping", "model.5.weight"), None, "array of numbers 'model.5.weight'"),
        ((15000, "netMapping", "model.9.weight"), Tensor(np.zeros(2, np.float32)), "unknown array 'model.9.weight'"),
        ((15000, "netMapping", "model.5.weight"), Tensor(np.zeros((2, 4), np.float32)), r"\(2, 4\), expected 4 × 2"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.zeros(3, np.float32)), "0 patterns"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, np.nan, np.float32)), "not finite"),
        ((15000, "netDecomposer", "model.1.bias"), "text", "but this is a str"),
        ((15000, "phi"), Tensor(np.zeros(3, np.float32)), "row of zeros"),
        ((15000, "phi"), Tensor(np.ones(4, np.float32)), "expected 3"),
        ((SCALE,), None, "normalization_variables should have an array"),
        ((SCALE, "cn_std"), np.zeros(8), "above 0"),
        ((SCALE, "cn_std"), np.ones(9), "expected 8"),
        ((SCALE, "cn_mean"), np.full(8, np.inf), "not finite"),
        ((CORRECTION, "max_cov"), np.array([0.0, 90.0]), "no range"),
        ((CORRECTION, "beta"), np.ones((3, 8)), r"\(3, 8\), expected 2 × 8"),
        ((15000, "netDecomposer", "model.1.bias"), Tensor(np.full(16, 1e300)), "beyond 1e\\+30"),
        ((15000, "phi"), Tensor(np.full(3, 1e200)), "beyond 1e\\+30"),
        ((CORRECTION, "beta"), np.full((2, 8), 1.7e308), "beyond 1e\\+30"),
    ],
)
def test_other_checkpoints_are_refused(tmp_path, keys, to, words):
    path = save(tmp_path / "model.pt", changed(checkpoint()[0], *keys, to=to))
    assert str(path) in refused_with(words, read_checkpoint, path, error=ArchiveError)


@pytest.mark.parametrize("content", [[], 3, None, {}, {"model": 1}])
def test_other_contents_are_refused(tmp_path, content):
    refused_with(
        "not a checkpoint of the authors' package",
        read_checkpoint,
        save(tmp_path / "model.pt", content),
        error=ArchiveError,
    )


# As models of ours

NAMES = [f"region{i}" for i in range(8)]


def with_ranges(content, low, high):
    return content | {"correction_variables": content["correction_variables"] | {"min_cov": low, "max_cov": high}}


@pytest.fixture
def ageing(tmp_path):
    """Return the content of a checkpoint with the layout of the published model of ageing, its arrays and its path."""
    content, arrays = checkpoint(n_regions=72, n_patterns=5)
    content = with_ranges(content, np.array([0.0, 1031941.0]), np.array([1.0, 2022055.38]))
    return content, arrays, save(tmp_path / "ageing.pt", content)


@pytest.fixture
def source(tmp_path):
    content, arrays = checkpoint(entries=(100, 200))
    return save(tmp_path / "official.pt", content), content, arrays


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    return pd.DataFrame(rng.uniform(2000, 9000, (30, 8)), columns=NAMES), pd.DataFrame(
        {"sex": rng.integers(0, 2, 30) * 1.0, "age": rng.uniform(60, 90, 30)}
    )


def test_imported_model_is_an_ordinary_model(source, people, tmp_path):
    (path, content, arrays), (regions, covariates) = source, people
    model = import_official(path, NAMES, ["sex", "age"], entry=200)
    scores = model.transform(regions[NAMES[::-1]], covariates)  # columns are matched by name
    np.testing.assert_allclose(
        scores, plain_r_indices(content, arrays, regions.to_numpy(), covariates.to_numpy()), atol=1e-6
    )
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.transform(regions, covariates), scores)
    assert loaded.contract_ == model.contract_
    for fitted in (model, loaded):
        made = fitted.decompose(regions, covariates), fitted.synthesize(regions, [0.5, 0.5], covariates)
        assert [one.shape for one in made] == [(30, 2, 8), (30, 8)]
        assert len(fitted.pattern_maps(regions, covariates)) == 16
        assert np.isfinite(fitted.severities(regions, covariates)).all()
        for unknown in (fitted.spread, fitted.intervals):
            assert np.isnan(unknown(regions, covariates)).all()
        assert (fitted.step_, fitted.seed_, fitted.members_, fitted.preset_.training.composition) == (
            2000,
            None,
            [0],
            "additive",
        )


def test_another_unit_and_coding_are_noticed_and_nobody_is_flagged_for_unknown_ranges(source, people):
    contract = import_official(source[0], NAMES, "sex,age", entry=100).contract_
    table = pd.concat(people, axis=1).assign(participant_id=[f"p{i}" for i in range(30)])
    for told, factor, code in (("1000 times smaller", 0.001, 0), ("coded 0, 1 in training", 1, 1)):
        refused_with(told, check_people, table.assign(**factor * table[NAMES], sex=table["sex"] + code), contract)
    table.loc[0, "age"] = 95.0
    assert check_people(table.assign(**1.4 * table[NAMES]), contract).flags.tolist() == ["age 95 above 90"] + [""] * 29


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": NAMES[:7]}, "8 regions, but 7 distinct names were given: region0"),
        ({"features": None}, "were given: none"),
        ({"features": "muse72"}, "8 regions, but 72 distinct names"),
        ({"features": [*NAMES[:7], "age"]}, "'age' is used more than once"),
        ({"features": [*NAMES[:7], "participant_id"]}, "'participant_id' is used more than once"),
        ({"covariates": "sex"}, r"2 covariates \(with the ranges 0 to 1, 60 to 90\), but 1 was named(?s:.*)'sex,age'"),
        (
            {"covariates": "sex,icv"},
            "'icv' cannot range from 60 to 90: these values do not look like a head size but like years"
            "(?s:.*)'sex,age'",
        ),
        ({"covariates": "age,sex"}, "'age' cannot range from 0 to 1: the names are not in the same order as"),
        ({"covariates": "site,sex"}, "'sex' cannot range from 60 to 90"),
        ({"entry": None}, "2 entries: 100, 200"),
    ],
)
def test_names_that_do_not_fit_are_refused(source, change, words):
    refused_with(
        words, import_official, source[0], **{"features": NAMES, "covariates": "sex,age", "entry": 100} | change
    )


def test_a_model_whose_severities_change_nothing_is_refused(tmp_path):
    still = changed(checkpoint()[0], 15000, "netMapping", "model.5.weight", to=Tensor(np.zeros((4, 2), np.float32)))
    path = save(tmp_path / "still.pt", still)
    refused_with("the same at all severities", import_official, path, NAMES)


def test_ranges_say_what_a_model_was_corrected_for(tmp_path):
    path, content = tmp_path / "model.pt", checkpoint()[0]

    def covariates(low, high, *named):
        save(path, with_ranges(content, np.array(low), np.array(high)))
        return [spec.name for spec in import_official(path, NAMES, *named).contract_.covariates]

    assert covariates([0.0, 60.0], [1.0, 90.0]) == ["sex", "age"]
    head = ([0.0, 9e5], [1.0, 2e6])
    assert covariates(*head) == ["sex", "MUSE_Volume_702"]
    refused_with(
        "'age' cannot range from 900000 to 2000000: these values do not look like years but like a head",
        covariates,
        *head,
        "sex,age",
    )
    for unclear in (([0.0, -2.0], [1.0, 2.0]), ([10.0, 20.0], [50.0, 70.0])):
        refused_with(r"none were named(?s:.*)'sex,age' or covariates='sex,MUSE_Volume_702'", covariates, *unclear)
        assert covariates(*unclear, "severity,weight") == ["severity", "weight"]


def test_patterns_of_the_published_model_of_ageing_are_numbered_as_published(ageing):
    content, arrays, path = ageing
    source, model, rng = read_checkpoint(path), import_official(path, "muse72"), np.random.default_rng(0)
    regions, order = rng.uniform(2000, 30000, (20, 72)), [0, 4, 1, 2, 3]
    covariates = np.c_[rng.integers(0, 2, 20), rng.uniform(1.1e6, 2e6, 20)]
    people = pd.DataFrame(regions, columns=list(MUSE72_NAMES))
    others = pd.DataFrame(covariates, columns=["sex", "MUSE_Volume_702"])
    np.testing.assert_allclose(
        model.transform(people, others),
        plain_r_indices(content, arrays, regions, covariates)[:, order],
        rtol=1e-4,
        atol=1e-3,
    )
    z, brains = rng.uniform(size=(20, 5)), model.preprocessing_.transform(regions, others)
    first, one = (jax.tree.map(lambda array: array[0], models) for models in (source.models, model.models_))
    changes = networks.decompose(first.decomposer, brains), networks.decompose(one.decomposer, brains)
    np.testing.assert_array_equal(changes[0][:, order], changes[1])
    drawn = [
        networks.decode(f, networks.encode(f, brains), severities[:, None])
        for f, severities in ((first.transformation, z), (one.transformation, z[:, order]))
    ]
    np.testing.assert_allclose(*drawn, rtol=1e-5)
    np.testing.assert_array_equal(model.correlation_, source.correlation[np.ix_(order, order)])
    assert "numbered as published; in the file, r2 is 5, r3 is 2" in model.verdict_[1]


def test_the_intracranial_volume_of_a_muse_table_is_a_covariate(ageing, tmp_path):
    model = import_official(ageing[2], "muse72").save(tmp_path / "ageing.safetensors")
    columns = [f"DL_MUSE_Volume_{n}" for name in MUSE72_NAMES for n in re.findall(r"\d+", name.split(" ")[0])]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(6, 14, (20, len(columns))), columns=columns)  # mL
    table = table.assign(participant_id=range(20), sex=rng.integers(0, 2, 20), DL_MUSE_Volume_702=1450.0)
    table.to_csv(tmp_path / "table.csv", index=False)
    (people, *_) = people_for(model, tmp_path / "table.csv", ApplySettings())
    assert (people.covariates["MUSE_Volume_702"] == 1.45e6).all()


@pytest.mark.parametrize("nothing", [None, {}])
def test_model_without_covariates(tmp_path, people, nothing):
    path = save(tmp_path / "official.pt", checkpoint()[0] | {"correction_variables": nothing})
    model = import_official(path, NAMES)
    assert (model.preprocessing_.residualizer, model.transform(people[0]).shape) == (None, (30, 2))
    assert read_checkpoint(path).effects.shape == (0, 8)
    refused_with("corrected for no covariates", import_official, path, NAMES, "age")


@pytest.fixture(scope="module")
def published():
    return import_official(data_folder() / "official_ad_2rindices.pt", "muse72", "sex,age")


def test_published_model_gives_the_published_r_indices_of_muse_tables(published):
    expected, columns = pd.read_csv(data_folder() / "official_ad_2rindices_expected.csv"), {}
    for position, name in enumerate(MUSE72_NAMES):
        numbers = name.split(" ")[0].removeprefix("MUSE_").split("+")
        for share, number in zip((0.3, 0.7) if len(numbers) == 2 else (1.0,), numbers, strict=True):
            columns[f"DL_MUSE_Volume_{number}"] = share * expected[f"roi{position}"] / 1000  # in mL
    people = check_people(
        with_muse72(pd.DataFrame(columns).assign(**expected[["participant_id", "sex", "age"]])), published.contract_
    )
    assert (people.flags == "").all()
    np.testing.assert_allclose(
        published.transform(people.features, people.covariates), expected[["r1", "r2"]], atol=1e-5
    )


def test_published_model_reads_the_severities_that_it_puts_in(published):
    rng, names = np.random.default_rng(0), list(MUSE72_NAMES)
    covariates = pd.DataFrame({"sex": rng.integers(0, 2, 300) * 1.0, "age": rng.uniform(60, 90, 300)})
    controls = published.preprocessing_.inverse_transform(1 + 0.1 * rng.standard_normal((300, 72)), covariates)
    z = rng.uniform(size=(300, 2))
    made = published.synthesize(pd.DataFrame(controls, columns=names), z, covariates)
    found = published.transform(pd.DataFrame(made, columns=names), covariates)
    orders = np.abs(
        spearmanr(z, found).statistic[:2, 2:] - np.eye(2)
    )  # how far they are from the same order, and from none
    np.testing.assert_array_less(orders, [[0.05, 0.2], [0.2, 0.05]])
    np.testing.assert_allclose(found, z, atol=0.4)
