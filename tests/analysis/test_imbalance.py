"""The test of all background variables together: its error rate, sites, what counts more, and gaps."""

import numpy as np
import pandas as pd
import pytest

from rindices.analysis import group_balance
from rindices.analysis.imbalance import corrected_p


def test_many_variables_are_no_more_often_called_different_than_one():
    rng, patient = np.random.default_rng(0), np.arange(60) >= 30
    found = [corrected_p(pd.DataFrame(rng.normal(size=(60, 15))), patient, seed=seed).min() for seed in range(40)]
    assert np.mean(np.array(found) <= 0.05) <= 0.15  # one in 40 expected beyond that; 0.54 if each had its own p


def test_p_of_one_variable_is_that_of_a_permutation_test():
    rng, patient = np.random.default_rng(1), np.arange(40) >= 20
    value = rng.normal(size=40) + 0.6 * patient
    own = abs(value[patient].mean() - value[~patient].mean())
    shuffled = [rng.permutation(patient) for _ in range(4000)]
    expected = np.mean([abs(value[one].mean() - value[~one].mean()) >= own for one in shuffled])
    assert corrected_p(pd.DataFrame({"x": value}), patient)[0] == pytest.approx(expected, abs=0.03)


def test_a_difference_between_sites_is_that_of_the_site():
    rng = np.random.default_rng(2)
    site = pd.Series(np.repeat(["A", "B"], 100))
    patient = np.arange(200) % 100 < np.where(site == "A", 30, 70)
    people = pd.DataFrame({"age": rng.normal(size=200) + 2 * (site == "B"), "site": site})
    alone, within = corrected_p(people, patient), corrected_p(people, patient, site)
    assert alone.max() < 0.01
    assert within[0] > 0.05
    assert within[1] < 0.01


def test_what_regions_go_with_counts_more():
    rng, patient = np.random.default_rng(3), np.arange(200) >= 100
    age = rng.normal(size=200) + 0.35 * patient
    people = pd.DataFrame({"age": age} | {f"x{k}": rng.normal(size=200) for k in range(19)})
    regions = age[:, None] + rng.normal(size=(200, 10)) - 2 * patient[:, None]
    assert corrected_p(people, patient, regions=regions)[0] < corrected_p(people, patient)[0] / 2


def test_gaps_are_among_the_variables_and_what_cannot_be_compared_has_no_p():
    rng, patient = np.random.default_rng(4), np.arange(80) >= 40
    regions = pd.DataFrame(rng.normal(size=(80, 10)))
    people = pd.DataFrame({"age": rng.normal(size=80), "same": 1.0, "unknown": np.nan})
    assert group_balance(people, patient, regions=regions)["variable"].tolist() == list(people)
    gaps = regions.mask(patient[:, None] & (rng.random((80, 10)) < 0.2))
    found = group_balance(people, patient, regions=gaps).set_index("variable")
    assert found.index[-1] == "number of missing regions"
    assert found["imbalanced"].tolist() == [False, False, False, True]
    assert found["p_corrected"].isna().tolist() == [False, True, True, False]
    assert group_balance(people[["unknown"]], patient)["p_corrected"].isna().all()
