import numpy as np
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.svm import SVR

from rindices.baselines import supervised_ceilings
from rindices.errors import InputError
from rindices.judging.agreement import concordance, pattern_concordance


@pytest.fixture(scope="module")
def told():
    rng = np.random.default_rng(0)
    truth = rng.uniform(size=(100, 2))
    regions = rng.standard_normal((100, 30)) * np.linspace(1, 9, 30)
    regions[:, :4] -= 4 * np.repeat(truth, 2, axis=1)
    return regions, truth


@pytest.fixture(scope="module")
def ceilings(told):
    return supervised_ceilings(*told, pattern_concordance, seed=3).set_index(["method", "fold"])


def plain_folds(told):
    regions, truth = told
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=3).split(regions)):
        z = (regions - regions[train].mean(axis=0)) / regions[train].std(axis=0)
        yield fold, z, truth, train, test


def mean_concordance(truth, predicted):
    return np.mean([concordance(truth[:, k], predicted[:, k]) for k in range(truth.shape[1])])


def test_linear_regression_is_least_squares_on_the_training_fold(told, ceilings):
    for fold, z, truth, train, test in plain_folds(told):
        design = np.column_stack([np.ones(len(z)), z])
        predicted = design @ np.linalg.lstsq(design[train], truth[train], rcond=None)[0]
        row = ceilings.loc["linear", fold]
        assert row.train == pytest.approx(mean_concordance(truth[train], predicted[train]))
        assert row.test == pytest.approx(mean_concordance(truth[test], predicted[test]))


def test_ridge_and_support_vectors_are_scored_where_they_were_not_trained(told, ceilings):
    for fold, z, truth, train, test in plain_folds(told):
        ridge = RidgeCV(np.geomspace(0.1, 1e4, 20)).fit(z[train], truth[train]).predict(z[test])
        assert ceilings.loc["ridge", fold].test == pytest.approx(mean_concordance(truth[test], ridge))
        vectors = np.column_stack([SVR().fit(z[train], column[train]).predict(z[test]) for column in truth.T])
        assert ceilings.loc["svr", fold].test == pytest.approx(mean_concordance(truth[test], vectors))


def test_training_flatters_and_all_methods_and_folds_are_there(ceilings):
    assert ceilings.index.tolist() == [(name, fold) for name in ("linear", "ridge", "svr") for fold in range(5)]
    means = ceilings.groupby("method").mean()
    assert (means.train > means.test).all()
    assert means.test.ridge > 0.65


def test_one_pattern_is_enough_and_truth_must_fit(told):
    regions, truth = told
    single = supervised_ceilings(regions, truth[:, :1], pattern_concordance, n_folds=2)
    assert len(single) == 6
    with pytest.raises(InputError, match=r"each of 100 patients; its shape is \(99, 2\)"):
        supervised_ceilings(regions, truth[1:], pattern_concordance)
