import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import beta, kstest, norm, uniform

from rindices.problems import InputError
from rindices.simulate import ReferencePopulation, simulate_cohort

UNLIKE, NAMES = [[1, 0.7, -0.2], [0.7, 1, 0.1], [-0.2, 0.1, 1]], ["s1", "s2", "s3"]
LAWS = {"uniform": uniform, "mild": beta(1, 3), "severe": beta(3, 1)}


@pytest.mark.parametrize(("asked", "expected"), [(None, np.eye(3)), (0.5, 0.5 + 0.5 * np.eye(3)), (UNLIKE, UNLIKE)])
def test_severities_are_uniform_and_correlated_as_asked(asked, expected):
    severities = simulate_cohort(n_controls=1, n_patients=20_000, severity_correlation=asked).truth[NAMES].to_numpy().T
    assert min(kstest(column, "uniform").pvalue for column in severities) > 0.001
    ranks = 6 / np.pi * np.arcsin(np.array(expected) / 2)  # of two uniforms joined by a Gaussian copula
    assert np.abs(np.corrcoef(severities) - ranks).max() < 0.03


def test_uniform_severities_are_the_levels_of_the_normal_draws():
    truth = simulate_cohort(n_controls=5, n_patients=200, seed=7, severities="uniform").truth
    drawn = ndtr(np.random.default_rng(7).spawn(5)[2].standard_normal((200, 3)))
    np.testing.assert_array_equal(truth[NAMES].sort_values("s1"), drawn[np.argsort(drawn[:, 0])])


@pytest.mark.parametrize("age", [0.0, -0.6])
@pytest.mark.parametrize("law", LAWS)
def test_a_distribution_stays_with_correlated_patterns_and_with_age(law, age):
    cohort = simulate_cohort(n_patients=20_000, severities=law, severity_correlation=0.5, severity_age=age)
    severities = cohort.truth[NAMES].to_numpy().T
    assert min(kstest(column, LAWS[law].cdf).pvalue for column in severities) > 0.001
    ages = cohort.table.loc[cohort.table["diagnosis"] == "PT", "age"].rank() / 20_001
    found = np.corrcoef(norm.ppf([ages, *LAWS[law].cdf(severities)]))
    assert np.abs(found[0, 1:] - age).max() < 0.02
    assert np.abs(found[1:, 1:][np.triu_indices(3, 1)] - (age**2 + (1 - age**2) * 0.5)).max() < 0.02
    assert ("with age is -0.6" in cohort.note) == (age != 0)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_patterns_are_absent_in_half_of_the_patients(correlation):
    cohort = simulate_cohort(n_patients=20_000, severities="absent", severity_correlation=correlation)
    severities = cohort.truth[NAMES].to_numpy().T
    both = 1 / 4 + np.arcsin(correlation) / (2 * np.pi)  # of two normal scores below 0
    np.testing.assert_allclose((severities == 0).mean(axis=1), 0.5, atol=0.015)
    assert ((severities[0] == 0) & (severities[1] == 0)).mean() == pytest.approx(both, abs=0.015)
    assert min(kstest(column[column > 0], "uniform").pvalue for column in severities) > 0.001
    assert "absent in half of the patients" in cohort.note


def test_patients_are_whole_rows_of_a_given_table():
    table = pd.DataFrame(np.random.default_rng(0).beta(1, 3, (50, 3)), columns=NAMES)
    mixed = table[["s2", "s3", "s1"]].assign(participant_id="p")
    cohort, same = (simulate_cohort(n_patients=400, severities=given) for given in (mixed, table.to_numpy()))
    pd.testing.assert_frame_equal(cohort.truth, same.truth)
    counts = cohort.truth.merge(table.reset_index(), how="left", on=NAMES)["index"].value_counts()
    assert (counts.sum(), len(counts)) == (400, 50)
    assert "50 rows of the table provided" in cohort.note
    assert (simulate_cohort("null", n_patients=9, severities=table).truth[NAMES] == 0).all(axis=None)


FINE, PEOPLE = np.full((4, 3), 0.5), ReferencePopulation.load().draw(30, np.random.default_rng(0))


@pytest.mark.parametrize(
    "options",
    [
        *({"severities": given} for given in ("mildly", FINE[:, :2], FINE[:0], FINE * 2.1, np.where(FINE, np.nan, 0))),
        {"severities": pd.DataFrame(FINE, columns=["s1", "s2", "s4"])},
        {"severities": pd.DataFrame(FINE, columns=["s1", "s2", "s2"])},
        {"severities": pd.DataFrame(FINE, columns=NAMES).assign(s2="high")},
        {"severities": FINE, "severity_correlation": 0.0},
        {"severities": FINE, "severity_age": 0.2},
        *({"severity_age": value} for value in (1.0, -1.0, np.nan)),
        *({"severity_age": 0.2, "controls": PEOPLE.assign(age=value)} for value in (60, np.nan, "old")),
        {"severity_age": 0.2, "controls": PEOPLE.drop(columns="age")},
    ],
)
def test_severities_that_cannot_be_are_refused(options):
    with pytest.raises(InputError):
        simulate_cohort(**options)
