import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu

from rindices.problems import InputError
from rindices.simulate import ReferencePopulation, simulate_cohort

REGIONS, MANY = list(ReferencePopulation.load().regions), 12_000


def groups(cohort):
    is_patient = cohort.table["diagnosis"] == "PT"
    return cohort.table[~is_patient], cohort.table[is_patient]


@pytest.mark.parametrize("kind", ["basic", "overlap", "scarce", "noise", "mild"])
def test_mean_volumes_shrink_as_written_in_the_paper(kind):
    cohort = simulate_cohort(kind, n_controls=MANY, n_patients=MANY, seed=3)
    controls, patients = groups(cohort)
    ratio = patients[REGIONS].mean() / controls[REGIONS].mean()
    half = {"mild": 0.1}.get(kind, 0.15)  # severities have mean one half
    times = pd.Series({region: sum(region in p for p in cohort.patterns.values()) for region in REGIONS})
    assert set(times) == ({0, 1} if kind == "scarce" else {0, 1, 2})
    expected = (1 - half) ** times
    error = controls[REGIONS].std() / controls[REGIONS].mean() * np.sqrt(2 / MANY)
    assert ((ratio - expected).abs() / error).max() < 6
    assert (ratio - expected).mean() == pytest.approx(0, abs=0.003)


@pytest.mark.parametrize(("kind", "atrophy", "noise"), [("basic", 0.3, 0.05), ("noise", 0.3, 0.2), ("mild", 0.2, 0.05)])
def test_factor_of_each_person_and_region(kind, atrophy, noise):
    """With the same seed, the null cohort holds the same people without the disease."""
    sick = simulate_cohort(kind, n_controls=5, n_patients=2000, seed=4)
    _, before = groups(simulate_cohort("null", n_controls=5, n_patients=2000, seed=4))
    _, after = groups(sick)
    assert (before["participant_id"].to_numpy() == after["participant_id"].to_numpy()).all()
    severity = sick.truth["s1"].to_numpy()[:, None]
    only_first = [r for r in sick.patterns["p1"] if r not in sick.patterns["p2"] + sick.patterns["p3"]]
    lost = 1 - after[only_first].to_numpy() / before[only_first].to_numpy()
    factor = (lost / (severity * atrophy))[severity[:, 0] > 0.01]
    assert (factor.mean(), factor.std()) == (pytest.approx(1, abs=0.01), pytest.approx(noise, rel=0.03))
    assert np.abs(np.corrcoef(factor.T)[np.triu_indices(len(only_first), 1)]).max() < 0.1


def test_shared_region_is_changed_by_one_pattern_after_the_other():
    sick = simulate_cohort("basic", n_controls=5, n_patients=4000, seed=4)
    _, before = groups(simulate_cohort("null", n_controls=5, n_patients=4000, seed=4))
    _, after = groups(sick)
    left = after["lHip"].to_numpy() / before["lHip"].to_numpy()
    expected = (1 - 0.3 * sick.truth["s1"]) * (1 - 0.3 * sick.truth["s2"])
    # Noise of the two factors: sd 0.3 * 0.05 * severity each.
    assert np.abs(left - expected).max() < 0.1
    assert (left - expected).mean() == pytest.approx(0, abs=0.001)


def test_null_has_no_difference_and_no_severity():
    cohort = simulate_cohort("null", n_controls=2000, n_patients=2000, seed=2)
    controls, patients = groups(cohort)
    assert np.array([mannwhitneyu(controls[r], patients[r]).pvalue for r in REGIONS]).min() > 0.01 / len(REGIONS)
    assert (cohort.truth[["s1", "s2", "s3"]] == 0).all(axis=None)
    assert cohort.patterns == {"p1": (), "p2": (), "p3": ()}


def test_defaults_are_those_of_the_paper():
    cohort = simulate_cohort()
    assert cohort.table["diagnosis"].value_counts().to_dict() == {"PT": 900, "CN": 492}
    assert cohort.table.columns.tolist() == ["participant_id", "diagnosis", "age", "sex", *REGIONS]
    assert (cohort.truth.columns.tolist(), cohort.kind) == (["participant_id", "s1", "s2", "s3"], "basic")
    assert not [part for part in ("embedded", "Table 5") if part not in cohort.note]


