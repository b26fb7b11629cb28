"""Halves of cohorts whose patterns are known, or that have none."""

import numpy as np
import pytest

from rindices.judging.agreement_and_misfit import (
    FAILED,
    halves_agreement,
    matched_concordance,
    pattern_concordance,
    suited,
)
from rindices.linear import METHODS
from tests.linear.test_factors import N_REGIONS, cohort, dense_maps, sparse_maps


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_matched_concordance_is_about_that_of_pairs(correlation):
    rng = np.random.default_rng(int(10 * correlation))
    first = rng.standard_normal((800, 3))
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.standard_normal(first.shape)
    found = matched_concordance(first, np.exp(second)[:, [2, 0, 1]])  # only ranks count
    assert found == pytest.approx(pattern_concordance(first, second[:, [2, 0, 1]]), abs=0.02)
    assert found == matched_concordance(np.exp(second)[:, [2, 0, 1]], first)


@pytest.mark.parametrize("law", [np.random.Generator.uniform, np.random.Generator.exponential])
def test_matched_concordance_of_scores_that_are_not_normal_is_near_that_of_pairs(law):
    rng = np.random.default_rng(1)
    first = law(rng, size=(800, 2))
    second = first + 0.5 * first.std() * rng.standard_normal(first.shape)
    assert matched_concordance(first, second) == pytest.approx(pattern_concordance(first, second), abs=0.02)


def test_equal_models_agree_perfectly():
    scores = np.random.default_rng(0).standard_normal((50, 3))
    assert matched_concordance(scores, scores[:, [1, 2, 0]]) == pytest.approx(1)
    assert matched_concordance(scores[:, :1], scores[:, :1]) == pytest.approx(1)


@pytest.mark.parametrize("disjoint_controls", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_halves_of_a_cohort_with_patterns_agree(method, disjoint_controls):
    controls, patients, _ = cohort(sparse_maps(2) if method == "sparse" else dense_maps(2))
    assert halves_agreement(controls, patients, 2, method, disjoint_controls=disjoint_controls, n_splits=1) > 0.8


def test_halves_without_disease_hardly_agree():
    controls, patients, _ = cohort(np.zeros((1, N_REGIONS)))
    assert halves_agreement(controls, patients, 2, "sparse", disjoint_controls=True, n_splits=2) < 0.65


def test_same_seed_gives_the_same_halves():
    controls, patients, _ = cohort(sparse_maps(2))
    first, again, other = (
        halves_agreement(controls, patients, 2, "ica", disjoint_controls=True, n_splits=1, seed=seed)
        for seed in (1, 1, 2)
    )
    assert first == again != other


def test_halves_share_no_patient_and_controls_only_if_asked_to(monkeypatch):
    controls, patients = np.arange(11.0)[:, None], 100 + np.arange(7.0)[:, None]
    asked = []

    def fitted(healthy, sick, n_patterns, seed, quick=False):
        asked.append((set(healthy[:, 0]), set(sick[:, 0])))
        if seed:
            raise np.linalg.LinAlgError
        return _Flat()

    monkeypatch.setitem(METHODS, "sparse", fitted)
    # A half that cannot be fitted agrees by chance.
    for disjoint in (True, False):
        asked.clear()
        assert halves_agreement(controls, patients, 1, "sparse", disjoint_controls=disjoint, n_splits=1) == FAILED
        (healthy, sick), (other_healthy, other_sick) = asked
        assert (sick & other_sick, sick | other_sick) == (set(), set(patients[:, 0]))
        assert healthy | other_healthy == set(controls[:, 0])
        assert healthy & other_healthy == (set() if disjoint else set(controls[:, 0]))


class _Flat:
    def severities(self, people):
        return people


@pytest.mark.parametrize(("maps", "expected"), [(dense_maps(3), "ica"), (sparse_maps(3), "sparse")])
def test_the_method_that_suits_the_maps_is_preferred(maps, expected):
    controls, patients, _ = cohort(maps)
    method, values = suited(controls, patients, 3)
    assert (method, set(values)) == (expected, {"sparse", "ica"})
    assert values[expected] > 0.8
