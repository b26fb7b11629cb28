import numpy as np
import pandas as pd
import pytest

from rindices.preprocessing import (
    UNCORRECTED,
    ControlScaler,
    CovariateResidualizer,
    HeadSize,
    Preprocessing,
    SiteHarmonizer,
)
from rindices.preprocessing.pipeline import arrays_of, describe, restore
from rindices.presets import Correction

EVERYTHING = Correction(smooth=["age"], interactions=[("age", "sex")], proportion="head", site="site")


@pytest.fixture
def table(covariates):
    more = pd.concat([covariates, covariates.assign(age=covariates["age"] - 3)], ignore_index=True)
    return more.assign(sex=np.random.default_rng(3).choice(["F", "M"], 120))


@pytest.fixture
def regions(volumes):
    return np.concatenate([volumes, volumes]) + np.random.default_rng(4).normal(0, 20, (120, 4))


@pytest.fixture
def everything(regions, table):
    return Preprocessing.fit(regions, table, EVERYTHING)


def restored(fitted):
    """There and back as a model file has it."""
    arrays = arrays_of(fitted)
    return restore(describe(fitted), lambda name, shape: arrays[name].reshape(shape), len(fitted.scaler.mean))


def test_steps_follow_each_other(regions, table):
    fitted, others = Preprocessing.fit(regions[:90], table[:90], EVERYTHING), table[["age", "sex"]]
    curves = {"smooth": ["age"], "interactions": [("age", "sex")]}
    values = HeadSize.fit(table[:90], "head").transform(regions, table)
    sites = SiteHarmonizer.fit(values[:90], table[["age", "site", "sex"]][:90], "site", **curves)
    values = sites.transform(values, table)
    values = CovariateResidualizer.fit(values[:90], others[:90], **curves).transform(values, others)
    expected = ControlScaler.fit(values[:90]).transform(values)
    np.testing.assert_allclose(fitted.transform(regions, table), expected, rtol=1e-12)


def test_covariates_with_another_role_are_not_residualised(regions, table):
    fitted = Preprocessing.fit(regions, table, Correction(proportion="head", site="site"))
    assert [known.name for known in fitted.residualizer.covariates] == ["age", "sex"]
    assert sorted(fitted.covariates) == ["age", "head", "sex", "site"]
    only = Preprocessing.fit(regions, table[["head", "site"]], Correction(proportion="head", site="site"))
    assert (only.residualizer, only.harmonizer.kept) == (None, None)


def test_controls_are_left_without_age_or_site(regions, table, everything):
    made = everything.transform(regions, table)
    assert np.abs(np.corrcoef(made.T, table["age"])[-1, :-1]).max() < 1e-9
    np.testing.assert_allclose(made.mean(axis=0), 1)
    np.testing.assert_allclose(made.std(axis=0), 0.1)
    assert np.abs(pd.DataFrame(made).groupby(table["site"].to_numpy()).mean() - 1).to_numpy().max() < 0.01


@pytest.mark.parametrize(
    "correction",
    [
        None,
        Correction(smooth=["age", "head"]),
        Correction(interactions=[("age", "site"), ("sex", "site")]),
        Correction(proportion="head"),
        Correction(site="site"),
        EVERYTHING,
    ],
)
def test_there_and_back_through_everything(regions, table, correction):
    fitted = Preprocessing.fit(regions[:90], table[:90], correction)
    there = fitted.transform(regions, table)
    np.testing.assert_allclose(fitted.inverse_transform(there, table), regions, rtol=1e-12)
    again = restored(fitted)
    np.testing.assert_array_equal(again.transform(regions, table), there)
    np.testing.assert_array_equal(again.inverse_transform(there, table), fitted.inverse_transform(there, table))


def test_without_a_correction_effects_are_lines(regions, table):
    plain, empty = (Preprocessing.fit(regions, table, correction) for correction in (None, Correction()))
    np.testing.assert_array_equal(plain.transform(regions, table), empty.transform(regions, table))
    assert all(known.knots is None for known in plain.residualizer.covariates)


