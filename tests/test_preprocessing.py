import numpy as np
import pandas as pd
import pytest

from rindices.preprocessing import ControlScaler, CovariateResidualizer, Preprocessing, whitening_matrix


@pytest.fixture
def covariates():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.uniform(50, 80, 60),
            "site": rng.permutation(np.repeat(["A", "B", "C"], 20)),
            "head": rng.normal(1500, 100, 60),
        }
    )


@pytest.fixture
def volumes(covariates):
    rng = np.random.default_rng(1)
    site = covariates["site"].map({"A": 0.0, "B": 40.0, "C": -70.0}).to_numpy()
    signal = np.outer(covariates["age"], [-3, 2, 0, 1]) + np.outer(covariates["head"], [1, 0.5, 2, 0]) + site[:, None]
    return 900 + signal + rng.normal(0, 30, (60, 4))


def least_squares(volumes, covariates):
    """Residuals of ordinary least squares with an intercept, plus the means."""
    indicators = [covariates["site"] == site for site in ("A", "B", "C")]
    design = np.column_stack([covariates["age"], covariates["head"], *indicators]).astype(float)
    with_one = np.column_stack([np.ones(len(design)), design])
    fit = with_one @ np.linalg.pinv(with_one) @ volumes
    return volumes - fit + volumes.mean(axis=0)


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


def test_a_category_of_one_value_has_no_effect(volumes, covariates):
    alone = CovariateResidualizer.fit(volumes, covariates.assign(scanner="X"))
    expected = CovariateResidualizer.fit(volumes, covariates).effect(covariates)
    np.testing.assert_allclose(alone.effect(covariates.assign(scanner="X")), expected)
    only = CovariateResidualizer.fit(volumes, pd.DataFrame({"scanner": ["X"] * 60}))
    np.testing.assert_array_equal(only.transform(volumes, pd.DataFrame({"scanner": ["X"] * 60})), volumes)


def test_units_of_regions_do_not_matter(volumes, covariates):
    np.testing.assert_allclose(scaled(1000 * volumes, covariates), scaled(volumes, covariates), rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e3, 1e14])
def test_units_of_covariates_do_not_matter(volumes, covariates, factor):
    other_unit = covariates.assign(head=factor * covariates["head"])
    np.testing.assert_allclose(scaled(volumes, other_unit), scaled(volumes, covariates), rtol=1e-7)


def test_collinear_covariates_do_not_blow_up(volumes, covariates):
    twice = covariates.assign(months=12 * covariates["age"] + 5, constant=3.0)
    fitted = Preprocessing.fit(volumes, twice)
    expected = Preprocessing.fit(volumes, covariates).transform(volumes, covariates)
    np.testing.assert_allclose(fitted.transform(volumes, twice), expected, rtol=1e-7)
    assert np.abs(fitted.residualizer.effects).max() < 1000


@pytest.mark.parametrize("given", ["covariates", None])
def test_controls_have_mean_1_and_sd_a_tenth(volumes, given, request):
    table = request.getfixturevalue(given) if given else None
    result = scaled(volumes, table)
    np.testing.assert_allclose(result.mean(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(((result - 1) ** 2).mean(axis=0)), 0.1, rtol=1e-12)


def test_scaling_is_relative_to_controls():
    scaler = ControlScaler.fit(np.array([[10.0, 1.0], [30.0, 3.0]]))
    np.testing.assert_allclose(scaler.transform(np.array([[40.0, 0.0]])), [[1.2, 0.8]])


def test_the_way_back_is_exact(volumes, covariates):
    fitted = Preprocessing.fit(volumes[:40], covariates[:40])
    there = fitted.transform(volumes, covariates)
    np.testing.assert_allclose(fitted.inverse_transform(there, covariates), volumes, rtol=1e-13)
    plain = Preprocessing.fit(volumes[:40], None)
    np.testing.assert_allclose(plain.inverse_transform(plain.transform(volumes, None), None), volumes, rtol=1e-13)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.assign(site="D"), "Covariate 'site' has the unknown category 'D'; known: A, B, C"),
        (lambda table: table.drop(columns="head"), "Covariate 'head' is missing"),
        (lambda table: table.assign(age="old"), "Covariate 'age' was a number in training, now it holds text"),
        (lambda table: table.assign(age=[*[60.0] * 59, np.inf]), "Covariate 'age' is missing or infinite in row 59"),
        (lambda table: None, "trained with the covariates age, site, head, but got none"),
    ],
)
def test_covariates_unlike_those_in_training_are_refused(volumes, covariates, change, message):
    fitted = Preprocessing.fit(volumes, covariates)
    with pytest.raises(ValueError, match=message):
        fitted.transform(volumes, change(covariates))


def test_covariates_that_training_had_not_are_refused(volumes, covariates):
    fitted = Preprocessing.fit(volumes, None)
    with pytest.raises(ValueError, match="trained with no covariates, but got age, site, head"):
        fitted.transform(volumes, covariates)


# Whitening


def correlated(n_people, n_regions=6):
    rng = np.random.default_rng(4)
    mixing = rng.normal(size=(n_regions, n_regions))
    raw = rng.normal(size=(n_people, n_regions)) @ mixing
    return ControlScaler.fit(raw).transform(raw)


def test_whitening_decorrelates_many_controls():
    controls = correlated(20_000)
    assert np.abs(np.cov(controls.T) / 0.01 - np.eye(6)).max() > 0.3
    white = 1 + (controls - 1) @ whitening_matrix(controls, 1.0)
    np.testing.assert_allclose(np.cov(white.T) / 0.01, np.eye(6), atol=0.05)


def test_whitening_is_symmetric_and_positive():
    matrix = whitening_matrix(correlated(100), 1.0)
    np.testing.assert_allclose(matrix, matrix.T)
    assert np.linalg.eigvalsh(matrix).min() > 0


def test_no_strength_is_no_whitening():
    assert whitening_matrix(correlated(100), 0.0) is None


def test_a_weaker_whitening_is_a_mixture():
    controls = correlated(100)
    full = whitening_matrix(controls, 1.0)
    np.testing.assert_allclose(whitening_matrix(controls, 0.3), 0.3 * full + 0.7 * np.eye(6))


def test_fewer_controls_than_regions_can_be_whitened():
    matrix = whitening_matrix(correlated(10, n_regions=25), 1.0)
    assert np.isfinite(matrix).all()
    assert np.linalg.cond(matrix) < 100
