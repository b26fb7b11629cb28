import numpy as np
import pandas as pd
import pytest
from reproducibility import split_half
from scipy.stats import pearsonr
from sklearn.base import BaseEstimator, TransformerMixin

from rindices.judging.agreement_and_misfit import compare, pattern_concordance
from rindices.problems import InputError

N_CONTROLS, N_PATIENTS = 30, 50


class Reader(TransformerMixin, BaseEstimator):
    """Knows the patterns and reads them from the regions; what it is trained on only shifts and shuffles them."""

    def __init__(self, noise=0.0, random_state=0):
        self.noise = noise
        self.random_state = random_state

    def fit(self, X, y, covariates=None):
        self.trained_on_ = list(X.index) if isinstance(X, pd.DataFrame) else None
        self.labels_ = np.asarray(y)
        self.covariates_ = covariates
        rng = np.random.default_rng(self.random_state)
        self.order_ = np.roll(np.arange(3), self.random_state % 3)
        self.maps_ = -np.eye(3)[self.order_] + self.noise * rng.standard_normal((3, 3))
        MADE.append(self)
        return self

    def transform(self, X, covariates=None):
        assert (covariates is None) == (self.covariates_ is None)
        return np.asarray(X, float) @ self.maps_.T

    def pattern_maps(self, X, covariates=None):
        PEOPLE.append(len(X))
        regions = np.tile(["a", "b", "c"], 3)
        return pd.DataFrame(
            {"region": regions, "pattern": np.repeat([1, 2, 3], 3), "change_sd": self.maps_.ravel(), "other": 0}
        )


class Blind(Reader):
    """Has no maps."""

    @property
    def pattern_maps(self):
        raise AttributeError("no maps")


MADE, PEOPLE = [], []


@pytest.fixture
def cohort():
    MADE.clear()
    PEOPLE.clear()
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [N_CONTROLS, N_PATIENTS]))
    truth, X = rng.uniform(size=(N_PATIENTS, 3)), 0.1 * rng.standard_normal((len(y), 3))
    X[y == 1] -= truth
    return pd.DataFrame(X, columns=list("abc"), index=[f"p{i}" for i in range(len(y))]), y, truth


def test_halves_are_apart_stratified_and_repeatable(cohort):
    X, y, _ = cohort
    found = split_half(Reader(), X, y, seed=4)
    first, second = MADE
    assert set(first.trained_on_) | set(second.trained_on_) == set(X.index)
    assert not set(first.trained_on_) & set(second.trained_on_)
    for k, model in ((1, first), (2, second)):
        assert model.trained_on_ == list(X.index[found.half == k])
        np.testing.assert_array_equal(model.labels_, y[found.half == k])
        assert (model.labels_.sum(), len(model.labels_)) == (N_PATIENTS // 2, (N_CONTROLS + N_PATIENTS) // 2)
    assert first.random_state != second.random_state
    np.testing.assert_array_equal(split_half(Reader(), X, y, seed=4).half, found.half)
    assert (split_half(Reader(), X, y, seed=5).half != found.half).any()


def test_numbers_follow_their_definitions(cohort):
    X, y, truth = cohort
    found = split_half(Reader(noise=0.3), X, y, seed=1, truth=truth)
    first, second = (X.to_numpy() @ model.maps_.T for model in MADE)
    order = found.patterns["matched"].to_numpy() - 1
    np.testing.assert_allclose(found.r_indices, np.stack([first, second[:, order]]))
    patient = y == 1
    for row, inside in zip(
        found.agreement.itertuples(), [found.half == 1, found.half == 2, found.half > 0], strict=True
    ):
        chosen = patient & inside
        expected = compare(first[chosen], second[chosen])
        assert (row.n_patients, row.pattern_agreement) == (chosen.sum(), pytest.approx(expected.pattern_agreement))
        assert row.difference_correlation == pytest.approx(expected.difference_correlation)
        assert row.concordance_half1 == pytest.approx(pattern_concordance(truth[inside[patient]], first[chosen]))
        assert row.concordance_half2 == pytest.approx(pattern_concordance(truth[inside[patient]], second[chosen]))
    np.testing.assert_array_equal(found.held_out[found.half == 1], found.r_indices[1, found.half == 1])
    for i, row in enumerate(found.patterns.itertuples()):
        assert row.correlation == pytest.approx(pearsonr(first[patient, i], second[patient, order[i]])[0])
        maps = MADE[0].maps_[i], MADE[1].maps_[order[i]]
        assert row.map_correlation == pytest.approx(pearsonr(*maps)[0])
        np.testing.assert_allclose(found.maps.loc[found.maps["pattern"] == i + 1, ["half1", "half2"]].T, maps)
    assert PEOPLE == [N_CONTROLS, N_CONTROLS]


def test_covariates_are_halved_like_people(cohort):
    X, y, _ = cohort
    age = pd.DataFrame({"age": np.arange(len(X))}, index=X.index)
    found = split_half(Reader(), X, y, age)
    for k, model in enumerate(MADE, start=1):
        np.testing.assert_array_equal(model.covariates_["age"], np.flatnonzero(found.half == k))
    MADE.clear()
    split_half(Reader(), X.to_numpy(), y, age.to_numpy())
    np.testing.assert_array_equal(MADE[0].covariates_.ravel(), np.flatnonzero(found.half == 1))


def test_estimators_without_maps_are_welcome(cohort):
    X, y, _ = cohort
    found = split_half(Blind(), X, y)
    assert found.maps.empty
    assert found.patterns["map_correlation"].isna().all()
    assert "concordance_half1" not in found.agreement


@pytest.mark.parametrize("wrong", [{"y": np.arange(80) == 3}, {"y": np.zeros(79)}])
def test_wrong_input_is_refused(cohort, wrong):
    X, y, _ = cohort
    with pytest.raises(InputError):
        split_half(Reader(), X, **{"y": y} | wrong)
