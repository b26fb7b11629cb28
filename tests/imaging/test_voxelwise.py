import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from nilearn.glm.second_level import SecondLevelModel
from scipy import stats

from rindices.analysis import subgroup_sizes
from rindices.imaging import compare_maps
from rindices.imaging.voxelwise import make_model, t_values
from rindices.problems import InputError
from rindices.settings import ImageSettings
from tests.imaging.made_up import SHAPE, people


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return people(tmp_path_factory.mktemp("maps"), effect=3.0)


@pytest.fixture(scope="module")
def compared(made):
    return compare_maps(
        made.maps, made.r_indices, made.group, made.covariates, settings=ImageSettings(mask=made.mask, regressions=True)
    )


def by_name(comparisons):
    return {(found.pattern, found.level): found for found in comparisons}


def test_every_subgroup_is_compared_or_says_why_not(made, compared):
    sizes = subgroup_sizes(made.r_indices[["r1", "r2"]], made.group)
    found = [x for x in compared if x.level != "regression"]
    assert ([(x.pattern, x.level, x.rule, x.n_patients) for x in found], [x.note for x in found]) == (
        list(sizes[["pattern", "level", "rule", "n"]].itertuples(index=False, name=None)),
        sizes["note"].tolist(),
    )
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
    found, r = by_name(compared)[1, "high"], made.r_indices
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


def test_the_effect_is_found_where_it_is(compared):
    q, box = compared[2].result.space.volume(compared[2].result.q, 1.0), np.zeros(SHAPE, bool)
    box[2:5, 3:6, 2:5] = True
    assert (q < 0.05)[box].mean() > 0.9
    assert (q < 0.05)[~box].mean() < 0.02
    assert (compared[2].result.space.volume(compared[2].result.t, 0.0)[box] < -2).all()


def test_the_low_subgroup_is_the_same_for_all_patterns_and_computed_once(compared):
    found = by_name(compared)
    assert found[1, "low"].result.t is found[2, "low"].result.t


def test_people_without_map_or_covariate_are_counted(made):
    maps, covariates = made.maps.copy(), made.covariates.copy()
    maps.loc[0, "path"] = ""
    maps = maps.drop(index=[1, 2])
    covariates.loc[[2, 3], "age"] = np.nan
    found = compare_maps(maps, made.r_indices, made.group, covariates, settings=ImageSettings(mask=made.mask))[0]
    assert (found.n_controls, found.without_map, found.without_covariates) == (21, 3, 1)
    kept = np.arange(len(made.group)) > 3
    again = compare_maps(
        made.maps, made.r_indices[kept], made.group[kept], covariates[kept], settings=ImageSettings(mask=made.mask)
    )[0]
    np.testing.assert_allclose(found.result.t, again.result.t, rtol=1e-12)


def test_later_visits_are_left_out(made):
    r = pd.concat([made.r_indices.assign(visit="1", first_visit=True)] * 2, ignore_index=True)
    half = len(made.group)
    r.loc[half:, ["visit", "first_visit", "r1"]] = ["2", False, 0.9]
    maps = pd.concat([made.maps.assign(visit=1.0), made.maps.assign(visit=2.0)], ignore_index=True)
    maps.loc[half:, "path"] += "x"  # there are no such files
    found = compare_maps(maps, r, np.tile(made.group, 2), settings=ImageSettings(mask=made.mask))
    expected = compare_maps(made.maps, made.r_indices, made.group, settings=ImageSettings(mask=made.mask))
    np.testing.assert_array_equal(found[2].result.t, expected[2].result.t)
    with pytest.raises(InputError, match="several rows of R-indices"):
        compare_maps(
            maps, r.drop(columns="first_visit"), np.tile(made.group, 2), settings=ImageSettings(mask=made.mask)
        )
    with pytest.raises(InputError, match="maps from several visits for 85 people"):
        compare_maps(maps, made.r_indices, made.group, settings=ImageSettings(mask=made.mask))


def test_covariates_that_say_all_leave_no_result(made):
    site = pd.DataFrame({"site": np.where(made.group == "patient", "A", "B")})
    found = compare_maps(made.maps, made.r_indices, made.group, site, settings=ImageSettings(mask=made.mask))
    assert {x.note for x in found if x.n_patients >= 10} == {"the covariates alone distinguish these people"}
    many = pd.DataFrame({"code": [str(k) for k in range(len(made.group) - 1)] + ["0"]})
    found = compare_maps(made.maps, made.r_indices, made.group, many, settings=ImageSettings(mask=made.mask))[0]
    assert found.result is None


def models_of(values, n_first):
    return make_model(np.arange(len(values)), np.arange(len(values)) < n_first, np.empty((len(values), 0)))


def test_t_is_exact_far_from_zero_and_missing_without_variance():
    values = np.random.default_rng(0).standard_normal((40, 5))
    values[:, 0] += 1e5
    values[:, 1] = 7.3
    values[3, 2] = np.nan
    values[5, 3] = np.inf
    found = t_values([models_of(values, 15)], lambda person: values[person].copy(), 5)[0]
    expected = stats.ttest_ind(values[:15, [0, 4]], values[15:, [0, 4]]).statistic
    np.testing.assert_allclose(found[[0, 4]], expected, rtol=1e-6)
    assert np.isnan(found[[1, 2, 3]]).all()
