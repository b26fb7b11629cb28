"""Simulated cohorts, from the reference population or from one's own controls, with severities of any kind."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, kstest, mannwhitneyu, norm, uniform

from rindices.simulate import KINDS, ReferencePopulation, simulate_cohort
from tests.pages.page import missing
from tests.refusal import refused_with

REGIONS, NAMES, MANY = list(ReferencePopulation.load().regions), ["s1", "s2", "s3"], 12_000


def groups(cohort):
    is_patient = cohort.table["diagnosis"] == "PT"
    return cohort.table[~is_patient], cohort.table[is_patient]


@pytest.mark.parametrize(("kind", "atrophy", "noise"), [("basic", 0.3, 0.05), ("noise", 0.3, 0.2), ("mild", 0.2, 0.05)])
def test_factor_of_each_person_and_region(kind, atrophy, noise):
    """With the same seed, the null cohort contains the same people without the disease."""
    sick, healthy = (simulate_cohort(name, n_controls=5, n_patients=4000, seed=4) for name in (kind, "null"))
    (_, before), (_, after) = groups(healthy), groups(sick)
    assert before["participant_id"].tolist() == after["participant_id"].tolist()
    severity = sick.truth["s1"].to_numpy()[:, None]
    only_first = [r for r in sick.patterns["p1"] if r not in sick.patterns["p2"] + sick.patterns["p3"]]
    lost = 1 - after[only_first].to_numpy() / before[only_first].to_numpy()
    factor = (lost / (severity * atrophy))[severity[:, 0] > 0.01]
    assert (factor.mean(), factor.std()) == (pytest.approx(1, abs=0.01), pytest.approx(noise, rel=0.03))
    assert np.abs(np.corrcoef(factor.T)[np.triu_indices(len(only_first), 1)]).max() < 0.1
    # A region of two patterns is changed by one and then the other.
    expected = (1 - atrophy * sick.truth["s1"]) * (1 - atrophy * sick.truth["s2"])
    off = after["lHip"].to_numpy() / before["lHip"].to_numpy() - expected
    assert (off.abs().max() < 1.9 * noise, off.mean()) == (True, pytest.approx(0, abs=0.002))


def test_defaults_are_those_of_the_paper():
    cohort = simulate_cohort()
    assert (cohort.table["diagnosis"].value_counts().to_dict(), [*cohort.table], [*cohort.truth]) == (
        {"PT": 900, "CN": 492},
        ["participant_id", "diagnosis", "age", "sex", *REGIONS],
        ["participant_id", *NAMES],
    )
    assert not missing(cohort.note, "embedded", "Table 5")


def test_ids_do_not_tell_the_group():
    cohort = simulate_cohort("basic", n_controls=300, n_patients=300)
    assert mannwhitneyu(*(group.index for group in groups(cohort))).pvalue > 0.001
    assert cohort.table["participant_id"].tolist() == [f"sub-{i:04d}" for i in range(1, 601)]
    assert cohort.truth["participant_id"].tolist() == groups(cohort)[1]["participant_id"].tolist()


def test_save_writes_both_files_and_nothing_else(tmp_path):
    cohort, folder = simulate_cohort("basic", n_controls=5, n_patients=6), tmp_path / "new"
    cohort.save(folder / "cohort.csv", folder / "truth.csv")
    assert sorted(path.name for path in folder.iterdir()) == ["cohort.csv", "truth.csv"]
    for name, expected in (("cohort", cohort.table), ("truth", cohort.truth)):
        pd.testing.assert_frame_equal(pd.read_csv(folder / f"{name}.csv"), expected, rtol=5e-6)


def test_visits_are_the_same_people_older_sicker_and_scanned_again():
    asked = {"n_controls": 400, "n_patients": 400, "seed": 5}
    quiet = simulate_cohort("basic", **asked, n_visits=3, progression=0.1, scan_noise=0)
    assert quiet.table["visit"].tolist()[:3] == ["bl", "m12", "m24"]
    first, later = (quiet.table[quiet.table["visit"] == visit].reset_index(drop=True) for visit in ("bl", "m24"))
    pd.testing.assert_frame_equal(first.drop(columns="visit"), simulate_cohort("basic", **asked).table)
    severities = {visit: part[NAMES].to_numpy() for visit, part in quiet.truth.groupby("visit")}
    grown = severities["m24"] - severities["bl"]
    assert 0 <= grown.min() < grown.max() <= 0.4 + 1e-9
    assert grown.mean() == pytest.approx(0.2, abs=0.01)
    np.testing.assert_allclose(later["age"] - first["age"], 2)
    healthy, change = first["diagnosis"] == "CN", later[REGIONS] / first[REGIONS]
    assert (later[REGIONS][healthy].mean() < first[REGIONS][healthy].mean()).mean() > 0.8  # people age
    assert change["lHip"][~healthy].mean() < change["lHip"][healthy].mean() - 0.02


def test_scan_noise_has_its_size_and_is_correlated_between_regions():
    asked = {"n_controls": 1500, "n_patients": 1, "seed": 6, "n_visits": 2, "progression": 0.0}
    silent, noisy = (simulate_cohort("null", **asked, scan_noise=share).table for share in (0, 0.3))
    noise, people = (noisy[REGIONS] - silent[REGIONS]).to_numpy(), silent[silent["visit"] == "bl"]
    design = np.column_stack([np.ones(len(people)), people["age"], people["age"] ** 2, people["sex"]])
    left = people[REGIONS] - design @ np.linalg.lstsq(design, people[REGIONS].to_numpy(), rcond=None)[0]
    assert np.median(noise.std(axis=0) / left.std(axis=0)) == pytest.approx(0.3, rel=0.05)
    off = ~np.eye(len(REGIONS), dtype=bool)
    between, of_people = np.corrcoef(noise.T)[off], np.corrcoef(left.T)[off]
    assert np.polyfit(of_people, between, 1)[0] == pytest.approx(0.5, abs=0.05)
    assert abs(np.corrcoef(noise[::2, 0], noise[1::2, 0])[0, 1]) < 0.1  # visits are scanned independently


@pytest.mark.parametrize("kind", KINDS)
def test_mean_volumes_change_by_the_losses_of_the_kind(kind):
    cohort = simulate_cohort(kind, n_controls=MANY, n_patients=MANY, seed=3)
    controls, patients = groups(cohort)
    assert (cohort.losses.index.tolist(), cohort.losses.columns.tolist()) == (list(cohort.patterns), REGIONS)
    assert {name: {*row.index[row != 0]} for name, row in cohort.losses.iterrows()} == {
        name: {*pattern} for name, pattern in cohort.patterns.items()
    }
    expected = (1 - cohort.losses / 2).prod() * (0.97 if kind == "shift" else 1)  # severities have mean one half
    ratio = patients[REGIONS].mean() / controls[REGIONS].mean()
    error = controls[REGIONS].std() / controls[REGIONS].mean() * np.sqrt(2 / MANY)
    assert ((ratio - expected).abs() / error).max() < 6
    assert ratio.mean() == pytest.approx(expected.mean(), abs=0.003)


def test_kinds_differ_in_the_disease_only():
    first, *others = (
        simulate_cohort(kind, n_controls=40, n_patients=30, seed=8) for kind in ("basic", "dense", "half", "shift")
    )
    for other in others:
        pd.testing.assert_frame_equal(groups(first)[0], groups(other)[0])
        pd.testing.assert_frame_equal(first.truth, other.truth)
        assert not np.allclose(groups(first)[1][REGIONS], groups(other)[1][REGIONS])


# Sums of all volumes, as they were before kinds had shapes.
BEFORE = {
    "basic": (30178.738848606983, 15081.245147317923),
    "overlap": (29953.171396869722, 14975.237767938403),
    "scarce": (30693.342794666147, 15329.586683087111),
    "noise": (30183.976714749293, 15082.341057625614),
    "mild": (30476.668751214882, 15226.99300464578),
    "null": (31079.423013187567, 15521.763428502092),
}


@pytest.mark.parametrize("kind", BEFORE)
def test_cohorts_of_the_first_kinds_stay_as_they_were(kind):
    volumes = simulate_cohort(kind, n_controls=20, n_patients=30, seed=7).table[REGIONS].to_numpy()
    weighted = (volumes * np.arange(volumes.size).reshape(volumes.shape)).sum() / volumes.size
    assert (volumes.sum(), weighted) == pytest.approx(BEFORE[kind], rel=1e-12)


def test_people_who_vary_more_have_the_same_means_and_disease():
    asked = {"n_controls": 3000, "n_patients": 3000, "seed": 9}
    plain, usual, wider = (simulate_cohort("basic", **more, **asked) for more in ({}, {"spread": 1.0}, {"spread": 1.7}))
    for one, other in ((plain.table, usual.table), (usual.truth, wider.truth), (usual.losses, wider.losses)):
        pd.testing.assert_frame_equal(one, other)
    for own, wide in zip(groups(usual), groups(wider), strict=True):
        np.testing.assert_allclose(wide[REGIONS].mean() / own[REGIONS].mean(), 1, atol=0.03)
    spreads = [groups(one)[0][REGIONS].std() for one in (wider, usual)]
    assert (spreads[0] / spreads[1]).median() == pytest.approx(1.7, abs=0.02)
    assert (wider.table[REGIONS] > 0).all(axis=None)


# Controls of one's own


N = 90
PEOPLE = ReferencePopulation.load().draw(N, np.random.default_rng(0))


@pytest.fixture
def familiar():
    """Return a table with the paper's regions."""
    return PEOPLE.assign(participant_id=[f"person {i}" for i in range(N)])


