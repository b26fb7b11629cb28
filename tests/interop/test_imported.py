import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from rindices import InputError, load_model
from rindices.cohort import check_people
from rindices.interop.muse import MUSE72_NAMES, muse_regions, with_muse72
from rindices.interop.official import import_official
from tests.interop.archives import checkpoint, data_folder, save
from tests.interop.test_official import plain_r_indices

NAMES = [f"region{i}" for i in range(8)]


@pytest.fixture
def source(tmp_path):
    content, arrays = checkpoint(entries=(100, 200))
    return save(tmp_path / "official.pt", content), content, arrays


@pytest.fixture
def people():
    rng = np.random.default_rng(3)
    regions = pd.DataFrame(rng.uniform(2000, 9000, (30, 8)), columns=NAMES)
    return regions, pd.DataFrame({"sex": rng.integers(0, 2, 30) * 1.0, "age": rng.uniform(60, 90, 30)})


def test_imported_model_is_an_ordinary_model(source, people, tmp_path):
    path, content, arrays = source
    regions, covariates = people
    model = import_official(path, NAMES, ["sex", "age"], entry=200)
    scores = model.transform(regions[NAMES[::-1]], covariates)  # columns are matched by name
    np.testing.assert_allclose(
        scores, plain_r_indices(content, arrays, regions.to_numpy(), covariates.to_numpy()), atol=1e-6
    )
    loaded = load_model(model.save(tmp_path / "model.safetensors"))
    np.testing.assert_array_equal(loaded.transform(regions, covariates), scores)
    assert loaded.contract_ == model.contract_
    for fitted in (model, loaded):
        assert fitted.decompose(regions, covariates).shape == (30, 2, 8)
        assert fitted.synthesize(regions, [0.5, 0.5], covariates).shape == (30, 8)
        assert len(fitted.pattern_maps(regions, covariates)) == 16
        assert np.isnan(fitted.spread(regions, covariates)).all()
        assert (fitted.step_, fitted.seed_, fitted.members_) == (2000, None, [0])
        assert fitted.preset_.training.composition == "additive"


def table_of(regions, covariates):
    return pd.concat([regions, covariates], axis=1).assign(participant_id=[f"p{i}" for i in range(len(regions))])


def test_nobody_is_flagged_for_unknown_ranges(source, people):
    contract = import_official(source[0], NAMES, "sex,age", entry=100).contract_
    regions, covariates = people
    covariates.loc[0, "age"] = 95.0
    flags = check_people(table_of(regions * 1.4, covariates), contract).flags
    assert flags.iloc[0] == "age 95 above 90"
    assert (flags.iloc[1:] == "").all()


def test_another_unit_and_coding_are_noticed(source, people):
    contract = import_official(source[0], NAMES, "sex,age", entry=100).contract_
    regions, covariates = people
    with pytest.raises(InputError, match="1000 times smaller"):
        check_people(table_of(regions / 1000, covariates), contract)
    with pytest.raises(InputError, match="coded 0, 1 in training"):
        check_people(table_of(regions, covariates.assign(sex=covariates["sex"] + 1)), contract)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"features": NAMES[:7]}, "8 regions, but 7 different names were given: region0"),
        ({"features": None}, "were given: none"),
        ({"features": "muse72"}, "8 regions, but 72 different names"),
        ({"features": [*NAMES[:7], "age"]}, "'age' is used twice"),
        ({"features": [*NAMES[:7], "participant_id"]}, "'participant_id' is used twice"),
        ({"covariates": None}, r"2 covariates \(with the ranges 0 to 1, 60 to 90\), but none were named"),
        ({"covariates": "sex"}, "but 1 was named"),
        ({"covariates": "age,sex"}, "'age' cannot have the range 0 to 1: the names are in another order"),
        ({"covariates": "site,sex"}, "'sex' cannot have the range 60 to 90"),
        ({"entry": None}, "2 entries: 100, 200"),
    ],
)
def test_names_that_do_not_fit_are_refused(source, change, words):
    with pytest.raises(InputError, match=words):
        import_official(source[0], **{"features": NAMES, "covariates": "sex,age", "entry": 100} | change)