def test_seed_decides_everything():
    first, again, other = (simulate_cohort("basic", n_controls=30, n_patients=40, seed=seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(first.table, again.table)
    pd.testing.assert_frame_equal(first.truth, again.truth)
    assert not np.allclose(first.table[REGIONS], other.table[REGIONS])
    assert not np.allclose(first.truth["s1"], other.truth["s1"])


def test_ids_do_not_tell_the_group():
    cohort = simulate_cohort("basic", n_controls=300, n_patients=300)
    assert cohort.table["participant_id"].tolist() == [f"sub-{i:04d}" for i in range(1, 601)]
    positions = np.flatnonzero(cohort.table["diagnosis"] == "PT")
    assert mannwhitneyu(positions, np.setdiff1d(np.arange(600), positions)).pvalue > 0.001
    _, patients = groups(cohort)
    assert cohort.truth["participant_id"].tolist() == patients["participant_id"].tolist()


def test_save_writes_both_files_and_nothing_else(tmp_path):
    cohort, folder = simulate_cohort("basic", n_controls=5, n_patients=6), tmp_path / "new"
    cohort.save(folder / "cohort.csv", folder / "truth.csv")
    assert sorted(path.name for path in folder.iterdir()) == ["cohort.csv", "truth.csv"]
    table, truth = pd.read_csv(folder / "cohort.csv"), pd.read_csv(folder / "truth.csv")
    assert table.columns.tolist() == cohort.table.columns.tolist()
    np.testing.assert_allclose(table[REGIONS], cohort.table[REGIONS], rtol=5e-6)
    np.testing.assert_allclose(truth["s3"], cohort.truth["s3"], rtol=5e-6)
    cells = (folder / "truth.csv").read_text().splitlines()[1].split(",")[1:]
    assert all(len(cell.lstrip("0.").replace(".", "")) <= 6 for cell in cells if "e" not in cell)


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
    ],
)
def test_what_cannot_be_asked_for_is_refused(options):
    with pytest.raises(InputError):
        simulate_cohort(**options)


def test_visits_are_the_same_people_older_sicker_and_scanned_again():
    asked = {"n_controls": 400, "n_patients": 400, "seed": 5}
    once = simulate_cohort("basic", **asked)
    quiet = simulate_cohort("basic", **asked, n_visits=3, progression=0.1, scan_noise=0)
    assert quiet.table["visit"].tolist()[:3] == ["bl", "m12", "m24"]
    first = quiet.table[quiet.table["visit"] == "bl"].drop(columns="visit").reset_index(drop=True)
    pd.testing.assert_frame_equal(first, once.table)
    by_visit = {visit: part.reset_index(drop=True) for visit, part in quiet.truth.groupby("visit")}
    grown = (by_visit["m24"][["s1", "s2", "s3"]] - by_visit["bl"][["s1", "s2", "s3"]]).to_numpy()
    assert grown.min() >= 0
    assert grown.max() <= 0.4 + 1e-9
    assert grown.mean() == pytest.approx(0.2, abs=0.01)
    later = quiet.table[quiet.table["visit"] == "m24"].reset_index(drop=True)
    np.testing.assert_allclose(later["age"] - first["age"], 2)
    healthy = first["diagnosis"] == "CN"
    assert (later[REGIONS][healthy].mean() < first[REGIONS][healthy].mean()).mean() > 0.8  # people age
    assert (later["lHip"] / first["lHip"])[~healthy].mean() < (later["lHip"] / first["lHip"])[healthy].mean() - 0.02


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


@pytest.mark.parametrize("kind", ["dense", "half", "graded", "signed", "shift"])
def test_mean_volumes_of_other_kinds_change_by_their_losses(kind):
    cohort = simulate_cohort(kind, n_controls=MANY, n_patients=MANY, seed=3)
    controls, patients = groups(cohort)
    assert (cohort.losses.index.tolist(), cohort.losses.columns.tolist()) == (list(cohort.patterns), REGIONS)
    for name, pattern in cohort.patterns.items():
        assert set(pattern) == set(cohort.losses.columns[cohort.losses.loc[name] != 0])
    expected = (1 - cohort.losses / 2).prod() * (0.97 if kind == "shift" else 1)  # severities have mean one half
    ratio = patients[REGIONS].mean() / controls[REGIONS].mean()
    error = controls[REGIONS].std() / controls[REGIONS].mean() * np.sqrt(2 / MANY)
    assert ((ratio - expected).abs() / error).max() < 6
    assert (ratio - expected).mean() == pytest.approx(0, abs=0.003)


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
    usual, wider = (simulate_cohort("basic", spread=spread, **asked) for spread in (1.0, 1.7))
    pd.testing.assert_frame_equal(usual.truth, wider.truth)
    pd.testing.assert_frame_equal(usual.losses, wider.losses)
    (controls, patients), (wider_controls, wider_patients) = groups(usual), groups(wider)
    assert (wider_controls[REGIONS].std() / controls[REGIONS].std()).median() == pytest.approx(1.7, abs=0.02)
    np.testing.assert_allclose(wider_controls[REGIONS].mean() / controls[REGIONS].mean(), 1, atol=0.03)
    np.testing.assert_allclose(wider_patients[REGIONS].mean() / patients[REGIONS].mean(), 1, atol=0.03)
    assert (wider.table[REGIONS] > 0).all(axis=None)
    pd.testing.assert_frame_equal(simulate_cohort("basic", **asked).table, usual.table)
