"""Effects of covariates: lines, curves and interactions, and the uncertainty of their correction in patients."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.stats.outliers_influence import OLSInfluence

from rindices.preprocessing import CovariateResidualizer, Preprocessing
from rindices.preprocessing.covariates import (
    TOO_UNCERTAIN,
    Covariate,
    design_of,
    leverage_of,
    rescaled_by_leverage,
    spline_basis,
    spline_knots,
    uncertainty_in_words,
    uncertainty_of_patients,
    without_effects,
)
from rindices.presets import Correction
from tests.refusal import refused_with


def least_squares(volumes, covariates):
    """Return residuals of ordinary least squares with an intercept, plus the means."""
    indicators = [covariates["site"] == site for site in ("A", "B", "C")]
    design = np.column_stack([np.ones(len(volumes)), covariates["age"], covariates["head"], *indicators]).astype(float)
    return volumes - design @ np.linalg.pinv(design) @ volumes + volumes.mean(axis=0)


def scaled(volumes, covariates):
    return Preprocessing.fit(volumes, covariates).transform(volumes, covariates)


def test_residuals_are_those_of_least_squares(volumes, covariates):
    fitted = CovariateResidualizer.fit(volumes, covariates)
    np.testing.assert_allclose(fitted.transform(volumes, covariates), least_squares(volumes, covariates), rtol=1e-9)


def test_the_controls_effects_are_removed_from_others(volumes, covariates):
    fitted = CovariateResidualizer.fit(volumes[:40], covariates[:40])
    removed = volumes[40:] - fitted.transform(volumes[40:], covariates[40:])
    doubled = 2 * volumes[40:] - fitted.transform(2 * volumes[40:], covariates[40:])
    np.testing.assert_allclose(doubled, removed, rtol=1e-9)
    average = covariates[:40][["age", "head"]].mean()
    shares = [(covariates[:40]["site"] == site).mean() for site in ("A", "B", "C")]
    typical = [pd.DataFrame([average.to_dict() | {"site": site}]) for site in ("A", "B", "C")]
    mixed = sum(share * fitted.effect(person) for share, person in zip(shares, typical, strict=True))
    np.testing.assert_allclose(mixed, np.zeros((1, 4)), atol=1e-9)


def test_order_of_covariates_and_further_ones_do_not_matter(volumes, covariates):
    fitted = CovariateResidualizer.fit(volumes, covariates)
    table = covariates[["head", "site", "age"]].assign(handedness="left")
    np.testing.assert_array_equal(fitted.effect(table), fitted.effect(covariates))


def test_categories_are_told_by_indicators_of_all_but_the_first():
    """Coefficients in model files refer to these columns."""
    table = pd.DataFrame({"site": ["B", "A", "C"]})
    assert Covariate.of(table["site"], smooth=False).columns(table).tolist() == [[1, 0], [0, 0], [0, 1]]


def test_a_category_of_one_value_has_no_effect(volumes, covariates):
    alone = CovariateResidualizer.fit(volumes, covariates.assign(scanner="X"))
    expected = CovariateResidualizer.fit(volumes, covariates).effect(covariates)
    np.testing.assert_allclose(alone.effect(covariates.assign(scanner="X")), expected)
    only = CovariateResidualizer.fit(volumes, pd.DataFrame({"scanner": ["X"] * 60}))
    np.testing.assert_array_equal(only.transform(volumes, pd.DataFrame({"scanner": ["X"] * 60})), volumes)


@pytest.mark.parametrize(
    ("of_regions", "of_heads", "rtol"), [(1000, 1, 1e-9), *((1, x, 1e-7) for x in (1e-18, 1e3, 1e14))]
)
def test_units_of_regions_and_covariates_do_not_matter(volumes, covariates, of_regions, of_heads, rtol):
    found = scaled(of_regions * volumes, covariates.assign(head=of_heads * covariates["head"]))
    np.testing.assert_allclose(found, scaled(volumes, covariates), rtol=rtol)


def test_collinear_covariates_do_not_blow_up(volumes, covariates):
    twice = covariates.assign(months=12 * covariates["age"] + 5, constant=3.0)
    fitted = Preprocessing.fit(volumes, twice)
    expected = Preprocessing.fit(volumes, covariates).transform(volumes, covariates)
    np.testing.assert_allclose(fitted.transform(volumes, twice), expected, rtol=1e-7)
    assert np.abs(fitted.residualizer.effects).max() < 1000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda table: table.assign(site="D"),
            "Covariate 'site' has the category 'D', but the controls used for training have only these: A, B, C",
        ),
        (lambda table: table.drop(columns="head"), "Covariate 'head' is missing"),
        (lambda table: table.assign(age="old"), "Covariate 'age' was numeric during training but now contains text"),
        (lambda table: table.assign(age=[*[60.0] * 59, np.inf]), "Covariate 'age' is missing or infinite in row 59"),
        (lambda table: None, "trained with the covariates age, site, head, but the covariates provided are: none"),
        (lambda table: table, "trained with no covariates, but the covariates provided are: age, site, head"),
    ],
)
def test_covariates_unlike_those_in_training_are_refused(volumes, covariates, change, message):
    fitted = Preprocessing.fit(volumes, None if "with no covariates" in message else covariates)
    refused_with(message, fitted.transform, volumes, change(covariates), error=ValueError)


# Curves and interactions


@pytest.fixture
def people():
    rng = np.random.default_rng(2)
    ages = np.concatenate([rng.uniform(20, 90, 300), [20.0, 90.0]])
    return pd.DataFrame({"age": ages, "sex": rng.choice(["F", "M"], 302), "head": rng.normal(1500, 100, 302)})


def test_a_natural_spline_is_that_of_patsy_and_well_conditioned(people):
    """The two bases span the same space."""
    patsy, ages = pytest.importorskip("patsy"), people["age"].to_numpy()
    knots = spline_knots("age", ages)
    np.testing.assert_allclose(knots, np.quantile(ages, [0.05, 0.275, 0.5, 0.725, 0.95]))
    basis = spline_basis(ages, knots)
    assert basis.shape == (302, 4)
    assert np.linalg.cond(basis - basis.mean(axis=0)) < 20
    ours = np.column_stack([np.ones(302), basis])
    theirs = np.asarray(patsy.cr(ages, knots=knots[1:-1], lower_bound=knots[0], upper_bound=knots[-1]))
    between = (knots[0] <= ages) & (ages <= knots[-1])
    back = theirs[between] @ np.linalg.lstsq(theirs[between], ours[between], rcond=None)[0]
    np.testing.assert_allclose(back, ours[between], atol=1e-9)


def test_a_spline_is_straight_beyond_its_knots():
    for end, side in ((20.0, -1), (80.0, 1)):
        at = spline_basis(end + side * np.array([-1e-6, 0.0, 10.0, 1000.0]), (20.0, 40.0, 50.0, 60.0, 80.0))
        np.testing.assert_allclose(at[2], at[1] + 10 * ((at[1] - at[0]) / 1e-6), atol=1e-4)
        np.testing.assert_allclose(at[3] - at[1], 100 * (at[2] - at[1]), rtol=1e-9)


def curved(people, rng=None):
    age = (people["age"].to_numpy() - 55) / 35
    noise = 0 if rng is None else rng.normal(0, 5, (len(people), 2))
    return 1000 + np.column_stack([-60 * age**2, 80 * np.tanh(2 * age)]) + noise


def test_a_curve_is_removed_where_a_line_leaves_it(people):
    volumes = curved(people, np.random.default_rng(3))
    line, curve = (CovariateResidualizer.fit(volumes, people[["age"]], smooth=smooth) for smooth in ((), ("age",)))
    left = [np.std(curved(people) - fitted.effect(people), axis=0) for fitted in (line, curve)]
    assert (left[0] > 10).all()
    assert (left[1] < 2).all()


@pytest.mark.parametrize("smooth", [(), ("age",)])
def test_interactions_are_those_of_least_squares(people, smooth):
    rng, male = np.random.default_rng(4), (people["sex"] == "M").to_numpy(float)
    volumes = rng.normal(0, 10, (302, 3)) + np.outer(people["age"] * (1 + male), [1, 2, 3])
    table = people[["age", "sex"]]
    fitted = CovariateResidualizer.fit(volumes, table, smooth=smooth, interactions=[("age", "sex")])
    age = people["age"].to_numpy()[:, None]
    if smooth:
        age = spline_basis(age[:, 0], spline_knots("age", age[:, 0]))
    design = np.column_stack([np.ones(302), age, male, age * male[:, None]])
    assert len(fitted.centre) == design.shape[1] - 1
    expected = volumes - design @ np.linalg.pinv(design) @ volumes
    np.testing.assert_allclose(fitted.transform(volumes, table) - volumes.mean(axis=0), expected, atol=1e-8)


def test_interactions_of_large_numbers_are_well_conditioned(people):
    volumes = np.random.default_rng(5).normal(size=(302, 2)) + np.outer(people["age"] * people["head"], [1e-4, 2e-4])
    tables = (people, people.assign(head=1e6 * people["head"]))
    fitted = [CovariateResidualizer.fit(volumes, table, interactions=[("age", "head")]) for table in tables]
    small, big = (one.effect(table) for one, table in zip(fitted, tables, strict=True))
    np.testing.assert_allclose(big, small, rtol=1e-9, atol=1e-9)


def test_effects_within_groups_ignore_what_groups_differ_in(people):
    rng = np.random.default_rng(6)
    group = rng.permutation(np.repeat([0, 1, 2], [100, 100, 102]))
    table = people[["age"]] + 10 * group[:, None]
    volumes = -2 * table[["age"]].to_numpy() + 500 * group[:, None] + rng.normal(0, 1, (302, 4))
    design = np.column_stack([table["age"], group[:, None] == np.arange(3)]).astype(float)
    expected = np.linalg.lstsq(design, volumes, rcond=None)[0][0]
    np.testing.assert_allclose(CovariateResidualizer.fit(volumes, table, within=group).effects[0], expected, rtol=1e-9)


def test_what_is_constant_within_groups_has_no_effect_there():
    rng, table = np.random.default_rng(7), pd.DataFrame({"field": np.repeat([0.1, 1.5, 3.0], 20)})
    fitted = CovariateResidualizer.fit(rng.normal(size=(60, 2)), table, within=np.repeat([0, 1, 2], 20))
    np.testing.assert_array_equal(fitted.effects, 0)


@pytest.mark.parametrize("n_values", [2, 4])
def test_a_curve_needs_five_values(n_values):
    refused_with(
        rf"'age' has {n_values} different values in controls.*\n.*smooth",
        CovariateResidualizer.fit,
        np.ones((60, 1)),
        pd.DataFrame({"age": np.arange(60.0) % n_values}),
        smooth=["age"],
        error=ValueError,
    )


def test_ages_that_are_nearly_all_the_same_still_get_a_curve():
    values = np.array([60.0] * 96 + [61.0, 62.0, 63.0, 64.0])
    assert spline_knots("age", values) == pytest.approx((60.2, 61.1, 62.0, 62.9, 63.8))


def test_too_few_controls_for_the_columns_are_refused(people):
    table, curves = people[["age", "sex"]], {"smooth": ["age"], "interactions": [("age", "sex")]}
    CovariateResidualizer.fit(np.ones((18, 1)), table[:18], **curves)
    refused_with(
        r"9 coefficients per region\. Estimating them requires at least 18 controls, but there are 17",
        CovariateResidualizer.fit,
        np.ones((17, 1)),
        table[:17],
        **curves,
        error=ValueError,
    )


@pytest.mark.parametrize(("known", "given"), [(("False", "True"), [0, 1.0, True]), (("1.0", "2.0"), ["1", 2, "2.0"])])
def test_categories_match_however_they_are_written(known, given):
    columns = Covariate("smoker", known).columns(pd.DataFrame({"smoker": pd.Series(given, dtype=object)}))
    np.testing.assert_array_equal(columns.ravel(), [0, 1, 1])


# Uncertainty of the correction in patients: against the hat matrix of ordinary least squares


N_CONTROLS, N_PATIENTS = 60, 40
PATIENT = np.repeat([False, True], [N_CONTROLS, N_PATIENTS])


def both_groups(older=0.0, seed=0):
    rng = np.random.default_rng(seed)
    age, icv = rng.normal(60, 10, len(PATIENT)) + older * PATIENT, rng.normal(1.5e6, 1e5, len(PATIENT))
    sex, site = (rng.choice(names, len(PATIENT)) for names in (["F", "M"], ["A", "B", "C"]))
    return pd.DataFrame({"age": age, "icv": icv, "sex": sex, "site": site})


def uncertainty(table, correction=None):
    return uncertainty_of_patients(design_of(table, PATIENT, correction), PATIENT)


def by_hand(design):
    """Return the ratio of leverage in patients to controls, from statsmodels' prediction variances and hat matrix."""
    fitted = sm.OLS(np.arange(N_CONTROLS) % 7.0, design[~PATIENT]).fit()
    patients = fitted.get_prediction(design[PATIENT]).var_pred_mean / fitted.scale
    return patients.mean() / OLSInfluence(fitted).hat_matrix_diag.mean()


