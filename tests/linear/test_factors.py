"""Linear models of people with known maps and severities."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from rindices import linear
from rindices.judging.agreement_and_misfit import pattern_concordance
from rindices.linear import LinearModel, Whitening, contrastive_ica, least_overlap, one_thread, sparse_factors

N_REGIONS, N_CONTROLS, N_PATIENTS = 40, 300, 400


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def sparse_maps(n_patterns, size=1.5):
    maps = np.zeros((n_patterns, N_REGIONS))
    for k in range(n_patterns):
        maps[k, 9 * k : 9 * k + 10] = -size  # neighbours share a region
    return maps


def dense_maps(n_patterns, size=1.0, seed=3):
    return size * np.random.default_rng(seed).standard_normal((n_patterns, N_REGIONS))


def cohort(maps, seed=0):
    """Return controls and patients in sd of the controls, and the patients' severities, uniform from 0 to 1."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((N_REGIONS, 3)) / 2
    people = (
        rng.standard_normal((N_CONTROLS + N_PATIENTS, N_REGIONS))
        + rng.standard_normal((N_CONTROLS + N_PATIENTS, 3)) @ loadings.T
    )
    severities = rng.uniform(size=(N_PATIENTS, len(maps)))
    people[N_CONTROLS:] += 2 * severities @ maps
    controls = people[:N_CONTROLS]
    people = (people - controls.mean(axis=0)) / controls.std(axis=0)
    return people[:N_CONTROLS], people[N_CONTROLS:], severities


def cosines(found, true):
    """Return the cosine of each true map with the map most similar to it."""
    unit = [maps / np.linalg.norm(maps, axis=1, keepdims=True) for maps in (true, found)]
    return (unit[0] @ unit[1].T).max(axis=1)


@pytest.mark.parametrize("n_patterns", [2, 4])
def test_gradient_of_the_overlap_is_that_of_finite_differences(n_patterns):
    rng = np.random.default_rng(n_patterns)
    basis = np.linalg.qr(rng.standard_normal((N_REGIONS, n_patterns)))[0]
    for _ in range(3):
        at = rng.standard_normal(n_patterns**2)
        assert check_grad(
            lambda flat: linear._overlap(flat, basis)[0], lambda flat: linear._overlap(flat, basis)[1], at
        ) < 1e-5 * max(1.0, np.linalg.norm(linear._overlap(at, basis)[1]))


def test_rotation_finds_the_maps_that_overlap_least():
    maps = sparse_maps(3)
    basis = np.linalg.qr(maps.T)[0]
    turned = basis @ least_overlap(basis)
    assert np.abs(cosines(np.concatenate([turned.T, -turned.T]), maps)).min() > 0.99
    assert least_overlap(basis[:, :1]).tolist() == [[1.0]]
    np.testing.assert_array_equal(least_overlap(basis, seed=1), least_overlap(basis, seed=1))


def test_posterior_is_that_of_a_joint_normal_distribution():
    rng = np.random.default_rng(0)
    maps, mean = rng.standard_normal((N_REGIONS, 3)), np.array([1.0, 0.5, -0.3])
    root = rng.standard_normal((N_REGIONS, N_REGIONS)) / 8 + np.eye(N_REGIONS)
    healthy, covariance = root @ root.T, np.array([[1, 0.4, 0], [0.4, 1, 0.2], [0, 0.2, 1]])
    people = rng.standard_normal((6, N_REGIONS))
    # From the joint distribution: that of severities given regions.
    gain = covariance @ maps.T @ np.linalg.inv(maps @ covariance @ maps.T + healthy)
    expected, precision = mean + (people - mean @ maps.T) @ gain.T, np.linalg.inv(healthy)
    found, error = linear._posterior(people, maps, precision, mean, covariance)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    np.testing.assert_allclose(error, covariance - gain @ maps @ covariance, atol=1e-10)
    model = linear._finished(maps, mean, covariance, precision)
    sign = np.array([1, 1, -1])  # severities grow towards the patients
    np.testing.assert_allclose(model.severities(people), expected * sign, atol=1e-10)
    np.testing.assert_allclose(model.mean, mean * sign)
    np.testing.assert_allclose(model.maps, maps.T * sign[:, None])


def test_whitening_makes_controls_uncorrelated():
    whitening = Whitening.of(cohort(sparse_maps(1))[0])
    np.testing.assert_allclose(whitening.root @ whitening.root, whitening.covariance, atol=1e-10)
    np.testing.assert_allclose(whitening.root @ whitening.inverse_root, np.eye(N_REGIONS), atol=1e-10)