@pytest.fixture
def foreign():
    """Return a table with other regions, covariates of many kinds and no ids."""
    rng = np.random.default_rng(1)
    columns = {"Age": rng.uniform(20, 80, N), "SEX": rng.integers(0, 2, N), "site": 1, "scanner": "A", "ICV": 1500.0}
    columns |= {"smoker": rng.random(N) < 0.5} | {f"region {i}": rng.uniform(900, 1100, N) for i in range(40)}
    return pd.DataFrame(columns)


def test_a_third_stays_control_and_people_stay_themselves(familiar):
    cohort = simulate_cohort("basic", controls=familiar, seed=1)
    table, is_control = cohort.table, cohort.table["diagnosis"] == "CN"
    assert (is_control.sum(), (~is_control).sum()) == (30, 60)
    assert not missing(cohort.note, "table of controls provided", "Table 5")
    assert cohort.patterns == simulate_cohort("basic", n_controls=1, n_patients=1).patterns
    ids = table["participant_id"]
    assert (ids.is_unique, ids.equals(familiar["participant_id"])) == (True, False)
    original = familiar.set_index("participant_id").loc[ids].reset_index()
    pd.testing.assert_frame_equal(table.loc[is_control, original.columns], original[is_control])
    np.testing.assert_array_equal(table["age"], original["age"])
    left = (table["lAmy"] / original["lAmy"])[~is_control].to_numpy()
    np.testing.assert_allclose(left, 1 - 0.3 * cohort.truth["s1"], atol=0.3 * 0.05 * 5)


