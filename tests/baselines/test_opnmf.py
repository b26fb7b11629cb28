import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rindices.baselines import OrthonormalProjectiveNMF
from rindices.errors import InputError


def in_parts(noise, seed=0, n_people=200):
    """People whose 12 regions fall into three parts, each of which goes up and down together."""
    rng = np.random.default_rng(seed)
    parts = np.repeat(np.arange(3), 4)
    loadings = rng.exponential(size=(n_people, 3))
    shares = rng.uniform(0.5, 1.5, 12)
    return loadings[:, parts] * shares + noise * rng.uniform(size=(n_people, 12)), loadings, parts


@pytest.mark.parametrize("n_components", [1, 3])
def test_components_are_orthonormal_and_not_negative(n_components):
    X, _, _ = in_parts(noise=1.0)
    W = OrthonormalProjectiveNMF(n_components, random_state=0).fit(X).components_
    assert (W >= 0).all()
    np.testing.assert_allclose(W @ W.T, np.eye(n_components), atol=1e-12)


def test_the_objective_is_the_squared_error_and_falls():
    X, _, _ = in_parts(noise=1.0)
    model = OrthonormalProjectiveNMF(3, random_state=1).fit(X)
    projected = X @ model.components_.T @ model.components_
    assert model.reconstruction_err_ == pytest.approx(np.linalg.norm(X - projected))
    assert len(model.objectives_) == model.n_iter_ + 1
    assert np.diff(model.objectives_).max() <= 1e-6 * model.objectives_[0]
    assert model.objectives_[-1] < 0.5 * model.objectives_[0]


def test_parts_are_found_again_from_any_start():
    X, loadings, parts = in_parts(noise=0.2)
    for seed in range(5):
        model = OrthonormalProjectiveNMF(3, random_state=seed).fit(X)
        owner = model.components_.argmax(axis=0)
        assert len({(part, own) for part, own in zip(parts, owner, strict=True)}) == 3
        found = model.transform(X)[:, owner[::4]]
        assert min(np.corrcoef(found[:, k], loadings[:, k])[0, 1] for k in range(3)) > 0.98


def test_one_component_is_the_leading_singular_vector():
    X, _, _ = in_parts(noise=0.5)
    leading = np.abs(np.linalg.svd(X)[2][0])
    np.testing.assert_allclose(OrthonormalProjectiveNMF(1, random_state=0).fit(X).components_[0], leading, atol=1e-8)


def test_new_people_are_projected_and_starts_repeat():
    X, _, _ = in_parts(noise=0.5)
    model = OrthonormalProjectiveNMF(3, random_state=4).fit(X[:150])
    np.testing.assert_allclose(model.transform(X[150:]), X[150:] @ model.components_.T)
    again = OrthonormalProjectiveNMF(3, random_state=4).fit(X[:150])
    np.testing.assert_array_equal(again.components_, model.components_)


def test_a_short_fit_warns_and_wrong_input_is_refused():
    X, _, _ = in_parts(noise=0.5)
    with pytest.warns(ConvergenceWarning, match="within 2 updates"):
        OrthonormalProjectiveNMF(3, max_iter=2, random_state=0).fit(X)
    with pytest.raises(InputError, match=r"found -1 in row 3, column 5"):
        OrthonormalProjectiveNMF().fit(np.where(np.arange(12) == 5, np.where(np.arange(200) == 3, -1, 1)[:, None], X))
    with pytest.raises(InputError, match="from 1 to 12"):
        OrthonormalProjectiveNMF(13).fit(X)
