import numpy as np
import pandas as pd
import pytest

from rindices.problems import InputError
from rindices.simulate import ReferencePopulation, simulate_cohort

N = 90


@pytest.fixture
def familiar():
    """Give a table with the paper's regions."""
    table = ReferencePopulation.load().draw(N, np.random.default_rng(0))
    table.insert(0, "participant_id", [f"person {i}" for i in range(N)])
    return table


@pytest.fixture
def foreign():
    """Give a table with other regions, covariates of many kinds and no ids."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.uniform(900, 1100, (N, 40)), columns=[f"region {i}" for i in range(40)])
    covariates = {"Age": rng.uniform(20, 80, N), "SEX": rng.integers(0, 2, N), "site": 1, "scanner": "A"}
    return pd.concat([pd.DataFrame(covariates | {"ICV": 1500.0, "smoker": rng.random(N) < 0.5}), table], axis=1)


def test_a_third_stays_control_and_people_stay_themselves(familiar):
    cohort = simulate_cohort("basic", controls=familiar, seed=1)
    assert cohort.table["diagnosis"].value_counts().to_dict() == {"PT": 60, "CN": 30}
    assert not [part for part in ("table of controls provided", "Table 5") if part not in cohort.note]
    assert cohort.patterns == simulate_cohort("basic", n_controls=1, n_patients=1).patterns
    assert cohort.table["participant_id"].is_unique
    assert cohort.table["participant_id"].tolist() != familiar["participant_id"].tolist()

    original = familiar.set_index("participant_id").loc[cohort.table["participant_id"]].reset_index(drop=True)
    is_control = cohort.table["diagnosis"] == "CN"
    pd.testing.assert_frame_equal(cohort.table.loc[is_control, original.columns], original[is_control])
    np.testing.assert_array_equal(cohort.table["age"], original["age"])
    left = (cohort.table["lAmy"] / original["lAmy"])[~is_control].to_numpy()
    np.testing.assert_allclose(left, 1 - 0.3 * cohort.truth["s1"], atol=0.3 * 0.05 * 5)


def test_unknown_regions_get_random_patterns(foreign):
    first, again, other = (simulate_cohort("basic", controls=foreign, seed=seed) for seed in (0, 0, 1))
    assert "at random from 40 region columns" in first.note
    assert first.patterns == again.patterns
    assert first.patterns != other.patterns
    changed = {region for pattern in first.patterns.values() for region in pattern}
    assert all(region.startswith("region") for region in changed)
    assert first.table["participant_id"].iloc[0] == "sub-0001"
    patients = first.table[first.table["diagnosis"] == "PT"]
    for region in foreign.columns[6:]:
        assert (patients[region].min() < 895) == (region in changed)


def test_regions_limit_what_can_change(foreign):
    chosen = [f"region {i}" for i in range(12)]
    cohort = simulate_cohort("scarce", controls=foreign, regions=chosen)
    assert sorted(region for pattern in cohort.patterns.values() for region in pattern) == sorted(chosen)


def test_whole_numbers_and_gaps_are_fine(foreign):
    foreign["region 0"] = foreign["region 0"].round().astype(int)
    foreign["region 1"] = foreign["region 1"].astype("Float64")
    foreign.loc[:9, ["region 1", "region 2"]] = pd.NA
    foreign.loc[5, "region 3"] = 0.0
    cohort = simulate_cohort("basic", controls=foreign)
    assert ((cohort.table["region 3"] == 0).sum(), cohort.table["region 2"].isna().sum()) == (1, 10)
    assert cohort.table["region 1"].isna().sum() == 10


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({"n_controls": 50}, (50, 40)), ({"n_patients": 80}, (10, 80)), ({"n_controls": 20, "n_patients": 30}, (20, 30))],
)
def test_sizes(familiar, asked, expected):
    counts = simulate_cohort("basic", controls=familiar, **asked).table["diagnosis"].value_counts()
    assert (counts["CN"], counts["PT"]) == expected


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (lambda table: table, {"n_controls": 50, "n_patients": 41}),
        (lambda table: table, {"n_patients": 100}),
        (lambda table: table.iloc[:, :40], {"n_patterns": 4, "kind": "overlap"}),
        (lambda table: table.assign(lHip=-table["lHip"]), {}),
        (lambda table: table.replace({"participant_id": {"person 4": "person 3"}}), {}),
        (lambda table: pd.concat([table, table[["lHip"]]], axis=1), {}),
        (lambda table: table, {"regions": ["lHip", "nowhere"]}),
        (lambda table: table.assign(scanner="A"), {"regions": ["lHip", "scanner"]}),
        (lambda table: None, {"regions": ["lHip"]}),
    ],
)
def test_what_cannot_be_used_is_refused(familiar, change, options):
    with pytest.raises(InputError):
        simulate_cohort(**{"controls": change(familiar)} | options)


def test_patients_are_not_taken_for_healthy(familiar):
    with pytest.raises(InputError, match=r"'diagnosis' has 2 labels: CN \(60\), AD \(30\). Keep the rows of controls"):
        simulate_cohort("basic", controls=familiar.assign(diagnosis=["CN"] * 60 + ["AD"] * 30))