def check_model(model: LinearModel, n_patterns, patients):
    assert model.maps.shape == model.gain.shape == (n_patterns, N_REGIONS)
    np.testing.assert_allclose(np.diag(model.covariance), 1)
    assert (model.mean >= 0).all()
    assert model.severities(patients).shape == (len(patients), n_patterns)


@pytest.mark.parametrize("n_patterns", [1, 2, 3])
def test_sparse_maps_and_severities_are_recovered(n_patterns):
    maps = sparse_maps(n_patterns)
    controls, patients, severities = cohort(maps)
    model = sparse_factors(controls, patients, n_patterns)
    check_model(model, n_patterns, patients)
    assert pattern_concordance(severities, model.severities(patients)) > 0.85
    assert cosines(model.maps, maps / controls.std(axis=0)).min() > 0.95
    unchanged = (maps == 0).all(axis=0)
    assert (model.maps[:, unchanged] == 0).mean() > 0.9
    assert (model.maps[:, ~unchanged] != 0).any(axis=0).all()
    # Uniform severities: mean 1/2 and sd 1/√12.
    np.testing.assert_allclose(model.mean, np.sqrt(3), rtol=0.2)
    # Maps are changes at a severity of one sd; healthy people have no severity.
    np.testing.assert_allclose(model.maps.sum(), 2 / np.sqrt(12) * (maps / raw_sd()).sum(), rtol=0.15)
    assert np.abs(model.severities(controls).mean(axis=0)).max() < 0.8 * model.mean.min()


def raw_sd():
    """Return the sd of the controls of `cohort` before they were standardised."""
    return np.sqrt(1 + ((np.random.default_rng(0).standard_normal((N_REGIONS, 3)) / 2) ** 2).sum(axis=1))


@pytest.mark.parametrize("n_patterns", [1, 3])
def test_independent_components_recover_dense_maps(n_patterns):
    maps = dense_maps(n_patterns)
    controls, patients, severities = cohort(maps)
    model = contrastive_ica(controls, patients, n_patterns)
    check_model(model, n_patterns, patients)
    assert pattern_concordance(severities, model.severities(patients)) > 0.85
    assert cosines(model.maps, maps / raw_sd()).min() > 0.9


@pytest.mark.parametrize("method", [sparse_factors, contrastive_ica])
@pytest.mark.parametrize(("many", "error"), [(5000, 0), (10, 1e-9)], ids=["same bits", "by sums over people"])
def test_same_seed_gives_the_same_bits_and_sums_of_many_people_the_same_model(monkeypatch, method, many, error):
    controls, patients, _ = cohort(sparse_maps(2))
    first = method(controls, patients, 2, 5)
    monkeypatch.setattr("rindices.linear._MANY", many)
    for one, other in zip(first, method(controls, patients, 2, 5), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=error)


@pytest.mark.parametrize("method", [sparse_factors, contrastive_ica])
def test_people_without_disease_have_a_model_too(method):
    controls, patients, _ = cohort(np.zeros((1, N_REGIONS)))
    check_model(method(controls, patients, 2), 2, patients)


def test_changes_are_those_of_generalised_least_squares():
    """Each pattern keeps its own regions only; changes are compared with the formula by region and pattern."""
    rng = np.random.default_rng(8)
    root = rng.standard_normal((6, 6)) / 3 + np.eye(6)
    healthy, scores = root @ root.T, rng.uniform(1, 2, size=(50, 2))
    true = np.array([[9.0, 9, 9, 0, 0, 0], [0, 0, 0, 9, 9, 9]])
    people = scores @ true + rng.standard_normal((50, 6)) @ root.T
    squares, precision = scores.T @ scores, np.linalg.inv(healthy)
    start = np.linalg.solve(squares, scores.T @ people).T
    found = linear._cut(start, squares, healthy, precision, precision @ people.T @ scores)
    # Whiten people and stack them: ordinary least squares on one long column.
    white, places = np.linalg.inv(np.linalg.cholesky(healthy)), np.argwhere(true.T != 0)
    columns = np.stack([np.outer(scores[:, k], white[:, region]).ravel() for region, k in places], axis=1)
    expected = np.linalg.lstsq(columns, (people @ white.T).ravel(), rcond=None)[0]
    np.testing.assert_allclose(found[tuple(places.T)], expected, rtol=1e-8)
    assert (found.T[true == 0] == 0).all()


@pytest.mark.parametrize("projected", [np.zeros((5, 2)), np.outer(np.arange(5.0), [1, 1]), 1e200 * np.eye(4)[:, :2]])
def test_components_that_cannot_be_computed_are_not_rotated(projected):
    found = linear._independent(projected, 0)
    assert np.isfinite(found).all()
    assert np.linalg.matrix_rank(found) == 2