def test_model_without_covariates(tmp_path, people):
    content = checkpoint()[0] | {"correction_variables": None}
    path = save(tmp_path / "official.pt", content)
    model = import_official(path, NAMES)
    assert model.transform(people[0]).shape == (30, 2)
    with pytest.raises(InputError, match="corrected for no covariates"):
        import_official(path, NAMES, "age")


@pytest.fixture(scope="module")
def published():
    return import_official(data_folder() / "official_ad_2rindices.pt", "muse72", "sex,age")


def test_published_model_gives_the_published_r_indices(published, tmp_path):
    expected = pd.read_csv(data_folder() / "official_ad_2rindices_expected.csv")
    regions = expected[[f"roi{i}" for i in range(72)]].set_axis(list(MUSE72_NAMES), axis=1)
    for model in (published, load_model(published.save(tmp_path / "model.safetensors"))):
        scores = model.transform(regions, expected[["sex", "age"]])
        np.testing.assert_allclose(scores, expected[["r1", "r2"]], atol=1e-5)


def test_published_model_reads_muse_tables(published):
    expected = pd.read_csv(data_folder() / "official_ad_2rindices_expected.csv")
    columns = {}
    for position, name in enumerate(MUSE72_NAMES):
        numbers = name.split(" ")[0].removeprefix("MUSE_").split("+")
        for share, number in zip((0.3, 0.7) if len(numbers) == 2 else (1.0,), numbers, strict=True):
            columns[f"DL_MUSE_Volume_{number}"] = share * expected[f"roi{position}"] / 1000  # in mL
    table = pd.DataFrame(columns).assign(**expected[["participant_id", "sex", "age"]])
    people = check_people(with_muse72(table), published.contract_)
    assert (people.flags == "").all()
    scores = published.transform(people.features, people.covariates)
    np.testing.assert_allclose(scores, expected[["r1", "r2"]], atol=1e-5)


def test_published_model_reads_the_severities_that_it_puts_in(published):
    rng = np.random.default_rng(0)
    covariates = pd.DataFrame({"sex": rng.integers(0, 2, 300) * 1.0, "age": rng.uniform(60, 90, 300)})
    scaled = 1 + 0.1 * rng.standard_normal((300, 72))
    controls = published.preprocessing_.inverse_transform(scaled, covariates)
    z = rng.uniform(size=(300, 2))
    made = published.synthesize(pd.DataFrame(controls, columns=list(MUSE72_NAMES)), z, covariates)
    found = published.transform(pd.DataFrame(made, columns=list(MUSE72_NAMES)), covariates)
    for pattern in (0, 1):
        assert spearmanr(z[:, pattern], found[:, pattern]).statistic > 0.95
        assert abs(spearmanr(z[:, pattern], found[:, 1 - pattern]).statistic) < 0.2
    np.testing.assert_allclose(found, z, atol=0.4)


def test_second_published_pattern_is_medial_temporal(published):
    """A check of the regions' order: the authors describe this pattern as atrophy of the medial temporal lobe."""
    rng = np.random.default_rng(0)
    covariates = pd.DataFrame({"sex": rng.integers(0, 2, 100) * 1.0, "age": rng.uniform(60, 90, 100)})
    controls = published.preprocessing_.inverse_transform(1 + 0.1 * rng.standard_normal((100, 72)), covariates)
    maps = published.pattern_maps(pd.DataFrame(controls, columns=list(MUSE72_NAMES)), covariates)
    second = maps[maps["pattern"] == 2].set_index("region")["change_sd"]
    names = muse_regions()["name"]
    expected = {names[number] for number in (47, 31, 170, 116)}
    assert {region.split(" ", 1)[1] for region in second.nsmallest(4).index} == expected
