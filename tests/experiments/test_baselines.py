from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from baselines import METHODS, Baseline, DiscriminantNMF, supervised_ceilings
from diagnosis import diagnosis_auc
from scipy.special import kl_div
from scipy.stats import spearmanr
from scoring import best_components
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import SVR

from rindices.judging.agreement_and_misfit import concordance, pattern_concordance
from tests.refusal import refused_with


@pytest.fixture(scope="module")
def cohort():
    """80 controls and 80 patients in shuffled order; each of three patterns shrinks four of twelve regions."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], 80))
    truth = np.where(y[:, None] == 1, rng.uniform(size=(160, 3)), 0)
    scaled = rng.standard_normal((160, 12)) - 5 * truth @ np.repeat(np.eye(3), 4, axis=1)
    return pd.DataFrame(1000 + 100 * scaled, columns=[f"region{i}" for i in range(12)]), y, truth[y == 1]


@pytest.mark.parametrize("method", METHODS)
def test_known_severities_are_found(cohort, method):
    volumes, y, truth = cohort
    model = Baseline(method, random_state=0).fit(volumes, y)
    table = np.abs(spearmanr(truth, model.transform(volumes)[y == 1]).statistic[:3, 3:])
    # Shares of components and narrow classes say little about severities; rotated factors mix them.
    assert table.max(axis=1).min() > {"nmf": 0.8, "opnmf": 0.8, "fa": 0.4, "lda": 0.4, "dnmf": 0.2}[method]
    assert np.isfinite(model.transform(volumes * 10)).all()  # new people may be outside the range


@pytest.mark.parametrize(("within", "between", "n_classes"), [(0, 0, 2), (0.5, 0.1, 2), (0.1, 0.1, 3)])
def test_the_discriminant_objective_is_the_published_one_and_never_rises(within, between, n_classes):
    X, y = np.random.default_rng(0).exponential(size=(200, 12)), np.arange(200) % n_classes
    model = DiscriminantNMF(3, within=within, between=between, random_state=0).fit(X, y)
    groups = [model.loadings_[y == label] for label in range(n_classes)]
    scatter = sum(((group - group.mean(axis=0)) ** 2).sum() for group in groups)
    apart = sum(((group.mean(axis=0) - model.loadings_.mean(axis=0)) ** 2).sum() for group in groups)
    value = kl_div(X, model.loadings_ @ model.components_).sum() + within * scatter - between * apart
    assert model.objectives_[-1] == pytest.approx(value)
    assert np.diff(model.objectives_).max() <= 1e-10 * abs(model.objectives_[0])


def test_regressions_are_told_the_truth_in_one_part_and_scored_in_the_other():
    rng = np.random.default_rng(0)
    truth, regions = rng.uniform(size=(100, 2)), rng.standard_normal((100, 30)) * np.linspace(1, 9, 30)
    regions[:, :4] -= 4 * np.repeat(truth, 2, axis=1)
    table = supervised_ceilings(regions, truth, pattern_concordance, seed=3).set_index(["method", "fold"])
    for fold, (train, test) in enumerate(KFold(5, shuffle=True, random_state=3).split(regions)):
        z = (regions - regions[train].mean(axis=0)) / regions[train].std(axis=0)
        for method, model in {
            "linear": LinearRegression(),
            "ridge": RidgeCV(np.geomspace(0.1, 1e4, 20)),
            "svr": MultiOutputRegressor(SVR()),
        }.items():
            predicted = model.fit(z[train], truth[train]).predict(z[test])
            own = [concordance(truth[test, k], predicted[:, k]) for k in range(2)]
            assert table.loc[(method, fold), "test"] == pytest.approx(np.mean(own))


@pytest.mark.parametrize("n_components", [3, 4])
def test_no_other_choice_of_components_and_signs_is_better(n_components):
    rng = np.random.default_rng(n_components)
    truth = rng.uniform(size=(30, 3))
    components = np.round(truth @ rng.standard_normal((3, n_components)) + rng.standard_normal((30, n_components)), 1)

    def mean(order, signs):
        pairs = zip(truth.T, (components[:, list(order)] * np.array(signs)).T, strict=True)
        return np.mean([concordance(severity, component) for severity, component in pairs])

    choices = product(permutations(range(n_components), 3), product((-1, 1), repeat=3))
    found, best = best_components(components, truth), max(mean(*choice) for choice in choices)
    assert [found.concordances.mean(), mean(found.order, found.signs)] == pytest.approx([best, best])


# Diagnosis: patterns and regions side by side


def test_separation_gives_the_auc_of_normal_groups_and_unknown_numbers_are_refused():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [60, 80]))
    scores, regions = rng.standard_normal((140, 2)), 100 * rng.standard_normal((140, 10))
    scores[:, 0] += 1.5 * y
    regions[:, 0] += 75 * y
    auc = diagnosis_auc(scores, regions, y, n_splits=4).set_index("features").auc
    # Two normal groups d sd apart have the area Φ(d / √2): 0.856 for 1.5, 0.702 for 0.75.
    assert auc["R-indices"] == pytest.approx(0.856, abs=0.06)
    assert 0.55 < auc["regions"] < 0.76
    assert auc["difference"] == pytest.approx(auc["R-indices"] - auc["regions"])
    refused_with(".", diagnosis_auc, np.where(y[:, None] == 1, np.nan, scores), regions, y)