@pytest.mark.parametrize(
    ("names", "correction"), [(["age", "icv", "sex"], None), (["age", "site"], Correction(site="site"))]
)
def test_lines_and_levels_of_sites_are_those_of_least_squares(names, correction):
    table = both_groups(older=12)[names]
    columns = pd.get_dummies(table, drop_first=True, dtype=float)
    design = sm.add_constant((columns - columns.mean()) / columns.std()).to_numpy()
    assert uncertainty(table, correction) == pytest.approx(by_hand(design), rel=1e-9)


def test_leverage_is_that_of_the_hat_matrix_and_tells_the_variance_of_residuals():
    """The variance is 1 − h in controls, from whom effects were estimated, and 1 + h in everybody else."""
    design = design_of(both_groups(older=12)[["age", "icv", "sex", "site"]], PATIENT, None)
    hat, leverage = design @ np.linalg.pinv(design[~PATIENT]), leverage_of(design, PATIENT)
    np.testing.assert_allclose(leverage, (hat**2).sum(axis=1), rtol=1e-8)
    np.testing.assert_allclose(leverage[~PATIENT], np.diag(hat[~PATIENT]), rtol=1e-8)
    left = 1 + 0.1 * without_effects(np.random.default_rng(0).standard_normal((len(PATIENT), 20_000)), design, PATIENT)
    np.testing.assert_allclose((left / 0.1).var(axis=1), np.where(PATIENT, 1 + leverage, 1 - leverage), rtol=0.05)
    np.testing.assert_allclose(((rescaled_by_leverage(left, leverage, PATIENT) - 1) / 0.1).var(axis=1), 1, rtol=0.05)
    np.testing.assert_array_equal(rescaled_by_leverage(np.ones_like(left), leverage, PATIENT), 1)  # the mean is kept
    assert ((rescaled_by_leverage(left, leverage, PATIENT) - 1) * (left - 1) >= 0).all()  # and so are signs


