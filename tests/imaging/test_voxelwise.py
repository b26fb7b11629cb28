import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from nilearn.glm.second_level import SecondLevelModel
from scipy import stats
from scipy.ndimage import gaussian_filter

from rindices.analysis import subgroup_sizes
from rindices.errors import InputError
from rindices.imaging import compare_maps
from rindices.imaging.least_squares import make_model, t_values
from tests.imaging.made_up import SHAPE, people, write_image


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return people(tmp_path_factory.mktemp("maps"), effect=3.0)


@pytest.fixture(scope="module")
def compared(made):
    return compare_maps(made.maps, made.r_indices, made.group, made.covariates, mask=made.mask, regressions=True)


def by_name(comparisons):
    return {(found.pattern, found.level): found for found in comparisons}


def test_every_subgroup_is_compared_or_says_why_not(made, compared):
    sizes = subgroup_sizes(made.r_indices[["r1", "r2"]], made.group)
    found = [x for x in compared if x.level != "regression"]
    assert [(x.pattern, x.level, x.rule, x.n_patients) for x in found] == list(
        sizes[["pattern", "level", "rule", "n"]].itertuples(index=False, name=None)
    )
    assert [x.note for x in found] == sizes["note"].tolist()
    assert [x.result is not None for x in found] == sizes["used"].tolist()
    assert "fewer than 10 patients" in sizes["note"].tolist()
    assert {x.n_controls for x in found} == {25}


@pytest.mark.parametrize("level", ["low", "high", "regression"])
def test_t_is_that_of_statsmodels(made, compared, level):
    found = by_name(compared)[1, level]
    r, patient = made.r_indices, made.group == "patient"
    members = {"low": (r["r1"] < 0.4) & (r["r2"] < 0.4), "high": (r["r1"] > 0.7) & (r["r2"] < 0.4)}
    if level == "regression":
        used, interest = patient, r["r1"].to_numpy()
    else:
        interest = (members[level] & patient).to_numpy(float)
        used = (interest > 0) | ~patient
    columns = [np.ones(used.sum()), interest[used], made.covariates["age"][used], made.covariates["sex"][used] == "M"]
    volume, p = found.result.space.volume(found.result.t, 0), []
    for place in [(1, 1, 1), (3, 4, 3), (7, 9, 5), (4, 2, 1)]:
        fit = sm.OLS(made.values[(used, *place)].astype(float), np.column_stack(columns).astype(float)).fit()
        np.testing.assert_allclose(volume[place], fit.tvalues[1], rtol=1e-9)
        p.append(fit.pvalues[1])
    assert found.result.freedom == fit.df_resid
    # Benjamini–Hochberg by its definition, from p of all voxels.
    p_all = 2 * stats.t.sf(np.abs(found.result.t), found.result.freedom)
    order = np.argsort(p_all)
    steps = p_all[order] * len(p_all) / np.arange(1, len(p_all) + 1)
    np.testing.assert_allclose(found.result.q[order], np.minimum.accumulate(steps[::-1])[::-1].clip(max=1), rtol=1e-9)
    assert np.abs(p_all[:, None] - p).min(axis=0).max() < 1e-12


def test_t_is_that_of_nilearn(made, compared):
    found = by_name(compared)[1, "high"]
    r = made.r_indices
    member = (made.group == "patient") & (r["r1"] > 0.7).to_numpy() & (r["r2"] < 0.4).to_numpy()
    used = member | (made.group == "control")
    design = pd.DataFrame(
        {"effect": member[used], "age": made.covariates["age"][used].to_numpy(), "one": 1.0}, dtype=float
    )
    design["sex"] = (made.covariates["sex"][used] == "M").to_numpy(float)
    model = SecondLevelModel(mask_img=made.mask, minimize_memory=True)
    model = model.fit(made.maps["path"][used].tolist(), design_matrix=design)
    image = model.compute_contrast("effect", output_type="stat")
    expected = image.get_fdata()[image.get_fdata() != 0]
    volume = found.result.space.volume(found.result.t, 0)
    assert len(expected) == len(found.result.t)
    np.testing.assert_allclose(volume[volume != 0], expected, rtol=1e-6, atol=1e-6)


