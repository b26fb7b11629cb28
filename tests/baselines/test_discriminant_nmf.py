import numpy as np
import pytest
from scipy.special import kl_div
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from rindices.baselines import DiscriminantNMF
from rindices.errors import InputError


def classes(n_people=120, n_regions=15, n_classes=2, seed=0):
    """People with two shared components; only the second one differs between classes."""
    rng = np.random.default_rng(seed)
    basis = rng.dirichlet(np.full(n_regions, 0.3), 2)
    y = np.arange(n_people) % n_classes
    loadings = np.column_stack([rng.gamma(4, 2, n_people), rng.gamma(4, 0.5, n_people) + 6 * y])
    return loadings @ basis + 0.05 * rng.uniform(size=(n_people, n_regions)), y, loadings, basis


def plain_objective(X, y, loadings, basis, within, between):
    value = kl_div(X, loadings @ basis).sum()
    for label in np.unique(y):
        group = loadings[y == label]
        value += within * ((group - group.mean(axis=0)) ** 2).sum()
        value -= between * ((group.mean(axis=0) - loadings.mean(axis=0)) ** 2).sum()
    return value


@pytest.mark.parametrize(("within", "between", "n_classes"), [(0, 0, 2), (0.1, 1e-4, 2), (0.5, 0.1, 2), (0.1, 0.1, 3)])
def test_the_objective_is_the_published_one_and_never_rises(within, between, n_classes):
    X, y, _, _ = classes(n_classes=n_classes)
    model = DiscriminantNMF(3, within=within, between=between, random_state=0).fit(X, y)
    expected = plain_objective(X, y, model.loadings_, model.components_, within, between)
    assert model.objectives_[-1] == pytest.approx(expected)
    assert len(model.objectives_) > 5
    assert np.diff(model.objectives_).max() <= 1e-10 * abs(model.objectives_[0])
    assert (model.components_ >= 0).all()
    assert (model.loadings_ >= 0).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1)


def test_a_resting_point_is_a_minimum_in_the_loadings():
    X, y, _, _ = classes(n_people=20)
    model = DiscriminantNMF(2, within=0.3, between=0.05, random_state=0, tol=1e-8).fit(X, y)
    least = plain_objective(X, y, model.loadings_, model.components_, 0.3, 0.05)
    rng = np.random.default_rng(0)
    for _ in range(20):
        moved = model.loadings_ * np.exp(0.01 * rng.standard_normal(model.loadings_.shape))
        assert plain_objective(X, y, moved, model.components_, 0.3, 0.05) > least


def test_without_weights_it_is_nmf_by_kullback_leibler():
    X, y, _, _ = classes()
    ours = DiscriminantNMF(2, within=0, between=0, random_state=0, tol=1e-9, max_iter=5000).fit(X, y)
    theirs = NMF(2, solver="mu", beta_loss="kullback-leibler", init="random", tol=1e-9, max_iter=5000, random_state=0)
    divergence = kl_div(X, theirs.fit_transform(X) @ theirs.components_).sum()
    assert ours.objectives_[-1] == pytest.approx(divergence, rel=1e-2)


def test_components_are_found_again_and_new_people_need_no_label():
    X, y, loadings, basis = classes(n_people=300)
    model = DiscriminantNMF(2, within=1e-4, random_state=0, tol=1e-7).fit(X[:200], y[:200])
    matched = np.corrcoef(np.concatenate([basis, model.components_]))[:2, 2:]
    assert sorted(matched.argmax(axis=1)) == [0, 1]
    assert matched.max(axis=1).min() > 0.98
    found = model.transform(X[200:])[:, matched.argmax(axis=1)]
    assert min(np.corrcoef(found[:, k], loadings[200:, k])[0, 1] for k in range(2)) > 0.95


def test_weight_within_makes_classes_narrow():
    X, y, _, _ = classes()

    def width(within):
        loadings = DiscriminantNMF(2, within=within, random_state=0).fit(X, y).loadings_
        return sum(loadings[y == label].var(axis=0).sum() for label in (0, 1)) / loadings.var(axis=0).sum()

    assert width(1.0) < 0.5 * width(0.0)


def test_a_short_fit_warns_and_negative_numbers_are_refused():
    X, y, _, _ = classes()
    with pytest.warns(ConvergenceWarning, match="within 5 updates"):
        DiscriminantNMF(max_iter=5, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="no negative numbers"):
        DiscriminantNMF().fit(-X, y)
    with pytest.raises(InputError, match="smaller `between` than 50"):
        DiscriminantNMF(within=0.01, between=50, random_state=0).fit(X, y)
