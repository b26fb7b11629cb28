import numpy as np
import pytest
from diagnosis import diagnosis_auc
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from rindices.analysis import diagnosis
from rindices.errors import InputError


@pytest.fixture(scope="module")
def people():
    """Controls and patients whose first score differs by 1.5 sd; regions hold half of it, and noise."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [60, 80]))
    scores = rng.standard_normal((140, 2))
    scores[:, 0] += 1.5 * y
    regions = rng.standard_normal((140, 10)) * 100
    regions[:, 0] += 75 * y
    return scores, regions, y


def test_separation_gives_the_auc_of_normal_groups(people):
    scores, regions, y = people
    table = diagnosis_auc(scores, regions, y, n_splits=4).set_index("features")
    # Two normal groups d sd apart have the area Φ(d / √2): 0.856 for 1.5, 0.702 for 0.75.
    assert table.auc["R-indices"] == pytest.approx(0.856, abs=0.06)
    assert 0.55 < table.auc["regions"] < 0.76
    assert table.auc["difference"] == pytest.approx(table.auc["R-indices"] - table.auc["regions"])
    assert table.n_features[["R-indices", "regions"]].tolist() == [2, 10]
    assert (table.n_splits == 4).all()
    assert (table.sd > 0).all()


def test_noise_tells_nothing(people):
    y = people[2]
    noise = np.random.default_rng(1).standard_normal((140, 3))
    table = diagnosis_auc(noise, noise[:, :1], y, n_splits=3).set_index("features")
    assert table.auc["R-indices"] == pytest.approx(0.5, abs=0.15)


def test_curved_differences_are_seen(people):
    _, regions, y = people
    around = np.random.default_rng(2).standard_normal((140, 2)) * np.where(y == 1, 4, 1)[:, None]
    assert diagnosis_auc(around, regions, y, n_splits=1).auc[0] > 0.8


def test_people_left_out_are_not_seen_in_training(people, monkeypatch):
    """A search that remembers what it was given finds all outer splits apart, and scores by the people left out."""
    scores, regions, y = people
    seen = []

    class Search:
        def __init__(self, pipeline, grid, *, scoring, cv):
            assert [name for name, _ in pipeline.steps] == ["standardscaler", "svc"]
            assert scoring == "roc_auc"

        def fit(self, features, labels):
            self.trained = {tuple(row) for row in features}

        def decision_function(self, features):
            assert not self.trained & {tuple(row) for row in features}
            seen.append(len(features))
            return features[:, 0]

    monkeypatch.setattr(diagnosis, "GridSearchCV", Search)
    table = diagnosis_auc(scores, regions, y, n_splits=4, test_size=0.25, seed=7)
    assert seen == [35] * 8
    splits = StratifiedShuffleSplit(4, test_size=0.25, random_state=7).split(scores, y)
    expected = np.array([[roc_auc_score(y[test], x[test, 0]) for x in (scores, regions)] for _, test in splits])
    np.testing.assert_allclose(table.auc[:2], expected.mean(axis=0))
    np.testing.assert_allclose(table.sd[:2], expected.std(axis=0, ddof=1))
    assert table.sd[2] == pytest.approx((expected[:, 0] - expected[:, 1]).std(ddof=1))


def test_the_seed_decides(people):
    scores, regions, y = people
    first = diagnosis_auc(scores, regions, y, n_splits=1, seed=1)
    assert first.equals(diagnosis_auc(scores, regions, y.astype(bool), n_splits=1, seed=1, n_jobs=1))
    assert not first.equals(diagnosis_auc(scores, regions, y, n_splits=1, seed=2))


def test_wrong_input_is_refused(people):
    scores, regions, y = people
    with pytest.raises(InputError, match="`r_indices` should have one row a person, 140 in all; it has 139"):
        diagnosis_auc(scores[1:], regions, y)
    with pytest.raises(InputError, match="At least 10 controls"):
        diagnosis_auc(scores, regions, np.arange(140) < 5)
    with pytest.raises(InputError, match="R-indices should be a table of finite numbers"):
        diagnosis_auc(np.where(y[:, None] == 1, np.nan, scores), regions, y)