def test_what_is_divided_by_is_not_estimated():
    table = both_groups(older=12)
    assert uncertainty(table[["age", "icv"]], Correction(proportion="icv")) == pytest.approx(
        uncertainty(table[["age"]])
    )


@pytest.mark.parametrize("correction", [None, Correction(smooth=("age",)), Correction(interactions=(("age", "sex"),))])
def test_units_do_not_matter(correction):
    table = both_groups(older=8)[["age", "icv", "sex"]]
    other = table.assign(age=table["age"] * 365.25, icv=table["icv"] / 1e6)
    assert uncertainty(other, correction) == pytest.approx(uncertainty(table, correction), rel=1e-6)


def test_the_same_ages_are_no_reason_to_warn_and_others_are():
    alike = [uncertainty(both_groups(seed=seed)[["age", "sex"]]) for seed in range(20)]
    assert 0.8 < np.mean(alike) < 1.2
    assert np.quantile(alike, 0.9) < TOO_UNCERTAIN
    older = [uncertainty(both_groups(15, seed)[["age", "sex"]]) for seed in range(20)]
    assert min(older) > TOO_UNCERTAIN
    assert uncertainty(both_groups(15)[["age", "sex"]], Correction(smooth=("age",))) > older[0]


@pytest.mark.parametrize("correction", [None, Correction(smooth=("age",), interactions=(("age", "sex"),))])
def test_what_is_left_is_what_preprocessing_leaves(correction):
    table = both_groups(older=5)[["age", "icv", "sex"]]
    values = np.random.default_rng(1).normal(5, 1, (len(table), 4))
    fitted = Preprocessing.fit(values[~PATIENT], table[~PATIENT], correction).residualizer
    left = without_effects(values, design_of(table, PATIENT, correction), PATIENT)
    # Preprocessing keeps the controls' mean; least squares with a level removes it.
    np.testing.assert_allclose(left + values[~PATIENT].mean(axis=0), fitted.transform(values, table), atol=1e-9)


def test_it_is_told_with_a_remedy():
    assert not [part for part in ("1.8 times as uncertain", "Choose controls") if part not in uncertainty_in_words(1.8)]
