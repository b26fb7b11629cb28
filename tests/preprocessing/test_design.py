"""How certain the correction is for patients: against the hat matrix of ordinary least squares."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from statsmodels.stats.outliers_influence import OLSInfluence

from rindices.preprocessing import Preprocessing
from rindices.preprocessing.covariates import (
    TOO_UNCERTAIN,
    design_of,
    leverage_of,
    rescaled_by_leverage,
    uncertainty_in_words,
    uncertainty_of_patients,
    without_effects,
)
from rindices.presets import Correction

N_CONTROLS, N_PATIENTS = 60, 40
PATIENT = np.repeat([False, True], [N_CONTROLS, N_PATIENTS])


def people(older=0.0, seed=0):
    rng = np.random.default_rng(seed)
    age, icv = rng.normal(60, 10, len(PATIENT)) + older * PATIENT, rng.normal(1.5e6, 1e5, len(PATIENT))
    sex, site = (rng.choice(names, len(PATIENT)) for names in (["F", "M"], ["A", "B", "C"]))
    return pd.DataFrame({"age": age, "icv": icv, "sex": sex, "site": site})


def uncertainty(table, correction=None):
    return uncertainty_of_patients(design_of(table, PATIENT, correction), PATIENT)


def by_hand(design):
    """Leverage by statsmodels: the hat matrix of the controls, the variance of predictions for the patients."""
    fitted = sm.OLS(np.arange(N_CONTROLS) % 7.0, design[~PATIENT]).fit()
    patients = fitted.get_prediction(design[PATIENT]).var_pred_mean / fitted.scale
    return patients.mean() / OLSInfluence(fitted).hat_matrix_diag.mean()


def test_lines_are_those_of_least_squares():
    table = people(older=12)[["age", "icv", "sex"]]
    design = np.column_stack([np.ones(len(table)), (table["age"] - 60) / 10, table["icv"] / 1e6, table["sex"] == "M"])
    assert uncertainty(table) == pytest.approx(by_hand(design), rel=1e-9)


def test_leverage_is_that_of_the_hat_matrix_and_tells_the_variance_of_residuals():
    """In controls, who were estimated from, it falls to 1 − h; in everybody else it rises to 1 + h."""
    design = design_of(people(older=12)[["age", "icv", "sex", "site"]], PATIENT, None)
    hat, leverage = design @ np.linalg.pinv(design[~PATIENT]), leverage_of(design, PATIENT)
    np.testing.assert_allclose(leverage, (hat**2).sum(axis=1), rtol=1e-8)
    np.testing.assert_allclose(leverage[~PATIENT], np.diag(hat[~PATIENT]), rtol=1e-8)
    left = 1 + 0.1 * without_effects(np.random.default_rng(0).standard_normal((len(PATIENT), 20_000)), design, PATIENT)
    np.testing.assert_allclose((left / 0.1).var(axis=1), np.where(PATIENT, 1 + leverage, 1 - leverage), rtol=0.05)
    np.testing.assert_allclose(((rescaled_by_leverage(left, leverage, PATIENT) - 1) / 0.1).var(axis=1), 1, rtol=0.05)
    np.testing.assert_array_equal(rescaled_by_leverage(np.ones_like(left), leverage, PATIENT), 1)  # the mean stays
    assert ((rescaled_by_leverage(left, leverage, PATIENT) - 1) * (left - 1) >= 0).all()  # and so do directions


def test_sites_have_levels_of_their_own():
    table = people(older=12)[["age", "site"]]
    design = np.column_stack([table["age"] / 10, *(table["site"] == name for name in "ABC")]).astype(float)
    assert uncertainty(table, Correction(site="site")) == pytest.approx(by_hand(design), rel=1e-9)


def test_what_is_divided_by_is_not_estimated():
    table = people(older=12)
    assert uncertainty(table[["age", "icv"]], Correction(proportion="icv")) == pytest.approx(
        uncertainty(table[["age"]])
    )


@pytest.mark.parametrize("correction", [None, Correction(smooth=("age",)), Correction(interactions=(("age", "sex"),))])
def test_units_do_not_matter(correction):
    table = people(older=8)[["age", "icv", "sex"]]
    other = table.assign(age=table["age"] * 365.25, icv=table["icv"] / 1e6)
    assert uncertainty(other, correction) == pytest.approx(uncertainty(table, correction), rel=1e-6)


def test_the_same_ages_are_no_reason_to_warn_and_others_are():
    alike = [uncertainty(people(seed=seed)[["age", "sex"]]) for seed in range(20)]
    assert 0.8 < np.mean(alike) < 1.2
    assert np.quantile(alike, 0.9) < TOO_UNCERTAIN
    older = [uncertainty(people(15, seed)[["age", "sex"]]) for seed in range(20)]
    assert min(older) > TOO_UNCERTAIN
    assert uncertainty(people(15)[["age", "sex"]], Correction(smooth=("age",))) > older[0]


@pytest.mark.parametrize("correction", [None, Correction(smooth=("age",), interactions=(("age", "sex"),))])
def test_what_is_left_is_what_preprocessing_leaves(correction):
    table = people(older=5)[["age", "icv", "sex"]]
    values = np.random.default_rng(1).normal(5, 1, (len(table), 4))
    fitted = Preprocessing.fit(values[~PATIENT], table[~PATIENT], correction).residualizer
    left = without_effects(values, design_of(table, PATIENT, correction), PATIENT)
    # Preprocessing keeps the controls' mean, least squares with a level takes it away.
    np.testing.assert_allclose(left + values[~PATIENT].mean(axis=0), fitted.transform(values, table), atol=1e-9)


def test_it_is_told_with_a_remedy():
    assert "1.8 times as uncertain" in uncertainty_in_words(1.8)
    assert "Choose controls" in uncertainty_in_words(1.8)