def test_an_uncorrected_site_keeps_its_shift(regions, table):
    fitted = Preprocessing.fit(regions, table, Correction(site="site"))
    unknown = fitted.leave_new_sites(table.assign(site="nowhere"))
    assert (unknown["site"] == UNCORRECTED).all()
    pd.testing.assert_frame_equal(Preprocessing.fit(regions, table).leave_new_sites(table), table)
    shifted = fitted.transform(regions + 10, unknown) - fitted.transform(regions, unknown)
    np.testing.assert_allclose(shifted, np.broadcast_to(1 / fitted.scaler.sd, shifted.shape), rtol=1e-9)


@pytest.mark.parametrize(
    ("correction", "message"),
    [
        (Correction(smooth=["Age"]), r"smooth\b.*'Age', which is not a covariate. Did you mean 'age'\?\n.*age, site"),
        (Correction(interactions=[("age", "icv")]), r"interactions\b.*'icv', which is not a covariate"),
        (Correction(proportion="icv"), r"proportion\b.*'icv'"),
        (Correction(site="scanner"), r"site\b.*'scanner'"),
        (Correction(smooth=["head"], proportion="head"), r"'head' cannot .* both \W*smooth\b.* and \W*proportion\b"),
        (
            Correction(interactions=[("age", "site")], site="site"),
            r"'site' cannot .* both \W*interactions\b.* and \W*site\b",
        ),
        (Correction(smooth=["sex"]), r"smooth\b.*'sex', which contains text"),
        (Correction(proportion="sex"), r"proportion\b.*'sex', which contains text"),
    ],
)
def test_corrections_that_do_not_fit_the_table_are_refused(regions, table, correction, message):
    with pytest.raises(ValueError, match=message):
        Preprocessing.fit(regions, table, correction)


def test_a_correction_without_covariates_is_refused(regions):
    with pytest.raises(ValueError, match=r"site\b.*'site', which is not a covariate.\nThe covariates are: none"):
        Preprocessing.fit(regions, None, Correction(site="site"))


def test_the_person_of_a_head_without_size_is_that_of_the_whole_table(regions, table):
    table.loc[77, "head"] = 0.0
    controls = np.arange(120) > 40
    with pytest.raises(ValueError, match="which must be positive but is 0 for person 77"):
        Preprocessing.fit(regions[controls], table[controls], Correction(proportion="head"))


@pytest.mark.parametrize("missing", ["head", "site", "age"])
def test_every_covariate_is_needed(regions, table, everything, missing):
    with pytest.raises(ValueError, match=f"Covariate '{missing}' is missing, but the model was trained with it"):
        everything.transform(regions, table.drop(columns=missing))
    with pytest.raises(
        ValueError, match="trained with the covariates age, sex, head, site, but the covariates provided are: none"
    ):
        everything.transform(regions, None)


# What a model file may hold


@pytest.mark.parametrize(
    "change",
    [
        {"covariates": [["age", None, [1.0, 2.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, [1.0, 3.0, 2.0, 4.0, 5.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, [1.0, 2.0, 3.0, 4.0, float("nan")]], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", None, "text"], ["sex", ["F", "M"], None]]},
        {"covariates": [["age", ["a", "b"], [1.0, 2.0, 3.0, 4.0, 5.0]], ["sex", ["F", "M"], None]]},
        {"covariates": [[3, None, None], ["sex", ["F", "M"], None]]},
        {"covariates": 3},
        {"interactions": [["age", "head"]]},
        {"interactions": [["age"]]},
        {"interactions": [["age", None]]},
        {"head_size": ["head", 0.0]},
        {"head_size": ["head", float("nan")]},
        {"head_size": "head"},
        {"site": ["site", ["A", "A", "B"]]},
        {"site": ["site", [1, 2, 3]]},
        {"site": ["site"]},
        {"site": 3},
    ],
)
def test_descriptions_that_make_no_sense_are_refused(everything, change):
    arrays = {(name, array.shape): array for name, array in arrays_of(everything).items()}
    with pytest.raises((ValueError, TypeError, KeyError)):
        restore(describe(everything) | change, lambda *name_and_shape: arrays[name_and_shape], 4)


@pytest.mark.parametrize("name", ["site.sd", "site.scales"])
def test_scales_that_are_not_positive_are_refused(everything, name):
    arrays = arrays_of(everything) | {name: 0 * arrays_of(everything)[name]}
    with pytest.raises(ValueError, match=f"{name} should be above 0"):
        restore(describe(everything), lambda name, _: arrays[name], 4)