def test_unknown_regions_get_random_patterns(foreign):
    first, again, other = (simulate_cohort("basic", controls=foreign, seed=seed) for seed in (0, 0, 1))
    assert "at random from 40 region columns" in first.note
    assert first.patterns == again.patterns != other.patterns
    smallest = first.table[first.table["diagnosis"] == "PT"][foreign.columns[6:]].min()
    assert {*smallest[smallest < 895].index} == {region for pattern in first.patterns.values() for region in pattern}


def test_whole_numbers_and_gaps_are_fine(foreign):
    foreign = foreign.round({"region 0": 0}).astype({"region 0": int, "region 1": "Float64"})
    foreign.loc[:9, ["region 1", "region 2"]] = pd.NA
    foreign.loc[5, "region 3"] = 0.0
    table = simulate_cohort("basic", controls=foreign).table[["region 1", "region 2", "region 3"]]
    assert (table.isna().sum().tolist(), (table["region 3"] == 0).sum()) == ([10, 10, 0], 1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [({"n_controls": 50}, (50, 40)), ({"n_patients": 80}, (10, 80)), ({"n_controls": 20, "n_patients": 30}, (20, 30))],
)
def test_sizes_and_regions_that_may_change(familiar, asked, expected):
    chosen = REGIONS[:12]
    cohort = simulate_cohort("scarce", controls=familiar, regions=chosen, **asked)
    assert tuple(cohort.table["diagnosis"].value_counts()[["CN", "PT"]]) == expected
    assert sorted(region for pattern in cohort.patterns.values() for region in pattern) == sorted(chosen)


# Severities


UNLIKE = [[1, 0.7, -0.2], [0.7, 1, 0.1], [-0.2, 0.1, 1]]
LAWS = {"uniform": uniform, "mild": beta(1, 3), "severe": beta(3, 1)}


