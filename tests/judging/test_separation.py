"""The AUC of patients versus controls whom the rule was not learned from, and its interval."""

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from rindices.judging import verdict_and_separation
from rindices.judging.verdict_and_separation import separated


def people(shift, seed, n=40, n_regions=12):
    rng, patient = np.random.default_rng(seed), np.arange(2 * n) >= n
    return 100 + rng.normal(size=(2 * n, n_regions)) + shift * patient[:, None], patient


def test_groups_that_do_not_differ_have_an_auc_of_a_half_and_the_interval_holds_it():
    found = [separated(*people(0.0, seed)) for seed in range(12)]
    assert abs(np.mean([one.auc for one in found]) - 0.5) < 0.08
    assert sum(one.low <= 0.5 <= one.high for one in found) >= 10
    width = np.mean([one.high - one.low for one in found])
    fixed_rule = 2 * 1.96 * np.sqrt((80 + 1) / (12 * 40 * 40))  # Hanley and McNeil at 0.5
    assert width > 1.15 * fixed_rule


def test_a_rule_that_is_given_and_knows_nothing_has_the_variance_of_mann_and_whitney():
    assert verdict_and_separation._fixed_rule(0.5, 40, 30) == pytest.approx((40 + 30 + 1) / (12 * 40 * 30))


def test_the_discriminant_is_that_of_scikit_learn_also_with_a_region_that_never_varies_in_patients():
    regions, patient = people(0.5, 1)
    regions[patient, 3] = 101
    own = verdict_and_separation._discriminant(regions[~patient], regions[patient])
    other = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(regions, patient).coef_[0]
    assert own / np.linalg.norm(own) == pytest.approx(other / np.linalg.norm(other), abs=1e-9)


def test_the_interval_stays_inside_and_follows_the_difference():
    low, high = separated(*people(0.3, 0)), separated(*people(3.0, 0))
    assert 0 < low.low < low.auc < low.high < 1
    assert high.auc > 0.99
    assert 0.9 < high.low < high.high <= 1


def test_few_people_and_small_sites_have_none():
    assert separated(*people(1.0, 0, n=9)) is None
    regions, patient = people(1.0, 0)
    assert separated(regions, patient, pd.DataFrame({"kind": [*"ab" * 39, "c", "d"]})) is None


@pytest.mark.parametrize("older", [0.0, 2.0])
def test_covariates_are_removed_in_each_fold(older):
    regions, patient = people(0.0, 3)
    age = np.random.default_rng(4).normal(size=len(patient)) + older * patient
    found = separated(regions + age[:, None], patient, pd.DataFrame({"age": age}))
    assert found.low < 0.5 < found.high