def test_voxels_are_those_of_the_mask(compared):
    volume = compared[0].result.space.volume(compared[0].result.t, 0)
    inside = np.zeros(SHAPE, bool)
    inside[1:-1, 1:-1, 1:-1] = True
    np.testing.assert_array_equal(volume != 0, inside)


def test_the_effect_is_found_where_it_is(compared):
    q = compared[2].result.space.volume(compared[2].result.q, 1.0)
    box = np.zeros(SHAPE, bool)
    box[2:5, 3:6, 2:5] = True
    assert (q < 0.05)[box].mean() > 0.9
    assert (q < 0.05)[~box].mean() < 0.02
    t = compared[2].result.space.volume(compared[2].result.t, 0.0)
    assert (t[box] < -2).all()


def test_the_low_subgroup_is_the_same_for_all_patterns_and_computed_once(compared):
    found = by_name(compared)
    assert found[1, "low"].result.t is found[2, "low"].result.t


def test_people_without_map_or_covariate_are_counted(made):
    maps, covariates = made.maps.copy(), made.covariates.copy()
    maps.loc[0, "path"] = ""
    maps = maps.drop(index=[1, 2])
    covariates.loc[[2, 3], "age"] = np.nan
    found = compare_maps(maps, made.r_indices, made.group, covariates, mask=made.mask)[0]
    assert (found.n_controls, found.without_map, found.without_covariates) == (21, 3, 1)
    kept = np.arange(len(made.group)) > 3
    again = compare_maps(made.maps, made.r_indices[kept], made.group[kept], covariates[kept], mask=made.mask)[0]
    np.testing.assert_allclose(found.result.t, again.result.t, rtol=1e-12)


def test_later_visits_are_left_out(made):
    r = pd.concat([made.r_indices.assign(visit="1", first_visit=True)] * 2, ignore_index=True)
    half = len(made.group)
    r.loc[half:, ["visit", "first_visit", "r1"]] = ["2", False, 0.9]
    maps = pd.concat([made.maps.assign(visit=1.0), made.maps.assign(visit=2.0)], ignore_index=True)
    maps.loc[half:, "path"] += "x"  # there are no such files
    found = compare_maps(maps, r, np.tile(made.group, 2), mask=made.mask)
    expected = compare_maps(made.maps, made.r_indices, made.group, mask=made.mask)
    np.testing.assert_array_equal(found[2].result.t, expected[2].result.t)
    with pytest.raises(InputError, match="several rows of R-indices"):
        compare_maps(maps, r.drop(columns="first_visit"), np.tile(made.group, 2), mask=made.mask)
    with pytest.raises(InputError, match="maps of several visits of 85 people"):
        compare_maps(maps, made.r_indices, made.group, mask=made.mask)


def test_covariates_that_say_all_leave_no_result(made):
    site = pd.DataFrame({"site": np.where(made.group == "patient", "A", "B")})
    found = compare_maps(made.maps, made.r_indices, made.group, site, mask=made.mask)
    assert {x.note for x in found if x.n_patients >= 10} == {"the covariates alone tell these people apart"}
    many = pd.DataFrame({"code": [str(k) for k in range(len(made.group) - 1)] + ["0"]})
    found = compare_maps(made.maps, made.r_indices, made.group, many, mask=made.mask)[0]
    assert found.result is None


def test_progress_counts_maps(made):
    seen = []
    compare_maps(
        made.maps, made.r_indices, made.group, mask=made.mask, regressions=True, progress=lambda *x: seen.append(x)
    )
    assert seen[-1] == (85, 85)


def models_of(values, n_first):
    interest = np.arange(len(values)) < n_first
    return make_model(np.arange(len(values)), interest, np.empty((len(values), 0)))