@pytest.mark.parametrize(
    ("law", "age", "asked", "expected"),
    [
        *((law, age, 0.5, 0.5 + 0.5 * np.eye(3)) for law in LAWS for age in (0.0, -0.6)),
        ("uniform", 0.0, None, np.eye(3)),
        ("uniform", 0.0, UNLIKE, np.array(UNLIKE)),
    ],
)
def test_a_distribution_stays_with_correlated_patterns_and_with_age(law, age, asked, expected):
    cohort = simulate_cohort(n_patients=20_000, severities=law, severity_correlation=asked, severity_age=age)
    severities = cohort.truth[NAMES].to_numpy().T
    assert min(kstest(column, LAWS[law].cdf).pvalue for column in severities) > 0.001
    ages = cohort.table.loc[cohort.table["diagnosis"] == "PT", "age"].rank() / 20_001
    found = np.corrcoef(norm.ppf([ages, *LAWS[law].cdf(severities)]))
    np.testing.assert_allclose(found[0, 1:], age, atol=0.02)
    np.testing.assert_allclose(found[1:, 1:], age**2 + (1 - age**2) * expected, atol=0.02)
    assert ("and age is -0.6" in cohort.note) == (age != 0)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_patterns_are_absent_in_half_of_the_patients(correlation):
    cohort = simulate_cohort(n_patients=20_000, severities="absent", severity_correlation=correlation)
    severities = cohort.truth[NAMES].to_numpy().T
    both = 1 / 4 + np.arcsin(correlation) / (2 * np.pi)  # the chance that two normal scores are below 0
    np.testing.assert_allclose((severities == 0).mean(axis=1), 0.5, atol=0.015)
    assert ((severities[0] == 0) & (severities[1] == 0)).mean() == pytest.approx(both, abs=0.015)
    assert min(kstest(column[column > 0], "uniform").pvalue for column in severities) > 0.001
    assert "0 in half of the patients" in cohort.note


def test_patients_are_whole_rows_of_a_given_table():
    table = pd.DataFrame(np.random.default_rng(0).beta(1, 3, (50, 3)), columns=NAMES)
    mixed = table[["s2", "s3", "s1"]].assign(participant_id="p")
    cohort, same = (simulate_cohort(n_patients=400, severities=given) for given in (mixed, table.to_numpy()))
    pd.testing.assert_frame_equal(cohort.truth, same.truth)
    counts = cohort.truth.merge(table.reset_index(), how="left", on=NAMES)["index"].value_counts()
    assert (counts.sum(), len(counts), "50 rows of the table provided" in cohort.note) == (400, 50, True)
    assert (simulate_cohort("null", n_patients=9, severities=table).truth[NAMES] == 0).all(axis=None)


FINE = np.full((4, 3), 0.5)


@pytest.mark.parametrize(
    "options",
    [
        *({"kind": "easy"}, {"n_patterns": 0}, {"n_patterns": 9}, {"seed": -1}, {"n_controls": 0}),
        *({"seed": "a"}, {"n_patients": 1.5}),
        *({"n_patients": 1_000_001}, {"severity_correlation": 1.5}, {"severity_correlation": -0.6}),
        *({"severity_correlation": value} for value in (np.nan, "high", [1, 0.5, 0.5], np.eye(2), 2 * np.eye(3))),
        {"severity_correlation": [[1, 0.2, 0], [0.5, 1, 0], [0, 0, 1]]},
        {"severity_correlation": [[1, np.inf, 0], [np.inf, 1, 0], [0, 0, 1]]},
        {"severity_correlation": [[1, 0.5], [0.5, 1, 0], [0, 0, 1]]},
        *({"severities": given} for given in ("mildly", FINE[:, :2], FINE[:0], FINE * 2.1, np.where(FINE, np.nan, 0))),
        {"severities": pd.DataFrame(FINE, columns=["s1", "s2", "s4"])},
        {"severities": pd.DataFrame(FINE, columns=["s1", "s2", "s2"])},
        {"severities": pd.DataFrame(FINE, columns=NAMES).assign(s2="high")},
        {"severities": FINE, "severity_correlation": 0.0},
        {"severities": FINE, "severity_age": 0.2},
        *({"severity_age": value} for value in (1.0, -1.0, np.nan)),
        *({"severity_age": 0.2, "controls": PEOPLE.assign(age=value)} for value in (60, np.nan, "old")),
        {"severity_age": 0.2, "controls": PEOPLE.drop(columns="age")},
        {"controls": PEOPLE, "n_controls": 50, "n_patients": 41},
        {"controls": PEOPLE, "n_patients": 100},
        {"controls": PEOPLE.iloc[:, :39], "n_patterns": 4, "kind": "overlap"},
        {"controls": PEOPLE.assign(lHip=-PEOPLE["lHip"])},
        {"controls": PEOPLE.assign(participant_id=["person 3", *map(str, range(N - 1))]).replace("3", "person 3")},
        {"controls": pd.concat([PEOPLE, PEOPLE[["lHip"]]], axis=1)},
        {"controls": PEOPLE, "regions": ["lHip", "nowhere"]},
        {"controls": PEOPLE.assign(scanner="A"), "regions": ["lHip", "scanner"]},
        {"controls": None, "regions": ["lHip"]},
        {"controls": PEOPLE.assign(diagnosis=["CN"] * 60 + ["AD"] * 30)},
    ],
)
def test_what_cannot_be_asked_for_or_used_is_refused(options):
    refused_with(".", simulate_cohort, **options)
