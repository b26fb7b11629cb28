import numpy as np
import pandas as pd
import pytest

from rindices.preprocessing import ControlScaler, HeadSize, Preprocessing, whitening_matrix


@pytest.mark.parametrize("given", ["covariates", None])
def test_controls_have_mean_1_and_sd_a_tenth(volumes, given, request):
    table = request.getfixturevalue(given) if given else None
    result = Preprocessing.fit(volumes, table).transform(volumes, table)
    np.testing.assert_allclose(result.mean(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(((result - 1) ** 2).mean(axis=0)), 0.1, rtol=1e-12)


def test_scaling_is_relative_to_controls():
    scaler = ControlScaler.fit(np.array([[10.0, 1.0], [30.0, 3.0]]))
    np.testing.assert_allclose(scaler.transform(np.array([[40.0, 0.0]])), [[1.2, 0.8]])


def test_a_region_without_variance_in_a_fold_of_controls_tells_nobody_apart():
    scaler = ControlScaler.fit(np.array([[0.0, 1.0], [0.0, 3.0]]))
    scaled = scaler.transform(np.array([[8.1, 2.0], [0.0, 2.0]]))
    np.testing.assert_array_equal(scaled, np.ones((2, 2)))
    np.testing.assert_array_equal(scaler.inverse_transform(scaled), [[0.0, 2.0], [0.0, 2.0]])


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


def test_whitening_is_symmetric_and_positive_and_a_weaker_one_a_mixture():
    full, weaker, none = (whitening_matrix(correlated(100), strength) for strength in (1.0, 0.3, 0.0))
    np.testing.assert_allclose(full, full.T)
    assert np.linalg.eigvalsh(full).min() > 0
    np.testing.assert_allclose(weaker, 0.3 * full + 0.7 * np.eye(6))
    assert none is None


def test_fewer_controls_than_regions_can_be_whitened():
    matrix = whitening_matrix(correlated(10, n_regions=25), 1.0)
    assert np.isfinite(matrix).all()
    assert np.linalg.cond(matrix) < 100


# Head size


@pytest.fixture
def heads():
    return pd.DataFrame({"icv": [1200.0, 1500.0, 1800.0]})


def test_regions_become_a_proportion_of_the_average_head(heads):
    fitted, volumes = HeadSize.fit(heads, "icv"), np.array([[12.0, 6.0], [30.0, 7.0], [18.0, 9.0]])
    made = fitted.transform(volumes, heads)
    np.testing.assert_allclose(made, volumes / heads.to_numpy() * 1500)
    np.testing.assert_allclose(fitted.inverse_transform(made, heads), volumes)


def test_the_average_is_that_of_controls(heads):
    fitted = HeadSize.fit(heads[:2], "icv")
    np.testing.assert_allclose(fitted.transform(np.array([[18.0]]), heads[2:]), [[18 * 1350 / 1800]])


@pytest.mark.parametrize("size", [0.0, -3.0])
def test_heads_without_size_are_refused(heads, size):
    bad, fitted = heads.assign(icv=[1200.0, size, 1800.0]), HeadSize.fit(heads, "icv")
    for attempt in (lambda: HeadSize.fit(bad, "icv"), lambda: fitted.transform(np.ones((3, 1)), bad)):
        with pytest.raises(
            ValueError,
            match=rf"divided by 'icv', which must be positive but is {size:.0f} for person 1 \(1 person in all",
        ):
            attempt()