def test_passes_and_blocks_do_not_change_t(monkeypatch):
    rng = np.random.default_rng(0)
    values = 100 + rng.standard_normal((50, 300))
    everybody, some = np.arange(50), np.arange(5, 45)
    covariates = rng.standard_normal((50, 2))
    models = [make_model(who, (who % 2).astype(float), covariates[who]) for who in (everybody, some)]
    expected = t_values(models, lambda person: values[person].copy(), 300)
    monkeypatch.setattr("rindices.imaging.least_squares._PASS_BYTES", 1)
    monkeypatch.setattr("rindices.imaging.least_squares._BLOCK_MAPS", 3)
    monkeypatch.setattr("rindices.imaging.least_squares._SLAB", 7)
    seen = []
    found = t_values(models, lambda person: values[person].copy(), 300, lambda *x: seen.append(x))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert seen[-1] == (90, 90)


def test_t_is_exact_far_from_zero_and_missing_without_variance():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((40, 5))
    values[:, 0] += 1e5
    values[:, 1] = 7.3
    values[3, 2] = np.nan
    values[5, 3] = np.inf
    found = t_values([models_of(values, 15)], lambda person: values[person].copy(), 5)[0]
    expected = stats.ttest_ind(values[:15, [0, 4]], values[15:, [0, 4]]).statistic
    np.testing.assert_allclose(found[[0, 4]], expected, rtol=1e-6)
    assert np.isnan(found[[1, 2, 3]]).all()


def false_share(rng, shape, smooth, with_effect):
    """Return the share of false discoveries in one made-up study of 20 and 25 people."""
    values = gaussian_filter(rng.standard_normal((45, *shape)), (0, smooth, smooth, smooth)).reshape(45, -1)
    true = np.zeros(shape, bool)
    if with_effect:
        true[: shape[0] // 3] = True
        values[:20, true.ravel()] -= 1.2 * values.std()
    t = t_values([models_of(values, 20)], lambda person: values[person].copy(), values.shape[1])[0]
    q = stats.false_discovery_control(2 * stats.t.sf(np.abs(t), 43))
    found, true = q < 0.05, true.ravel()
    return found[~true].sum() / max(found.sum(), 1), found[true].mean() if with_effect else 0


def test_few_discoveries_are_false():
    rng = np.random.default_rng(3)
    shares = np.array([false_share(rng, (8, 8, 8), 0.7 * (k % 4 > 1), k % 2) for k in range(200)])
    assert shares[:, 0].mean() <= 0.06
    assert shares[1::2, 1].mean() > 0.5
    assert shares[1::2, 0].mean() > 0.01  # not by finding nothing


@pytest.mark.slow
def test_few_discoveries_are_false_in_files_and_with_covariates(tmp_path):
    false, shape = [], (16, 16, 16)
    mask = write_image(tmp_path / "mask.nii", np.pad(np.ones((14, 14, 14)), 1), dtype=np.uint8)
    true = np.zeros(shape, bool)
    true[3:9, 3:9, 3:9] = True
    for seed in range(200):
        rng = np.random.default_rng(seed)
        group = np.repeat(["control", "patient"], [25, 40])
        r = np.where(group == "patient", rng.uniform(0.6, 1, 65), 0)
        age = rng.uniform(50, 80, 65) + 5 * (group == "patient")
        values = gaussian_filter(rng.standard_normal((65, *shape)), (0, 1, 1, 1)) + 0.02 * age[:, None, None, None]
        values[:, true] -= 0.25 * (seed % 2) * r[:, None]
        names = [f"{k}" for k in range(65)]
        paths = [write_image(tmp_path / f"{k}.nii", values[k]) for k in range(65)]
        maps = pd.DataFrame({"participant_id": names, "path": paths})
        scores = pd.DataFrame({"participant_id": names, "r1": r})
        compared = compare_maps(maps, scores, group, pd.DataFrame({"age": age}), mask=mask)
        found = compared[2].result.space.volume(compared[2].result.q, 1.0) < 0.05
        wrong = found & ~true if seed % 2 else found
        false.append(wrong.sum() / max(found.sum(), 1))
        assert seed % 2 == 0 or found[true].mean() > 0.2
    assert np.mean(false) <= 0.06
    assert np.mean(false[1::2]) > 0.01
